"""Gavel as a scheduling policy: shares of time from a linear program, realised over the rounds
(papers/baselines.md).
"""

from __future__ import annotations

from collections.abc import Mapping
from time import perf_counter
from typing import Any

import numpy as np
from numpy.typing import NDArray

from copter import Settings
from copter.runtime.errors import SettingsError
from copter_frontends.policies.baselines.gavel.objectives import GavelObjective, GavelPrograms, JobFacts, isolated_rate
from copter_frontends.policies.baselines.gavel.programs import Shares
from copter_frontends.policies.baselines.gavel.rounds import RoundMechanism
from copter_frontends.policy_kit import Attained, Choice, RoundPolicy, RunsWith, Throughputs, requested_gpus
from copter_frontends.vocabulary import Cluster, Job

Floats = NDArray[np.float64]

RESET_S = 1920.0  # least seconds between two solves, as in Gavel's scheduler


class GavelPolicy(RoundPolicy):
    """Heterogeneity-aware Gavel for rigid jobs (Narayanan et al., OSDI '20).

    Parameters
    ----------
    cluster : Cluster
        Read, never changed.
    throughputs : Throughputs
        Speeds of jobs on their requested GPUs. The objective max-sum throughput adds them up over the jobs.
    objective : GavelObjective or str
    round_s : float
    reset_s : float or None
        Least seconds between two solves, at which the clocks are reset. None: solve whenever jobs change and never
        reset the clocks, like the port in Sia's simulator.
    one_queue : bool
        Whether to use one queue of (job, type) pairs, like that port, instead of one type after another.
    settings : Settings, optional
        Settings of the solver.
    """

    def __init__(
        self,
        cluster: Cluster,
        throughputs: Throughputs,
        objective: GavelObjective | str = GavelObjective.MAX_SUM_THROUGHPUT,
        round_s: float = 360.0,
        reset_s: float | None = RESET_S,
        one_queue: bool = False,
        settings: Settings | None = None,
    ) -> None:
        super().__init__(cluster, round_s, RunsWith(throughputs))
        try:
            self.objective = GavelObjective(objective)
        except ValueError:
            known = ", ".join(each.value for each in GavelObjective)
            raise SettingsError(f"objective is {objective!r}; there are {known}") from None
        if reset_s is not None and not reset_s >= 0:
            raise SettingsError(f"reset_s is {reset_s}, must be >= 0, or None")
        self.throughputs = throughputs
        self.reset_s, self.one_queue = reset_s, one_queue
        self.mechanism = RoundMechanism(self.nodes.types, round_s)
        self.programs = GavelPrograms(self.objective, self._capacity(), settings)
        self._isolated_s: dict[str, float] = {}
        self._counted: dict[str, float] = {}  # progress up to which isolated_s has been counted
        self._shares = Shares({}, 0.0, 0.0, dict.fromkeys(self.nodes.types, 0.0))
        self._stale = True
        self._reset_at_s: float | None = None
        self._passed_s: float | None = None

    @property
    def variables(self) -> int:
        """Number of columns of the linear program."""
        return self.programs.variables

    # Edits --------------------------------------------------------------------------------------------------------

    def add_job(self, job: Job) -> None:
        """Queue a job; shares are computed again when a reset is due. Errors as in :meth:`.RoundPolicy.add_job`."""
        super().add_job(job)
        self.mechanism.add(job.id)
        self._isolated_s[job.id] = self._counted[job.id] = 0.0
        self._stale = True

    def remove_job(self, job_id: str) -> None:
        """Forget a job and its clocks, and free its GPUs; raises UnknownJobError for an unknown id."""
        super().remove_job(job_id)
        self.mechanism.remove(job_id)
        del self._isolated_s[job_id], self._counted[job_id]
        self._stale = True

    def add_resources(self, gpu_type: str, count: int, nodes: Any = ()) -> None:
        """Add `count` GPUs of a known type as whole nodes; shares are computed again when a reset is due."""
        super().add_resources(gpu_type, count, nodes)
        self._stale = True

    def remove_resources(self, gpu_type: str, count: int, nodes: Any = ()) -> None:
        """Remove `count` GPUs of a type as whole nodes; shares are computed again when a reset is due."""
        super().remove_resources(gpu_type, count, nodes)
        self._stale = True

    def resume(self, now_s: float, attained: Mapping[str, Attained]) -> None:
        """Take over from an earlier scheduler at `now_s`; the clocks of the types continue."""
        super().resume(now_s, attained)
        for job_id, had in attained.items():
            if job_id in self.jobs:
                self.mechanism.resume(job_id, had.by_type)
        self._passed_s = now_s

    # The round ----------------------------------------------------------------------------------------------------

    def choose(self, now_s: float, deadline_s: float) -> Choice:
        """Solve for shares of time if they are due, then take jobs by priority."""
        begun = perf_counter()
        elapsed_s = 0.0 if self._passed_s is None else max(now_s - self._passed_s, 0.0)
        self._passed_s = now_s
        self.mechanism.pass_time(elapsed_s, {j: held.gpu_type for j, held in self.held.items()})
        rates = {job_id: self._rates(job) for job_id, job in self.jobs.items()}
        if self._due(now_s):
            if self.reset_s is not None:
                self.mechanism.reset()
            self._solve(now_s, rates)
            self._reset_at_s, self._stale = now_s, False
        solved = perf_counter()
        queue = {j: requested_gpus(self.jobs[j]) for j in self.queue() if j not in self.pins}
        chosen = self.mechanism.select(self.room(), queue, rates, self.one_queue)
        x = self._shares.x.values()
        return Choice(
            chosen,
            objective=self._shares.objective,
            bound=max(self._shares.bound, self._shares.objective),
            fractional_jobs=sum(bool(((share > 1e-6) & (share < 1.0 - 1e-6)).any()) for share in x),
            prices=self._shares.prices,
            timings={"solve": solved - begun, "shim": perf_counter() - solved},
        )

    def _due(self, now_s: float) -> bool:
        """Whether to recompute the shares: jobs or GPUs have changed, and the last solve is long enough ago."""
        if not self._stale:
            return False
        return self._reset_at_s is None or self.reset_s is None or now_s - self._reset_at_s >= self.reset_s

    def _solve(self, now_s: float, rates: dict[str, Floats]) -> None:
        capacity = self._capacity()
        counts = np.array(list(capacity.values()), dtype=np.float64)
        facts: dict[str, JobFacts] = {}
        for job_id, job in self.jobs.items():
            if rates[job_id].max(initial=0.0) > 0:
                facts[job_id] = self._facts(job, rates[job_id], now_s)
        if self.objective is GavelObjective.FINISH_TIME_FAIRNESS:
            for job_id, known in facts.items():
                self._count_isolated(job_id, isolated_rate(known, counts, len(facts)))
        self._shares = self.programs.solve(capacity, {j: self._facts(self.jobs[j], rates[j], now_s) for j in facts})
        self.mechanism.set_shares(self._shares.x)

    def _count_isolated(self, job_id: str, alone: float) -> None:
        """Add the time that the work since the last solve would have taken with an equal share."""
        done = self.service[job_id].progress
        fresh = (done - self._counted[job_id]) * self.throughputs.work(self.jobs[job_id])
        self._isolated_s[job_id] += fresh / alone
        self._counted[job_id] = done

    def _facts(self, job: Job, rate: Floats, now_s: float) -> JobFacts:
        left = 1.0
        if self.objective in (GavelObjective.MAKESPAN, GavelObjective.FINISH_TIME_FAIRNESS):
            left = max(self.throughputs.work(job) * (1.0 - self.service[job.id].progress), 1e-9)
        return JobFacts(
            rate=rate,
            gpus=requested_gpus(job),
            work_left=left,
            age_s=max(now_s - job.submit_s, 0.0),
            isolated_s=self._isolated_s[job.id],
        )

    def _rates(self, job: Job) -> Floats:
        """Return units per second on each type; 0 if the job cannot run on it or the type has too few GPUs."""
        gpus, progress = requested_gpus(job), self.service[job.id].progress
        return np.array(
            [
                self.throughputs.rate(job, kind, gpus, progress) if gpus <= self.nodes.capacity(kind) else 0.0
                for kind in self.nodes.types
            ]
        )

    def _capacity(self) -> dict[str, int]:
        return {kind: self.nodes.capacity(kind) for kind in self.nodes.types}
