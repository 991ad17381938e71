"""The answer of a method for block programs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class BlockAnswer:
    """An optimum of the minimisation.

    Attributes
    ----------
    x : ndarray (columns,)
    y, private : ndarray (coupling rows,), (private rows,)
        Prices.
    iterations : int
    vertex : bool
    settled : bool
        Whether prices of an earlier optimum settled some of the blocks (K6).
    """

    x: Floats
    y: Floats
    iterations: int
    private: Floats
    vertex: bool = False
    settled: bool = False


Accept = Callable[[BlockAnswer], bool]
