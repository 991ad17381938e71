"""Families of a Model whose requests all have as many columns: sum x <= limit, 0 <= x <= upper, on shared rows."""

from __future__ import annotations

from abc import ABC, abstractmethod
from functools import lru_cache
from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp
from judge import Judge, Judged

from copter import Model, Session, Settings, Solution
from copter.shims import IDLE, IntegerPlan
from copter_frontends.replay.program import Program
from families.protocol import At, Floats, Ints, Outcome, Plan, SolverOptions, spans
from families.verdicts import require_same_value

CHUNK = 1 << 14  # columns of a part: as many as a processor keeps near it


class SessionSolver:
    """A session that is kept from round to round.

    Parameters
    ----------
    model : Model
    integer : bool
        Whether a round ends with a whole plan.
    options : SolverOptions
    """

    def __init__(self, model: Model, integer: bool, options: SolverOptions) -> None:
        self.integer = integer
        self.session = Session(
            model,
            Settings(
                threads=options.threads,
                tolerance=options.tolerance,
                time_limit_s=options.time_limit_s,
                method=options.method,
            ),
        )

    def solve(self) -> Outcome:
        """Solve, with a plan where one is asked for."""
        plan = self.session.solve_integer() if self.integer else None
        solution = self.session.last_solution if plan is not None else self.session.solve()
        if solution is None:
            raise RuntimeError("a session that has solved has no solution")
        return Outcome(
            status=solution.status.value,
            objective=solution.objective,
            bound=solution.bound,
            solve_s=solution.solve_time_s,
            passes=solution.pricing_passes,
            iterations=solution.iterations,
            answer=(solution, plan),
            plan=None if plan is None else Plan(plan.objective, plan.gap, plan.fractional_requests),
        )


class UniformFamily(ABC):
    """Base of the families whose requests are alike in size.

    The model is what copter sees. The arrays say the same in NumPy for the peers and the judge; they describe the round
    of the last :meth:`edit`, requests in the order they were added.

    Attributes
    ----------
    model : Model
    integer : bool
        Whether a round ends with a whole plan (limit 1 everywhere).
    columns : int
        Columns of a request, k.
    requests, departed, arrived : ndarray of int
        Ids in the model; those that the last edit took out and put in.
    limits, upper : ndarray (n,)
        Largest sum of a request's columns; upper bound of each.
    capacity : ndarray (rows,)
        Right-hand sides; resource ids are 0 to rows - 1.
    """

    changes: ClassVar[tuple[str, ...]] = ("churn",)
    integer: bool
    model: Model
    columns: int
    departed: Ints
    arrived: Ints
    capacity: Floats

    @property
    @abstractmethod
    def requests(self) -> Ints:
        """Ids in the model."""

    @property
    @abstractmethod
    def limits(self) -> Floats:
        """Largest sums, (n,)."""

    @property
    def upper(self) -> Floats:
        """Upper bounds of the requests' columns, (n,)."""
        return self.limits

    @property
    @abstractmethod
    def nonzeros(self) -> int:
        """Nonzeros of the resources' rows; the limits' rows add one a column."""

    @abstractmethod
    def costs(self, at: At) -> Floats:
        """Objective coefficients of the requests at these places, (m, k)."""

    @abstractmethod
    def pattern(self, at: At) -> tuple[Ints, Floats]:
        """(rows, coefficients), each (m, k, h): entries of the columns, padded with zeros; m is 1 when shared."""

    @property
    def counts(self) -> dict[str, int]:
        """Size of the round."""
        variables = self.model.n_columns
        sizes = {"jobs": len(self.requests), "rows": len(self.capacity), "variables": variables}
        return sizes | {"nonzeros": self.nonzeros + variables}

    def solver(self, options: SolverOptions) -> SessionSolver:
        """A session."""
        return SessionSolver(self.model, self.integer, options)

    # As arrays ----------------------------------------------------------------------------------------------------

    def matrix(self, at: slice) -> sp.csc_array:
        """Columns of some requests: all resources' rows, then the limits of these requests; not to be changed."""
        row, value = self.pattern(at)
        m, rows = at.stop - at.start, len(self.capacity)
        if row.shape[0] == 1:
            return repeated(row.shape, row.tobytes(), value.tobytes(), str(row.dtype), m, rows)
        return columns_of(row, value, m, rows)

    def program(self) -> Program:
        """The round as arrays: resources' rows, then limits in the requests' order."""
        n, k, rows = len(self.requests), self.columns, len(self.capacity)
        upper = np.repeat(self.upper, k)
        return Program(
            c=self.costs(slice(0, n)).ravel(),
            A=self.matrix(slice(0, n)),
            row_lower=np.full(rows + n, -np.inf),
            row_upper=np.concatenate((self.capacity, self.limits)),
            col_lower=np.zeros(n * k),
            col_upper=upper,
            column_key=(self.requests[:, None] * k + np.arange(k)).ravel(),
            row_key=np.concatenate((-1 - np.arange(rows), self.requests)),
            integrality=np.full(n * k, self.integer),
        )

    def point(self, outcome: Outcome) -> tuple[Floats, Floats]:
        """x and y as the solution has them."""
        solution: Solution = outcome.answer[0]
        return solution.x, solution.y

    def plan_columns(self, plan: IntegerPlan) -> Ints:
        """Column of every request in a plan, (n,), IDLE for none."""
        return plan.column_of_slot[[plan.slot_of[request] for request in self.requests.tolist()]].astype(np.int64)

    def whole(self, outcome: Outcome) -> tuple[Ints, Floats] | None:
        """Columns that a plan takes, one each."""
        plan: IntegerPlan | None = outcome.answer[1]
        if plan is None:
            return None
        column = self.plan_columns(plan)
        taken = np.flatnonzero(column != IDLE)
        return taken * self.columns + column[taken], np.ones(len(taken))

    # In parts -----------------------------------------------------------------------------------------------------

    def judged_in_parts(self, outcome: Outcome) -> Judged:
        """Judge the values that are not zero and the resources' prices, with the best dual of every limit for them."""
        solution, plan = outcome.answer
        n, k, rows = len(self.requests), self.columns, len(self.capacity)
        place, x = self.sparse_point(solution)
        price = np.array([solution.price(row) for row in range(rows)])
        found = Judge(np.full(rows, -np.inf), self.capacity, price, "max")
        column = np.full(n, IDLE) if plan is None else self.plan_columns(plan)
        used, value = np.zeros(rows), 0.0
        for at in spans(n, max(1, CHUNK // k)):
            cost, m, (row, coefficient) = self.costs(at), at.stop - at.start, self.pattern(at)
            worth = (cost - (coefficient * price[row]).sum(axis=2)).max(axis=1)
            dense, (first, last) = np.zeros(m * k), np.searchsorted(place, (at.start * k, at.stop * k))
            dense[place[first:last] - at.start * k] = x[first:last]
            own = np.full(m, -np.inf), self.limits[at], np.maximum(worth, 0.0)
            found.add(cost.ravel(), self.matrix(at), (np.zeros(m * k), np.repeat(self.upper[at], k)), dense, own)
            taken = np.flatnonzero(column[at] != IDLE)
            which = (taken if len(row) == m else np.zeros_like(taken), column[at][taken])
            np.add.at(used, row[which], coefficient[which])
            value += float(cost[taken, column[at][taken]].sum())
        judged = found.verdict()
        require_same_value(outcome, judged)
        if plan is not None:
            if (used > self.capacity * (1.0 + 1e-9) + 1e-9).any() or value > judged.safe_bound + 1e-6 * abs(value):
                raise SystemExit("the whole plan over-commits a resource, or is worth more than the bound")
            if abs(value - plan.objective) > 1e-9 * (1.0 + abs(value)):
                raise SystemExit(f"the whole plan says {plan.objective}, and is worth {value}")
        return judged

    def sparse_point(self, solution: Solution) -> tuple[Ints, Floats]:
        """Places of the columns that may not be zero, ascending, and their values."""
        found = {request: (columns, x) for request, columns, x in solution.by_request() if len(columns)}
        listed = [(at, *found[request]) for at, request in enumerate(self.requests.tolist()) if request in found]
        places = [at * self.columns + columns for at, columns, _ in listed]
        none = np.zeros(0, dtype=np.int64), np.zeros(0)
        return (np.concatenate(places), np.concatenate([x for _, _, x in listed])) if listed else none

    @abstractmethod
    def prepare(self) -> None:
        """Draw the next round's changes."""

    @abstractmethod
    def edit(self) -> None:
        """Apply the round's changes to the model."""

    def adopt(self, outcome: Outcome) -> None:
        """Take the plan in, where there is one."""
        plan: Any = outcome.answer[1]
        if plan is not None:
            self.take(self.plan_columns(plan))

    def take(self, column: Ints) -> None:
        """Remember the column that every request has, (n,), IDLE for none."""
        self.held = column


def columns_of(row: Ints, value: Floats, m: int, rows: int) -> sp.csc_array:
    """Columns of m requests by their entries, (m or 1, k, h): the resources' rows, then a limit of each request."""
    k = row.shape[1]
    shape = (m, k, row.shape[-1] + 1)
    whole_row, whole_value = np.empty(shape, dtype=np.int32), np.empty(shape)
    whole_row[..., :-1], whole_value[..., :-1] = row, value
    whole_row[..., -1], whole_value[..., -1] = rows + np.arange(m)[:, None], 1.0
    kept = whole_value != 0
    start = np.concatenate(([0], np.cumsum(kept.sum(axis=2).ravel()))).astype(np.int32)
    found = sp.csc_array((whole_value[kept], whole_row[kept], start), shape=(rows + m, m * k))
    found.sort_indices()
    return found


@lru_cache(maxsize=4)
def repeated(shape: tuple[int, ...], row: bytes, value: bytes, kind: str, m: int, rows: int) -> sp.csc_array:
    """As :func:`columns_of` of one pattern that all requests share, made once for as many requests."""
    return columns_of(np.frombuffer(row, kind).reshape(shape), np.frombuffer(value).reshape(shape), m, rows)
