"""Gavel's objectives (docs/papers/baselines.md, B4-B7; Narayanan et al., OSDI '20, sections 4.1-4.3)."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass, replace
from enum import Enum

import numpy as np
from numpy.typing import NDArray

from copter import Settings
from copter_frontends.policies.baselines.gavel.programs import LevelProgram, LogProgram, Request, Shares, SumProgram

Floats = NDArray[np.float64]


PRECISE = 1e-7  # tolerance of levels and logarithms: the gap of a sum is more than that of each job


class GavelObjective(str, Enum):
    """Objective of the shares of time."""

    MAX_SUM_THROUGHPUT = "max_sum_throughput"
    MAX_MIN_FAIRNESS = "max_min_fairness"
    MAKESPAN = "makespan"
    FINISH_TIME_FAIRNESS = "finish_time_fairness"
    PROPORTIONAL_FAIRNESS = "proportional_fairness"


@dataclass(frozen=True, slots=True)
class JobFacts:
    """Facts about a job that objectives use.

    Attributes
    ----------
    rate : ndarray (types,)
        Units of work per second on the requested GPUs of each type; 0 for types on which the job cannot run.
    gpus : int
    work_left : float
        Remaining work, in the same units.
    age_s : float
        Seconds since submission.
    isolated_s : float
        Seconds that the completed work would have taken with an equal share of the cluster.
    weight : float
    """

    rate: Floats
    gpus: int
    work_left: float = 1.0
    age_s: float = 0.0
    isolated_s: float = 0.0
    weight: float = 1.0


def isolated_share(capacity: Floats, jobs: int, gpus: int) -> Floats:
    """Return the shares of time on each type that a job has with an equal part of the cluster, (types,) (B6)."""
    share = capacity / (max(jobs, 1) * gpus)
    return np.asarray(share / max(1.0, float(share.sum())))


def isolated_rate(facts: JobFacts, capacity: Floats, jobs: int) -> float:
    """Return the units per second that a job has with an equal part of the cluster."""
    return float(facts.rate @ isolated_share(capacity, jobs, facts.gpus))


class GavelPrograms:
    """Solves an objective and keeps its linear programs between calls.

    Parameters
    ----------
    objective : GavelObjective
    capacity : mapping of GPU type to int
    settings : Settings, optional
        Settings of the solver.
    """

    def __init__(
        self, objective: GavelObjective, capacity: Mapping[str, int], settings: Settings | None = None
    ) -> None:
        self.objective = objective
        given = settings or Settings()
        precise = replace(given, tolerance=min(given.tolerance, PRECISE))
        self.sums = SumProgram(capacity, settings)
        self.levels = LevelProgram(capacity, precise)
        self.logs = LogProgram(capacity, precise)

    @property
    def variables(self) -> int:
        """Number of columns of the last program."""
        of = {GavelObjective.MAX_SUM_THROUGHPUT: self.sums, GavelObjective.PROPORTIONAL_FAIRNESS: self.logs}
        return of.get(self.objective, self.levels).model.n_columns

    def solve(self, capacity: Mapping[str, int], jobs: Mapping[str, JobFacts]) -> Shares:
        """Return the current jobs' shares of time; the objective is maximised (makespan: 1/s; fairness: -rho)."""
        counts = np.array(list(capacity.values()), dtype=np.float64)
        if not jobs:
            return Shares({}, 0.0, 0.0, dict.fromkeys(capacity, 0.0))
        if self.objective is GavelObjective.MAX_SUM_THROUGHPUT:
            self.sums.edit(capacity, {j: Request(facts.rate, facts.gpus) for j, facts in jobs.items()})
            return alike(self.sums.solve(), {j: (facts.rate.tobytes(), facts.gpus) for j, facts in jobs.items()})
        if self.objective is GavelObjective.PROPORTIONAL_FAIRNESS:
            self.logs.edit(capacity, {j: Request(facts.rate, facts.gpus, facts.weight) for j, facts in jobs.items()})
            kinds = {j: (facts.rate.tobytes(), facts.gpus, facts.weight) for j, facts in jobs.items()}
            return alike(self.logs.solve(), kinds)
        if self.objective is GavelObjective.FINISH_TIME_FAIRNESS:
            result = self._finish_time_fairness(capacity, counts, jobs)
        else:
            values = {j: facts.rate / self._need(facts, counts) for j, facts in jobs.items()}
            self.levels.edit(capacity, {j: Request(values[j], facts.gpus) for j, facts in jobs.items()})
            result = self.levels.solve()
        every = {j: (f.rate.tobytes(), f.gpus, f.work_left, f.age_s, f.isolated_s, f.weight) for j, f in jobs.items()}
        return alike(self._with_leftovers(result, capacity, jobs), every)

    def _need(self, facts: JobFacts, capacity: Floats) -> float:
        """Return the rate that counts as one unit: w T_prop / gpus for max-min fairness, remaining work for
        makespan (B5).
        """
        if self.objective is GavelObjective.MAKESPAN:
            return max(facts.work_left, 1e-9)
        return facts.weight * float(facts.rate @ capacity) / float(capacity.sum()) / facts.gpus

    def _finish_time_fairness(
        self, capacity: Mapping[str, int], counts: Floats, jobs: Mapping[str, JobFacts]
    ) -> Shares:
        """Minimise the largest rho_m: its reciprocal is the level, at which a job asks for that rho's rate (B7)."""
        alone = {j: isolated_rate(facts, counts, len(jobs)) for j, facts in jobs.items()}
        ideal = {j: facts.isolated_s + facts.work_left / alone[j] for j, facts in jobs.items()}
        best = {j: facts.age_s + facts.work_left / float(facts.rate.max()) for j, facts in jobs.items()}
        self.levels.edit(capacity, {j: Request(facts.rate, facts.gpus) for j, facts in jobs.items()})
        order = [jobs[j] for j in self.levels.requests]
        ages, work = np.array([f.age_s for f in order]), np.array([f.work_left for f in order])
        ideals = np.array([ideal[j] for j in self.levels.requests])
        fastest = np.array([max(f.work_left / float(f.rate.max()), np.finfo(float).tiny) for f in order])

        def asked(level: float) -> Floats:
            """Return the rates with which all end in time; rounding must not leave a job less than its least time."""
            return work / np.maximum(ideals / level - ages, fastest) if level > 0.0 else np.zeros(len(work))

        highest = min(ideal[j] / best[j] for j in jobs)
        found = self.levels.rise(asked, highest)
        x, equal = dict(found.x), {j: isolated_share(counts, len(jobs), facts.gpus) for j, facts in jobs.items()}
        worst, other = worst_rho(jobs, ideal, x), worst_rho(jobs, ideal, equal)
        if other < worst:
            worst, x = other, equal
        return Shares(x, -worst, -min(1.0 / found.bound, worst), found.prices)

    def _with_leftovers(self, result: Shares, capacity: Mapping[str, int], jobs: Mapping[str, JobFacts]) -> Shares:
        """Distribute the time and GPUs that the objective leaves over, by the sum of rates relative to each job's
        best (B8).
        """
        gpus = np.array([facts.gpus for facts in jobs.values()], dtype=np.float64)
        left = np.array(list(capacity.values())) - gpus @ np.array([result.x[j] for j in jobs])
        room = dict(zip(capacity, np.maximum(left, 0.0).tolist(), strict=True))
        requests = {j: Request(facts.rate / facts.rate.max(), facts.gpus) for j, facts in jobs.items()}
        self.sums.edit(room, requests)
        more = self.sums.solve({j: 1.0 - float(result.x[j].sum()) for j in jobs})
        x = {j: np.clip(result.x[j] + more.x[j], 0.0, 1.0) for j in jobs}
        return Shares(x, result.objective, result.bound, result.prices)


def alike(shares: Shares, kinds: Mapping[str, Hashable]) -> Shares:
    """Give equal jobs the mean of their shares, which is feasible and equally good (B8)."""
    members: dict[Hashable, list[str]] = {}
    for job_id, kind in kinds.items():
        members.setdefault(kind, []).append(job_id)
    x: dict[str, Floats] = {}
    for group in members.values():
        if len(group) == 1:
            x[group[0]] = shares.x[group[0]]
            continue
        mean = np.asarray(np.mean([shares.x[job_id] for job_id in group], axis=0))
        x.update((job_id, mean) for job_id in group)
    return Shares({job_id: x[job_id] for job_id in shares.x}, shares.objective, shares.bound, shares.prices)


def worst_rho(jobs: Mapping[str, JobFacts], ideal_s: Mapping[str, float], x: Mapping[str, Floats]) -> float:
    """Return the largest (age + remaining work / rate) / ideal time over the jobs; infinite if a job has no rate."""
    rho = 0.0
    for j, facts in jobs.items():
        rate = float(facts.rate @ x[j])
        rho = max(rho, (facts.age_s + facts.work_left / rate) / ideal_s[j] if rate > 0 else np.inf)
    return float(rho)
