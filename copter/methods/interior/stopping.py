"""Uninterruptible library calls: they run in a thread, which is abandoned when the solve must stop."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import TypeVar

from copter.runtime.watch import Stopped

T = TypeVar("T")

SLICE_S = 0.01  # seconds between two checks of the clock while a call runs
SMALL = 20_000  # entries; a call on fewer entries ends too soon to need a thread


def unless_stopped(work: Callable[[], T], must_stop: Callable[[], bool] | None, entries: float) -> T:
    """Run `work` in a thread and return its result, unless the solve must stop.

    Parameters
    ----------
    work : callable
        A call that releases Python's lock, as SciPy's sparse products and factorisations do. An abandoned call still
        runs to its end in its thread, so it must not change anything that is used afterwards.
    must_stop : callable or None
    entries : float
        Size of its data; with few entries it is called directly.

    Raises
    ------
    Stopped
        A few hundredths of a second after `must_stop` returns True.
    """
    if must_stop is None or entries < SMALL:
        return work()
    result: list[T] = []
    failed: list[BaseException] = []

    def run() -> None:
        try:
            result.append(work())
        except BaseException as error:
            failed.append(error)

    thread = threading.Thread(target=run, daemon=True, name="copter")
    thread.start()
    while thread.is_alive():
        thread.join(SLICE_S)
        if thread.is_alive() and must_stop():
            raise Stopped
    if failed:
        raise failed[0]
    return result[0]
