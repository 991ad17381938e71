"""Conventions of LP and MPS files about bounds: values that mean infinity, and semi-continuous columns."""

from __future__ import annotations

import warnings
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from copter.problem.linear_program import LinearProgram
from copter.runtime.errors import InvalidDataError

Floats = NDArray[np.float64]

INFINITE = 1e20  # bounds of at least this size mean no bound, as in most readers


def require_finite_sizes(lp: LinearProgram, kind: str) -> None:
    """Raise InvalidDataError for a finite bound so large that readers of this file format would take it as infinite."""
    for what, bounds in (("row", (lp.row_lower, lp.row_upper)), ("column", (lp.col_lower, lp.col_upper))):
        for bound in bounds:
            huge = np.flatnonzero(np.isfinite(bound) & (np.abs(bound) >= INFINITE))
            if len(huge):
                raise InvalidDataError(
                    f"{what} {huge[0]} has a bound of {bound[huge[0]]:g}: {kind} readers take sizes from 1e20 on as "
                    "infinite; make it infinite or scale the program"
                )


def least_values(semicontinuous: Sequence[int], lower: Floats, upper: Floats, path: str) -> Floats:
    """Return the least nonzero values of semi-continuous columns, whose bounds are widened to include zero.

    Warns if the widened bounds admit other values too: below zero, or without an upper bound. A column whose upper
    bound is below its positive lower one can only be zero, as for HiGHS; it is warned of too.
    """
    least = np.zeros(len(lower))
    zero = [j for j in semicontinuous if 0.0 <= upper[j] < lower[j]]
    lower[zero] = upper[zero] = 0.0
    if zero:
        warnings.warn(
            f"{path}: {len(zero)} semi-continuous columns have upper bounds below their lower ones: "
            "they can only be zero",
            stacklevel=6,
        )
    gap = [j for j in semicontinuous if lower[j] > 0.0 or upper[j] < 0.0]
    kept = [j for j in gap if 0.0 < lower[j] <= upper[j] < np.inf]
    least[kept] = lower[kept]
    lower[gap], upper[gap] = np.minimum(lower[gap], 0.0), np.maximum(upper[gap], 0.0)
    if len(gap) > len(kept):
        warnings.warn(
            f"{path}: {len(gap) - len(kept)} semi-continuous columns are relaxed: they are below zero, or without an "
            "upper bound, and are read as all that lies between zero and their range",
            stacklevel=6,
        )
    return least
