"""A scheduler's estimate of finish-time fairness while jobs run (docs/papers/baselines.md, B17)."""

from __future__ import annotations

from copter_frontends.policies.baselines.srtf import SpeedAwarePolicy
from copter_frontends.policy_kit import Throughputs, requested_gpus
from copter_frontends.vocabulary import Cluster, Job


class FairnessPolicy(SpeedAwarePolicy):
    """A speed-aware policy that records the contention each job has met.

    Parameters
    ----------
    cluster : Cluster
        Read, never changed.
    throughputs : Throughputs
    round_s : float
    """

    def __init__(self, cluster: Cluster, throughputs: Throughputs, round_s: float = 60.0) -> None:
        super().__init__(cluster, throughputs, round_s)
        self._contention_sum: dict[str, float] = {}
        self._plans_seen: dict[str, int] = {}

    def add_job(self, job: Job) -> None:
        """Queue a job and begin its mean of contention. Errors as in :meth:`.RoundPolicy.add_job`."""
        super().add_job(job)
        self._contention_sum[job.id], self._plans_seen[job.id] = 0.0, 0

    def remove_job(self, job_id: str) -> None:
        """Forget a job and its mean of contention, and free its GPUs; raises UnknownJobError for an unknown id."""
        super().remove_job(job_id)
        del self._contention_sum[job_id], self._plans_seen[job_id]

    def count_contention(self) -> None:
        """Add this round's contention (GPUs requested over GPUs available) to every job's mean."""
        gpus = sum(self.nodes.capacity(kind) for kind in self.nodes.types)
        contention = sum(requested_gpus(job) for job in self.jobs.values()) / max(gpus, 1)
        for job_id in self.jobs:
            self._contention_sum[job_id] += contention
            self._plans_seen[job_id] += 1

    def contention(self, job_id: str) -> float:
        """Return the mean of GPUs requested over GPUs available during the job's rounds, at least 1."""
        return max(1.0, self._contention_sum[job_id] / max(self._plans_seen[job_id], 1))

    def fair_s(self, job: Job) -> float:
        """Return the seconds of the whole job with its share of the cluster: its time alone times the contention."""
        rate = self.best_rate(job)
        return self.throughputs.work(job) / rate * self.contention(job.id) if rate > 0 else float("inf")

    def rho(self, job: Job, now_s: float) -> float:
        """Return the current finish-time fairness: (age + remaining time alone) / fair time."""
        rate = self.best_rate(job)
        if rate <= 0:
            return 0.0
        return (max(now_s - job.submit_s, 0.0) + self.work_left(job) / rate) / self.fair_s(job)
