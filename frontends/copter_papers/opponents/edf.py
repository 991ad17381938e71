"""Earliest deadline first as in the Chronus paper: SLO jobs are never stopped for others (docs/papers/chronus.md)."""

from __future__ import annotations

from copter_frontends.policies.baselines.priority import PriorityPolicy
from copter_frontends.policy_kit import CanRun
from copter_frontends.policy_kit.deadlines import Rewards
from copter_frontends.vocabulary import Cluster
from copter_papers.opponents.deadline_jobs import DeadlineJobs


class EdfPolicy(DeadlineJobs, PriorityPolicy):
    """SLO jobs by first deadline, then best-effort jobs by arrival; only best-effort jobs are preempted.

    Parameters
    ----------
    cluster : Cluster
        Read, never changed.
    rewards : mapping of job id to StepReward, or callable (Job), optional
        Jobs without one are best effort.
    round_s : float
    can_run : callable, optional
        See :class:`.RoundPolicy`.
    """

    def __init__(
        self,
        cluster: Cluster,
        rewards: Rewards | None = None,
        round_s: float = 60.0,
        can_run: CanRun | None = None,
    ) -> None:
        super().__init__(cluster, round_s, can_run)
        self.take_rewards(rewards)

    def ranking(self, now_s: float) -> list[str]:
        """Rank running SLO jobs, waiting SLO jobs by deadline, running best-effort jobs, then waiting ones."""

        def key(job_id: str) -> tuple[bool, bool, float]:
            deadline_s = self.deadline_s(job_id)
            return job_id not in self.rewards, job_id not in self.held, deadline_s

        return sorted(self.queue(), key=key)
