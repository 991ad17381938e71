"""Ties of an order by numbers, broken by a slower rule where there are any."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]


def without_ties(order: Ints, tied: NDArray[np.bool_], key: Callable[[int], Any]) -> list[int]:
    """Return an order with the entries of each run of ties sorted by another key.

    Parameters
    ----------
    order : int64 array (n,)
        Numbers of the entries, in order.
    tied : bool array (n - 1,)
        Whether each entry of the order is equal to the next one.
    key : callable (number of an entry) -> comparable
    """
    result: list[int] = order.tolist()
    edges = np.flatnonzero(np.diff(np.concatenate(([False], tied, [False])).astype(np.int8))).tolist()
    for first, last in zip(edges[::2], edges[1::2], strict=True):
        result[first : last + 1] = sorted(result[first : last + 1], key=key)
    return result
