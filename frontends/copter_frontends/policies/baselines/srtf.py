"""Shortest remaining time first (docs/papers/baselines.md, B16)."""

from __future__ import annotations

from collections.abc import Mapping

from copter_frontends.policies.baselines.priority import PriorityPolicy
from copter_frontends.policy_kit import RunsWith, Throughputs, requested_gpus
from copter_frontends.vocabulary import Cluster, Job


class SpeedAwarePolicy(PriorityPolicy):
    """A ranking policy that knows the jobs' speeds and puts each on the fastest type with room.

    Parameters
    ----------
    cluster : Cluster
        Read, never changed.
    throughputs : Throughputs
    round_s : float
    """

    def __init__(self, cluster: Cluster, throughputs: Throughputs, round_s: float = 60.0) -> None:
        super().__init__(cluster, round_s, RunsWith(throughputs))
        self.throughputs = throughputs

    def rate(self, job: Job, kind: str) -> float:
        """Return units per second on the requested GPUs, at the job's present progress."""
        gpus = requested_gpus(job)
        return self.throughputs.rate(job, kind, gpus, self.service[job.id].progress)

    def best_rate(self, job: Job) -> float:
        """Return units per second on the fastest type that the job fits on; 0 if it fits on none."""
        gpus = requested_gpus(job)
        return max((self.rate(job, k) for k in self.nodes.types if gpus <= self.nodes.capacity(k)), default=0.0)

    def work_left(self, job: Job) -> float:
        """Return a job's remaining units of work."""
        return self.throughputs.work(job) * (1.0 - self.service[job.id].progress)

    def kinds(self, job: Job, left: Mapping[str, int]) -> list[str]:
        """Return the types, fastest first; among equally fast ones the job's current type."""
        held = self.held.get(job.id)
        return sorted(left, key=lambda kind: (-self.rate(job, kind), held is None or held.gpu_type != kind))


class SrtfPolicy(SpeedAwarePolicy):
    """Shortest remaining time first, with preemption: ranked by the time left on each job's fastest type."""

    def ranking(self, now_s: float) -> list[str]:
        """Return the jobs by remaining seconds on their fastest type."""

        def remaining_s(job_id: str) -> float:
            job = self.jobs[job_id]
            rate = self.best_rate(job)
            return self.work_left(job) / rate if rate > 0 else float("inf")

        return sorted(self.queue(), key=remaining_s)
