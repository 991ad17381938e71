"""The clock that the service, its schedulers and the coordinator of shards go by: the system's, or a simulation's."""

from __future__ import annotations

import time
from contextvars import ContextVar
from typing import Protocol


class Clock(Protocol):
    """The calls of a clock."""

    def now(self) -> float:
        """Seconds since 1970; may jump."""

    def monotonic(self) -> float:
        """Seconds since some instant; never goes back."""

    def sleep(self, seconds: float) -> None:
        """Wait."""


class SystemClock:
    """The operating system's."""

    now = staticmethod(time.time)
    monotonic = staticmethod(time.perf_counter)
    sleep = staticmethod(time.sleep)


CLOCK: ContextVar[Clock] = ContextVar("clock", default=SystemClock())  # noqa: B039 (it has no state)
"""The clock in force: a simulated process sets its own in its context."""
