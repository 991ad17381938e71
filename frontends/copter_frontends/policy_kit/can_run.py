"""Predicates of where a job can run, and the number of GPUs of a rigid job."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import inf
from operator import attrgetter

from copter_frontends.policy_kit.throughputs import Throughputs
from copter_frontends.vocabulary import InvalidJobError, Job

CanRun = Callable[[Job, str, int], bool]
"""Function (job, GPU type, GPUs) -> whether the job can run there."""

GIVEN = attrgetter("application", "max_batch_size", "batch_size", "gpus", "requested_gpus", "min_gpus", "max_gpus")
"""Of a job without a goodput of its own: all that its shape and its requested GPUs follow from, read in one call."""


def requested_gpus(job: Job) -> int:
    """Return a rigid job's GPUs: its user's request, clipped to the range on which it runs."""
    if job.gpus is not None:
        return job.gpus
    wanted = max(job.requested_gpus, job.min_gpus)
    return wanted if job.max_gpus is None else min(wanted, job.max_gpus)


def anywhere(job: Job, gpu_type: str, gpus: int) -> bool:
    """Return True: for policies without knowledge of where a job can run."""
    return True


@dataclass(frozen=True, slots=True)
class RunsWith:
    """Callable that says whether a job's throughput is above zero; a class, so that policies that hold it can be
    saved.
    """

    throughputs: Throughputs

    def __call__(self, job: Job, gpu_type: str, gpus: int) -> bool:
        """Whether the throughput is positive; raises InvalidJobError if it is negative or not finite."""
        return checked_rate(self.throughputs, job, gpu_type, gpus) > 0


def checked_rate(throughputs: Throughputs, job: Job, gpu_type: str, gpus: int) -> float:
    """Return a job's throughput; raises InvalidJobError if it is negative or not finite."""
    rate = throughputs.rate(job, gpu_type, gpus)
    if not 0 <= rate < inf:
        raise InvalidJobError(
            f"job {job.id!r}: its throughput on {gpus} {gpu_type!r} GPUs is {rate}, must be finite and >= 0; "
            "give 0 where it cannot run"
        )
    return rate
