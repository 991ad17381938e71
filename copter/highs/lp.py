"""HiGHS's objects: a silent solver, a program filled in, a run."""

from __future__ import annotations

import ctypes
import os
import sys
import threading
from contextlib import suppress
from importlib import import_module
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from copter.problem.linear_program import LinearProgram
from copter.runtime.errors import CopterError

Floats = NDArray[np.float64]


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
    some = lp.semicontinuous > 0.0
    whole = integer and lp.is_mixed_integer
    return filled_lp(
        lp.c,
        lp.A,
        (lp.row_lower, lp.row_upper),
        (np.where(some, lp.semicontinuous, lp.col_lower) if whole else lp.col_lower, lp.col_upper),
        lp.integrality.astype(int) + 2 * some if whole else None,
        lp.sense,
        lp.offset,
    )


def filled_lp(
    cost: Floats,
    matrix: sp.csc_array,
    rows: tuple[Floats, Floats],
    columns: tuple[Floats, Floats],
    kinds: NDArray[np.int64] | None = None,
    sense: str = "min",
    offset: float = 0.0,
) -> Any:
    """Return a HighsLp with these data; the one place where one is filled.

    Parameters
    ----------
    cost : ndarray (n,)
    matrix : csc_array (m, n)
    rows, columns : pairs of ndarrays
        Lower and upper bounds.
    kinds : ndarray of int (n,), optional
        0 for a continuous column, 1 for an integer one, 2 for a semi-continuous, 3 for a semi-integer one.
    sense : {"min", "max"}
    offset : float
    """
    highspy = require_highspy("HiGHS")
    result = highspy.HighsLp()
    result.num_row_, result.num_col_ = matrix.shape
    result.col_cost_, result.offset_ = cost, offset
    result.sense_ = highspy.ObjSense.kMaximize if sense == "max" else highspy.ObjSense.kMinimize
    result.row_lower_, result.row_upper_ = rows
    result.col_lower_, result.col_upper_ = columns
    result.a_matrix_.format_ = highspy.MatrixFormat.kColwise
    result.a_matrix_.start_, result.a_matrix_.index_ = matrix.indptr, matrix.indices
    result.a_matrix_.value_ = matrix.data
    if kinds is not None:
        kind = highspy.HighsVarType
        names = np.array([kind.kContinuous, kind.kInteger, kind.kSemiContinuous, kind.kSemiInteger])
        result.integrality_ = names[kinds].tolist()
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
