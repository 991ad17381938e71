"""Rows with one entry, turned into bounds of the column."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from copter.methods.presolve.restoration import Floats, Indices, Restoration
from copter.methods.presolve.tightest import Tightest, active_side
from copter.methods.presolve.work import Work


@dataclass(frozen=True, slots=True)
class SingletonRows:
    """Columns whose bounds came from rows; `lower_from` and `upper_from` are indices into `row`, or -1."""

    column: Indices
    row: Indices
    value: Floats
    lower_from: Indices
    upper_from: Indices

    def undo(self, state: Restoration) -> None:
        """Move a reduced cost to the dual of the row that supplied the active bound (equation P4)."""
        d = state.reduced_costs(self.column)
        source, moved = active_side(d, self.lower_from, self.upper_from)
        source = source[moved]
        state.y[self.row[source]] = d[moved] / self.value[source]


def reduce_singleton_rows(work: Work) -> bool:
    """Turn rows with one entry into bounds; crossed bounds are a conflict."""
    entry = np.flatnonzero(work.row_count[work.row] == 1)
    value, col = work.value[entry], work.col[entry]
    entry = entry[np.abs(value) >= work.tolerances.singleton_pivot * work.column_size[col]]
    if not len(entry):
        return False
    row, value = work.row[entry], work.value[entry]
    columns, group = np.unique(work.col[entry], return_inverse=True)
    at_lower, at_upper = work.row_lower[row] / value, work.row_upper[row] / value
    tightest = Tightest.of(
        group,
        np.where(value > 0, at_lower, at_upper),
        np.where(value > 0, at_upper, at_lower),
        work.col_lower[columns],
        work.col_upper[columns],
    )
    worst, sound = tightest.judge(work.tolerances)
    if worst >= 0:
        work.conflict = np.zeros(work.m)
        for sign, place in ((1.0, tightest.lower_from[worst]), (-1.0, tightest.upper_from[worst])):
            if place >= 0:
                work.conflict[row[place]] = sign / value[place]
        return True
    if not sound.any():
        return False
    lower, upper = tightest.closed()
    work.col_lower[columns[sound]] = lower[sound]
    work.col_upper[columns[sound]] = upper[sound]
    kept = sound & ((tightest.lower_from >= 0) | (tightest.upper_from >= 0))
    work.records.append(SingletonRows(columns[kept], row, value, tightest.lower_from[kept], tightest.upper_from[kept]))
    work.bounds_changed()
    work.remove(row[sound[group]], np.zeros(0, dtype=np.int64))
    return True
