"""Column singletons whose bounds are implied by their row."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from copter.methods.presolve.column_singletons import ColumnSingletons
from copter.methods.presolve.restoration import Entries, Floats, Indices, Restoration, nearest_to_zero
from copter.methods.presolve.tolerances import margin
from copter.methods.presolve.work import Mask, Work


@dataclass(frozen=True, slots=True)
class FreeColumns:
    """Removed implied free columns and their rows; `dual` of each row follows from the column's cost."""

    singles: ColumnSingletons
    dual: Floats
    row_lower: Floats
    row_upper: Floats
    lower: Floats
    upper: Floats
    cost_columns: Indices
    costs: Floats
    entries: Entries

    def undo(self, state: Restoration) -> None:
        """Set the column so that its row is tight on the side of the row's dual (equation P13)."""
        singles = self.singles
        rest = self.entries.activity(state.x, len(singles.row))
        row_lower, row_upper = state.bound(self.row_lower), state.bound(self.row_upper)
        ends = (row_lower - rest) / singles.value, (row_upper - rest) / singles.value
        least = np.maximum(np.minimum(*ends), state.bound(self.lower))
        most = np.minimum(np.maximum(*ends), state.bound(self.upper))
        tight = (np.where(self.dual > 0, row_lower, row_upper) - rest) / singles.value
        state.x[singles.column] = np.where(self.dual == 0, nearest_to_zero(least, most), tight)
        state.y[singles.row] = state.cost(self.dual)
        state.c[self.cost_columns] = state.cost(self.costs)


def reduce_free_columns(work: Work) -> bool:
    """Solve rows for implied free column singletons and remove both (equation P13)."""
    singletons = ColumnSingletons.of(work)
    if not len(singletons.row):
        return False
    dual = work.c[singletons.column] / singletons.value
    side = np.where(dual > 0, work.row_lower[singletons.row], work.row_upper[singletons.row])
    usable = singletons.safe(work) & ((dual == 0) | np.isfinite(side)) & _implied_free(work, singletons)
    singles = singletons.one_per_row(work, usable)
    row, column = singles.row, singles.column
    if not len(row):
        return False
    dual = work.c[column] / singles.value
    priced = dual != 0
    side = np.where(dual > 0, work.row_lower[row], work.row_upper[row])
    work.offset += float(dual[priced] @ side[priced])
    entries = work.entries_of(row, column)
    row_lower, row_upper = work.row_lower[row], work.row_upper[row]
    lower, upper = work.col_lower[column], work.col_upper[column]
    cost_columns, costs = work.shift_costs(row[priced], dual[priced])
    work.records.append(FreeColumns(singles, dual, row_lower, row_upper, lower, upper, cost_columns, costs, entries))
    work.remove(row, column)
    return True


def _implied_free(work: Work, singles: ColumnSingletons) -> Mask:
    """Mark singletons whose row and other columns' bounds imply the column's own bounds."""
    activity, row = work.activity(), singles.row
    low, high = activity.without(row, singles.entry)
    ends = (work.row_lower[row] - high) / singles.value, (work.row_upper[row] - low) / singles.value
    error = work.tolerances.sum_error * activity.size[row] / np.abs(singles.value)
    lower, upper = work.col_lower[singles.column], work.col_upper[singles.column]
    rounding = work.tolerances.rounding
    below = np.minimum(*ends) - error >= lower - margin(rounding, lower)
    above = np.maximum(*ends) + error <= upper + margin(rounding, upper)
    result: Mask = (np.isneginf(lower) | below) & (np.isposinf(upper) | above)
    return result
