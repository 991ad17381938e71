"""Schedules over several rounds: a program in the jobs' shares of types and intervals, solved anew each round (H20).

max sum_jkq U_jk a_jq x_jkq, where x_jkq is the number of rounds that job j spends on W_j GPUs of type q in interval k.
This relaxes (2) to (2c): a job earns its utility in proportion to its work, at the earliest end that the interval
allows.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from copter import Model, PrivateRows, Session, Settings, Solution
from copter.runtime.errors import SettingsError
from copter_frontends.policies.hadar.job_book import Floats, Ints, JobBook
from copter_frontends.policies.hadar.round_values import (
    NO_VALUE,
    RoundTerms,
    RoundValues,
    eligible_gpus,
    job_states,
    revalued,
)
from copter_frontends.policies.hadar.utility import Utility

CANNOT = -1.0  # cost, in the model's units, of a column on which the job cannot run
LEAN = 1e-3  # share of its worth that work loses from the first to the last interval, so that work is done early
TIE = 1e-2  # weight of a single round's worths (H3), which break ties of the duals
LEAST_TAU = 1e-6  # lower limit of a job's remaining rounds, so that its worth per round stays finite


@dataclass(frozen=True, slots=True)
class Horizon:
    """The planning horizon: the coming round, growing intervals, and everything later.

    Parameters
    ----------
    intervals : int
        Number of intervals; the first is the coming round.
    growth : float
        Factor from one interval's length to the next; 1 for single rounds.
    """

    intervals: int = 12
    growth: float = 1.5

    def __post_init__(self) -> None:
        if self.intervals < 1 or not 1.0 <= self.growth <= 16.0:
            raise SettingsError(f"intervals is {self.intervals} and growth {self.growth}; must be >= 1, and 1 to 16")

    @property
    def lengths(self) -> Ints:
        """Number of rounds of each interval, (intervals,)."""
        result: Ints = np.maximum(np.floor(self.growth ** np.arange(self.intervals) + 1e-9), 1.0).astype(np.int64)
        return result

    @property
    def starts(self) -> Ints:
        """Return the number of rounds before each interval and before the time after the last one, (intervals + 1,)."""
        return np.asarray(np.concatenate(([0], np.cumsum(self.lengths))))


@dataclass(frozen=True, slots=True)
class Ahead:
    """The program's solution for the coming round.

    Attributes
    ----------
    shares : float64 array (n, types)
        Share of the round on each type.
    prices : float64 array (types,)
        Worth of one more GPU in the round.
    rest : float64 array (n,)
        Worth of one round of a job's work at its best rate if it is done later: the dual of its work row.
    """

    shares: Floats
    prices: Floats
    rest: Floats


class HorizonFormulation:
    """The multi-round program: one request per job, with private rows for its work and its intervals.

    Parameters
    ----------
    types : tuple of str
    capacity : int64 array (types,)
    horizon : Horizon
    settings : copter.Settings

    Attributes
    ----------
    scale : float
        Power of two that scales the model's largest value to about one.
    """

    def __init__(self, types: tuple[str, ...], capacity: Ints, horizon: Horizon, settings: Settings) -> None:
        self.types, self.horizon = types, horizon
        self.capacity = np.array(capacity, dtype=np.int64)
        self.model = Model(sense="max")
        self.lengths, self.starts = horizon.lengths, horizon.starts
        self.names = [(name, k) for k in range(horizon.intervals) for name in types]
        for name, count in zip(self.names, np.tile(self.capacity, horizon.intervals).tolist(), strict=True):
            self.model.add_resource(name, count * int(self.lengths[name[1]]))
        self.session = Session(self.model, settings)
        self.scale = 1.0
        self._sent: dict[str, bytes] = {}  # rates with which each job's request was written

    def refresh(self, book: JobBook, utility: Utility, terms: RoundTerms) -> None:
        """Update the program: added and removed jobs, completed work, elapsed time."""
        if not np.array_equal(self.capacity, terms.capacity):
            self.capacity = terms.capacity.copy()
            counts = np.tile(self.capacity, len(self.lengths)) * np.repeat(self.lengths, len(self.types))
            self.model.update_counts(self.names, counts)
        speed = relative_speed(book, terms.capacity)
        tau = self.rest_rounds(book, terms)
        cost = self.costs(book, utility, terms, speed, tau)
        largest = float(cost.max(initial=0.0))
        if largest > 0:
            self.scale = float(2.0 ** -np.round(np.log2(largest)))
        cost = np.where(np.isfinite(cost), cost * self.scale, CANNOT)
        ids = [job.id for job in book.jobs]
        written = {job: speed[row].tobytes() + book.gpus[row].tobytes() for row, job in enumerate(ids)}
        with self.model.batch():
            self.model.remove_requests([job for job, rates in self._sent.items() if written.get(job) != rates])
            old = np.array([self._sent.get(job) == written[job] for job in ids], dtype=bool)
            for row in np.flatnonzero(~old).tolist():
                self._add(ids[row], cost[row], speed[row], int(book.gpus[row]), float(tau[row]))
            kept = np.flatnonzero(old)
            names = [ids[row] for row in kept.tolist()]
            self.model.update_costs(names, cost[kept])
            self.model.update_row_bounds(names, None, tau[kept], row=0)
        self._sent = written

    @staticmethod
    def rest_rounds(book: JobBook, terms: RoundTerms) -> Floats:
        """Rounds that each job still needs at its best rate, (n,), not rounded."""
        best = np.maximum(book.rates.max(axis=1, initial=0.0), 1e-300)
        left = np.maximum(book.total * (1.0 - book.progress), 0.0)
        return np.asarray(np.maximum(left / (best * terms.round_s), LEAST_TAU))

    def costs(self, book: JobBook, utility: Utility, terms: RoundTerms, speed: Floats, tau: Floats) -> Floats:
        """Return the worth of a round of each job on each type in each interval, and of its later work; -inf if
        impossible.
        """
        value = self.values(book, utility, terms, tau)
        lean = 1.0 - LEAN * np.arange(len(self.lengths) + 1) / len(self.lengths)
        value = value * lean
        each = value[:, :-1, None] * speed[:, None, :] / tau[:, None, None]
        each[np.broadcast_to((speed <= 0)[:, None, :], each.shape)] = -np.inf
        return np.asarray(
            np.concatenate([each.reshape(len(tau), len(self.names)), (value[:, -1] / tau)[:, None]], axis=1)
        )

    def values(self, book: JobBook, utility: Utility, terms: RoundTerms, tau: Floats) -> Floats:
        """Return U_jk, (n, intervals + 1): the worth of ending in each interval, or later, at the earliest time.

        A utility that is constant over short times (`horizon_s` infinite) is replaced by one that falls linearly over
        the time ahead; with equal worths this gives the sum of completion times.
        """
        age_s = np.maximum(terms.now_s - book.submit_s, 0.0)[:, None]
        ends = np.maximum(self.starts[None, :] + 1.0, np.ceil(tau - 1e-9)[:, None])
        left = np.maximum(book.total * (1.0 - book.progress), 0.0)[:, None]
        states = job_states(book, terms, age_s, left)
        value = np.asarray(utility(age_s + ends * terms.round_s, states), dtype=np.float64)
        if getattr(utility, "horizon_s", 0.0) == np.inf:
            value = value * np.maximum(1.0 - ends / (2.0 * max(float(ends.max(initial=1.0)), 1.0)), 0.0)
        return value

    def solve(self, deadline_s: float | None = None) -> Solution:
        """Solve the program from the last round's state."""
        return self.session.solve(deadline_s=deadline_s)

    def bound_of(self, solution: Solution) -> float:
        """Return a certified bound on the utility of all schedules from now on."""
        return solution.bound / self.scale / (1.0 - LEAN)

    def ahead(self, solution: Solution, book: JobBook) -> Ahead:
        """Return the coming round's part of a solution."""
        ids, kinds = [job.id for job in book.jobs], len(self.types)
        prices = np.maximum(solution.prices(self.names[:kinds]), 0.0) / self.scale
        if not ids:
            return Ahead(np.zeros((0, kinds)), prices, np.zeros(0))
        offsets, x = solution.values_of(ids)
        first, duals = solution.private_duals(ids)
        return Ahead(
            np.clip(x[offsets[:-1, None] + np.arange(kinds)], 0.0, 1.0),
            prices,
            np.maximum(duals[first[:-1]], 0.0) / self.scale,
        )

    def shadow_values(
        self, values: RoundValues, book: JobBook, utility: Utility, terms: RoundTerms, ahead: Ahead
    ) -> RoundValues:
        """Return the round's worths at the program's duals: the gain of doing work now instead of later."""
        tau = self.rest_rounds(book, terms)
        now = self.values(book, utility, terms, tau)[:, 0] / tau
        best = np.maximum(book.rates.max(axis=1, initial=0.0), 1e-300)
        gain = np.maximum(now - ahead.rest, 0.0)[:, None] * np.minimum(book.rates / best[:, None], tau[:, None])
        worth = np.where(values.worth > NO_VALUE, gain + TIE * np.maximum(values.worth, 0.0), NO_VALUE)
        return revalued(book, terms, values, worth)

    def _add(self, job_id: str, cost: Floats, speed: Floats, gpus: int, tau: float) -> None:
        kinds, intervals = len(self.types), len(self.lengths)
        count = kinds * intervals
        usage = np.zeros((count, count + 1))
        usage[np.arange(count), np.arange(count)] = gpus
        rows = np.zeros((1 + intervals, count + 1))
        rows[0, :count], rows[0, count] = np.tile(np.maximum(speed, 0.0), intervals), 1.0
        for k in range(intervals):
            rows[1 + k, k * kinds : (k + 1) * kinds] = 1.0
        upper = np.concatenate(([tau], self.lengths))
        table = {name: usage[i] for i, name in enumerate(self.names)}
        self.model.add_request(job_id, cost, table, limit=np.inf, private_rows=PrivateRows(rows, -np.inf, upper))


def relative_speed(book: JobBook, capacity: Ints) -> Floats:
    """Return each job's speed on each type relative to its best, (n, types); 0 if it cannot run.

    If a type has too few GPUs for the job, the speed is that of the fastest mixture that contains the type (H6).
    """
    rate = book.rates
    best = np.maximum(rate.max(axis=1, initial=0.0), 1e-300)[:, None]
    alone: NDArray[np.bool_] = (capacity >= book.gpus[:, None]) & (rate > 0)
    room = (eligible_gpus(rate, capacity) >= book.gpus[:, None]) & (rate > 0)
    under = room[:, None, :] & (rate[:, None, :] <= rate[:, :, None])
    mixed = np.where(under, rate[:, None, :], 0.0).max(axis=2, initial=0.0)
    return np.asarray(np.where(alone, rate, mixed) / best)
