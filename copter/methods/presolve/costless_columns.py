"""Columns without cost that can go to infinity, satisfying all their rows."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from copter.methods.presolve.dual_fixing import unlocked
from copter.methods.presolve.restoration import Entries, Floats, Indices, Restoration, nearest_to_zero
from copter.methods.presolve.work import Mask, Work


@dataclass(frozen=True, slots=True)
class CostlessColumns:
    """Removed columns and the rows that each satisfies, with one column per row; `limit` is the row's only bound.

    `column_of` is the index in `columns` of each row's column, `pivot` its coefficient.
    """

    columns: Indices
    downward: Mask
    lower: Floats
    upper: Floats
    column_of: Indices
    pivot: Floats
    limit: Floats
    entries: Entries

    def undo(self, state: Restoration) -> None:
        """Move each column just as far as its rows require (equation P12)."""
        rest = self.entries.activity(state.x, len(self.column_of))
        needed = (state.bound(self.limit) - rest) / self.pivot
        least, most = state.bound(self.lower).copy(), state.bound(self.upper).copy()
        down, up = self.downward[self.column_of], ~self.downward[self.column_of]
        np.minimum.at(most, self.column_of[down], needed[down])
        np.maximum.at(least, self.column_of[up], needed[up])
        state.x[self.columns] = nearest_to_zero(least, most)


def reduce_costless_columns(work: Work) -> bool:
    """Remove unlocked columns without cost or bound, and the rows that they can satisfy (equation P12)."""
    free = work.col_alive & (work.c == 0) & (np.isneginf(work.col_lower) | np.isposinf(work.col_upper))
    if not free.any():
        return False
    down, up = unlocked(work)
    down &= free & np.isneginf(work.col_lower)
    up &= free & np.isposinf(work.col_upper) & ~down
    columns = np.flatnonzero(down | up)
    if not len(columns):
        return False
    # a row is assigned to its first column
    candidate = (down | up)[work.col]
    row, col, value = work.row[candidate], work.col[candidate], work.value[candidate]
    rows, first = np.unique(row, return_index=True)
    chosen, pivot = col[first], value[first]
    # a column is removed only if all its rows are assigned to it
    own = np.bincount(chosen, minlength=work.n) == work.col_count
    keep = own[chosen]
    rows, chosen, pivot = rows[keep], chosen[keep], pivot[keep]
    columns = columns[own[columns]]
    if not len(columns):
        return False
    place = np.full(work.n, -1)
    place[columns] = np.arange(len(columns))
    downward = down[columns]
    at_upper = (pivot > 0) == down[chosen]
    limit = np.where(at_upper, work.row_upper[rows], work.row_lower[rows])
    entries = work.entries_of(rows, columns)
    work.records.append(
        CostlessColumns(
            columns, downward, work.col_lower[columns], work.col_upper[columns], place[chosen], pivot, limit, entries
        )
    )
    work.remove(rows, columns)
    return True
