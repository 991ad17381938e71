"""Policies whose jobs may have deadlines (docs/papers/chronus.md, C1)."""

from __future__ import annotations

from copter_frontends.deadlines import NO_REWARDS, Rewards, StepReward, reward_for
from copter_frontends.policy_kit import RoundPolicy
from copter_frontends.vocabulary import Job


class DeadlineJobs(RoundPolicy):
    """Mixin, to be listed before :class:`.RoundPolicy`: jobs with a reward are SLO jobs, the others best effort.

    Attributes
    ----------
    rewards : dict of job id to StepReward
        Rewards of the known jobs.
    """

    follows = True  # the policy needs the progress of all jobs, to know which deadlines are near
    source: Rewards = NO_REWARDS
    rewards: dict[str, StepReward]

    def take_rewards(self, source: Rewards | None) -> None:
        """Set the source of rewards; call this before adding jobs."""
        self.source, self.rewards = source or NO_REWARDS, {}

    def add_job(self, job: Job) -> None:
        """Queue a job, an SLO job if the source has a reward for it. Errors as in :meth:`.RoundPolicy.add_job`."""
        super().add_job(job)
        reward = reward_for(self.source, job)
        if reward is not None:
            self.rewards[job.id] = reward

    def remove_job(self, job_id: str) -> None:
        """Forget a job and its reward, and free its GPUs; raises UnknownJobError for an unknown id."""
        super().remove_job(job_id)
        self.rewards.pop(job_id, None)

    def deadline_s(self, job_id: str) -> float:
        """Return a job's first deadline, in seconds from the start; infinite for best effort."""
        reward = self.rewards.get(job_id)
        return float("inf") if reward is None else self.jobs[job_id].submit_s + reward.steps[0][0]
