"""Policies that rank all jobs every round and give GPUs down the list (docs/papers/baselines.md, B13)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from copter_frontends.policy_kit import Choice, RoundPolicy, requested_gpus
from copter_frontends.vocabulary import Job


class PriorityPolicy(RoundPolicy):
    """Preemptive scheduling of rigid jobs by rank; subclasses define the rank.

    Jobs get their requested GPUs, best rank first; a job that does not fit is skipped. By default a job stays on its
    type while that has room, and otherwise gets the type with the most GPUs left.
    """

    def ranking(self, now_s: float) -> Iterable[str]:
        """Return the ids of the jobs, first come first served."""
        return self.queue()

    def kinds(self, job: Job, left: Mapping[str, int]) -> Iterable[str]:
        """Return the GPU types in the order in which the job tries them."""
        held = self.held.get(job.id)
        return sorted(left, key=lambda kind: (held is None or held.gpu_type != kind, -left[kind]))

    def choose(self, now_s: float, deadline_s: float) -> Choice:
        """Give GPUs to the jobs in the order of the ranking."""
        return Choice(self.down_the_list(self.ranking(now_s)))

    def down_the_list(self, ranking: Iterable[str]) -> dict[str, tuple[str, int]]:
        """Give GPUs to the jobs of a ranking that have no pin."""
        left, chosen = self.room(), {}
        for job_id in ranking:
            if job_id in self.pins:
                continue
            job = self.jobs[job_id]
            gpus = requested_gpus(job)
            for kind in self.kinds(job, left):
                if gpus <= left[kind] and self.can_run(job, kind, gpus):
                    left[kind] -= gpus
                    chosen[job_id] = (kind, gpus)
                    break
        return chosen
