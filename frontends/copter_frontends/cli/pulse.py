"""Progress on stderr: nothing in the first seconds, then a line at intervals, seldom where no one looks on."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from copter_frontends.cli.habits import is_quiet

if TYPE_CHECKING:
    from copter import Progress

FIRST_S, EVERY_S = 2.0, 5.0
SELDOM_S = 30.0  # between two lines where stderr is no terminal


class Pulse:
    """Prints the progress of a solve at intervals."""

    def __init__(self) -> None:
        self._started = time.perf_counter()
        self._next_s = first_s()

    def beat(self, now: Progress) -> None:
        """Report progress; a callback for :func:`copter.with_record`."""
        from copter.problem.figures import percent  # imports NumPy, which --help does without

        if self._due():
            self._say(f"{now.passes} iterations, gap {percent(now.gap)}, residual {now.violation:.1e}")

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
        self._next_s = elapsed + every_s()
        return True

    def _say(self, words: str) -> None:
        print(f"{time.perf_counter() - self._started:.0f} s: {words}", file=sys.stderr, flush=True)


def first_s() -> float:
    """Return the seconds before the first line."""
    return FIRST_S if sys.stderr.isatty() else SELDOM_S


def every_s() -> float:
    """Return the seconds between two lines."""
    return EVERY_S if sys.stderr.isatty() else SELDOM_S


@contextmanager
def told(words: Callable[[], str]) -> Iterator[None]:
    """Report, from a thread, what a long block is at; `words` is called for each line."""
    if is_quiet():
        yield
        return
    ended, started = threading.Event(), time.perf_counter()

    def tell() -> None:
        wait = first_s()
        while not ended.wait(wait):
            print(f"{time.perf_counter() - started:.0f} s: {words()}", file=sys.stderr, flush=True)
            wait = every_s()

    thread = threading.Thread(target=tell, daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()
