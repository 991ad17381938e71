"""Feasibility of a plan's rows in exact arithmetic."""

from __future__ import annotations

from collections.abc import Callable
from math import fsum

import numpy as np
from numpy.typing import NDArray

from copter.shims.tally import tally

Floats = NDArray[np.float64]
Ints = NDArray[np.int32]
Tally = tuple[Floats, Floats, NDArray[np.int64], NDArray[np.bool_]]

HALF_ULP = 2.0**-53  # largest relative error of one rounded operation in float64
WHOLE_BELOW = 2.0**53  # sums of whole numbers are exact up to this size
SPLIT = 2.0**27 + 1.0  # Veltkamp's factor, which splits a float64 into two halves of 26 bits


def two_products(one: Floats, other: Floats) -> tuple[Floats, Floats]:
    """Return (product, rounding error); their sum is the exact product (Dekker)."""
    product = one * other
    parts = []
    for factor in (one, other):
        high = SPLIT * factor
        high = high - (high - factor)
        parts.append((high, factor - high))
    (a, b), (c, d) = parts
    return product, b * d - (((product - a * c) - b * c) - a * d)


def exceeded(upper: Floats, row: Ints, coefficient: Floats, value: Floats) -> NDArray[np.intp]:
    """Return the rows i in which the exact sum of coefficient * value is above upper[i].

    If all of a row's coefficients and values are whole numbers, there is no allowance. Otherwise the figures stand for
    decimals that a float64 cannot hold (ten times 0.1 exceeds 1), so half a unit in the last place of each term is
    allowed: 2^-53 of the sum of absolute values.

    Parameters
    ----------
    upper : ndarray (m,)
    row, coefficient, value : ndarray (k,)
        The terms, in any order.
    """
    return exceeded_by(upper, tally(row, coefficient, value, len(upper)), lambda: (row, coefficient, value))


def exceeded_by(upper: Floats, sums: Tally, terms: Callable[[], tuple[Ints, Floats, Floats]]) -> NDArray[np.intp]:
    """Compute :func:`exceeded` from the sums by row; `terms` is called only if a sum is too near its limit."""
    use, size, count, whole = sums
    with np.errstate(over="ignore", invalid="ignore"):
        whole &= size < WHOLE_BELOW
        error = np.where(whole, 0.0, 2.0 * HALF_ULP * (count + 1) * size)
        holds = use <= upper - error
        if holds.all():
            return np.zeros(0, dtype=np.intp)
        allowed = HALF_ULP * (size + np.abs(upper))  # for rows with entries that are not whole numbers
        over = ~holds & ~(use <= upper + allowed + error)
        doubtful = np.flatnonzero(~holds & ~over & ~whole)
        if len(doubtful):
            row, coefficient, value = terms()
            for at in doubtful:
                mine = row == at
                exact, rest = two_products(coefficient[mine], value[mine])
                over[at] = not fsum([*exact.tolist(), *rest.tolist(), -upper[at]]) <= allowed[at]
        over |= whole & ~holds
    return np.flatnonzero(over)
