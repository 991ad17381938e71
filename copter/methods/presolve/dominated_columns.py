"""Columns whose reduced cost has a known sign at all feasible prices."""

from __future__ import annotations

import numpy as np

from copter.methods.presolve.restoration import Floats
from copter.methods.presolve.totals import totals
from copter.methods.presolve.work import Work


def dual_bounds(work: Work) -> tuple[Floats, Floats]:
    """Return bounds of the row duals (equation P13), from the rows' sides and from column singletons."""
    lower = np.where(np.isfinite(work.row_upper), -np.inf, 0.0)
    upper = np.where(np.isfinite(work.row_lower), np.inf, 0.0)
    single = work.col_count[work.col] == 1
    row, col, value = work.row[single], work.col[single], work.value[single]
    price = work.c[col] / value
    # d >= 0 of a column without upper bound, d <= 0 of one without lower bound
    for open_ended, sign in ((np.isposinf(work.col_upper[col]), 1.0), (np.isneginf(work.col_lower[col]), -1.0)):
        below = open_ended & (sign * value > 0)
        above = open_ended & (sign * value < 0)
        np.minimum.at(upper, row[below], price[below])
        np.maximum.at(lower, row[above], price[above])
    crossed = lower > upper
    lower[crossed], upper[crossed] = -np.inf, np.inf
    return lower, upper


def reduce_dominated_columns(work: Work) -> bool:
    """Fix columns whose reduced cost cannot change sign, at the bound it selects (equation P13)."""
    lower, upper = dual_bounds(work)
    at_lower, at_upper = work.value * lower[work.row], work.value * upper[work.row]
    low, high = np.minimum(at_lower, at_upper), np.maximum(at_lower, at_upper)
    low_open, high_open = np.isinf(low), np.isinf(high)
    low[low_open] = 0.0
    high[high_open] = 0.0
    n = work.n
    size = work.c_size + totals(work.col, np.maximum(np.abs(low), np.abs(high)), n)
    margin = work.tolerances.dual_margin * size
    least = work.c - totals(work.col, high, n)
    most = work.c - totals(work.col, low, n)
    bounded_below = totals(work.col, high_open, n) == 0
    bounded_above = totals(work.col, low_open, n) == 0
    alive = work.col_alive & (work.col_count > 0)
    to_lower = alive & bounded_below & (least > margin) & np.isfinite(work.col_lower)
    to_upper = alive & bounded_above & (most < -margin) & np.isfinite(work.col_upper) & ~to_lower
    columns = np.flatnonzero(to_lower | to_upper)
    work.fix(columns, np.where(to_lower[columns], work.col_lower[columns], work.col_upper[columns]))
    return len(columns) > 0
