"""Where a job can run at all, and on how many GPUs a rigid one does."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from copter_frontends.policy_kit.throughputs import Throughputs
from copter_frontends.vocabulary import Job

CanRun = Callable[[Job, str, int], bool]
"""(job, GPU type, GPUs) -> whether the job runs there."""


def requested_gpus(job: Job) -> int:
    """GPUs of a rigid job: what its user asked for, within the range that it runs on."""
    if job.gpus is not None:
        return job.gpus
    wanted = max(job.requested_gpus, job.min_gpus)
    return wanted if job.max_gpus is None else min(wanted, job.max_gpus)


def anywhere(job: Job, gpu_type: str, gpus: int) -> bool:
    """The test whether a job runs at all where nothing is known of that."""
    return True


@dataclass(frozen=True, slots=True)
class RunsWith:
    """The test whether a job runs at all, of how fast it runs (a value, so that policies can be saved)."""

    throughputs: Throughputs

    def __call__(self, job: Job, gpu_type: str, gpus: int) -> bool:
        """Whether the throughput is above zero."""
        return self.throughputs.rate(job, gpu_type, gpus) > 0
