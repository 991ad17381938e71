"""Semi-continuous variables as other tools give them: a set of columns, each zero or within its bounds."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from copter.runtime.errors import InvalidDataError

Floats = NDArray[np.float64]


def with_zero(semi: NDArray[np.bool_], lower: Floats, upper: Floats) -> tuple[Floats, Floats, Floats]:
    """Return (lower, upper, least) in a LinearProgram's terms, where the bounds include zero and `least` has the gap.

    A column whose bounds include zero has no gap. One whose bounds are crossed can only be zero, as for HiGHS.

    Parameters
    ----------
    semi : ndarray (n,) of bool
    lower, upper : ndarray (n,)

    Raises
    ------
    InvalidDataError
        For a column below zero, or one without an upper bound.
    """
    gap = semi & ((lower > 0.0) | (upper < 0.0))
    only_zero = gap & (lower > upper)
    gap &= ~only_zero
    wrong = np.flatnonzero(gap & ((upper < 0.0) | np.isinf(upper)))
    if len(wrong):
        at = int(wrong[0])
        raise InvalidDataError(
            f"a semi-continuous variable needs finite bounds from zero on: column {at} is zero or from {lower[at]:g} "
            f"to {upper[at]:g}; give an upper bound, or write minus the variable if it is below zero"
        )
    zero = gap | only_zero
    return np.where(zero, 0.0, lower), np.where(only_zero, 0.0, upper), np.where(gap, lower, 0.0)
