"""Rays checked on the original problem: no verdict is given without one that holds (equation P17)."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from copter.problem.linear_program import LinearProgram

Floats = NDArray[np.float64]


def is_farkas(lp: LinearProgram, ray: Floats, tolerance: float) -> bool:
    """Whether row multipliers prove that no point satisfies all rows and bounds."""
    size = float(np.abs(ray).max(initial=0.0))
    if not 0.0 < size < np.inf:
        return False
    y = ray / size
    d = -(lp.A.T @ y)
    value, weight = 0.0, 0.0
    for multiplier, lower, upper in ((y, lp.row_lower, lp.row_upper), (d, lp.col_lower, lp.col_upper)):
        bound = np.where(multiplier > 0, lower, upper)
        open_ended = np.isinf(bound)
        if bool(np.any(open_ended & (np.abs(multiplier) > tolerance))):
            return False
        term = multiplier * np.where(open_ended, 0.0, bound)
        value += float(term.sum())
        weight += float(np.abs(term).sum())
    return value > tolerance * weight


def is_improving(lp: LinearProgram, ray: Floats, tolerance: float) -> bool:
    """Whether the objective improves without bound along a direction in x that no row or bound stops."""
    size = float(np.abs(ray).max(initial=0.0))
    if not 0.0 < size < np.inf:
        return False
    d = ray / size
    change = lp.A @ d
    for step, lower, upper, allowed in (
        (change, lp.row_lower, lp.row_upper, tolerance),
        (d, lp.col_lower, lp.col_upper, 0.0),
    ):
        if bool(np.any(np.isfinite(upper) & (step > allowed)) or np.any(np.isfinite(lower) & (step < -allowed))):
            return False
    term = lp.c * d * (1.0 if lp.sense == "min" else -1.0)
    return bool(term.sum() < -tolerance * np.abs(term).sum())
