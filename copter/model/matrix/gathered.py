"""Columns of a block matrix, copied side by side."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int32]


class Gathered(NamedTuple):
    """Flat data of listed columns, in their order.

    Attributes
    ----------
    limit : ndarray (slots,)
        Limit of each slot's sum.
    cost, lower, upper : ndarray (columns,)
    entry_start, row, coefficient : CSC arrays over row slots
    """

    limit: Floats
    cost: Floats
    lower: Floats
    upper: Floats
    entry_start: Ints
    row: Ints
    coefficient: Floats
