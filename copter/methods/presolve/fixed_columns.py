"""Columns whose bounds are equal."""

from __future__ import annotations

import numpy as np

from copter.methods.presolve.work import Work


def reduce_fixed_columns(work: Work) -> bool:
    """Move columns with equal bounds into the rows' bounds and the offset (equation P10)."""
    lower, upper = work.col_lower, work.col_upper
    finite = work.col_alive & np.isfinite(lower) & np.isfinite(upper)
    columns = np.flatnonzero(finite)
    size = np.maximum(np.abs(lower[columns]), np.abs(upper[columns]))
    columns = columns[upper[columns] - lower[columns] <= work.tolerances.cancellation * size]
    work.fix(columns, lower[columns])
    return len(columns) > 0
