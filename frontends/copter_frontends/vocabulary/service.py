"""The service a job has received, for queues by attained service or waiting time."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(slots=True)
class ServiceClock:
    """The time of the last plan, shared by all jobs' services."""

    now_s: float = 0.0


@dataclass(slots=True)
class Service:
    """The service a job has received.

    A plan touches only the jobs that have GPUs: of the others it is known since when they wait.

    Attributes
    ----------
    executed_s : float
        Seconds with GPUs, measured from plan to plan.
    gpu_s : float
        GPU-seconds held: the attained service of least-attained-service policies.
    progress : float
        Fraction of the job that is done, as last reported to the policy.
    clock : ServiceClock
    waits_from_s : float
        Time from which the job waits: of the last plan at which it had GPUs, or of its submission.
    """

    executed_s: float = 0.0
    gpu_s: float = 0.0
    progress: float = 0.0
    clock: ServiceClock = field(default_factory=ServiceClock)
    waits_from_s: float = 0.0

    @property
    def waiting_s(self) -> float:
        """Seconds, at the last plan, since the job last had GPUs (or was submitted)."""
        return max(self.clock.now_s - self.waits_from_s, 0.0)

    @waiting_s.setter
    def waiting_s(self, seconds: float) -> None:
        self.waits_from_s = self.clock.now_s - seconds


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
