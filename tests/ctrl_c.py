"""Ctrl-C at a solve: pressed only while one listens, because before or after it the whole test run would end."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager


def listens() -> bool:
    """Whether a solve of this process catches Ctrl-C now."""
    return signal.getsignal(signal.SIGINT) is not signal.default_int_handler


@contextmanager
def ctrl_c_after(seconds: float) -> Iterator[None]:
    """Press Ctrl-C once, some seconds after a solve inside has begun to listen."""
    ended = threading.Event()

    def press() -> None:
        while not listens():
            if ended.wait(0.001):
                return
        until = time.monotonic() + seconds
        while not ended.wait(0.001):
            if time.monotonic() >= until and listens():
                os.kill(os.getpid(), signal.SIGINT)
                return

    thread = threading.Thread(target=press, daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()
