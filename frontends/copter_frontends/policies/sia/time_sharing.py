"""The time-sharing bonus (thesis 3.5.6; papers/sia.md, S6): jobs without recent service are worth more."""

from __future__ import annotations

from collections import deque
from collections.abc import Container, Iterable
from dataclasses import dataclass, field
from math import isfinite

from copter.runtime.errors import SettingsError


@dataclass(frozen=True, slots=True)
class TimeSharing:
    """Parameters of time sharing.

    Parameters
    ----------
    window_s : float
        tau: seconds of service that a job should get before others take their turn.
    weight : float
        Value of a whole window without service, added to the queue-occupancy incentive; nearly twice as much after a
        long wait. A small weight only decides between jobs of nearly equal value; one near 1 preempts running jobs for
        any waiting job.
    published : bool
        Whether to use the thesis's penalty (3.5.6): the incentive is (tau - s) / tau, and 0 for tau seconds after a
        whole window of service, so that a served job has the objective's least value. `weight` is then ignored.

    Raises
    ------
    SettingsError
        If a number is not finite and positive.
    """

    window_s: float
    weight: float = 0.025
    published: bool = False

    def __post_init__(self) -> None:
        for name in ("window_s", "weight"):
            value = getattr(self, name)
            if not (isfinite(value) and value > 0):
                raise SettingsError(f"time sharing: {name} is {value}, must be finite and > 0")


@dataclass(slots=True)
class Service:
    """The periods in which one job had GPUs, within the window; times in seconds.

    `waits_since_s` is the time when the job last ran (or was first seen); `offered` is its last bonus while waiting,
    which it keeps during its turn.
    """

    since_s: float | None = None
    past: deque[tuple[float, float]] = field(default_factory=deque)
    sated_until_s: float = -1.0
    waits_since_s: float | None = None
    offered: float = 0.0

    def note(self, now_s: float, running: bool) -> None:
        """Record whether the job runs from now on."""
        if running and self.since_s is None:
            self.since_s = now_s
        elif not running and self.since_s is not None:
            self.past.append((self.since_s, now_s))
            self.since_s, self.waits_since_s = None, now_s
        elif self.waits_since_s is None:
            self.waits_since_s = now_s

    def seconds(self, now_s: float, window_s: float) -> float:
        """Return s_i(tau): seconds with GPUs in the window that ends now."""
        begin = now_s - window_s
        while self.past and self.past[0][1] <= begin:
            self.past.popleft()
        total = sum(end - max(start, begin) for start, end in self.past)
        return total + (0.0 if self.since_s is None else now_s - max(self.since_s, begin))

    def penalty(self, now_s: float, window_s: float) -> float:
        """Return lambda_n(i, t) of the thesis: the share of the window without service; 0 after a full window of
        service.
        """
        served = self.seconds(now_s, window_s)
        if now_s < self.sated_until_s:
            return 0.0
        if served >= window_s:
            self.sated_until_s = now_s + window_s
            return 0.0
        return (window_s - served) / window_s

    def bonus(self, now_s: float, sharing: TimeSharing) -> float:
        """Return the job's current bonus (S6)."""
        window_s = sharing.window_s
        if self.since_s is not None and now_s - self.since_s < window_s:
            return self.offered
        served = self.seconds(now_s, window_s)
        if served >= window_s:
            self.sated_until_s = now_s + window_s
        sated = now_s < self.sated_until_s
        waited = now_s - self.waits_since_s if self.since_s is None and self.waits_since_s is not None else 0.0
        patience = 1.0 + waited / (waited + window_s)
        self.offered = 0.0 if sated else sharing.weight * patience * (window_s - served) / window_s
        return self.offered


class Turns:
    """Records when jobs have GPUs, and computes their bonuses for time sharing (S6).

    Parameters
    ----------
    sharing : TimeSharing, optional
        Without it there are no bonuses and nothing is recorded.
    incentive : float
        Lambda of the objective, which the published penalty replaces.
    """

    def __init__(self, sharing: TimeSharing | None, incentive: float = 0.0) -> None:
        self.sharing, self.incentive = sharing, incentive
        self._service: dict[str, Service] = {}

    def bonuses(self, now_s: float, jobs: Iterable[str], running: Container[str]) -> dict[str, float]:
        """Return each job's current bonus (S6), added to its values; `running` are the jobs with GPUs."""
        if self.sharing is None:
            return {}
        result = {}
        for job_id in jobs:
            service = self._service.setdefault(job_id, Service())
            service.note(now_s, job_id in running and service.since_s is not None)
            if self.sharing.published:
                result[job_id] = service.penalty(now_s, self.sharing.window_s) - self.incentive
            else:
                result[job_id] = service.bonus(now_s, self.sharing)
        return result

    def note(self, now_s: float, running: Container[str]) -> None:
        """Record which jobs run from now on."""
        for job_id, service in self._service.items():
            service.note(now_s, job_id in running)

    def remove(self, job_id: str) -> None:
        """Delete a job."""
        self._service.pop(job_id, None)
