"""Clocks of the service, its schedulers and the shard coordinator: the system's clock or a simulated one."""

from __future__ import annotations

import time
from contextvars import ContextVar
from typing import Protocol


class Clock(Protocol):
    """Interface of a clock."""

    def now(self) -> float:
        """Return seconds since 1970; the value may jump."""

    def monotonic(self) -> float:
        """Return seconds since an arbitrary instant; the value never decreases."""

    def sleep(self, seconds: float) -> None:
        """Wait for this many seconds."""


class SystemClock:
    """The operating system's clock."""

    now = staticmethod(time.time)
    monotonic = staticmethod(time.perf_counter)
    sleep = staticmethod(time.sleep)


CLOCK: ContextVar[Clock] = ContextVar("clock", default=SystemClock())  # noqa: B039 (it has no state)
"""The current clock; a simulated process sets its own in its context."""
