"""Rows with one entry, treated as column bounds; the choice depends on the structure only, not on the numbers.

Modelling tools write bounds of variables as rows, which a basis does not need. Presolve (P2) removes such rows and
more, but its choice depends on the numbers, so its answer for one program is no start for the next.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from copter.problem.linear_program import LinearProgram

Floats = NDArray[np.float64]
Indices = NDArray[np.intp]

# Bounds that cross by at most this relative distance count as equal; otherwise another method decides.
TOUCHING = 1e-9


class CrossedError(ArithmeticError):
    """Raised if the bounds that rows give a column contradict each other."""


class RowBounds:
    """A program without its one-entry rows, with the data to restore their prices.

    Parameters
    ----------
    lp : LinearProgram

    Attributes
    ----------
    rows : ndarray
        Rows with one entry, in the order of their columns.
    columns : ndarray
        The column of each of these rows.
    others : ndarray
        The rows that are left.
    lp : LinearProgram
        The program without `rows`, with their bounds on its columns.
    """

    def __init__(self, lp: LinearProgram) -> None:
        counts = np.bincount(lp.A.indices, minlength=lp.shape[0])
        single = counts == 1
        places = np.flatnonzero(single[lp.A.indices])
        places = places[lp.A.data[places] != 0.0]
        self.rows = lp.A.indices[places].astype(np.intp)
        self.columns = np.searchsorted(lp.A.indptr, places, side="right") - 1
        self._first = np.flatnonzero(np.diff(self.columns, prepend=-1))  # of the rows of each column
        kept = np.ones(lp.shape[0], dtype=bool)
        kept[self.rows] = False
        self.others: Indices = np.flatnonzero(kept)
        self._given = lp
        self._value = lp.A.data[places]
        self._from_lower = self._from_upper = np.zeros(0, dtype=np.intp)
        lower, upper = self._bounds(lp)
        self.lp = LinearProgram(
            lp.c,
            lp.A[self.others] if len(self.rows) else lp.A,
            lp.row_lower[self.others],
            lp.row_upper[self.others],
            lower,
            upper,
            sense=lp.sense,
        )

    def _bounds(self, lp: LinearProgram) -> tuple[Floats, Floats]:
        """Return the columns' bounds including those of their rows, and record each bound's row, or -1."""
        n, value = lp.shape[1], self._value
        with np.errstate(invalid="ignore", over="ignore"):
            one, other = lp.row_lower[self.rows] / value, lp.row_upper[self.rows] / value
        low, high = np.where(value > 0.0, one, other), np.where(value > 0.0, other, one)
        lower, upper = lp.col_lower.copy(), lp.col_upper.copy()
        if len(self.rows):
            at = self.columns[self._first]
            lower[at] = np.maximum(lower[at], np.maximum.reduceat(low, self._first))
            upper[at] = np.minimum(upper[at], np.minimum.reduceat(high, self._first))
        crossed = lower - upper
        if (crossed > TOUCHING * (1.0 + np.abs(upper))).any():
            raise CrossedError("rows with one entry leave a column no value")
        np.copyto(upper, lower, where=crossed > 0.0)
        self._from_lower, self._from_upper = np.full(n, -1), np.full(n, -1)
        binds = (low >= lower[self.columns]) & (low > lp.col_lower[self.columns])
        self._from_lower[self.columns[binds]] = np.flatnonzero(binds)
        binds = (high <= upper[self.columns]) & (high < lp.col_upper[self.columns])
        self._from_upper[self.columns[binds]] = np.flatnonzero(binds)
        self._given = lp
        return lower, upper

    def moved(self, lp: LinearProgram) -> tuple[Floats, Floats, Floats, Floats]:
        """Return (row_lower, row_upper, col_lower, col_upper) of the reduced program for new bounds, the same matrix.

        Raises
        ------
        CrossedError
        """
        return lp.row_lower[self.others], lp.row_upper[self.others], *self._bounds(lp)

    def prices(self, y: Floats, c: Floats) -> Floats:
        """Return prices of all rows; a one-entry row gets the reduced cost of the bound it supplies."""
        lp = self._given
        found = np.zeros(lp.shape[0])
        found[self.others] = y
        if not len(self.rows):
            return found
        d = c - lp.A.T @ found
        wanted = d if lp.sense == "min" else -d
        source = np.where(wanted > 0.0, self._from_lower, np.where(wanted < 0.0, self._from_upper, -1))
        column = np.flatnonzero(source >= 0)
        single = source[column]
        found[self.rows[single]] = d[column] / self._value[single]
        return found
