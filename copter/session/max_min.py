"""Max-min and lexicographic fairness: levels that prices prove (docs/method/concave_worth.md, W18 to W20)."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence

import numpy as np
from numpy.typing import NDArray

from copter.problem.solution import Solution, Status
from copter.runtime.errors import DimensionError, InvalidDataError, NoPlanError
from copter.session.session import Session

Floats = NDArray[np.float64]

SERVED = 1e-8  # a request that lacks no larger share of what it asks for has it
PRICED = (
    1e-6  # a unit that is worth less than a whole one by more than this is paid for: its request can rise no further
)
HALVINGS = 100  # of a level, between one that is reached and one that is proven to be too high
MOST_PROGRAMS = 60  # for one level; then the last one is used


class MaxMin:
    """Totals of requests that rise together, until prices prove that some of them can rise no further; these stay.

    The session's model is a maximisation in which a column counts as much as it adds to its request's total: its cost
    is 1, and its usage is that of one unit of the total. The limits of the requests are edited here; all other edits
    are the caller's, between two of these objects, and each program starts from the last one.

    Parameters
    ----------
    session : Session
    requests : sequence of ids (k,)
    asked : callable
        The totals that the requests ask for at a level, (k,); none falls as the level rises.
    highest : float
        The level at which every request has all it asks for.

    Attributes
    ----------
    rising : ndarray (k,) of bool
        Requests that are not settled.
    held : ndarray (k,)
        Totals of the settled requests.
    level : float
        The last level; every request that is rising reaches it.
    bound : float
        No totals reach a higher first level.
    levels : list of float
        Levels at which requests were settled, ascending.
    programs : int
        Linear programs solved.
    solution : Solution
        The last one.

    Raises
    ------
    DimensionError, InvalidDataError, UnknownHandleError

    Examples
    --------
    >>> import copter
    >>> model = copter.Model(sense="max")
    >>> model.add_resource("gpu", 9)
    >>> for job, wanted in {"a": 1.0, "b": 6.0, "c": 8.0}.items():
    ...     model.add_request(job, [1.0], {"gpu": [1]}, limit=wanted)
    >>> fair = copter.MaxMin(copter.Session(model), "abc", lambda level: np.minimum(level, [1.0, 6.0, 8.0]), 8.0)
    >>> fair.run().tolist()
    [1.0, 4.0, 4.0]
    """

    solution: Solution

    def __init__(
        self, session: Session, requests: Sequence[Hashable], asked: Callable[[float], Floats], highest: float
    ) -> None:
        self.session, self.requests, self.asked = session, list(requests), asked
        self.highest = float(highest)
        if not 0.0 <= self.highest < np.inf:
            raise InvalidDataError(f"highest is {highest!r}, must be a finite level, zero or above")
        if session.model.sense != "max":
            raise InvalidDataError("totals rise in a maximisation: make the model with sense='max'")
        for request in self.requests:
            if session.model.worth(request) is not None or bool((session.model.cost(request) != 1.0).any()):
                raise InvalidDataError(
                    f"request {request!r}: columns must cost 1, as each counts in its total by itself"
                )
        self._whole = self._asked(self.highest)
        self.rising = self._whole > 0.0
        self.held, self.level, self.bound = np.zeros(len(self.requests)), 0.0, self.highest
        self.levels: list[float] = []
        self.programs = 0

    def run(self, most_levels: int | None = None) -> Floats:
        """Return the totals, (k,), in lexicographic order the best; after `most_levels`, no request has less than the
        last level.

        Raises
        ------
        NoPlanError
            If a program has no solution; limits are then what they were.
        """
        before = [self.session.model.limit(request) for request in self.requests]
        try:
            while self.rising.any() and (most_levels is None or len(self.levels) < most_levels):
                self._rise()
        except BaseException:
            self.session.model.update_limits(self.requests, before)
            raise
        return self.totals(self.level)

    def totals(self, level: float) -> Floats:
        """Return the totals when the rising requests are at a level."""
        return np.where(self.rising, self._asked(level), self.held)

    def served(self) -> Floats:
        """Return the totals of the last program, (k,)."""
        first, values = self.solution.values_of(self.requests)
        return np.add.reduceat(np.append(values, 0.0), first[:-1]) * (np.diff(first) > 0)

    def _asked(self, level: float) -> Floats:
        found = np.asarray(self.asked(level), dtype=np.float64)
        if found.shape != (len(self.requests),):
            raise DimensionError(f"asked({level!r}) has shape {found.shape}, must be ({len(self.requests)},)")
        if not bool((found >= 0.0).all() and np.isfinite(found).all()):
            raise InvalidDataError(f"asked({level!r}) must be finite numbers, zero or above")
        return found

    def _solved(self, wanted: Floats) -> tuple[bool, Floats, float]:
        """Solve with these totals as limits: (whether all have them, what is paid for a unit of each, all payments)."""
        with self.session.model.batch():
            self.session.model.update_limits(self.requests, wanted)
        self.solution = self.session.solve()
        self.programs += 1
        rest = self.solution.residuals
        if self.solution.status is not Status.OPTIMAL and not max(rest.primal, rest.dual, rest.gap) <= SERVED:
            raise NoPlanError(f"a program of a level ended {self.solution.status.value}")
        worth = np.clip(self.solution.limit_duals(self.requests), 0.0, 1.0)
        whole = bool((self.served() >= wanted * (1.0 - SERVED)).all())
        return whole, 1.0 - worth, self.solution.bound - float(worth @ wanted)

    def _rise(self) -> None:
        """Find the next level, from above, and settle the requests that prices prove to rise no further."""
        level, paid = self.highest, np.zeros(len(self.requests))
        for _ in range(MOST_PROGRAMS):
            whole, price, income = self._solved(self.totals(level))
            if whole:
                break
            lower = self._level_of(price, income, level)
            paid, close = price, lower >= level * (1.0 - SERVED)
            level = lower
            if close:
                break
        if not self.levels:
            self.bound = level
        found = self.totals(level)
        done = self.rising & ((found >= self._whole * (1.0 - SERVED)) | (paid > PRICED))
        if not done.any():  # rounding has hidden the prices
            done = self.rising.copy()
        self.held[done] = found[done]
        self.rising &= ~done
        self.level = level
        self.levels.append(level)

    def _level_of(self, price: Floats, income: float, level: float) -> float:
        """Return the highest level at which what all totals would pay is at most the income (W19)."""
        low, high = self.level, level
        for _ in range(HALVINGS):
            middle = 0.5 * (low + high)
            if not low < middle < high:
                break
            if float(price @ self.totals(middle)) <= income:
                low = middle
            else:
                high = middle
        return high if float(price @ self.totals(high)) <= income else low
