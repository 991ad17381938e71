"""A two-objective genetic search over the jobs' GPUs on equal nodes, ignoring types (papers/baselines.md, B30, B31)."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from copter_papers.opponents.pollux.pareto_kernels import (
    TRIES,
    Dice,
    evaluate,
    keep_one_type,
    mark,
    mate,
    mutate,
    repair,
    survivors,
)

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class TypeBlindProblem:
    """The search problem.

    Attributes
    ----------
    room : ndarray (nodes,)
        GPUs of each node that pinned jobs leave.
    size : int
        GPUs of a node.
    kind : ndarray (nodes,)
        Number of each node's type, used by :meth:`one_type` only.
    rank : ndarray (types,)
        Rank of each type; 0 is the most powerful.
    runs : bool ndarray (jobs, types)
        Whether each job can run on each type.
    speedup : ndarray (jobs, 3, GPUs + 1)
        Speedups on no node, on one node, and on several nodes.
    least, most : ndarray (jobs,)
        Least and most GPUs of each job; fewer than `least` count as none.
    base : ndarray (jobs, nodes)
        The jobs' current GPUs.
    factor : ndarray (jobs,)
        Factor on the job's speedup after a change.
    power : float
        Exponent of the power mean over jobs; not 0.
    mixing : bool
        Whether jobs may be on several types.
    """

    room: Ints
    size: int
    kind: Ints
    rank: Ints
    runs: NDArray[np.bool_]
    speedup: Floats
    least: Ints
    most: Ints
    base: Ints
    factor: Floats
    power: float
    mixing: bool = True

    def one_type(self, state: Ints) -> Ints:
        """Return an individual with every job on one type (B29); jobs left with too few GPUs get none."""
        result = state.copy()
        keep_one_type(result, self.kind, self.rank, self.runs)
        result[result.sum(axis=1) < self.least] = 0
        return result

    def values(self, state: Ints) -> tuple[float, float]:
        """Return the two objectives of an individual (B30)."""
        result: tuple[float, float] = evaluate(
            state, self.base, self.room, self.size, self.speedup, self.factor, self.power
        )
        return result


class _Parts(NamedTuple):
    """A :class:`TypeBlindProblem` in the form of the kernels' arguments."""

    base: NDArray[np.int16]
    room: Ints
    size: int
    speedup: Floats
    factor: Floats
    power: float
    least: Ints
    most: Ints
    kind: Ints
    rank: Ints
    runs: NDArray[np.bool_]
    mixing: bool


@dataclass(frozen=True, slots=True)
class ParetoSearch:
    """Parameters of the search (NSGA-II).

    Parameters
    ----------
    population, generations : int
    """

    population: int = 100
    generations: int = 100

    def run(
        self, problem: TypeBlindProblem, first: Ints, rng: np.random.Generator, time_limit_s: float
    ) -> tuple[Ints, Floats]:
        """Search from individuals (n, jobs, nodes), feasible or not; returns the front, best mean first.

        Returns
        -------
        states : ndarray (n, jobs, nodes)
        values : ndarray (n, 2)
        """
        started = time.perf_counter()
        p = problem
        base = p.base.astype(np.int16)
        parts = _Parts(
            base, p.room, p.size, p.speedup, p.factor, p.power, p.least, p.most, p.kind, p.rank, p.runs, p.mixing
        )
        dice = rng.integers(1, 2**63, size=1, dtype=np.uint64)
        crowd, values = _first(first.astype(np.int16), parts, dice)
        kept, front, spread = survivors(values, self.population)
        crowd, values = crowd[kept], values[kept]
        for _ in range(self.generations - 1):
            if time.perf_counter() - started > time_limit_s:
                break
            crowd, values = _bred(crowd, values, spread, self.population, parts, dice)
            kept, front, spread = survivors(values, self.population)
            crowd, values = crowd[kept], values[kept]
        best = np.flatnonzero(front == 0)
        best = best[np.argsort(-values[best, 0], kind="stable")]
        return crowd[best].astype(np.int64), values[best]


def warm_up() -> None:
    """Compile the search in advance, so that no plan has to wait for it."""
    one, none = np.ones(1, dtype=np.int64), np.zeros((1, 1), dtype=np.int64)
    runs, speedup = np.ones((1, 1), dtype=np.bool_), np.ones((1, 3, 2))
    problem = TypeBlindProblem(one, 1, one - 1, one - 1, runs, speedup, one, one, none, np.ones(1), -1.0)
    ParetoSearch(2, 2).run(problem, none[None], np.random.default_rng(0), np.inf)


_compile: Callable[..., Any] = njit(cache=True, nogil=True)


@_compile
def _known(marks: Ints, at: int) -> bool:
    """Whether a hash occurs before its own position."""
    i = 0
    while marks[i] != marks[at]:
        i += 1
    return i < at


@_compile
def _first(
    states: Ints,
    p: _Parts,
    dice: Dice,
) -> tuple[Ints, Floats]:
    """Make the individuals feasible; returns them without duplicates, and their values."""
    crowd, values = np.empty_like(states), np.empty((len(states), 2))
    marks, count = np.empty(len(states), np.int64), 0
    for i in range(len(states)):
        crowd[count] = states[i]
        if not p.mixing:
            keep_one_type(crowd[count], p.kind, p.rank, p.runs)
        repair(crowd[count], p.room, p.least, p.most, dice)
        marks[count] = mark(crowd[count])
        if not _known(marks, count):
            values[count] = evaluate(crowd[count], p.base, p.room, p.size, p.speedup, p.factor, p.power)
            count += 1
    return crowd[:count], values[:count]


@_compile
def _bred(
    parents: Ints,
    parent_values: Floats,
    spread: Floats,
    children: int,
    p: _Parts,
    dice: Dice,
) -> tuple[Ints, Floats]:
    """Return the parents and their children, without duplicates, and their values."""
    n, jobs, nodes = parents.shape
    crowd, values = np.empty((n + children, jobs, nodes), parents.dtype), np.empty((n + children, 2))
    crowd[:n], values[:n] = parents, parent_values
    pair = np.empty((2, jobs, nodes), parents.dtype)
    marks, count = np.empty(n + children, np.int64), n
    for i in range(n):
        marks[i] = mark(parents[i])
    for _ in range(TRIES * children):
        if count == n + children:
            break
        mate(parents, parent_values, spread, pair[0], pair[1], dice)
        for child in pair:
            mutate(child, p.base, p.room, dice)
            if not p.mixing:
                keep_one_type(child, p.kind, p.rank, p.runs)
            repair(child, p.room, p.least, p.most, dice)
            if count == n + children:
                break
            marks[count] = mark(child)
            if not _known(marks, count):
                crowd[count] = child
                values[count] = evaluate(child, p.base, p.room, p.size, p.speedup, p.factor, p.power)
                count += 1
    return crowd[:count], values[:count]
