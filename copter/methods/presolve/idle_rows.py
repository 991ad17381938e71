"""Rows without entries or without bounds."""

from __future__ import annotations

import numpy as np

from copter.methods.presolve.tolerances import contradiction
from copter.methods.presolve.work import Work


def reduce_idle_rows(work: Work) -> bool:
    """Remove free and empty rows (equation P3); an empty row that cannot hold is a conflict."""
    lower, upper = work.row_lower, work.row_upper
    empty = work.row_alive & (work.row_count == 0)
    short = empty & (lower > contradiction(work.tolerances, work.lp.row_lower))
    over = empty & (upper < -contradiction(work.tolerances, work.lp.row_upper))
    wrong = np.flatnonzero(short | over)
    if len(wrong):
        work.conflict = np.zeros(work.m)
        work.conflict[wrong[0]] = 1.0 if short[wrong[0]] else -1.0
        return True
    idle = np.flatnonzero(empty | (work.row_alive & np.isneginf(lower) & np.isposinf(upper)))
    if len(idle):
        work.remove(idle, np.zeros(0, dtype=np.int64))
    return len(idle) > 0
