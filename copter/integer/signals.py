"""Signals that come while other code runs that loses what their handlers raise."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any


@contextmanager
def kept(raised: list[BaseException]) -> Iterator[None]:
    """Within, what the handlers of signals raise is put into `raised`: Ctrl-C's, a timer's, a user's own.

    Python runs a handler where it next gets to run, which may be the first line of a function that HiGHS calls, before
    any `try`. What is raised there does not come out of HiGHS again. In other threads than the main one no handler
    runs, and nothing is done.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    within = True
    before = {number: handler for number in signal.valid_signals() if callable(handler := signal.getsignal(number))}

    def keeping(handler: Callable[[int, FrameType | None], Any]) -> Callable[[int, FrameType | None], None]:
        def keep(number: int, frame: FrameType | None) -> None:
            try:
                handler(number, frame)
            except BaseException as error:  # whatever it is, it is raised again once HiGHS has ended
                if not within:
                    raise
                raised.append(error)

        return keep

    for number, handler in before.items():
        signal.signal(number, keeping(handler))
    try:
        yield
    finally:
        within = False  # from here on handlers do as they did, also where one of them ends the loop
        for number, handler in before.items():
            signal.signal(number, handler)
