"""Postsolve: the state that undo records operate on, from the reduced problem to the original."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from copter.methods.presolve.totals import totals

Floats = NDArray[np.float64]
Indices = NDArray[np.int64]


def columns_times(A: sp.csc_array, columns: Indices, y: Floats) -> Floats:
    """Return A[:, columns]' y without copying the whole matrix, (k,)."""
    if 4 * len(columns) > A.shape[1]:
        return np.asarray(A.T @ y)[columns]
    return np.asarray(A[:, columns].T @ y)


@dataclass(slots=True)
class Restoration:
    """Values of all rows and columns during postsolve, as of a minimisation.

    Attributes
    ----------
    A : csc_array (m, n)
        The original matrix. Rows that are not restored yet have y = 0, so that P2 holds at every stage.
    x, y, c : ndarray
        Primal values, row duals, and the costs of the stage.
    homogeneous : bool
        Restore a direction: finite bounds count as zero.
    costless : bool
        Restore row multipliers of the problem without costs.
    """

    A: sp.csc_array
    x: Floats
    y: Floats
    c: Floats
    homogeneous: bool = False
    costless: bool = False

    def reduced_costs(self, columns: Indices) -> Floats:
        """Return c - A'y of some columns at this stage (equation P2)."""
        return self.c[columns] - columns_times(self.A, columns, self.y)

    def bound(self, value: Floats) -> Floats:
        """Return a bound, with finite bounds set to zero when a direction is restored."""
        return np.where(np.isfinite(value), 0.0, value) if self.homogeneous else value

    def cost(self, value: Floats) -> Floats:
        """Return a cost or dual, set to zero when row multipliers are restored."""
        return np.zeros_like(value) if self.costless else value


class Record(Protocol):
    """Data needed to undo one reduction, for many rows or columns at once."""

    def undo(self, state: Restoration) -> None:
        """Restore the removed values in place."""


@dataclass(frozen=True, slots=True)
class Entries:
    """Nonzeros of removed rows; `row` counts from 0 within the record."""

    row: Indices
    column: Indices
    value: Floats

    def activity(self, x: Floats, rows: int) -> Floats:
        """Return the row activities, (rows,)."""
        return totals(self.row, self.value * x[self.column], rows)


def nearest_to_zero(lower: Floats, upper: Floats) -> Floats:
    """Return the point of each interval that is nearest to zero."""
    return np.asarray(np.minimum(np.maximum(0.0, lower), upper))
