"""Deadline and Ctrl-C combined into one question for loops: must this solve stop?"""

from __future__ import annotations

import signal
import threading
import time
from types import FrameType, TracebackType
from typing import Any

# The interpreter's own functions where they can be had: those of the module look up the names of signals and handlers,
# which takes too long for a small round.
_SIGNALS: Any = getattr(signal, "_signal", signal)
_CTRL_C = int(signal.SIGINT)


class Stopped(Exception):
    """Raised when the caller or the clock ends a part of a solve."""


class Watch:
    """A stop watch that runs from its creation. Inside ``with`` it also catches Ctrl-C (in the main thread, if no other
    handler is set).

    A solve that Ctrl-C ends returns INTERRUPTED, with its best point, instead of raising KeyboardInterrupt half way
    through an update. A second Ctrl-C raises as usual. A watch inside another
    one stops when the outer one was interrupted.

    Attributes
    ----------
    limit_s : float
        Wall-clock seconds after which the solve must stop.
    """

    __slots__ = ("_caught", "_interrupted", "_outer", "limit_s", "started")

    def __init__(self, limit_s: float) -> None:
        self.limit_s = limit_s
        self.started = time.perf_counter()
        self._interrupted = False
        self._caught = False
        self._outer: Watch | None = None

    @property
    def interrupted(self) -> bool:
        """Whether Ctrl-C or a callback has ended the solve."""
        return self._interrupted or (self._outer is not None and self._outer.interrupted)

    @interrupted.setter
    def interrupted(self, value: bool) -> None:
        self._interrupted = value

    @property
    def elapsed_s(self) -> float:
        """Seconds since the watch was created."""
        return time.perf_counter() - self.started

    @property
    def left_s(self) -> float:
        """Seconds that the solve has left."""
        return self.limit_s - self.elapsed_s

    def __call__(self) -> bool:
        if self._interrupted or (self._outer is not None and self._outer.interrupted):
            return True
        return time.perf_counter() - self.started >= self.limit_s

    def __enter__(self) -> Watch:
        mine = threading.current_thread() is threading.main_thread()
        handler = _SIGNALS.getsignal(_CTRL_C) if mine else None
        if handler is signal.default_int_handler:
            _SIGNALS.signal(_CTRL_C, self._interrupt)
            self._caught = True
        outer = getattr(handler, "__self__", None)
        self._outer = outer if isinstance(outer, Watch) else None
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._caught:
            _SIGNALS.signal(_CTRL_C, signal.default_int_handler)
            self._caught = False

    def _interrupt(self, number: int, frame: FrameType | None) -> None:
        if self.interrupted:
            raise KeyboardInterrupt
        self.interrupted = True
