"""An elitist genetic algorithm that assigns GPUs on nodes to jobs (docs/papers/baselines.md, B25-B27)."""

from __future__ import annotations

import time
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

NO_SPEEDUP = 1e-2  # speedup of a job without GPUs, above zero so that means with a negative power are defined
RESTART = 0.9  # factor on the speedup of a running job whose GPUs change


@dataclass(frozen=True, slots=True)
class Problem:
    """The search problem.

    Attributes
    ----------
    node_gpus, node_kind : ndarray (nodes,)
        GPUs of each node that pinned jobs leave, and the number of the node's type.
    speedup : ndarray (jobs, types, GPUs + 1)
        Speedup relative to the job's least GPUs on that type; 0 if it cannot run.
    most : ndarray (jobs,)
        Most GPUs of each job in this round.
    kind, gpus : ndarray (jobs,)
        The jobs' current types and GPUs; kind -1 without GPUs.
    power : float
        Exponent of the power mean over jobs; not 0.
    """

    node_gpus: Ints
    node_kind: Ints
    speedup: Floats
    most: Ints
    kind: Ints
    gpus: Ints
    power: float

    def sizes(self, population: Ints) -> tuple[Ints, Ints]:
        """Return type and total GPUs of every job in every individual, each (individuals, jobs)."""
        totals = self.by_kind(population)
        return totals.argmax(axis=2), totals.max(axis=2)

    def by_kind(self, population: Ints) -> Ints:
        """Return the GPUs of each type, (individuals, jobs, types)."""
        one_hot = np.eye(self.speedup.shape[1], dtype=np.int64)[self.node_kind]
        return np.asarray(population @ one_hot)

    def fitness(self, population: Ints) -> Floats:
        """Return the power mean of the jobs' speedups, (individuals,) (B25)."""
        kind, gpus = self.sizes(population)
        speedup = self.speedup[np.arange(len(self.most)), kind, gpus]
        changed = (self.kind >= 0) & ((kind != self.kind) | (gpus != self.gpus))
        value = np.maximum(np.where(changed, RESTART * speedup, speedup), NO_SPEEDUP)
        return np.asarray((value**self.power).mean(axis=1) ** (1.0 / self.power))

    def repair(self, population: Ints, rng: np.random.Generator) -> Ints:
        """Make individuals feasible: one type and at most the largest size per job, one distributed job per node, the
        nodes' capacities.
        """
        result = np.clip(population, 0, self.node_gpus)
        kind, _ = self.sizes(result)
        result = np.where(self.node_kind == kind[:, :, None], result, 0)
        result = _clipped(result, self.most[None, :, None], axis=2)
        order = np.argsort(rng.random(result.shape[:2]), axis=1)  # order in which jobs are served on a shared node
        result = np.take_along_axis(result, order[:, :, None], axis=1)
        split = (result > 0) & ((result > 0).sum(axis=2) > 1)[:, :, None]
        result = np.where(split & (np.cumsum(split, axis=1) > 1), 0, result)
        result = _clipped(result, self.node_gpus[None, None, :], axis=1)
        result = np.take_along_axis(result, np.argsort(order, axis=1)[:, :, None], axis=1)
        kind, gpus = self.sizes(result)
        runs = self.speedup[np.arange(len(self.most)), kind, gpus] > 0
        return np.where(runs[:, :, None], result, 0)


@dataclass(frozen=True, slots=True)
class GeneticSearch:
    """Parameters of the search.

    Parameters
    ----------
    population, generations : int
    patience : int
        Generations without a better individual after which the search ends.
    """

    population: int = 100
    generations: int = 100
    patience: int = 25

    def run(self, problem: Problem, first: Ints, rng: np.random.Generator, time_limit_s: float) -> tuple[Ints, float]:
        """Search from a feasible individual, (jobs, nodes); returns the best one and its fitness, never worse than
        the first.
        """
        started = time.perf_counter()
        crowd = self._mutated(problem, np.repeat(first[None], self.population, axis=0), rng)
        crowd = problem.repair(crowd, rng)
        crowd[0] = first
        value = problem.fitness(crowd)
        idle = 0
        for _ in range(self.generations):
            if idle >= self.patience or time.perf_counter() - started > time_limit_s:
                break
            best = value.max()
            children = problem.repair(self._mutated(problem, self._crossed(crowd, value, rng), rng), rng)
            crowd = np.concatenate([crowd, children])
            value = np.concatenate([value, problem.fitness(children)])
            keep = np.argsort(-value, kind="stable")[: self.population]
            crowd, value = crowd[keep], value[keep]
            idle = 0 if value[0] > best * (1 + 1e-9) else idle + 1
        at = int(np.argmax(value))
        return crowd[at], float(value[at])

    def _crossed(self, crowd: Ints, value: Floats, rng: np.random.Generator) -> Ints:
        """Return children that take each job from one of two parents, chosen by tournaments of two."""
        n = self.population
        pairs = rng.integers(len(crowd), size=(2, 2, n))
        winners = np.where(value[pairs[0]] >= value[pairs[1]], pairs[0], pairs[1])
        from_first = rng.random((n, crowd.shape[1], 1)) < 0.5
        return np.asarray(np.where(from_first, crowd[winners[0]], crowd[winners[1]]))

    def _mutated(self, problem: Problem, crowd: Ints, rng: np.random.Generator) -> Ints:
        """Return individuals in which, on average, one job is redrawn on one node; half of these jobs start empty."""
        jobs, nodes = crowd.shape[1:]
        touched = rng.random((len(crowd), jobs, 1)) < max(1.0 / jobs, 0.05)
        here = touched & (rng.random(crowd.shape) < max(1.0 / nodes, 0.1))
        fresh = rng.integers(0, problem.node_gpus + 1, size=crowd.shape)
        cleared = touched & (rng.random((len(crowd), jobs, 1)) < 0.5)
        return np.where(here, fresh, np.where(cleared, 0, crowd))


def _clipped(values: Ints, most: Ints, axis: int) -> Ints:
    """Clip values so that sums along an axis are at most `most`; earlier values have precedence."""
    before = np.cumsum(values, axis=axis) - values
    return np.asarray(np.minimum(values, np.maximum(most - before, 0)))
