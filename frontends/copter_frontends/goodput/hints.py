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
        Most GPUs of each type on which the job has run.
    noise_scale : float
        Gradient noise scale in samples, at the job's present batch size and progress.
    profiled_only : bool
        Whether the job has been profiled and has not run yet, so that `max_gpus` are those of the profiles.
    """

    parameters: Mapping[str, ThroughputParameters]
    max_gpus: Mapping[str, int]
    noise_scale: float
    profiled_only: bool = False

    @property
    def several(self) -> tuple[str, ...]:
        """GPU types on which the job has run with more than one GPU."""
        return tuple(kind for kind, most in self.max_gpus.items() if most > 1)
