"""Inner products and norms in one thread and a fixed order.

BLAS splits long vectors over threads that spin while they wait for each other, so on a busy machine a norm of 20,000
numbers can take milliseconds. These functions are limited by memory speed only, and always give the same bits.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


def inner(one: Floats, other: Floats) -> float:
    """Return the inner product of two vectors."""
    return float(np.einsum("i,i->", one, other))


def norm(vector: Floats) -> float:
    """Return the Euclidean norm of a vector."""
    return float(np.sqrt(np.einsum("i,i->", vector, vector)))
