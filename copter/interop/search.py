"""The search of the doors for programs with integer or semi-continuous columns: one order of methods for all."""

from __future__ import annotations

import time
from importlib.util import find_spec
from typing import Any

from copter.methods.integer.solution import IntegerSolution, IntegerStatus
from copter.methods.integer.solve import solve_integer
from copter.problem.linear_program import LinearProgram
from copter.runtime.settings import Settings


def searched(
    lp: LinearProgram, deadline_s: float | None = None, settings: Settings | None = None, **options: Any
) -> IntegerSolution:
    """Find a point by HiGHS's branch and bound if it is installed, and by copter's search otherwise or after it.

    HiGHS refuses some programs, such as one with a coefficient of 1e15, and then has no point and no bound. Unless the
    caller named a `shim`, copter's own search then takes what is left of the time.

    Parameters
    ----------
    lp : LinearProgram
    deadline_s : float, optional
        Wall-clock seconds for all searches together.
    settings : Settings, optional
    **options
        Other arguments of :func:`copter.solve_integer`.

    Returns
    -------
    IntegerSolution
    """
    if "shim" in options:
        return solve_integer(lp, deadline_s=deadline_s, settings=settings, **options)
    if find_spec("highspy") is None:
        return solve_integer(lp, "dive", deadline_s, settings, **options)
    started = time.perf_counter()
    found = solve_integer(lp, "exact", deadline_s, settings, **options)
    left_s = None if deadline_s is None else deadline_s - (time.perf_counter() - started)
    if found.status is not IntegerStatus.NONE_FOUND or (left_s is not None and left_s <= 0.0):
        return found
    if options.get("max_nodes") is not None:  # the caller's own limit may have ended it
        return found
    return solve_integer(lp, "dive", left_s, settings, **options)
