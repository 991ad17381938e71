"""Columns that no row prevents from moving in the direction of their cost."""

from __future__ import annotations

import numpy as np

from copter.methods.presolve.restoration import Indices, nearest_to_zero
from copter.methods.presolve.work import Mask, Work


def unlocked(work: Work) -> tuple[Mask, Mask]:
    """Mark columns that no row prevents from decreasing, and from increasing; empty columns are both."""
    positive = work.value > 0
    has_lower, has_upper = np.isfinite(work.row_lower)[work.row], np.isfinite(work.row_upper)[work.row]
    stops_decrease = np.where(positive, has_lower, has_upper)
    stops_increase = np.where(positive, has_upper, has_lower)
    down = np.bincount(work.col[stops_decrease], minlength=work.n) == 0
    up = np.bincount(work.col[stops_increase], minlength=work.n) == 0
    return work.col_alive & down, work.col_alive & up


def reduce_dual_fixing(work: Work) -> bool:
    """Fix unlocked columns at the bound that their cost selects (equation P11).

    A cost that drives an unlocked column to infinity is a direction of unboundedness: once verified, only feasibility
    is left to settle.
    """
    down, up = unlocked(work)
    down &= work.c >= 0
    up &= work.c <= 0
    if not (down.any() or up.any()):
        return False
    both = np.flatnonzero(down & up)
    lower, upper = work.col_lower, work.col_upper
    to_lower = np.flatnonzero(down & ~up & np.isfinite(lower))
    to_upper = np.flatnonzero(up & ~down & np.isfinite(upper))
    values = [nearest_to_zero(lower[both], upper[both]), lower[to_lower], upper[to_upper]]
    columns: Indices = np.concatenate((both, to_lower, to_upper))
    fixed = len(columns) > 0
    work.fix(columns, np.concatenate(values))
    for open_ended, step in (
        (down & (work.c > 0) & np.isneginf(lower), -1.0),
        (up & (work.c < 0) & np.isposinf(upper), 1.0),
    ):
        driven = np.flatnonzero(open_ended)
        if len(driven) and work.improving_ray is None and work.try_improving_ray(int(driven[0]), step):
            return True
    return fixed
