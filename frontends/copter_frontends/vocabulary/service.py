"""The service a job has received, for queues by attained service or waiting time."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(slots=True)
class Service:
    """The service a job has received.

    Attributes
    ----------
    executed_s, waiting_s : float
        Seconds with GPUs, measured from plan to plan, and seconds since the job last had GPUs (or was submitted).
    gpu_s : float
        GPU-seconds held: the attained service of least-attained-service policies.
    progress : float
        Fraction of the job that is done, as last reported to the policy.
    """

    executed_s: float = 0.0
    waiting_s: float = 0.0
    gpu_s: float = 0.0
    progress: float = 0.0


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
