"""Reports of a running job to its scheduler (thesis 3.3.2)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from copter_frontends.goodput.throughput import ThroughputParameters


@dataclass(frozen=True, slots=True)
class TrainingHints:
    """Throughput models and gradient noise that a job has measured.

    Parameters
    ----------
    parameters : mapping of GPU type to ThroughputParameters
        Of the types that it has been seen on.
    max_gpus : mapping of GPU type to int
        Most GPUs of each type that it has been seen on.
    noise_scale : float
        Gradient noise scale at its present batch size and progress, samples.
    """

    parameters: Mapping[str, ThroughputParameters]
    max_gpus: Mapping[str, int]
    noise_scale: float

    @property
    def several(self) -> tuple[str, ...]:
        """GPU types on which the job has run with more than one GPU."""
        return tuple(kind for kind, most in self.max_gpus.items() if most > 1)
