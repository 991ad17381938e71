"""Column singletons that only loosen their row."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from copter.methods.presolve.restoration import Entries, Floats, Indices, Restoration, nearest_to_zero
from copter.methods.presolve.work import Mask, Work


@dataclass(frozen=True, slots=True)
class ColumnSingletons:
    """Columns with one entry."""

    row: Indices
    column: Indices
    value: Floats

    @classmethod
    def of(cls, work: Work) -> ColumnSingletons:
        """Return all remaining singletons."""
        entry = np.flatnonzero(work.col_count[work.col] == 1)
        return cls(work.row[entry], work.col[entry], work.value[entry])

    def one_per_row(self, keep: Mask) -> ColumnSingletons:
        """Return, for each row, the singleton of the mask with the largest coefficient."""
        row, column, value = self.row[keep], self.column[keep], self.value[keep]
        order = np.lexsort((-np.abs(value), row))
        first = order[np.unique(row[order], return_index=True)[1]]
        return ColumnSingletons(row[first], column[first], value[first])

    def safe(self, work: Work) -> Mask:
        """Mark singletons whose coefficient is large enough, compared with its row's largest, to divide by."""
        largest = np.zeros(work.m)
        np.maximum.at(largest, work.row, np.abs(work.value))
        return np.abs(self.value) >= work.tolerances.pivot * largest[self.row]


@dataclass(frozen=True, slots=True)
class SlackColumns:
    """Removed slack columns, one per row, with the previous bounds of rows and columns.

    `dual` is the multiple of the row that absorbed the column's cost; `costs` are the previous costs of `cost_columns`.
    """

    singles: ColumnSingletons
    row_lower: Floats
    row_upper: Floats
    lower: Floats
    upper: Floats
    dual: Floats
    cost_columns: Indices
    costs: Floats
    entries: Entries

    def undo(self, state: Restoration) -> None:
        """Set the column where row and bounds allow, on the side that the row's dual selects (equation P12)."""
        singles = self.singles
        rest = self.entries.activity(state.x, len(singles.row))
        lower, upper = state.bound(self.lower), state.bound(self.upper)
        value = singles.value
        term_lower, term_upper = (
            np.where(value > 0, value * lower, value * upper),
            np.where(value > 0, value * upper, value * lower),
        )
        least = np.maximum(term_lower, state.bound(self.row_lower) - rest)
        most = np.minimum(term_upper, state.bound(self.row_upper) - rest)
        y = state.y[singles.row]
        term = nearest_to_zero(least, most)
        term = np.where((y > 0) & np.isfinite(most), most, term)
        term = np.where((y < 0) & np.isfinite(least), least, term)
        state.x[singles.column] = np.clip(term / value, lower, upper)
        state.y[singles.row] = y + state.cost(self.dual)
        state.c[self.cost_columns] = state.cost(self.costs)


def reduce_slack_columns(work: Work) -> bool:
    """Move column singletons without cost, or in an equation, into their rows' bounds (equation P12)."""
    result = ColumnSingletons.of(work)
    if not len(result.row):
        return False
    equality = work.row_lower[result.row] == work.row_upper[result.row]
    singles = result.one_per_row((work.c[result.column] == 0) | (equality & result.safe(work)))
    row, column, value = singles.row, singles.column, singles.value
    if not len(row):
        return False
    row_lower, row_upper = work.row_lower[row].copy(), work.row_upper[row].copy()
    lower, upper = work.col_lower[column], work.col_upper[column]
    dual = work.c[column] / value
    priced = dual != 0
    work.offset += float(dual[priced] @ row_lower[priced])
    cost_columns, costs = work.shift_costs(row[priced], dual[priced])
    entries = work.entries_of(row, column)
    work.records.append(SlackColumns(singles, row_lower, row_upper, lower, upper, dual, cost_columns, costs, entries))
    at_lower, at_upper = value * lower, value * upper
    for bound, term in (
        (work.row_lower, np.maximum(at_lower, at_upper)),
        (work.row_upper, np.minimum(at_lower, at_upper)),
    ):
        moved = bound[row] - term
        size = np.abs(bound[row]) + np.abs(term)
        small = np.isfinite(size) & (np.abs(moved) <= work.tolerances.cancellation * size)
        bound[row] = np.where(small, 0.0, moved)
    work.remove(np.zeros(0, dtype=np.int64), column)
    return True
