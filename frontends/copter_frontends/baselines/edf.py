"""Earliest deadline first, as the Chronus paper has it: no SLO job is stopped for another (docs/chronus.md)."""

from __future__ import annotations

from collections.abc import Mapping

from copter_frontends.baselines.base import CanRun
from copter_frontends.baselines.priority import PriorityPolicy
from copter_frontends.chronus.rewards import StepReward
from copter_frontends.vocabulary import Cluster


class EdfPolicy(PriorityPolicy):
    """SLO jobs by their first deadline, then best-effort jobs as they came; SLO jobs stop best-effort ones only.

    Parameters
    ----------
    cluster : Cluster
        Read, never changed.
    rewards : mapping of job id to StepReward, optional
        Jobs without one are best effort.
    round_s : float
    can_run : callable, optional
        As for :class:`.BaselinePolicy`.
    """

    def __init__(
        self,
        cluster: Cluster,
        rewards: Mapping[str, StepReward] | None = None,
        round_s: float = 60.0,
        can_run: CanRun | None = None,
    ) -> None:
        super().__init__(cluster, round_s, can_run)
        self.rewards = dict(rewards or {})

    def deadline_s(self, job_id: str) -> float:
        """First deadline of a job, in seconds from the start; infinite for best effort."""
        reward = self.rewards.get(job_id)
        return float("inf") if reward is None else self.jobs[job_id].submit_s + reward.steps[0][0]

    def ranking(self, now_s: float) -> list[str]:
        """SLO jobs that run, SLO jobs by deadline, best-effort jobs that run, the others."""

        def key(job_id: str) -> tuple[bool, bool, float]:
            deadline_s = self.deadline_s(job_id)
            return job_id not in self.rewards, job_id not in self.held, deadline_s

        return sorted(self.queue(), key=key)
