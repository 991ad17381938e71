"""Columns of a block program's answer that a session keeps: all that are not at zero, and those a shim may choose."""

import numpy as np

from libc.math cimport INFINITY, fabs, fmax, fmin

cdef double ROUNDED = 1.0 + 1e-12  # times a limit, that a sum above it by rounding alone may be


def working_columns(const int[::1] column_start, const int[::1] start, const int[::1] row, const double[::1] value,
                    const double[::1] cost, const double[::1] lower, const double[::1] upper, const double[::1] limit,
                    const int[::1] slots, const double[::1] x, const double[::1] y, double slack):
    """Columns that are not zero or whose lower bound is not, and those whose reduced cost is near their block's least.

    A column that is left out counts as at its lower bound. Values of a block whose sum is above its limit by rounding
    are shrunk to it; where none of it may be negative, no column is above the limit either.

    Parameters
    ----------
    column_start : ndarray (blocks + 1,) int32
    start, row, value : CSC arrays
    cost, lower, upper : ndarray (columns,)
    limit : ndarray (blocks,)
    slots : ndarray (blocks,) int32
    x, y : ndarray (columns,), (rows,)
    slack : float
        How near, in parts of the block's largest cost; negative for none of those.

    Returns
    -------
    key : ndarray (k,) int64
        slot << 32 | column within the block.
    values : ndarray (k,)
    block : ndarray (k,) int32
    """
    cdef int g, j, e, first, at = 0, k, n = cost.shape[0], n_blocks = column_start.shape[0] - 1
    cdef double least, most, total, shrink
    cdef bint negative
    cdef long long[::1] key = np.empty(n, dtype=np.int64)
    cdef double[::1] kept = np.empty(n), reduced = np.empty(n if slack >= 0.0 else 0)
    cdef int[::1] block = np.empty(n, dtype=np.int32)
    with nogil:
        for g in range(n_blocks):
            least, most, total, first, negative = INFINITY, 0.0, 0.0, at, False
            if slack >= 0.0:
                for j in range(column_start[g], column_start[g + 1]):
                    reduced[j] = cost[j]
                    for e in range(start[j], start[j + 1]):
                        reduced[j] -= value[e] * y[row[e]]
                    least, most = fmin(least, reduced[j]), fmax(most, fabs(cost[j]))
            for j in range(column_start[g], column_start[g + 1]):
                if x[j] != 0.0 or lower[j] != 0.0 or (slack >= 0.0 and reduced[j] <= least + slack * most):
                    key[at] = (<long long>slots[g] << 32) | (j - column_start[g])
                    kept[at], block[at] = x[j], g
                    total += x[j]
                    negative = negative or lower[j] < 0.0
                    at += 1
            shrink = limit[g] / total if total > limit[g] * ROUNDED else 1.0
            for k in range(first, at):
                j = column_start[g] + <int>key[k]
                if shrink != 1.0:
                    kept[k] = fmin(fmax(kept[k] * shrink, lower[j]), upper[j])
                if not negative:
                    kept[k] = fmin(kept[k], limit[g])
    return key.base[:at].copy(), kept.base[:at].copy(), block.base[:at].copy()
