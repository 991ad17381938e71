"""The service a job has received under an earlier scheduler."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Attained:
    """Service of a job under an earlier scheduler.

    Attributes
    ----------
    gpu_s : float
        GPU-seconds held.
    waiting_s : float
        Seconds since the job last had GPUs; 0 if it has some.
    by_type : mapping of GPU type to float
        Seconds with GPUs of each type.
    """

    gpu_s: float
    waiting_s: float
    by_type: Mapping[str, float] = field(default_factory=dict)
