"""Reports of a running job to its scheduler (thesis 3.3.2)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from copter_frontends.goodput.throughput import ThroughputParameters


@dataclass(frozen=True, slots=True)
class TrainingHints:
    """Throughput models fitted by a job, and its measured gradient noise.

    Parameters
    ----------
    parameters : mapping of GPU type to ThroughputParameters
        Models of the types on which the job has run.
    max_gpus : mapping of GPU type to int
        Most GPUs of each type on which the job has run or was profiled.
    noise_scale : float
        Gradient noise scale in samples, at the job's present batch size and progress.
    profiled_only : bool
        Whether the job has been profiled and has not run yet, so that `max_gpus` are those of the profiles.
    ran_gpus : mapping of GPU type to int, optional
        Most GPUs of each type that count for the growth limit, where they are not `max_gpus`: a job that was profiled
        on several GPUs has not grown to them.
    """

    parameters: Mapping[str, ThroughputParameters]
    max_gpus: Mapping[str, int]
    noise_scale: float
    profiled_only: bool = False
    ran_gpus: Mapping[str, int] | None = None

    def grown(self, gpu_type: str) -> int:
        """Return the most GPUs of a type that the job has had, for the growth limit."""
        return (self.max_gpus if self.ran_gpus is None else self.ran_gpus).get(gpu_type, 0)

    @property
    def several(self) -> tuple[str, ...]:
        """GPU types on which steps of more than one GPU are known."""
        return tuple(kind for kind, most in self.max_gpus.items() if most > 1)
