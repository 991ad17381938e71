"""Progress of a solve: a named record for callbacks, lines for a logger or stderr."""

from __future__ import annotations

import logging
import sys
import time
from collections.abc import Callable
from math import isnan
from typing import NamedTuple

import numpy as np

from copter.runtime.errors import InvalidDataError

Callback = Callable[[int, float, float], bool | None]
PlanCallback = Callable[[float, float], "bool | None"]

LOGGER = logging.getLogger("copter")
LOGGER.addHandler(logging.NullHandler())


class Progress(NamedTuple):
    """State of a running solve.

    Attributes
    ----------
    passes : int
        Pricing passes (sessions) or iterations (interior points).
    gap : float
        Relative gap between objective and bound.
    violation : float
        Largest violation of a row or bound (sessions), or relative primal residual (interior points).
    seconds : float
        Seconds since the callback was made or the solve began.
    """

    passes: int
    gap: float
    violation: float
    seconds: float

    @property
    def line(self) -> str:
        """Return a log line in columns of fixed width."""
        return f"{self.passes:5d}  gap {self.gap:9.2e}  violation {self.violation:9.2e}  {self.seconds:9.3f} s"


def with_record(function: Callable[[Progress], bool | None]) -> Callback:
    """Return a solve callback that passes a :class:`Progress` to `function`; True from the function ends the solve."""
    started = time.perf_counter()

    def callback(passes: int, gap: float, violation: float) -> bool | None:
        return function(Progress(passes, gap, violation, time.perf_counter() - started))

    return callback


def listening(callback: Callback | None, verbose: bool) -> Callback | None:
    """Return the callback, extended to print a line per pass if `verbose` or if the logger "copter" is at DEBUG."""
    if callback is not None and not callable(callback):
        raise InvalidDataError(f"callback is {callback!r}, must be callable, or None")
    if not isinstance(verbose, (bool, np.bool_)):
        raise InvalidDataError(f"verbose is {verbose!r}, must be True or False")
    logs = LOGGER.isEnabledFor(logging.DEBUG)
    if not verbose and not logs:
        return callback

    def tell(now: Progress) -> bool | None:
        if logs:
            LOGGER.debug("%s", now.line)
        if verbose:
            print(f"copter {now.line}", file=sys.stderr, flush=True)
        return None if callback is None else callback(*now[:3])

    return with_record(tell)


def told(what: str, status: str, passes: int, gap: float, seconds: float, verbose: bool) -> None:
    """Report a finished solve in one line: to the logger at INFO, and to stderr if `verbose`."""
    if verbose or LOGGER.isEnabledFor(logging.INFO):
        line = f"{what} {status}  passes {passes}  gap {gap:9.2e}  {seconds:9.3f} s"
        LOGGER.info("%s", line)
        if verbose:
            print(f"copter {line}", file=sys.stderr, flush=True)


def heard_plans(callback: PlanCallback | None, verbose: bool) -> PlanCallback | None:
    """Return the callback, extended to print a line for each better plan or bound, if `verbose` or at level DEBUG.

    Raises
    ------
    InvalidDataError
        For a callback that cannot be called.
    """
    if callback is not None and not callable(callback):
        raise InvalidDataError(f"callback is {callback!r}, must be callable: callback(objective, bound)")
    if not isinstance(verbose, (bool, np.bool_)):
        raise InvalidDataError(f"verbose is {verbose!r}, must be True or False")
    logs = LOGGER.isEnabledFor(logging.DEBUG)
    if not verbose and not logs:
        return callback
    started, last = time.perf_counter(), [""]

    def tell(objective: float, bound: float) -> bool | None:
        what = "no plan yet" if isnan(objective) else f"plan {objective:14.8g}"
        gap = float("nan") if isnan(objective) or not objective else abs(bound - objective) / abs(objective)
        line = f"{what}  bound {bound:14.8g}  gap {gap:9.2e}"
        if line != last[0]:
            last[0] = line
            text = f"{line}  {time.perf_counter() - started:9.3f} s"
            if logs:
                LOGGER.debug("%s", text)
            if verbose:
                print(f"copter {text}", file=sys.stderr, flush=True)
        return None if callback is None else callback(objective, bound)

    return tell
