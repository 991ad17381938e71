"""Row sides that the columns' bounds imply, and rows that they make impossible."""

from __future__ import annotations

import numpy as np

from copter.methods.presolve.tolerances import contradiction, margin
from copter.methods.presolve.work import Work


def reduce_redundant_rows(work: Work) -> bool:
    """Remove row sides that always hold (equation P7); a row that never holds is a conflict (equation P6)."""
    activity, tolerances = work.activity(), work.tolerances
    low, high, lower, upper = activity.low, activity.high, work.row_lower, work.row_upper
    error = tolerances.sum_error * activity.size
    alive = work.row_alive & (work.row_count > 0)
    short = alive & (high < lower - contradiction(tolerances, lower) - error)
    over = alive & (low > upper + contradiction(tolerances, upper) + error)
    wrong = np.flatnonzero(short | over)
    if len(wrong):
        work.conflict = np.zeros(work.m)
        work.conflict[wrong[0]] = 1.0 if short[wrong[0]] else -1.0
        return True
    below, above = margin(tolerances.rounding, lower), margin(tolerances.rounding, upper)
    loose = alive & (low < upper - above) & (high > lower + below)  # forcing rows are left to equation P8
    free_below = loose & np.isfinite(lower) & (low >= lower - below)
    free_above = loose & np.isfinite(upper) & (high <= upper + above)
    work.row_lower[free_below] = -np.inf
    work.row_upper[free_above] = np.inf
    return bool(free_below.any() or free_above.any())
