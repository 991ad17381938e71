"""Earliest deadline first as in the Chronus paper: SLO jobs are never stopped for others (docs/papers/chronus.md)."""

from __future__ import annotations

from copter_frontends.policies.baselines.srtf import SpeedAwarePolicy
from copter_frontends.policy_kit import Throughputs
from copter_frontends.policy_kit.deadlines import Rewards
from copter_frontends.vocabulary import Cluster
from copter_papers.opponents.deadline_jobs import DeadlineJobs


class EdfPolicy(DeadlineJobs, SpeedAwarePolicy):
    """SLO jobs by first deadline, then best-effort jobs by arrival; only best-effort jobs are preempted.

    A job gets the fastest type with room, because deadlines are drawn for the fastest one. A running SLO job keeps its
    GPUs, or moves to faster ones that are free.

    Parameters
    ----------
    cluster : Cluster
        Read, never changed.
    throughputs : Throughputs
    rewards : mapping of job id to StepReward, or callable (Job), optional
        Jobs without one are best effort.
    round_s : float
    """

    def __init__(
        self, cluster: Cluster, throughputs: Throughputs, rewards: Rewards | None = None, round_s: float = 60.0
    ) -> None:
        super().__init__(cluster, throughputs, round_s)
        self.take_rewards(rewards)

    def ranking(self, now_s: float) -> list[str]:
        """Rank running SLO jobs, waiting SLO jobs by deadline, running best-effort jobs, then waiting ones."""

        def key(job_id: str) -> tuple[bool, bool, float]:
            deadline_s = self.deadline_s(job_id)
            return job_id not in self.rewards, job_id not in self.held, deadline_s

        return sorted(self.queue(), key=key)
