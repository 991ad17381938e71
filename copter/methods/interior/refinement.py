"""Iterative refinement: the error of an answer solves another LP, scaled up (equation I12).

The idea is that of Gleixner, Steffy and Wolter, "Iterative refinement for linear programming" (2016), here around an
interior-point method.
"""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from copter.problem.linear_program import LinearProgram

Floats = NDArray[np.float64]

MOST = 1e8  # largest factor by which residuals are scaled up


def magnification(violation: float) -> float:
    """Return a power of two that scales a violation to about one."""
    return float(np.exp2(np.floor(np.log2(1.0 / max(violation, 1.0 / MOST)))))


def error_program(lp: LinearProgram, x: Floats, y: Floats, primal: float, dual: float) -> LinearProgram:
    """Return the LP whose first n columns are primal (x* - x) and whose prices are dual (y* - y).

    Rows that are not equations get a column s for the change of their activity, with their price y as its cost, so that
    their prices may fall or rise.
    """
    activity = lp.A @ x
    loose = np.flatnonzero(lp.row_lower != lp.row_upper)
    slack = sp.csc_array((-np.ones(len(loose)), (loose, np.arange(len(loose)))), shape=(lp.shape[0], len(loose)))
    lower, upper = primal * (lp.row_lower - activity), primal * (lp.row_upper - activity)
    right = np.where(lp.row_lower == lp.row_upper, lower, 0.0)
    return LinearProgram(
        c=dual * np.concatenate((lp.c - lp.A.T @ y, y[loose])),
        A=sp.hstack((lp.A, slack), format="csc"),
        row_lower=right,
        row_upper=right,
        col_lower=np.concatenate((primal * (lp.col_lower - x), lower[loose])),
        col_upper=np.concatenate((primal * (lp.col_upper - x), upper[loose])),
        sense=lp.sense,
    )
