"""Parallel rows, merged into one row with the tightest bounds."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from copter.methods.presolve.parallel import ParallelLines
from copter.methods.presolve.restoration import Floats, Indices, Restoration
from copter.methods.presolve.tightest import Tightest, active_side
from copter.methods.presolve.work import Work


@dataclass(frozen=True, slots=True)
class ParallelRows:
    """Rows merged into others; `lower_from` and `upper_from` are indices into `member`, or -1."""

    first: Indices
    member: Indices
    ratio: Floats
    lower_from: Indices
    upper_from: Indices

    def undo(self, state: Restoration) -> None:
        """Give the dual to the row from which the active bound came (equation P9)."""
        dual = state.y[self.first]
        source, moved = active_side(dual, self.lower_from, self.upper_from)
        state.y[self.first[moved]] = 0.0
        state.y[self.member[source[moved]]] = dual[moved] / self.ratio[source[moved]]


def reduce_parallel_rows(work: Work) -> bool:
    """Merge parallel rows (equation P9); bounds that cross are a conflict."""
    lines = ParallelLines.find(work.row, work.col, work.value, work.m, work.n, work.tolerances.parallel)
    if not len(lines.member):
        return False
    first, group = np.unique(lines.first, return_inverse=True)
    at_lower, at_upper = work.row_lower[lines.member] / lines.ratio, work.row_upper[lines.member] / lines.ratio
    tightest = Tightest.of(
        group,
        np.minimum(at_lower, at_upper),
        np.maximum(at_lower, at_upper),
        work.row_lower[first],
        work.row_upper[first],
    )
    worst, sound = tightest.judge(work.tolerances)
    if worst >= 0:
        work.conflict = np.zeros(work.m)
        for sign, place in ((1.0, tightest.lower_from[worst]), (-1.0, tightest.upper_from[worst])):
            row = first[worst] if place < 0 else lines.member[place]
            work.conflict[row] = sign if place < 0 else sign / lines.ratio[place]
        return True
    lower, upper = tightest.closed()
    work.row_lower[first[sound]] = lower[sound]
    work.row_upper[first[sound]] = upper[sound]
    work.records.append(
        ParallelRows(first[sound], lines.member, lines.ratio, tightest.lower_from[sound], tightest.upper_from[sound])
    )
    work.remove(lines.member[sound[group]], np.zeros(0, dtype=np.int64))
    return bool(sound.any())
