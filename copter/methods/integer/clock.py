"""The deadline of one search."""

from __future__ import annotations

import time


class Clock:
    """Elapsed and remaining seconds of a search."""

    def __init__(self, deadline_s: float) -> None:
        self.started = time.perf_counter()
        self.deadline_s = deadline_s

    @property
    def elapsed_s(self) -> float:
        """Seconds since the start."""
        return time.perf_counter() - self.started

    @property
    def left_s(self) -> float:
        """Seconds left, never below zero; infinite without a deadline."""
        return max(self.deadline_s - self.elapsed_s, 0.0)

    @property
    def expired(self) -> bool:
        """Whether no time is left."""
        return self.left_s <= 0.0

    def stop(self) -> None:
        """End the search: set the remaining time to zero."""
        self.deadline_s = 0.0
