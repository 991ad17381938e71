"""Data of the jobs of Hare's round-based policies: weight, and run time on each GPU type."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from copter_frontends.policies.hare.speeds import Speeds
from copter_frontends.vocabulary import Job

LEAST_LEFT = 1e-4  # least remaining share of a job, so that the program stays well scaled


@dataclass(frozen=True, slots=True)
class JobBook:
    """Weights and speeds of the jobs.

    Parameters
    ----------
    weights : mapping of job id to float
        w_n; 1 for jobs that are not listed.
    speeds : Speeds
    """

    weights: Mapping[str, float]
    speeds: Speeds

    def weight(self, job_id: str) -> float:
        """Return the job's weight w_n."""
        return self.weights.get(job_id, 1.0)

    def seconds_left(self, job: Job, progress: float) -> dict[str, float]:
        """Return the job's remaining seconds on each type that can run it."""
        left = max(1.0 - progress, LEAST_LEFT)
        return {kind: left * whole for kind, whole in self.speeds.seconds(job).items()}

    def runs_on(self, job: Job, gpu_type: str) -> bool:
        """Return whether a type can run the job."""
        return gpu_type in self.speeds.seconds(job)
