"""Predicates of where a job can run."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import inf

from copter_frontends.policy_kit.throughputs import Throughputs
from copter_frontends.vocabulary import InvalidJobError, Job

CanRun = Callable[[Job, str, int], bool]
"""Function (job, GPU type, GPUs) -> whether the job can run there."""


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
