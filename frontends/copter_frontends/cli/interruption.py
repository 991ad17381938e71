"""Ctrl-C during a run: the run ends after the current round, and its results are kept."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Mapping
from contextlib import suppress
from types import FrameType, TracebackType
from typing import Any

SIGNALS = (signal.SIGINT, signal.SIGTERM)
TOLD = b"copter: interrupted: the run ends after this round, and what was simulated is kept; again to end at once\n"


def exit_code_of(summary: Mapping[str, Any]) -> int:
    """Return a run's exit code: 0, or 128 plus the number of the signal that ended it (130 for Ctrl-C)."""
    name = summary["interrupted"]
    return 0 if name is None else 128 + signal.Signals[name]


class Interruption:
    """Context that records the first SIGINT or SIGTERM; a second one ends the command at once.

    Calling it returns whether a signal was received. No solve is cut short: the round is simulated as usual, and a
    saved run continues as if there had been no signal.

    Attributes
    ----------
    number : int
        Number of the received signal; 0 for none.
    """

    def __init__(self) -> None:
        self.number = 0
        self._before: dict[int, Any] = {}

    @property
    def name(self) -> str | None:
        """Name of the received signal; None without one."""
        return signal.Signals(self.number).name if self.number else None

    def __call__(self) -> bool:
        return self.number != 0

    def __enter__(self) -> Interruption:
        if threading.current_thread() is threading.main_thread():
            self._before = {each: signal.signal(each, self._note) for each in SIGNALS}
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        for each, handler in self._before.items():
            signal.signal(each, handler if handler is not None else signal.SIG_DFL)

    def _note(self, number: int, frame: FrameType | None) -> None:
        if self.number:
            raise KeyboardInterrupt
        self.number = number
        with suppress(OSError):  # os.write instead of print, because the signal may have interrupted a print
            os.write(2, TOLD)
