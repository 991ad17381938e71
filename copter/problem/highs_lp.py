"""Conversion of a LinearProgram to HiGHS's data structures."""

from __future__ import annotations

import ctypes
import os
import sys
import threading
from contextlib import suppress
from importlib import import_module
from typing import Any

import numpy as np

from copter.errors import CopterError
from copter.problem.linear_program import LinearProgram


def require_highspy(what: str) -> Any:
    """Return the module highspy; raises CopterError with the command that installs it."""
    try:
        return import_module("highspy")
    except ImportError as error:
        raise CopterError(f"{what} needs highspy: pip install highspy") from error


_FIRST = threading.Lock()  # lock for making the process's first object
_made: list[bool] = []


def silent_highs(what: str = "HiGHS") -> Any:
    """Return a ``highspy.Highs`` object that prints nothing.

    HiGHS 1.16 prints a banner from C when a process makes its first object, before any option can be set. So file
    descriptor 1 is redirected to the null device meanwhile. Where that is not possible (a notebook, a closed terminal)
    the banner appears.

    Raises
    ------
    CopterError
        If highspy is not installed.
    """
    highspy = require_highspy(what)
    with _FIRST:
        highs = highspy.Highs() if _made else _without_output(highspy.Highs)
        _made[:] = [True]
    highs.silent()
    return highs


def _without_output(make: Any) -> Any:
    """Call `make` and return its result; whatever C code prints meanwhile is discarded."""
    try:
        flush = ctypes.CDLL(None).fflush
        sys.stdout.flush()
        flush(None)
        kept, nowhere = os.dup(1), os.open(os.devnull, os.O_WRONLY)
    except (OSError, AttributeError, TypeError, ValueError):
        return make()
    try:
        os.dup2(nowhere, 1)
        return make()
    finally:
        with suppress(OSError):
            flush(None)
        os.dup2(kept, 1)
        os.close(kept)
        os.close(nowhere)


def highs_lp(lp: LinearProgram, integer: bool = False) -> Any:
    """Return a HighsLp of the program, with or without its integer and semi-continuous columns."""
    highspy = require_highspy("HiGHS")
    result = highspy.HighsLp()
    result.num_row_, result.num_col_ = lp.shape
    result.col_cost_, result.offset_ = lp.c, lp.offset
    result.sense_ = highspy.ObjSense.kMaximize if lp.sense == "max" else highspy.ObjSense.kMinimize
    result.col_lower_, result.col_upper_ = lp.col_lower, lp.col_upper
    result.row_lower_, result.row_upper_ = lp.row_lower, lp.row_upper
    result.a_matrix_.format_ = highspy.MatrixFormat.kColwise
    result.a_matrix_.start_, result.a_matrix_.index_ = lp.A.indptr, lp.A.indices
    result.a_matrix_.value_ = lp.A.data
    some = lp.semicontinuous > 0.0
    if integer and lp.is_mixed_integer:
        kind = highspy.HighsVarType
        kinds = np.array([kind.kContinuous, kind.kInteger, kind.kSemiContinuous, kind.kSemiInteger])
        result.integrality_ = kinds[lp.integrality.astype(int) + 2 * some].tolist()
        result.col_lower_ = np.where(some, lp.semicontinuous, lp.col_lower)
    return result


def run_highs(solver: Any) -> None:
    """Run HiGHS, even if its last run in this process used another number of threads.

    HiGHS starts its threads once per process. With another number of threads it ends with an error and has no model
    status. In that case its threads are ended and it runs again with new ones.
    """
    highspy = require_highspy("HiGHS")
    refused = solver.run() == highspy.HighsStatus.kError and solver.getModelStatus() == highspy.HighsModelStatus.kNotset
    if refused and solver.getOptionValue("threads")[1] > 0:
        solver.resetGlobalScheduler(True)
        solver.run()
