"""A drop-in replacement of Gavel's and Shockwave's policies: ``get_allocation`` with each policy's own arguments."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from typing import Any

import numpy as np

from copter import Settings
from copter.runtime.errors import InvalidDataError
from copter_frontends.policies.baselines.gavel import GavelObjective
from copter_frontends.policies.baselines.gavel.objectives import GavelPrograms, JobFacts, isolated_rate

Throughputs = Mapping[Any, Mapping[str, float]]
Allocation = dict[Any, dict[str, float]]

NAMES = {
    GavelObjective.MAX_SUM_THROUGHPUT: "ThroughputSumWithPerf",
    GavelObjective.MAX_MIN_FAIRNESS: "MaxMinFairness_Perf",
    GavelObjective.MAKESPAN: "MinTotalDuration_Perf",
    GavelObjective.FINISH_TIME_FAIRNESS: "FinishTimeFairness_Perf",
}
"""Gavel's own names, by which its scheduler chooses the arguments (``Scheduler._compute_allocation``)."""


class GavelAdapter:
    """One of Gavel's heterogeneity-aware policies on copter's differential model, in Gavel's calling convention.

    The scheduler calls :meth:`get_allocation` with ``(throughputs, scale_factors, ..., cluster_spec)``. Depending on
    :attr:`name`, the arguments in between are ``priority_weights`` (names that begin with MaxMinFairness),
    ``num_steps_remaining`` (MinTotalDuration), or ``priority_weights, times_since_start, num_steps_remaining``
    (FinishTimeFairness). The linear program is kept between calls.

    Parameters
    ----------
    objective : GavelObjective or str
    solver : str, optional
        Accepted, because Gavel's policies have it, but not used.
    settings : copter.Settings, optional
    """

    def __init__(
        self,
        objective: GavelObjective | str = GavelObjective.MAX_MIN_FAIRNESS,
        solver: str | None = None,
        settings: Settings | None = None,
    ) -> None:
        self.objective = GavelObjective(objective)
        if self.objective not in NAMES:
            known = ", ".join(each.value for each in NAMES)
            raise ValueError(f"Gavel's scheduler calls no policy {self.objective.value!r}: take one of {known}")
        self._name = NAMES[self.objective]
        self._settings = settings
        self._types: tuple[str, ...] = ()
        self._programs: GavelPrograms | None = None
        self._isolated_s: dict[Hashable, float] = {}
        self._steps: dict[Hashable, float] = {}

    @property
    def name(self) -> str:
        """Gavel's name for the policy."""
        return self._name

    def get_allocation(
        self, throughputs: Throughputs, scale_factors: Mapping[Any, int], *rest: Mapping[Any, Any]
    ) -> Allocation | None:
        """Return every job's fractions of time on every worker type; None without jobs, as in Gavel.

        Parameters
        ----------
        throughputs : mapping of job id to {worker type: steps per second}
        scale_factors : mapping of job id to int
            Workers of each job.
        *rest : mappings
            Arguments by the policy's name; the last is ``cluster_spec``, {worker type: workers}.

        Raises
        ------
        InvalidDataError
            For arguments that do not fit the name, pairs of jobs, or throughputs that are not numbers >= 0.
        """
        weights, ages, steps, spec = self._arguments(rest)
        if not throughputs:
            return None
        for job in throughputs:
            if getattr(job, "is_pair", bool)():
                raise InvalidDataError(f"job {job}: pairs of jobs on one worker are not shared out; give single jobs")
        types = tuple(sorted({kind for row in throughputs.values() for kind in row}))
        capacity = {kind: int(spec[kind]) for kind in types}
        if self._programs is None or types != self._types:
            self._types, self._programs = types, GavelPrograms(self.objective, capacity, self._settings)
        jobs = {}
        for job, row in throughputs.items():
            gpus = int(scale_factors[job])
            rate = np.array([float(row.get(kind, 0.0)) if capacity[kind] >= gpus else 0.0 for kind in types])
            if not (np.isfinite(rate) & (rate >= 0)).all():
                raise InvalidDataError(f"job {job}: throughputs are {dict(row)}, must be finite and >= 0")
            if rate.max(initial=0.0) > 0:
                left, age = float(steps.get(job, 1.0)), float(ages.get(job, 0.0))
                jobs[job] = JobFacts(rate, gpus, max(left, 1e-9), age, 0.0, float(weights.get(job, 1.0)))
        named = {f"{job!s}": job for job in jobs}
        facts = {f"{job!s}": self._with_isolated(job, each, capacity, len(jobs)) for job, each in jobs.items()}
        shares = self._programs.solve(capacity, facts)
        found: Allocation = {job: dict.fromkeys(types, 0.0) for job in throughputs}
        for name, job in named.items():
            x = np.clip(shares.x[name], 0.0, 1.0)
            found[job] = dict(zip(types, x.tolist(), strict=True))
        return found

    def _arguments(self, rest: tuple[Mapping[Any, Any], ...]) -> tuple[Mapping[Any, Any], ...]:
        """Split the arguments after the scale factors: (priority weights, times since start, steps remaining,
        cluster spec).
        """
        none: Mapping[Any, Any] = {}
        wanted = {"MaxMin": 2, "MinTot": 2, "Finish": 4}.get(self._name[:6], 1)
        if len(rest) != wanted:
            raise InvalidDataError(
                f"{self._name}: get_allocation takes {2 + wanted} arguments, {2 + len(rest)} are given"
            )
        if wanted == 4:
            return rest
        if wanted == 1:
            return none, none, none, rest[0]
        if self._name.startswith("MaxMin"):
            return rest[0], none, none, rest[1]
        return none, none, rest[0], rest[1]

    def _with_isolated(self, job: Hashable, facts: JobFacts, capacity: Mapping[str, int], jobs: int) -> JobFacts:
        """Add to the facts the time that the completed steps would have taken alone, for finish-time fairness."""
        if self.objective is not GavelObjective.FINISH_TIME_FAIRNESS:
            return facts
        counts = np.array(list(capacity.values()), dtype=np.float64)
        done = max(self._steps.get(job, facts.work_left) - facts.work_left, 0.0)
        alone = isolated_rate(facts, counts, jobs)
        self._isolated_s[job] = self._isolated_s.get(job, 0.0) + (done / alone if alone > 0 else 0.0)
        self._steps[job] = facts.work_left
        isolated_s = self._isolated_s[job]
        return JobFacts(facts.rate, facts.gpus, facts.work_left, facts.age_s, isolated_s, facts.weight)
