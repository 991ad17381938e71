"""Iterative refinement: the error of an answer is the answer of another LP, scaled up (equation I10).

The idea is that of Gleixner, Steffy and Wolter, "Iterative refinement for linear programming" (2016), here around an
interior-point method.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from copter.linear_program import LinearProgram

Floats = NDArray[np.float64]

MOST = 1e8  # by which an error is scaled up at most
LEAST = 1e-300


def magnification(violation: float) -> float:
    """A power of two that brings a violation to about one."""
    return float(np.exp2(np.floor(np.log2(min(1.0 / max(violation, LEAST), MOST)))))


def error_program(lp: LinearProgram, x: Floats, y: Floats, primal: float, dual: float) -> LinearProgram:
    """The LP that d = primal (x* - x) solves at costs dual (c - A'y); its prices are dual (y* - y)."""
    activity = lp.A @ x
    return LinearProgram(
        c=dual * (lp.c - lp.A.T @ y),
        A=lp.A,
        row_lower=primal * (lp.row_lower - activity),
        row_upper=primal * (lp.row_upper - activity),
        col_lower=primal * (lp.col_lower - x),
        col_upper=primal * (lp.col_upper - x),
        sense=lp.sense,
    )
