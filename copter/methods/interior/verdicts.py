"""Auxiliary programs that prove that an LP has no optimum; they always have an optimum themselves (equations I10,
I11).
"""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from copter.problem.linear_program import LinearProgram

Floats = NDArray[np.float64]


def elastic(lp: LinearProgram) -> LinearProgram:
    """Return the program of the least total violation of the rows; if its optimum is positive, its prices are a
    Farkas ray.
    """
    m, n = lp.shape
    return LinearProgram(
        c=np.concatenate((np.zeros(n), np.ones(2 * m))),
        A=sp.hstack((lp.A, sp.eye_array(m), -sp.eye_array(m)), format="csc"),
        row_lower=lp.row_lower,
        row_upper=lp.row_upper,
        col_lower=np.concatenate((lp.col_lower, np.zeros(2 * m))),
        col_upper=np.concatenate((lp.col_upper, np.full(2 * m, np.inf))),
    )


def recession(lp: LinearProgram) -> LinearProgram:
    """Return the program of the steepest direction that no row or bound stops; if its optimum is negative, its point
    is a ray.
    """
    sign = 1.0 if lp.sense == "min" else -1.0
    return LinearProgram(
        c=sign * lp.c,
        A=lp.A,
        row_lower=np.where(np.isfinite(lp.row_lower), 0.0, -np.inf),
        row_upper=np.where(np.isfinite(lp.row_upper), 0.0, np.inf),
        col_lower=np.where(np.isfinite(lp.col_lower), 0.0, -1.0),
        col_upper=np.where(np.isfinite(lp.col_upper), 0.0, 1.0),
    )
