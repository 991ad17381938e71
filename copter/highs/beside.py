"""A fork of the search's process, which can be ended at any moment: HiGHS asks no clock for a second and more (M17)."""

from __future__ import annotations

import ctypes
import os
import pickle
import signal
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import BinaryIO

from copter.highs.children import end_with_parent
from copter.highs.tree import Report

Tell = Callable[[Report], None]
LAST_FILE = 1_024  # files up to this number are closed in the fork
DEATH_SIGNAL = 1  # prctl's number of the signal that a process gets when its parent ends


class Beside:
    """Work beside this process, in a fork that sees its data as they are now.

    Parameters
    ----------
    work : callable
        Runs in the fork; gets what sends reports.
    hear : callable
        Gets the reports, in a thread of this process.

    Raises
    ------
    OSError
        If the system cannot fork.
    """

    def __init__(self, work: Callable[[Tell], None], hear: Tell) -> None:
        reading, writing = os.pipe()
        parent = os.getpid()
        try:
            self._pid = os.fork()
        except OSError:
            os.close(reading)
            os.close(writing)
            raise
        if self._pid == 0:
            try:
                _forked(work, os.fdopen(writing, "wb"), parent)
            finally:
                os._exit(0)
        os.close(writing)
        self._lock, self._is_gone = threading.Lock(), False  # whether the number may be another process's by now
        self._thread = threading.Thread(target=_read, args=(os.fdopen(reading, "rb"), hear), daemon=True)
        self._thread.start()

    @property
    def is_running(self) -> bool:
        """Whether more may be heard of it."""
        return self._thread.is_alive()

    def wait(self, seconds: float) -> None:
        """Wait until it has ended, or the time is over."""
        self._thread.join(max(seconds, 0.0))

    def kill(self) -> None:
        """End it at once, from any thread."""
        with self._lock, suppress(OSError):
            if not self._is_gone:
                os.kill(self._pid, signal.SIGKILL)

    def end(self) -> None:
        """End it at once; what it has sent is heard."""
        self.kill()
        with self._lock, suppress(OSError):
            if not self._is_gone:
                os.waitpid(self._pid, 0)
            self._is_gone = True
        self._thread.join()


def _forked(work: Callable[[Tell], None], sink: BinaryIO, parent: int) -> None:
    """Work, and nothing else: the fork has no business with its parent's files, and ends with it."""
    with suppress(OSError, AttributeError):  # this system cannot send a signal: the thread looks each second
        ctypes.CDLL(None).prctl(DEATH_SIGNAL, signal.SIGKILL)
    threading.Thread(target=end_with_parent, args=(parent,), daemon=True).start()
    os.closerange(0, 1)
    os.closerange(3, sink.fileno())
    os.closerange(sink.fileno() + 1, LAST_FILE)

    def tell(report: Report) -> None:
        pickle.dump(report, sink, protocol=pickle.HIGHEST_PROTOCOL)
        sink.flush()

    with suppress(OSError, MemoryError, RuntimeError, ValueError, TypeError):
        work(tell)


def _read(source: BinaryIO, hear: Tell) -> None:
    """Hear reports until the fork ends; a report cut off by its end is none."""
    with suppress(EOFError, OSError, pickle.UnpicklingError), source:
        while True:
            hear(pickle.load(source))
