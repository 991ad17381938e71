"""Columns of one entry, one per row: what slack columns and free columns have in common."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from copter.methods.presolve.restoration import Floats, Indices
from copter.methods.presolve.work import Mask, Work


@dataclass(frozen=True, slots=True)
class ColumnSingletons:
    """Columns of one entry; `entry` is its place among the entries that are left."""

    entry: Indices
    row: Indices
    column: Indices
    value: Floats

    @classmethod
    def of(cls, work: Work) -> ColumnSingletons:
        """All that are left."""
        return cls.at(work, np.flatnonzero(work.col_count[work.col] == 1))

    @classmethod
    def at(cls, work: Work, entry: Indices) -> ColumnSingletons:
        """The singletons at some entries."""
        return cls(entry, work.row[entry], work.col[entry], work.value[entry])

    def one_per_row(self, work: Work, keep: Mask) -> ColumnSingletons:
        """Of the singletons in the mask, the one with the largest coefficient in each row."""
        entry, row, value = self.entry[keep], self.row[keep], self.value[keep]
        order = np.lexsort((-np.abs(value), row))
        _, first = np.unique(row[order], return_index=True)
        return self.at(work, entry[order[first]])

    def safe(self, work: Work) -> Mask:
        """Where the coefficient is not too small, against the largest of its row, to divide by."""
        largest = np.zeros(work.m)
        np.maximum.at(largest, work.row, np.abs(work.value))
        return np.abs(self.value) >= work.tolerances.pivot * largest[self.row]
