"""Pollux as a scheduling policy (docs/papers/baselines.md, B25-B28)."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from copter.runtime.errors import SettingsError
from copter_frontends.policy_kit import Choice, RoundPolicy, RunsWith, Throughputs
from copter_frontends.vocabulary import Cluster, Job
from copter_papers.opponents.pollux.genetic import GeneticSearch, Problem

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

MOST_GPUS = 64  # most GPUs of a job, as in the public simulators
DEADLINE_SHARE = 0.8  # share of a plan's deadline that the search may use; placement needs the rest


class PolluxPolicy(RoundPolicy):
    """Pollux: adaptive jobs; a genetic algorithm chooses GPU counts, ignoring GPU types.

    A job's speedup is relative to its least GPUs on the same type, so no type is better than another. A job is on one
    type and may have at most twice the most GPUs that it has had.

    Parameters
    ----------
    cluster : Cluster
        Read, never changed.
    throughputs : Throughputs
        Goodput of jobs, with batch sizes tuned to the GPUs.
    power : float
        Exponent of the power mean of speedups: -1 gives the harmonic mean. Not 0.
    search : GeneticSearch, optional
    most_gpus : int
        Most GPUs of a job.
    round_s : float
    seed : int

    Raises
    ------
    SettingsError
        If the power is 0 or not finite.
    """

    def __init__(
        self,
        cluster: Cluster,
        throughputs: Throughputs,
        power: float = -1.0,
        search: GeneticSearch | None = None,
        most_gpus: int = MOST_GPUS,
        round_s: float = 60.0,
        seed: int = 0,
    ) -> None:
        super().__init__(cluster, round_s, RunsWith(throughputs))
        if not np.isfinite(power) or power == 0:
            raise SettingsError(f"power is {power}, must be finite and not 0")
        self.throughputs, self.power, self.seed = throughputs, power, seed
        self.search, self.most_gpus = search or GeneticSearch(), most_gpus
        self._plans = 0
        self._most_had: dict[str, int] = {}
        self._tables: dict[str, tuple[float, Floats]] = {}

    def sizes(self, job: Job) -> Iterable[int]:
        """Return all GPU counts within the job's range."""
        most = max((self.nodes.capacity(kind) for kind in self.nodes.types), default=0)
        return range(job.min_gpus, max(min(most, job.max_gpus or most, self.most_gpus), job.min_gpus) + 1)

    def add_job(self, job: Job) -> None:
        """See :meth:`.RoundPolicy.add_job`."""
        super().add_job(with_limits(job))

    def remove_job(self, job_id: str) -> None:
        """Forget a job and its speedups, and free its GPUs; raises UnknownJobError for an unknown id."""
        super().remove_job(job_id)
        self._most_had.pop(job_id, None)
        self._tables.pop(job_id, None)

    def choose(self, now_s: float, deadline_s: float) -> Choice:
        """Search from the jobs' current GPUs."""
        rng = np.random.default_rng((self.seed, self._plans))
        self._plans += 1
        ids = [job_id for job_id in self.queue() if job_id not in self.pins]
        if not ids:
            return Choice({}, objective=0.0)
        names = [(kind, node) for kind in self.nodes.types for node in self.nodes.node_ids(kind)]
        problem = self._problem(ids, names)
        first = self._present(ids, names, problem)
        best, value = self.search.run(problem, first, rng, DEADLINE_SHARE * deadline_s)
        kind, gpus = problem.sizes(best[None])
        wanted = {
            job_id: (self.nodes.types[int(kind[0, row])], int(gpus[0, row]))
            for row, job_id in enumerate(ids)
            if gpus[0, row] > 0
        }
        for job_id, (_, count) in wanted.items():
            self._most_had[job_id] = max(self._most_had.get(job_id, 0), count)
        return Choice(wanted, objective=value)

    def _problem(self, ids: list[str], names: list[tuple[str, str]]) -> Problem:
        number = {kind: k for k, kind in enumerate(self.nodes.types)}
        taken: dict[str, int] = {}
        for pin in self.pins.values():
            for node, gpus in pin.nodes:
                taken[node] = taken.get(node, 0) + gpus
        held = [self.held.get(job_id) for job_id in ids]
        largest = min(max((self.nodes.capacity(kind) for kind in self.nodes.types), default=0), self.most_gpus)
        return Problem(
            node_gpus=np.array([self.nodes.node_gpus(kind) - taken.get(node, 0) for kind, node in names]),
            node_kind=np.array([number[kind] for kind, _ in names], dtype=np.int64),
            speedup=np.array([self._speedups(self.jobs[job_id], largest) for job_id in ids]),
            most=np.array([self._most(self.jobs[job_id], largest) for job_id in ids]),
            kind=np.array([-1 if has is None else number[has.gpu_type] for has in held]),
            gpus=np.array([0 if has is None else has.gpus for has in held]),
            power=self.power,
        )

    def _most(self, job: Job, largest: int) -> int:
        had = self._most_had.get(job.id, 0)
        return min(max(2 * had, job.min_gpus), job.max_gpus or largest, largest)

    def _speedups(self, job: Job, largest: int) -> Floats:
        """Return speedups by type and GPUs, (types, largest + 1); cached until the job's progress changes."""
        progress = self.service[job.id].progress
        known = self._tables.get(job.id)
        if known is not None and known[0] == progress and known[1].shape[1] == largest + 1:
            return known[1]
        table = np.zeros((len(self.nodes.types), largest + 1))
        for k, kind in enumerate(self.nodes.types):
            rates = np.zeros(largest + 1)
            for gpus in range(job.min_gpus, min(job.max_gpus or largest, largest) + 1):
                rates[gpus] = self.throughputs.rate(job, kind, gpus, progress)
            runs = np.flatnonzero(rates > 0)
            if len(runs):
                table[k] = rates / rates[runs[0]]
        self._tables[job.id] = (progress, table)
        return table

    def _present(self, ids: list[str], names: list[tuple[str, str]], problem: Problem) -> Ints:
        """Return the current plan as an individual; jobs whose GPUs are no longer allowed start with none."""
        at = {node: column for column, (_, node) in enumerate(names)}
        result = np.zeros((len(ids), len(names)), dtype=np.int64)
        for row, job_id in enumerate(ids):
            held = self.held.get(job_id)
            if held is not None:
                for node, gpus in held.nodes:
                    result[row, at[node]] = gpus
        kind, size = problem.sizes(result[None])
        runs = problem.speedup[np.arange(len(ids)), kind[0], np.minimum(size[0], problem.speedup.shape[2] - 1)] > 0
        return np.where(runs[:, None], result, 0)


def with_limits(job: Job) -> Job:
    """Return a job whose least and most GPUs are its fixed number, if it has one."""
    return job if job.gpus is None else replace(job, min_gpus=job.gpus, max_gpus=job.gpus)
