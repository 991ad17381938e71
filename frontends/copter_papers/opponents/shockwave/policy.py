"""Shockwave as a scheduling policy: plan a window of rounds, follow it, and plan again when jobs change."""

from __future__ import annotations

from collections.abc import Iterable
from math import exp, log
from time import perf_counter
from typing import Any

from copter.runtime.errors import SettingsError
from copter_frontends.policies.baselines.fair_share import FairnessPolicy
from copter_frontends.policy_kit import Choice, Throughputs, Wanted, requested_gpus
from copter_frontends.vocabulary import Cluster, Job
from copter_papers.opponents.shockwave.blind import give_blindly
from copter_papers.opponents.shockwave.true_log import plan_true_log
from copter_papers.opponents.shockwave.window import Window, WindowJob, plan_window

DEADLINE_SHARE = 0.8  # share of a plan's deadline that the solver may use; placement needs the rest
MOST_EXPONENT = 100.0  # largest exponent of e in a weight, so that weights stay finite


class ShockwavePolicy(FairnessPolicy):
    """Shockwave for rigid jobs of fixed batch size (docs/papers/baselines.md, B19-B24).

    Parameters
    ----------
    cluster : Cluster
        Read, never changed.
    throughputs : Throughputs
    rounds : int
        Rounds of a window.
    k : float
        Weight of the longest remaining time (in windows), relative to the mean utility.
    fairness_power : float
        lambda: if not all jobs can be fair, jobs beyond the limit get the weight rho to this power, the others 1.
    rho_limit : float
        Largest finish-time fairness that the fairness rows allow.
    relative_gap, time_limit_s : float
        Gap and time at which HiGHS stops.
    round_s : float
    true_log : bool
        Whether utilities are the logarithm itself, planned by copter (B24a), in place of lines below it.
    type_blind : bool
        Whether to plan with the mean time over GPU types and to ignore types in the allocation, like the port in Sia's
        public simulator (B23).

    Raises
    ------
    SettingsError
        If a parameter is out of range.
    """

    def __init__(
        self,
        cluster: Cluster,
        throughputs: Throughputs,
        rounds: int = 20,
        k: float = 0.1,
        fairness_power: float = 10.0,
        rho_limit: float = 1.0,
        relative_gap: float = 1e-3,
        time_limit_s: float = 15.0,
        round_s: float = 360.0,
        type_blind: bool = False,
        true_log: bool = False,
    ) -> None:
        super().__init__(cluster, throughputs, round_s)
        for name, value in (("rounds", rounds), ("rho_limit", rho_limit), ("time_limit_s", time_limit_s)):
            if not value > 0:
                raise SettingsError(f"{name} is {value}, must be > 0")
        for name, value in (("k", k), ("fairness_power", fairness_power), ("relative_gap", relative_gap)):
            if not value >= 0:
                raise SettingsError(f"{name} is {value}, must be >= 0")
        self.rounds, self.k, self.fairness_power, self.rho_limit = rounds, k, fairness_power, rho_limit
        self.relative_gap, self.time_limit_s = relative_gap, time_limit_s
        self.type_blind, self.true_log = type_blind, true_log
        self._window: Window | None = None
        self._rows: dict[str, int] = {}
        self._window_s: float | None = None  # time at which the window was planned

    def add_job(self, job: Job) -> None:
        """Queue a job; the window is planned again. Errors as in :meth:`.RoundPolicy.add_job`."""
        super().add_job(job)
        self._window_s = None

    def remove_job(self, job_id: str) -> None:
        """Forget a job and free its GPUs; the window is planned again. Raises UnknownJobError for an unknown id."""
        super().remove_job(job_id)
        self._window_s = None

    def add_resources(self, gpu_type: str, count: int, nodes: Any = ()) -> None:
        """Add `count` GPUs of a known type as whole nodes; the window is planned again."""
        super().add_resources(gpu_type, count, nodes)
        self._window_s = None

    def remove_resources(self, gpu_type: str, count: int, nodes: Any = ()) -> None:
        """Remove `count` GPUs of a type as whole nodes; the window is planned again."""
        super().remove_resources(gpu_type, count, nodes)
        self._window_s = None

    def best_rate(self, job: Job) -> float:
        """Return a job's rate on the fastest type that can run it.

        A type-blind policy takes one over the mean time of a unit of work, over the types that run the job.
        """
        if not self.type_blind:
            return super().best_rate(job)
        gpus = requested_gpus(job)
        rates = [self.rate(job, kind) for kind in self.nodes.types if gpus <= self.nodes.capacity(kind)]
        times = [1.0 / rate for rate in rates if rate > 0]
        return len(times) / sum(times) if times else 0.0

    def down_the_list(self, ranking: Iterable[str]) -> Wanted:
        """Give jobs their requested GPUs, best rank first; without regard to types if the policy is type-blind."""
        if not self.type_blind:
            return super().down_the_list(ranking)
        waiting = [job_id for job_id in ranking if job_id not in self.pins]
        gpus = {job_id: requested_gpus(self.jobs[job_id]) for job_id in waiting}
        return give_blindly(waiting, gpus, self.room(), self.held, self._runs_on)

    def _runs_on(self, job_id: str, kind: str) -> bool:
        job = self.jobs[job_id]
        return self.fits_empty(job, kind, requested_gpus(job))

    def ranking(self, now_s: float) -> list[str]:
        """Return the jobs by rho, the worst treated first."""
        return sorted(self.queue(), key=lambda job_id: -self.rho(self.jobs[job_id], now_s))

    def choose(self, now_s: float, deadline_s: float) -> Choice:
        """Take the jobs of the window's current round, larger ones first, then others by rho into the remaining
        GPUs.
        """
        begun = perf_counter()
        self.count_contention()
        at = self._round_of(now_s)
        if at is None:
            self._plan_window(now_s, min(self.time_limit_s, DEADLINE_SHARE * deadline_s))
            at = 0
        solved = perf_counter()
        window = self._window
        by_rho = self.ranking(now_s)
        planned = [j for j in by_rho if window is not None and j in self._rows and window.runs[self._rows[j], at]]
        planned.sort(key=lambda j: -requested_gpus(self.jobs[j]))
        known = set(planned)
        wanted = self.down_the_list([*planned, *(j for j in by_rho if j not in known)])
        return Choice(
            wanted,
            objective=window.objective if window is not None else 0.0,
            bound=window.bound if window is not None else 0.0,
            timings={"solve": solved - begun, "shim": perf_counter() - solved},
        )

    def _round_of(self, now_s: float) -> int | None:
        """Return the window's round that starts at `now_s`; None if there is none."""
        if self._window_s is None:
            return None
        at = round((now_s - self._window_s) / self.round_s)
        return at if 0 <= at < self.rounds else None

    def _plan_window(self, now_s: float, time_limit_s: float) -> None:
        ids = [j for j in self.queue() if self.best_rate(self.jobs[j]) > 0]
        gpus = sum(self.nodes.capacity(kind) for kind in self.nodes.types)
        jobs = [self._window_job(self.jobs[j], now_s) for j in ids]
        planned = plan_true_log if self.true_log else plan_window
        self._window = planned(jobs, gpus, self.rounds, self.k, self.relative_gap, time_limit_s)
        self._rows = {job_id: row for row, job_id in enumerate(ids)}
        self._window_s = now_s

    def _window_job(self, job: Job, now_s: float) -> WindowJob:
        left_s = self.work_left(job) / self.best_rate(job)
        slack_s = self.rho_limit * self.fair_s(job) - max(now_s - job.submit_s, 0.0) - left_s
        rho = self.rho(job, now_s)
        return WindowJob(
            gpus=requested_gpus(job),
            progress=self.service[job.id].progress,
            step=self.best_rate(job) * self.round_s / self.throughputs.work(job),
            rounds_left=left_s / self.round_s,
            most_delay=slack_s / self.round_s,
            weight=exp(min(self.fairness_power * log(rho), MOST_EXPONENT)) if rho > self.rho_limit else 1.0,
        )
