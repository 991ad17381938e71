"""Rows that can hold only if every column is at one of its bounds."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from copter.methods.presolve.restoration import Entries, Floats, Indices, Restoration
from copter.methods.presolve.tolerances import margin
from copter.methods.presolve.totals import totals
from copter.methods.presolve.work import Mask, Work


@dataclass(frozen=True, slots=True)
class ForcingRows:
    """Forcing rows without common columns; `at_upper` if the least activity equals the upper bound."""

    rows: Indices
    at_upper: Mask
    entries: Entries

    def undo(self, state: Restoration) -> None:
        """Set the smallest dual that gives all reduced costs of the row their signs (equation P8)."""
        ratio = state.reduced_costs(self.entries.column) / self.entries.value
        sign = np.where(self.at_upper, -1.0, 1.0)
        most = np.zeros(len(self.rows))
        np.maximum.at(most, self.entries.row, sign[self.entries.row] * ratio)
        state.y[self.rows] = sign * most


def reduce_forcing_rows(work: Work) -> bool:
    """Fix the columns of forcing rows and remove the rows (equation P8)."""
    activity, tolerances = work.activity(), work.tolerances
    alive = work.row_alive & (work.row_count > 0)
    lower, upper = work.row_lower, work.row_upper
    at_upper = alive & _meets(activity.low, upper, tolerances.rounding)
    at_lower = alive & _meets(activity.high, lower, tolerances.rounding)
    rows = np.flatnonzero(at_upper | at_lower)
    if not len(rows):
        return False
    rows = _without_common_columns(work, rows)
    entries = work.entries_of(rows, np.zeros(0, dtype=np.int64))
    from_below = at_upper[rows]
    to_lower = (entries.value > 0) == from_below[entries.row]
    values = np.where(to_lower, work.col_lower[entries.column], work.col_upper[entries.column])
    work.records.append(ForcingRows(rows, from_below, entries))
    work.remove(rows, np.zeros(0, dtype=np.int64))
    work.fix(entries.column, values)
    return True


def _meets(activity: Floats, bound: Floats, rounding: float) -> Mask:
    """Mark activities that equal a finite bound."""
    finite = np.isfinite(activity) & np.isfinite(bound)
    difference = np.where(finite, activity, 0.0) - np.where(finite, bound, 0.0)
    meets: Mask = finite & (np.abs(difference) <= margin(rounding, bound))
    return meets


def _without_common_columns(work: Work, rows: Indices) -> Indices:
    """Return a subset of the rows without common columns; the first row with a column owns it."""
    entries = work.entries_of(rows, np.zeros(0, dtype=np.int64))
    owner = np.full(work.n, len(rows))
    np.minimum.at(owner, entries.column, entries.row)
    lost = totals(entries.row, owner[entries.column] != entries.row, len(rows))
    alone: Indices = rows[lost == 0]
    return alone
