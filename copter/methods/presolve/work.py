"""The problem during presolve: bounds, costs and remaining entries, under original indices."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from copter.methods.presolve.activity import Activity
from copter.methods.presolve.restoration import Entries, Floats, Indices, Record, Restoration
from copter.methods.presolve.tolerances import Tolerances
from copter.methods.presolve.totals import totals
from copter.problem.checker import is_improving_ray
from copter.problem.linear_program import LinearProgram
from copter.problem.values import distinct

Mask = NDArray[np.bool_]


class Work:
    """A minimisation whose rows and columns are removed one kind at a time (equation P1).

    Rows and columns keep their original numbers; `row_alive` and `col_alive` say which are left. The entries of these
    are held in row order.

    Attributes
    ----------
    records : list of Record
        The reductions done, to be undone in reverse order.
    x : ndarray (n,)
        Values of removed columns that were fixed.
    conflict : ndarray (m,) or None
        Row multipliers that prove the problem of this stage infeasible; None if it is not known to be.
    improving_ray : ndarray (n,) or None
        A verified unbounded direction of the original problem. Once there is one, all costs are zero and only
        feasibility is open.
    """

    def __init__(self, lp: LinearProgram, tolerances: Tolerances) -> None:
        self.lp = lp
        self.tolerances = tolerances
        self.c = lp.c.copy() if lp.sense == "min" else -lp.c
        self.c_size = np.abs(self.c)
        self.offset = lp.offset if lp.sense == "min" else -lp.offset
        self.row_lower, self.row_upper = lp.row_lower.copy(), lp.row_upper.copy()
        self.col_lower, self.col_upper = lp.col_lower.copy(), lp.col_upper.copy()
        self.m, self.n = lp.shape
        self.row_alive, self.col_alive = np.ones(self.m, dtype=np.bool_), np.ones(self.n, dtype=np.bool_)
        self.x = np.zeros(self.n)
        self.records: list[Record] = []
        self.conflict: Floats | None = None
        self.improving_ray: Floats | None = None
        by_row = sp.csr_array(lp.A)
        self.row = np.repeat(np.arange(self.m), np.diff(by_row.indptr))
        self.col = by_row.indices.astype(np.int64)
        self.value = by_row.data.copy()
        self._keep_entries(self.value != 0.0)
        column_size = np.zeros(self.n)
        np.maximum.at(column_size, self.col, np.abs(self.value))
        self.column_size = column_size

    def _keep_entries(self, keep: Mask) -> None:
        if not keep.all():
            left = np.flatnonzero(keep)
            self.row, self.col, self.value = self.row.take(left), self.col.take(left), self.value.take(left)
        self.row_count = np.bincount(self.row, minlength=self.m)
        self.col_count = np.bincount(self.col, minlength=self.n)
        self._activity: Activity | None = None

    def forget_entries(self) -> None:
        """Release the entries, which postsolve does not need."""
        self._keep_entries(np.zeros(len(self.value), dtype=np.bool_))

    @property
    def left(self) -> int:
        """Number of remaining rows and columns."""
        return int(self.row_alive.sum() + self.col_alive.sum())

    def activity(self) -> Activity:
        """Return activity bounds of all rows (equation P5), cached until a change."""
        if self._activity is None:
            self._activity = Activity.of(self.row, self.col, self.value, self.col_lower, self.col_upper, self.m)
        return self._activity

    def bounds_changed(self) -> None:
        """Invalidate cached activities; call this after changing column bounds in place."""
        self._activity = None

    def entries_of(self, rows: Indices, without: Indices) -> Entries:
        """Return entries of distinct rows, numbered by position in `rows`, without the entries of some columns."""
        place = np.full(self.m, -1)
        place[rows] = np.arange(len(rows))
        keep = place[self.row] >= 0
        if len(without):
            removed = np.zeros(self.n, dtype=np.bool_)
            removed[without] = True
            keep &= ~removed[self.col]
        return Entries(place[self.row[keep]], self.col[keep], self.value[keep])

    def remove(self, rows: Indices, columns: Indices) -> None:
        """Remove rows and columns; the caller's record describes how to restore them."""
        self.row_alive[rows] = False
        self.col_alive[columns] = False
        if len(rows) and len(columns):
            self._keep_entries(self.row_alive[self.row] & self.col_alive[self.col])
        elif len(rows) or len(columns):
            self._keep_entries(self.row_alive[self.row] if len(rows) else self.col_alive[self.col])

    def fix(self, columns: Indices, values: Floats) -> None:
        """Remove columns at fixed values, moving rows' bounds and the offset (equation P10)."""
        if not len(columns):
            return
        self.x[columns] = values
        self.offset += float(self.c[columns] @ values)
        fixed = np.zeros(self.n, dtype=np.bool_)
        fixed[columns] = True
        gone = np.flatnonzero(fixed[self.col])
        term = self.value[gone] * self.x[self.col[gone]]
        shift = totals(self.row[gone], term, self.m)
        size = totals(self.row[gone], np.abs(term), self.m)
        self.row_lower = self._difference(self.row_lower, shift, size)
        self.row_upper = self._difference(self.row_upper, shift, size)
        self.remove(np.zeros(0, dtype=np.int64), columns)

    def _difference(self, bound: Floats, shift: Floats, size: Floats) -> Floats:
        """Return bound - shift, set to zero if only rounding remains."""
        value = bound - shift
        value[np.abs(value) <= self.tolerances.cancellation * size] = 0.0
        return value

    def shift_costs(self, rows: Indices, duals: Floats) -> tuple[Indices, Floats]:
        """Subtract multiples of rows from the costs; returns the columns and their costs before."""
        multiplier = np.zeros(self.m)
        multiplier[rows] = duals
        hit = multiplier[self.row] != 0.0
        columns = distinct(self.col[hit])
        before = self.c[columns]
        term = multiplier[self.row[hit]] * self.value[hit]
        self.c_size = np.maximum(self.c_size, totals(self.col[hit], np.abs(term), self.n))
        self.c -= totals(self.col[hit], term, self.n)
        small = np.abs(self.c) <= self.tolerances.cancellation * self.c_size
        self.c[columns[small[columns]]] = 0.0
        return columns, before

    def restoration(self, x: Floats, y: Floats, homogeneous: bool = False) -> Restoration:
        """Return the state from which all records can be undone, given full-length x, y of this stage."""
        costless = homogeneous or self.improving_ray is not None
        c = np.zeros(self.n) if costless else self.c.copy()
        return Restoration(self.lp.A, x, y, c, homogeneous, costless)

    def undo(self, state: Restoration) -> None:
        """Undo all records in reverse order."""
        for record in reversed(self.records):
            record.undo(state)

    def try_improving_ray(self, column: int, step: float) -> bool:
        """Whether a step in one column proves the original problem dual infeasible; if so, all costs become zero."""
        direction = np.zeros(self.n)
        direction[column] = step
        state = self.restoration(direction, np.zeros(self.m), homogeneous=True)
        self.undo(state)
        if not is_improving_ray(self.lp, state.x, self.tolerances.ray):
            return False
        self.improving_ray = state.x / np.abs(state.x).max()
        self.c = np.zeros(self.n)
        self.c_size = np.zeros(self.n)
        self.offset = 0.0
        return True
