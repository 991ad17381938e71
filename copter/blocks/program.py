"""A block program: columns by request, coupling rows, private rows of each request (equation I15)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int32]


@dataclass(slots=True)
class BlockProgram:
    """min cost'x, lower <= (x, A x) <= upper, where every private row is of one block of columns.

    Attributes
    ----------
    n_rows : int
        Coupling rows.
    column_start, private_start : ndarray (blocks + 1,) int32
        Columns and private rows of every block; columns after the last block are of none.
    start, row, value : CSC arrays
        Entries in coupling rows, rows ascending.
    own_start, own_row, own_value : CSC arrays
        Entries in private rows, counted within the block, ascending.
    cost : ndarray (columns,)
    lower, upper : ndarray (columns + rows,)
        Of the columns, then of the coupling rows, then of the private rows.
    """

    n_rows: int
    column_start: Ints
    private_start: Ints
    start: Ints
    row: Ints
    value: Floats
    own_start: Ints
    own_row: Ints
    own_value: Floats
    cost: Floats
    lower: Floats
    upper: Floats

    @property
    def n_columns(self) -> int:
        """Number of columns."""
        return len(self.cost)

    @property
    def n_private(self) -> int:
        """Number of private rows."""
        return int(self.private_start[-1])

    @property
    def arrays(self) -> tuple[int, Ints, Ints, Ints, Ints, Floats, Ints, Ints, Floats]:
        """What the kernels take."""
        return (
            self.n_rows,
            self.column_start,
            self.private_start,
            self.start,
            self.row,
            self.value,
            self.own_start,
            self.own_row,
            self.own_value,
        )
