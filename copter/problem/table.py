"""Nonzero columns as a table, for pandas and other data frames."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

import numpy as np
from numpy.typing import NDArray

Table = dict[str, NDArray[Any]]


def table(requests: list[Hashable], columns: NDArray[Any], values: NDArray[Any]) -> Table:
    """Return columns `request`, `column` and `value` with one row a nonzero column; ids of one type keep it."""
    alike = {type(each) for each in requests} in ({str}, {int}, {float})
    names = np.array(requests) if alike else np.fromiter(requests, dtype=object, count=len(requests))
    return {"request": names, "column": columns.astype(np.int64), "value": values.astype(np.float64)}


def frame(rows: Table) -> Any:
    """Return a table as a `pandas.DataFrame`; raises ImportError with what to install."""
    try:
        import pandas  # no dependency of copter
    except ImportError:
        raise ImportError("to_frame needs pandas: pip install pandas") from None
    return pandas.DataFrame(rows)
