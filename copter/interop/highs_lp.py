"""A LinearProgram in HiGHS's own terms."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import numpy as np

from copter.errors import CopterError
from copter.problem.linear_program import LinearProgram


def require_highspy(what: str) -> Any:
    """The module highspy; CopterError that says how to get it."""
    try:
        return import_module("highspy")
    except ImportError as error:
        raise CopterError(f"{what} needs highspy: install copter-lp[highs]") from error


def highs_lp(lp: LinearProgram, integer: bool = False) -> Any:
    """A HighsLp of the same program, with or without integrality."""
    highspy = require_highspy("HiGHS")
    found = highspy.HighsLp()
    found.num_row_, found.num_col_ = lp.shape
    found.col_cost_, found.offset_ = lp.c, lp.offset
    found.sense_ = highspy.ObjSense.kMaximize if lp.sense == "max" else highspy.ObjSense.kMinimize
    found.col_lower_, found.col_upper_ = lp.col_lower, lp.col_upper
    found.row_lower_, found.row_upper_ = lp.row_lower, lp.row_upper
    found.a_matrix_.format_ = highspy.MatrixFormat.kColwise
    found.a_matrix_.start_, found.a_matrix_.index_ = lp.A.indptr, lp.A.indices
    found.a_matrix_.value_ = lp.A.data
    if integer and lp.integrality.any():
        kinds = np.array([highspy.HighsVarType.kContinuous, highspy.HighsVarType.kInteger])
        found.integrality_ = kinds[lp.integrality.astype(int)].tolist()
    return found
