"""A shard's part of an edit's arguments with one entry per request."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from copter.model.private_rows import PrivateRows
from copter.runtime.errors import DimensionError


def at_all(ids: list[Hashable]) -> NDArray[np.int64]:
    """Indices of all ids: 0, 1, ..., n - 1."""
    return np.arange(len(ids))


def taken(value: Any, at: NDArray[Any], k: int, what: str = "an argument") -> Any:
    """Return entries `at` of an argument with one entry per request; scalars and None are unchanged."""
    if value is None or (not isinstance(value, (list, tuple)) and np.ndim(value) == 0):
        return value
    if len(value) != k:
        raise DimensionError(f"{what} has {len(value)} entries, must have {k}: one for each request")
    return [value[i] for i in at] if isinstance(value, (list, tuple)) else np.asarray(value)[at]


def taken_rows(value: Any, at: NDArray[Any], k: int, one_each: bool) -> Any:
    """Return entries `at` of private rows' bounds; a single row of bounds holds for all unless `one_each`."""
    if value is None or np.ndim(value) == 0:
        return value
    if isinstance(value, (list, tuple)) and any(np.ndim(each) for each in value):
        return taken(value, at, k)
    return taken(np.asarray(value), at, k) if one_each or np.ndim(value) == 2 else value


def rows_taken(rows: PrivateRows, chosen: NDArray[np.bool_], columns: NDArray[Any]) -> PrivateRows:
    """Return the chosen rows, restricted to these columns."""
    which = np.flatnonzero(chosen)
    matrix = sp.csr_array(rows.matrix)[which][:, columns]
    bounds = (
        np.broadcast_to(np.asarray(each, dtype=np.float64), (len(chosen),))[which] for each in (rows.lower, rows.upper)
    )
    return PrivateRows(sp.csc_array(matrix), *bounds)
