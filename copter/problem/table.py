"""Nonzero columns as tables, for pandas and other data frames."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

import numpy as np
from numpy.typing import NDArray


def nonzeros(requests: list[Hashable], columns: NDArray[Any], values: NDArray[Any]) -> dict[str, NDArray[Any]]:
    """Return a table of one row a nonzero column: its request, its number, its value."""
    return {"request": as_array(requests), "column": columns.astype(np.int64), "value": values.astype(np.float64)}


def as_array(names: list[Hashable]) -> NDArray[Any]:
    """Return ids as an array: numbers and strings keep their type, others become objects."""
    if names and all(type(name) is type(names[0]) for name in names) and isinstance(names[0], (int, float, str)):
        return np.array(names)
    array = np.empty(len(names), dtype=object)
    array[:] = names
    return array


def frame(requests: list[Hashable], columns: NDArray[Any], values: NDArray[Any]) -> Any:
    """Return :func:`nonzeros` as a `pandas.DataFrame`; raises ImportError with what to install."""
    try:
        import pandas  # no dependency of copter
    except ImportError:
        raise ImportError("to_frame needs pandas: pip install pandas") from None
    return pandas.DataFrame(nonzeros(requests, columns, values))
