"""Sums of weights by index."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray


def totals(index: NDArray[np.integer], weight: ArrayLike, size: int) -> NDArray[np.float64]:
    """Return the sum of the weights of each index below `size`, always as float64."""
    return np.bincount(index, weight, minlength=size).astype(np.float64, copy=False)
