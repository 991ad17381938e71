"""Columns with one entry, at most one per row: shared code for slack columns and free columns."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from copter.methods.presolve.restoration import Floats, Indices
from copter.methods.presolve.work import Mask, Work


@dataclass(frozen=True, slots=True)
class ColumnSingletons:
    """Columns with one entry; `entry` is its index among the remaining entries."""

    entry: Indices
    row: Indices
    column: Indices
    value: Floats

    @classmethod
    def of(cls, work: Work) -> ColumnSingletons:
        """Return all remaining singletons."""
        return cls.at(work, np.flatnonzero(work.col_count[work.col] == 1))

    @classmethod
    def at(cls, work: Work, entry: Indices) -> ColumnSingletons:
        """Return the singletons at these entries."""
        return cls(entry, work.row[entry], work.col[entry], work.value[entry])

    def one_per_row(self, work: Work, keep: Mask) -> ColumnSingletons:
        """Return, for each row, the singleton of the mask with the largest coefficient."""
        entry, row, value = self.entry[keep], self.row[keep], self.value[keep]
        order = np.lexsort((-np.abs(value), row))
        _, first = np.unique(row[order], return_index=True)
        return self.at(work, entry[order[first]])

    def safe(self, work: Work) -> Mask:
        """Mark singletons whose coefficient is large enough, compared with its row's largest, to divide by."""
        largest = np.zeros(work.m)
        np.maximum.at(largest, work.row, np.abs(work.value))
        return np.abs(self.value) >= work.tolerances.pivot * largest[self.row]
