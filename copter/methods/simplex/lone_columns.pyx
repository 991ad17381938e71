"""Columns that are alone in their request: the request's sum bounds such a column and is no row (simplex.md)."""

import numpy as np

from libc.math cimport INFINITY, fabs, fmax, fmin

_NONE = np.zeros(0, dtype=np.int32)


def lone_columns(program):
    """Return the columns whose block has no other column, and no other private row than its sum.

    Parameters
    ----------
    program : BlockProgram

    Returns
    -------
    columns, rows : ndarray (k,) int32
        The columns, and the rows of their sums among all rows; none if the bounds of one contradict its sum's.
    lower, upper : ndarray (columns + rows,)
        The program's bounds, with those of these sums on their columns in place of their rows.
    """
    cdef const int[::1] column_start = program.column_start, private_start = program.private_start
    cdef const int[::1] own_start = program.own_start
    cdef const double[::1] own_value = program.own_value, lower = program.lower, upper = program.upper
    cdef int g, j, r, count = 0, n = own_start.shape[0] - 1, m = program.n_rows, blocks = column_start.shape[0] - 1
    cdef double low, high
    cdef bint holds = True
    for g in range(blocks):
        if column_start[g + 1] - column_start[g] == 1:
            break
    else:
        return _NONE, _NONE, program.lower, program.upper
    columns, rows = np.empty((2, blocks), dtype=np.int32)
    low_bounds, high_bounds = program.lower.copy(), program.upper.copy()
    cdef int[::1] column = columns, row = rows
    cdef double[::1] lows = low_bounds, highs = high_bounds
    with nogil:
        for g in range(blocks):
            j, r = column_start[g], m + private_start[g]
            if column_start[g + 1] - j != 1 or m + private_start[g + 1] - r != 1:
                continue
            if own_start[j + 1] - own_start[j] != 1 or own_value[own_start[j]] != 1.0:
                continue
            low, high = fmax(lower[j], lower[n + r]), fmin(upper[j], upper[n + r])
            if low > high:
                holds = False
                break
            lows[j], highs[j], lows[n + r], highs[n + r] = low, high, -INFINITY, INFINITY
            column[count], row[count] = j, r
            count += 1
    if not holds:
        return columns[:0], rows[:0], program.lower, program.upper
    return columns[:count], rows[:count], low_bounds, high_bounds


def price_sums(program, const int[::1] columns, const int[::1] rows, double[::1] y):
    """Write the prices of these sums: reduced costs of the columns that are at a bound which the sum gives.

    Parameters
    ----------
    program : BlockProgram
    columns, rows : ndarray (k,) int32
        As returned by :func:`lone_columns`.
    y : ndarray (rows,)
        Prices as minimised; those of `rows` are written.
    """
    cdef const int[::1] start = program.start, row = program.row
    cdef const double[::1] value = program.value, cost = program.cost, lower = program.lower, upper = program.upper
    cdef int k, j, e, own, n = cost.shape[0]
    cdef double reduced
    with nogil:
        for k in range(columns.shape[0]):
            j, own = columns[k], n + rows[k]
            reduced = cost[j]
            for e in range(start[j], start[j + 1]):
                reduced -= value[e] * y[row[e]]
            y[rows[k]] = 0.0
            if reduced > 0.0 and lower[own] >= lower[j] and fabs(lower[own]) < INFINITY:
                y[rows[k]] = reduced
            elif reduced < 0.0 and upper[own] <= upper[j] and fabs(upper[own]) < INFINITY:
                y[rows[k]] = reduced
