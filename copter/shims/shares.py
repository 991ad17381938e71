"""The continuous requests of a plan: their required and their additional shares."""

from __future__ import annotations

from math import fsum

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from copter.model.matrix import BlockMatrix
from copter.problem.linear_program import LinearProgram

Floats = NDArray[np.float64]
Ints = NDArray[np.int32]
Keys = NDArray[np.int64]


class Shares:
    """Columns of continuous requests, in arrays that all drafts of one plan share.

    Attributes
    ----------
    key : ndarray (n,) int64
        slot << 32 | column, ascending.
    slots : ndarray (g,) int32
        The requests' slots; columns start[i]..start[i + 1] - 1 are those of slot i.
    lower, upper, cost : ndarray (n,)
    limit : ndarray (g,)
    base : ndarray (n,)
        Least value of every column: its lower bound, or its value if it is fixed.
    entry_start, row, coefficient : CSC arrays over row slots.
    """

    def __init__(self, matrix: BlockMatrix, continuous: NDArray[np.bool_], key: Keys) -> None:
        """Collect the listed columns of continuous slots and all columns with a required value."""
        required_slot, required_column = matrix.required_columns()
        required = required_slot.astype(np.int64) << 32 | required_column
        key = np.union1d(key, required)
        slot = (key >> 32).astype(np.int32)
        self.key: Keys = key[continuous[slot]]
        slot, column = (self.key >> 32).astype(np.int32), (self.key & 0xFFFFFFFF).astype(np.int32)
        first = np.flatnonzero(np.diff(slot, prepend=-1))
        self.slots: Ints = slot[first]
        self.start: Ints = np.append(first, len(slot)).astype(np.int32)
        flat = matrix.gather(self.slots, self.start, column)
        self.limit, self.cost, self.lower, self.upper = flat.limit, flat.cost, flat.lower, flat.upper
        self.entry_start, self.row, self.coefficient = flat.entry_start, flat.row, flat.coefficient
        self.base: Floats = np.where(np.isfinite(self.lower), self.lower, np.minimum(self.upper, 0.0))
        self.group = np.repeat(np.arange(len(first)), np.diff(self.start))

    @property
    def size(self) -> int:
        """Number of columns."""
        return len(self.key)

    def use(self, x: Floats, rows: int) -> Floats:
        """Return the usage of every row at these values, (rows,)."""
        weights = np.repeat(x, np.diff(self.entry_start)) * self.coefficient
        return np.asarray(np.bincount(self.row, weights=weights, minlength=rows), dtype=np.float64)

    def within(self, x: Floats) -> Floats:
        """Return the values projected onto their bounds and limits; NaN becomes the least value."""
        x = np.clip(np.where(np.isfinite(x), x, self.base), self.lower, self.upper)
        total, least, size = (
            np.bincount(self.group, weights=v, minlength=len(self.limit))
            for v in (x, self.base, np.abs(x) + np.abs(self.base))
        )
        error = 2.0**-50 * np.diff(self.start) * size  # exceeds the rounding errors of the sums and of the scaling
        over = total > self.limit
        for at in np.flatnonzero(np.abs(total - self.limit) <= error).tolist():
            over[at] = fsum(x[self.start[at] : self.start[at + 1]]) > self.limit[at]
        part = np.ones(len(total))
        part[over] = np.maximum((self.limit - least - error)[over] / (total - least + error)[over], 0.0)
        return np.where(over[self.group], self.base + part[self.group] * (x - self.base), x)

    def spread(self, key: Keys, x: Floats) -> Floats:
        """Return values by key as an array, (n,); columns that are not listed get their least value."""
        found = self.base.copy()
        place = np.searchsorted(self.key, key)
        inside = place < self.size
        inside[inside] = self.key[place[inside]] == key[inside]
        found[place[inside]] = x[inside]
        return found

    def program(self, left: Floats) -> LinearProgram:
        """Return the linear program for the best shares of the remaining units, over these columns; costs as
        minimised.
        """
        m, n = len(left), self.size
        usage = sp.csc_array((self.coefficient, self.row, self.entry_start), shape=(m, n))
        limits = sp.csr_array((np.ones(n), np.arange(n), self.start), shape=(len(self.limit), n))
        return LinearProgram(
            self.cost,
            sp.vstack([usage, limits]),
            row_upper=np.concatenate((left, self.limit)),
            col_lower=self.lower,
            col_upper=self.upper,
        )
