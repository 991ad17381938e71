"""Domains of Pyomo's variables as columns: an interval, whole numbers, or zero and an interval above it."""

from __future__ import annotations

from typing import Any

import numpy as np
from pyomo.contrib.solver.common.util import IncompatibleModelError

Column = tuple[float, float, bool, bool]  # lower, upper, whether whole, whether semi-continuous


def column_of(variable: Any) -> Column:
    """Return bounds and kind of a variable.

    Raises
    ------
    IncompatibleModelError
        For a domain that none of these columns has, such as {1, 3, 5}.
    """
    lower, upper = (_number(bound, sign) for bound, sign in zip(variable.bounds, (-1.0, 1.0), strict=True))
    if variable.is_continuous():
        return lower, upper, False, False
    if variable.is_integer():
        return lower, upper, True, False
    found = _zero_and_interval(variable.domain)
    if found is None:
        raise IncompatibleModelError(
            f"variable {variable.name!r}: its domain {variable.domain} is neither an interval, nor all whole numbers "
            "of one, nor zero and one interval above it; write a binary variable for each value instead"
        )
    least, most = found
    if lower > 0.0 or upper < 0.0:  # zero is excluded by the variable's own bounds: an ordinary interval
        return max(lower, least), min(upper, most), False, False
    return least, min(upper, most), False, True


def _number(bound: float | None, sign: float) -> float:
    return sign * np.inf if bound is None else float(bound)


def _zero_and_interval(domain: Any) -> tuple[float, float] | None:
    """Return the interval of a domain that is zero and one interval of real numbers above it; None for any other."""
    parts = sorted(((part.start, part.end, part.step) for part in domain.ranges()), key=lambda part: part[0])
    if len(parts) != 2 or parts[0][:2] != (0, 0):
        return None
    start, end, step = parts[1]
    if start <= 0 or (step != 0 and start != end):
        return None
    return float(start), float(_number(end, 1.0))
