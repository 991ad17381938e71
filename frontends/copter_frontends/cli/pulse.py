"""Progress of a long solve on stderr: nothing in the first seconds, then a line at intervals."""

from __future__ import annotations

import sys
import time

from copter import Progress
from copter_frontends.cli.habits import is_quiet

FIRST_S, EVERY_S = 2.0, 5.0


class Pulse:
    """Prints the progress of a solve at intervals."""

    def __init__(self) -> None:
        self._started = time.perf_counter()
        self._next_s = FIRST_S

    def beat(self, now: Progress) -> None:
        """Report progress; a callback for :func:`copter.with_record`."""
        if self._due():
            self._say(f"{now.passes} iterations, gap {now.gap:.1e}, residual {now.violation:.1e}")

    def of_search(self, objective: float, bound: float) -> None:
        """Report progress; a callback for :func:`copter.solve_integer`."""
        if self._due():
            self._say(f"best point {objective:.10g}, bound {bound:.10g}")

    def _due(self) -> bool:
        if is_quiet():
            return False
        elapsed = time.perf_counter() - self._started
        if elapsed < self._next_s:
            return False
        self._next_s = elapsed + EVERY_S
        return True

    def _say(self, words: str) -> None:
        print(f"{time.perf_counter() - self._started:.0f} s: {words}", file=sys.stderr, flush=True)
