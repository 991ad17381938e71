"""Dual bounds of a linear program that are proven in spite of rounding."""

from __future__ import annotations

from math import fsum, inf, isfinite, nextafter

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from copter.problem.exact_sums import enclosed_sums, exact_parts

Floats = NDArray[np.float64]

HALF_ULP = 2.0**-53  # largest relative error of one rounded operation in float64
SMALL = 2.0**-960  # products below this may have lost part of their rounding error to underflow
PARTS = 3  # floats of one product: rounded, its rest, and what a tie may hide
LARGE = 2.0**990  # factors above this cannot be split
SPLIT = 2.0**27 + 1.0  # Veltkamp's factor, which splits a float64 into two halves of 26 bits
AT_ONCE = 1_000  # columns per block; the proof ends at the first block with an infinite term
EXACT_ENTRIES = 50_000  # limit on the total entries of columns whose reduced costs are computed exactly
LOSS = 1e-13  # a reduced cost is computed exactly if its rounding may lower the bound by more than this share


def proven_dual_bound(
    cost: Floats,
    matrix: sp.csc_array,
    row_lower: Floats,
    row_upper: Floats,
    col_lower: Floats,
    col_upper: Floats,
    price: Floats,
) -> float:
    """Return a proven lower bound of a minimisation: the dual function (F6) at these prices, rounded down.

    Each reduced cost is enclosed in an interval: a float64 sum with a running error bound. The exact sum replaces it if
    the interval allows a sign for which the column has no finite bound, or if its length, times the column's bounds,
    costs too much of the bound. The terms are exact products, added exactly and rounded down once.

    Parameters
    ----------
    cost, col_lower, col_upper : ndarray (n,)
    matrix : csc_array (m, n)
    row_lower, row_upper : ndarray (m,)
    price : ndarray (m,)
        Prices of the minimisation. If a price has a sign for which its row has no finite bound, the bound is -inf.

    Returns
    -------
    float
        -inf if nothing is proven.
    """
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        bound = np.where(price > 0, row_lower, row_upper)
        bound = np.where(price == 0.0, 0.0, bound)
        if not (np.isfinite(price).all() and np.isfinite(bound).all()):
            return -inf
        low, high = reduced_cost_intervals(cost, matrix, price)
        first = np.flatnonzero(straddling(low, high, col_lower, col_upper))
        size = float(np.abs(price * bound).sum())
        finite = np.isfinite(col_lower) & np.isfinite(col_upper)
        width = (high - low) * np.where(finite, np.maximum(np.abs(col_lower), np.abs(col_upper)), 0.0)
        width[first] = 0.0
        then = np.flatnonzero(width > LOSS * (1.0 + size))
        left = EXACT_ENTRIES
        for where in filter(len, (*np.array_split(first, len(first) // AT_ONCE + 1), then)):
            left -= int(np.diff(matrix.indptr)[where].sum())
            if left >= 0:
                work_out(where, low, high, cost, matrix, price)
            if straddling(low[where], high[where], col_lower[where], col_upper[where]).any():
                return -inf
        if np.isnan(low).any() or np.isnan(high).any():
            return -inf
        terms, lost = least_terms(low, high, col_lower, col_upper)
        return rounded_down([*exact_products(price, bound), *terms], lost + int(lossy(price, bound).sum()))


def reduced_cost_intervals(cost: Floats, matrix: sp.csc_array, price: Floats) -> tuple[Floats, Floats]:
    """Return lower and upper bounds, (n,) each, on the exact reduced costs c - A'y: float64 sums minus and plus their
    error.
    """
    count = np.diff(matrix.indptr)
    column = np.repeat(np.arange(matrix.shape[1]), count)
    prices = price[matrix.indices]
    product = matrix.data * prices
    total = np.bincount(column, weights=product, minlength=matrix.shape[1])
    size = np.bincount(column, weights=np.abs(product), minlength=matrix.shape[1]) + np.abs(cost)
    value = cost - total
    error = 2.0 * (count + 3) * HALF_ULP * size
    lost = lossy(matrix.data, prices)
    if lost.any():
        error += np.bincount(column, weights=lost, minlength=matrix.shape[1]) * SMALL
    return value - error, value + error


def straddling(low: Floats, high: Floats, lower: Floats, upper: Floats) -> NDArray[np.bool_]:
    """Mark columns whose reduced cost may have a sign for which the column has no finite bound."""
    return ((high > 0.0) & np.isneginf(lower)) | ((low < 0.0) & np.isposinf(upper))


def work_out(
    where: NDArray[np.intp], low: Floats, high: Floats, cost: Floats, matrix: sp.csc_array, price: Floats
) -> None:
    """Replace the intervals of some columns by their exact sums, or the two doubles around them."""
    count = np.diff(matrix.indptr)[where]
    start = np.concatenate(([0], np.cumsum(count)))
    at = np.arange(start[-1]) + np.repeat(matrix.indptr[where] - start[:-1], count)
    one, other = matrix.data[at], price[matrix.indices[at]]
    product, rest = exact_products(-one, other)
    least, most = enclosed_sums(cost[where], start, product, rest)
    lost = np.add.reduceat(np.append(lossy(one, other), 0.0), start[:-1]) * (count > 0)
    error, tiny = lost * SMALL, lost > 0.0
    known = np.isfinite(least) & np.isfinite(most)
    low[where[known]] = np.where(tiny, np.nextafter(least - error, -inf), least)[known]
    high[where[known]] = np.where(tiny, np.nextafter(most + error, inf), most)[known]


def lossy(one: Floats, other: Floats) -> Floats:
    """Return 1 for each product that may have lost digits to underflow, otherwise 0."""
    lost = (one != 0.0) & (other != 0.0) & (np.abs(one * other) < SMALL)
    return np.asarray(lost, dtype=np.float64)


def exact_products(one: Floats, other: Floats) -> tuple[Floats, Floats]:
    """Return two arrays whose sum is the exact product (Dekker); NaN on overflow, an error of at most SMALL on
    underflow.
    """
    product = one * other
    ok = (np.abs(one) < LARGE) & (np.abs(other) < LARGE)
    high_one, high_other = SPLIT * one, SPLIT * other
    high_one, high_other = high_one - (high_one - one), high_other - (high_other - other)
    low_one, low_other = one - high_one, other - high_other
    rest = low_one * low_other - (((product - high_one * high_other) - low_one * high_other) - high_one * low_other)
    return np.where(ok, product, np.nan), np.where(ok, rest, np.nan)


def least_terms(low: Floats, high: Floats, lower: Floats, upper: Floats) -> tuple[list[Floats], int]:
    """Return arrays whose sum, column by column, is at most the minimum of d x over both intervals, and how many of
    their products may have lost digits to underflow.

    Infinite bounds add no terms: the caller has excluded reduced costs with a sign that belongs to an infinite bound.
    """
    zero = (low == 0.0) & (high == 0.0)
    found = []
    for at in (lower, upper):
        usable = np.isfinite(at) & ~zero
        place = np.where(usable, at, 0.0)
        value = np.where(place >= 0.0, low, high)
        found.append((np.where(usable, value * place, np.where(zero, 0.0, np.inf)), value, place))
    (one, one_value, one_at), (other, other_value, other_at) = found
    first = one <= other
    value, place = np.where(first, one_value, other_value), np.where(first, one_at, other_at)
    value = np.where(zero, 0.0, value)
    # If two products are nearly equal, rounding may have selected the larger one.
    both = np.isfinite(one) & np.isfinite(other)
    tie = np.where(
        both, 4.0 * HALF_ULP * np.maximum(np.abs(np.where(both, one, 0)), np.abs(np.where(both, other, 0))), 0
    )
    near = both & (np.abs(np.where(both, one - other, 1.0)) <= tie)
    return [*exact_products(value, place), np.where(near, -tie, 0.0)], int(lossy(value, place).sum())


def rounded_down(terms: list[Floats], lost: int) -> float:
    """Return the sum of exact terms, rounded down, with `lost` of their products in doubt by underflow; -inf on
    overflow.
    """
    try:
        parts = exact_parts(np.concatenate(terms))
        total = fsum(parts)
    except (OverflowError, ValueError):
        return -inf
    if not isfinite(total):
        return -inf
    if lost == 0 and not any(parts):
        return 0.0  # nothing was rounded: a bound below it would be infinitely far from a plan worth zero
    return nextafter(total - PARTS * lost * SMALL, -inf)
