"""Values of a round on each GPU type to each job (docs/papers/hadar.md, H1 to H6)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from copter_frontends.policies.hadar.job_book import Floats, Ints, JobBook
from copter_frontends.policies.hadar.utility import JobStates, Utility

NO_VALUE = -1.0  # worth of a type on which the job cannot run: below zero, the worth of no GPUs
ROUNDING = 1e-9  # rounds; a job that would end at most this much after a round's end ends with the round


@dataclass(frozen=True, slots=True)
class RoundTerms:
    """Terms common to all jobs of a round.

    Attributes
    ----------
    now_s, round_s, restart_s : float
        Start of the round, its length L, and the seconds of a change of GPUs for jobs without their own value.
    spread_cost : float
        Share of its worth that a job loses if its tasks are on more servers than necessary.
    capacity : int64 array (types,)
        GPUs of each type.
    largest_node : int
        GPUs of the largest node.
    """

    now_s: float
    round_s: float
    restart_s: float
    spread_cost: float
    capacity: Ints
    largest_node: int = 1

    def moving(self, restart_s: Floats) -> Floats:
        """Return the share of a round's worth that is left after a change of GPUs, by the jobs' own seconds (NaN:
        the round's).
        """
        lost_s = np.where(np.isnan(restart_s), self.restart_s, restart_s)
        return np.asarray(1.0 - np.minimum(lost_s / self.round_s, 1.0))


@dataclass(frozen=True, slots=True)
class RoundValues:
    """Worth of one round to every job.

    Attributes
    ----------
    rate : float64 array (n, types)
        Iterations per second of the whole job, by the slowest type that it uses.
    worth : float64 array (n, types)
        u_jr of H3: utility per round when r is the slowest type used; NO_VALUE where the job cannot run.
    pure : float64 array (n, types)
        Worth of W_j GPUs of one type: H4, less the restart unless these are the job's current GPUs.
    mixed : float64 array (n, types)
        Worth of GPUs of several types, r the slowest.
    column : float64 array (n, types)
        The LP's costs: `pure` or, if one type has too few GPUs, the worth of the fastest mixture with it (H6).
    own : float64 array (n,)
        Worth of the job's current GPUs; zero if it has none.
    faults : mapping of row to str
        Jobs that are left out of this round, and why.
    """

    rate: Floats
    worth: Floats
    pure: Floats
    mixed: Floats
    column: Floats
    own: Floats
    faults: dict[int, str]


def round_values(book: JobBook, utility: Utility, terms: RoundTerms) -> RoundValues:
    """Compute the values of every job's options for the coming round."""
    rate = book.rates.copy()
    runs = rate > 0
    remaining = np.maximum(book.total * (1.0 - book.progress), 0.0)[:, None]
    rounds = rounds_left(remaining, rate, terms.round_s)
    rounds[~runs] = np.inf
    age_s = np.maximum(terms.now_s - book.submit_s, 0.0)[:, None]
    completion_s = np.where(runs, age_s + rounds * terms.round_s, np.inf)
    states = job_states(book, terms, age_s, remaining)
    usable = np.where(runs, completion_s, age_s + terms.round_s)
    value = np.asarray(utility(usable, states), dtype=np.float64)
    faults = _faults(book, value, rounds, runs)
    worth = np.where(runs, value / np.where(runs, rounds, 1.0), NO_VALUE)
    for row in faults:
        worth[row] = NO_VALUE
    has_room = _feasible_thresholds(book.gpus, rate, terms.capacity)
    for row in np.flatnonzero(~(has_room & runs).any(axis=1)).tolist():
        faults.setdefault(row, _no_room(book, row, runs[row], terms))
    return _with_moves(book, terms, rate, worth, has_room, faults)


def rounds_left(remaining: Floats, rate: Floats, round_s: float, lost: Floats | float = 0.0) -> Floats:
    """Return T_jr of H1: rounds for the `remaining` work, (n, 1), at rates (n, types); `lost` is the lost part of the
    first round.
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.asarray(np.maximum(np.ceil(remaining / (rate * round_s) + lost - ROUNDING), 1.0))


def revalued(book: JobBook, terms: RoundTerms, values: RoundValues, worth: Floats) -> RoundValues:
    """Return the values of the same round with other worths of the thresholds, (n, types)."""
    has_room = _feasible_thresholds(book.gpus, values.rate, terms.capacity)
    return _with_moves(book, terms, values.rate, worth, has_room, values.faults)


def job_states(book: JobBook, terms: RoundTerms, age_s: Floats, remaining: Floats) -> JobStates:
    """Return the facts that utilities may use; the isolated time is that on 1/n of every type (section III-A)."""
    best = np.maximum(book.rates.max(axis=1, initial=0.0), 1e-300)[:, None]
    gpus = max(int(terms.capacity.sum()), 1)
    average = np.maximum(book.rates @ (terms.capacity / gpus), 1e-300)[:, None]
    crowd = np.maximum(book.gpus[:, None] * len(book) / gpus, 1.0)
    total = book.total[:, None]
    return JobStates(total, book.gpus[:, None].astype(np.float64), age_s, remaining / best, total / average * crowd)


def _faults(book: JobBook, value: Floats, rounds: Floats, runs: NDArray[np.bool_]) -> dict[int, str]:
    """Return jobs whose utility is NaN, negative, or increasing in the completion time."""
    result: dict[int, str] = {}
    with np.errstate(invalid="ignore"):
        bad = runs & ~(np.isfinite(value) & (value >= 0))
        some = np.flatnonzero((value != value[:, :1]).any(axis=1))  # a value that is equal on all types cannot increase
        order = np.argsort(rounds[some], axis=1, kind="stable")
        sorted_value = np.take_along_axis(np.where(runs[some], value[some], -np.inf), order, axis=1)
        sorted_rounds = np.take_along_axis(rounds[some], order, axis=1)
        later = sorted_rounds[:, 1:] > sorted_rounds[:, :-1]
        rises = later & (sorted_value[:, 1:] > sorted_value[:, :-1] * (1 + 1e-9) + 1e-300)
    for row in np.flatnonzero(bad.any(axis=1)).tolist():
        at = int(np.flatnonzero(bad[row])[0])
        result[row] = f"its utility is {value[row, at]:g} on {book.types[at]!r}; utilities must be finite and >= 0"
    for row in some[rises.any(axis=1)].tolist():
        result.setdefault(
            row, "its utility is larger for a later completion; it must never rise in the completion time"
        )
    return result


def _feasible_thresholds(gpus: Ints, rate: Floats, capacity: Ints) -> NDArray[np.bool_]:
    """Return whether the types at least as fast as r together have W_j GPUs, (n, types)."""
    result = np.ones(rate.shape, dtype=bool)
    rows = np.flatnonzero(gpus > min(capacity.tolist(), default=0))  # the other jobs fit on any single type
    if len(rows):
        result[rows] = eligible_gpus(rate[rows], capacity) >= gpus[rows, None]
    return result


def eligible_gpus(rate: Floats, left: Ints) -> Ints:
    """Return, by job and type r, the GPUs of types on which the job is at least as fast as on r, (n, types)."""
    total = np.zeros(rate.shape, dtype=np.int64)
    for q in range(rate.shape[1]):
        if left[q]:
            column = rate[:, q : q + 1]
            total += np.where((column >= rate) & (column > 0), left[q], 0)
    return total


def _no_room(book: JobBook, row: int, runs: NDArray[np.bool_], terms: RoundTerms) -> str:
    usable = [name for name, can in zip(book.types, runs, strict=True) if can]
    if not usable:
        return "its throughput is zero on every GPU type that the cluster has"
    there = int(terms.capacity[runs].sum())
    return (
        f"it asks for {book.gpus[row]} GPUs, but there are {there} of the types that it runs on ({', '.join(usable)})"
    )


def _with_moves(
    book: JobBook, terms: RoundTerms, rate: Floats, worth: Floats, has_room: NDArray[np.bool_], faults: dict[int, str]
) -> RoundValues:
    n = len(rate)
    valid = worth > NO_VALUE
    moving, apart = terms.moving(book.restart_s)[:, None], 1.0 - terms.spread_cost
    pure = np.where(valid, worth * moving, NO_VALUE)
    mixed = np.where(valid, worth * moving * apart, NO_VALUE)
    own = np.zeros(n)
    rows = np.flatnonzero(book.held.any(axis=1))
    if len(rows):
        at = np.argmin(np.where(book.held[rows] > 0, rate[rows], np.inf), axis=1)
        own[rows] = np.maximum(worth[rows, at], 0.0) * np.where(book.spread[rows], apart, 1.0)
        kept = (book.held[rows] == book.gpus[rows][:, None]) & (book.held[rows].sum(axis=1) == book.gpus[rows])[:, None]
        which, kind = np.nonzero(kept)
        pure[rows[which], kind] = own[rows[which]]
    column = np.where(valid, np.where(terms.capacity >= book.gpus[:, None], pure, mixed), NO_VALUE)
    for row in () if has_room.all() else np.flatnonzero((valid & ~has_room).any(axis=1)).tolist():
        fits = has_room[row] & valid[row]
        for q in np.flatnonzero(valid[row] & ~has_room[row]).tolist():
            under = fits & (rate[row] <= rate[row, q])
            column[row, q] = mixed[row, under].max() if under.any() else NO_VALUE
    return RoundValues(rate, worth, pure, mixed, column, own, faults)
