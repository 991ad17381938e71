"""Rows, or sides of rows, that the columns' bounds imply; and rows that they rule out."""

from __future__ import annotations

import numpy as np

from copter.presolve.work import Work


def reduce_redundant_rows(work: Work) -> bool:
    """Drop sides of rows that always hold (equation P8); a row that never holds is a conflict (equation P7)."""
    activity, tolerances = work.activity(), work.tolerances
    low, high, lower, upper = activity.low, activity.high, work.row_lower, work.row_upper
    error = tolerances.sum_error * activity.size
    lower_size, upper_size = np.maximum(1.0, np.abs(lower)), np.maximum(1.0, np.abs(upper))
    alive = work.row_alive & (work.row_count > 0)
    short = alive & (lower - high > tolerances.infeasible * np.where(np.isfinite(lower), lower_size, 1.0) + error)
    over = alive & (low - upper > tolerances.infeasible * np.where(np.isfinite(upper), upper_size, 1.0) + error)
    wrong = np.flatnonzero(short | over)
    if len(wrong):
        work.conflict = np.zeros(work.m)
        work.conflict[wrong[0]] = 1.0 if short[wrong[0]] else -1.0
        return True
    # rows that one side forces are another reduction's
    loose = alive & (low < upper - tolerances.rounding * upper_size) & (high > lower + tolerances.rounding * lower_size)
    free_below = loose & np.isfinite(lower) & (low >= lower - tolerances.rounding * lower_size)
    free_above = loose & np.isfinite(upper) & (high <= upper + tolerances.rounding * upper_size)
    work.row_lower[free_below] = -np.inf
    work.row_upper[free_above] = np.inf
    return bool(free_below.any() or free_above.any())
