"""Ctrl-C held back while many jobs are edited, so that it ends no such edit between two of them."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable
from types import FrameType
from typing import Any


class HeldBack:
    """A ``with`` block after which Ctrl-C has its effect, if it was pressed inside; in other threads than the main one,
    which no handler interrupts, a block as any other.
    """

    __slots__ = ("_handler", "_pressed")

    def __init__(self) -> None:
        self._handler: Callable[[int, FrameType | None], Any] | None = None
        self._pressed = False

    def __enter__(self) -> HeldBack:
        if threading.current_thread() is threading.main_thread():
            handler = signal.getsignal(signal.SIGINT)
            if callable(handler):
                self._handler = handler
                signal.signal(signal.SIGINT, self._note)
        return self

    def __exit__(self, *_: object) -> None:
        if self._handler is not None:
            signal.signal(signal.SIGINT, self._handler)
            if self._pressed:
                self._handler(signal.SIGINT, None)

    def _note(self, number: int, frame: FrameType | None) -> None:
        self._pressed = True
