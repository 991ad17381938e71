"""Selects the columns that a session keeps of a block program's solution: nonzero ones, and candidates for a shim."""

import numpy as np

from libc.math cimport INFINITY, fabs

from copter.methods.blocks.ascending cimport ascending

cdef double ROUNDED = 1.0 + 1e-12  # a sum of up to this many times its limit exceeds it by rounding only


def working_columns(program, const double[::1] limit, const int[::1] slots, const double[::1] x, const double[::1] y,
                    double slack, const double[::1] reduced=None):
    """Return columns with a nonzero value or lower bound, and columns of nearly the least reduced cost in their block.

    A column that is left out is at its lower bound. The values of a block whose sum exceeds its limit by rounding
    are scaled down to the limit. If no column of a block can be negative, none exceeds the limit either.

    Parameters
    ----------
    program : BlockProgram
    limit : ndarray (blocks,)
    slots : ndarray (blocks,) int32
    x, y : ndarray (columns,), (rows,)
    slack : float
        Largest distance from the least reduced cost, as a share of the block's largest |cost|; negative: no candidates.
        Fixed columns are none.
    reduced : ndarray (columns,), optional
        Costs less what the columns use of the coupling rows at the prices; computed here if not given.

    Returns
    -------
    key : ndarray (k,) int64
        slot << 32 | column within the block, ascending.
    values : ndarray (k,)
    block : ndarray (k,) int32
    """
    cdef const int[::1] column_start = program.column_start, start = program.start, row = program.row
    cdef const double[::1] value = program.value, cost = program.cost, lower = program.lower, upper = program.upper
    cdef int g, i, j, e, first, at = 0, k, n = cost.shape[0], n_blocks = column_start.shape[0] - 1
    cdef double least, most, total, shrink
    cdef bint negative
    cdef long long[::1] key = np.empty(n, dtype=np.int64)
    cdef double[::1] kept = np.empty(n), found = np.empty(n if slack >= 0.0 and reduced is None else 0)
    cdef int[::1] block = np.empty(n, dtype=np.int32)
    with nogil:
        for j in range(found.shape[0]):
            found[j] = cost[j]
            for e in range(start[j], start[j + 1]):
                found[j] -= value[e] * y[row[e]]
    reduced = found if reduced is None else reduced
    cdef const int[::1] order = ascending(slots)
    with nogil:
        for i in range(n_blocks):
            g = order[i]
            least, most, total, first, negative = INFINITY, 0.0, 0.0, at, False
            if slack >= 0.0:
                for j in range(column_start[g], column_start[g + 1]):
                    if lower[j] < upper[j]:
                        least, most = min(least, reduced[j]), max(most, fabs(cost[j]))
            for j in range(column_start[g], column_start[g + 1]):
                if x[j] != 0.0 or lower[j] != 0.0 or (
                    slack >= 0.0 and lower[j] < upper[j] and reduced[j] <= least + slack * most
                ):
                    key[at] = (<long long>slots[g] << 32) | (j - column_start[g])
                    kept[at], block[at] = x[j], g
                    total += x[j]
                    negative = negative or lower[j] < 0.0
                    at += 1
            shrink = limit[g] / total if total > limit[g] * ROUNDED else 1.0
            for k in range(first, at):
                j = column_start[g] + <int>key[k]
                if shrink != 1.0:
                    kept[k] = min(max(kept[k] * shrink, lower[j]), upper[j])
                if not negative:
                    kept[k] = min(kept[k], limit[g])
    return key.base[:at].copy(), kept.base[:at].copy(), block.base[:at].copy()
