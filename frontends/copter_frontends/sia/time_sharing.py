"""The time-sharing penalty (thesis 3.5.6; docs/sia.md, S10): jobs that have had no service lately are worth more."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from math import isfinite

from copter.errors import SettingsError


@dataclass(frozen=True, slots=True)
class TimeSharing:
    """How GPUs are shared over time.

    Parameters
    ----------
    window_s : float
        tau, seconds of service that a job is meant to get before others take their turn.
    weight : float
        Worth of a whole window without service, on top of the queue-occupancy incentive.

    Raises
    ------
    SettingsError
        If one is not finite and > 0.
    """

    window_s: float
    weight: float = 1.0

    def __post_init__(self) -> None:
        for name in ("window_s", "weight"):
            value = getattr(self, name)
            if not (isfinite(value) and value > 0):
                raise SettingsError(f"time sharing: {name} is {value}, must be finite and > 0")


@dataclass(slots=True)
class Service:
    """When one job had GPUs, as far back as the window goes; times in seconds."""

    since_s: float | None = None
    past: deque[tuple[float, float]] = field(default_factory=deque)
    sated_until_s: float = -1.0

    def note(self, now_s: float, running: bool) -> None:
        """The job runs, or does not, from now on."""
        if running and self.since_s is None:
            self.since_s = now_s
        elif not running and self.since_s is not None:
            self.past.append((self.since_s, now_s))
            self.since_s = None

    def seconds(self, now_s: float, window_s: float) -> float:
        """s_i(tau): seconds with GPUs in the window that ends now."""
        begin = now_s - window_s
        while self.past and self.past[0][1] <= begin:
            self.past.popleft()
        total = sum(end - max(start, begin) for start, end in self.past)
        return total + (0.0 if self.since_s is None else now_s - max(self.since_s, begin))

    def bonus(self, now_s: float, sharing: TimeSharing) -> float:
        """weight (tau - s) / tau; 0 for a window's length after a whole window of service."""
        window_s = sharing.window_s
        served = self.seconds(now_s, window_s)
        if served >= window_s:
            self.sated_until_s = now_s + window_s
        return 0.0 if now_s < self.sated_until_s else sharing.weight * (window_s - served) / window_s
