"""Finds the coupling rows of a block program that cannot bind within the blocks' bounds (docs/method/blocks.md, K5)."""

import numpy as np

from libc.math cimport INFINITY, fmax, fmin


def reach_of_rows(program):
    """Return each coupling row's least and largest activity within the blocks' bounds and first private rows.

    Parameters
    ----------
    program : BlockProgram

    Returns
    -------
    least, most : ndarray (rows,)
        May be infinite.
    """
    cdef const int[::1] column_start = program.column_start, start = program.start, row = program.row
    cdef const int[::1] own_start = program.own_start
    cdef const double[::1] value = program.value, own_value = program.own_value
    cdef const double[::1] lower = program.lower, upper = program.upper
    cdef const double[::1] limits = limits_of(program)
    cdef int n_rows = program.n_rows
    cdef int g, j, e, n = <int>start.shape[0] - 1, n_blocks = <int>column_start.shape[0] - 1, count = 0, i
    cdef double limit, a
    least, most = np.zeros(n_rows), np.zeros(n_rows)
    cdef double[::1] low = least, high = most
    cdef double[::1] block_low = np.zeros(n_rows), block_high = np.zeros(n_rows)
    cdef double[::1] summed_low = np.zeros(n_rows), summed_high = np.zeros(n_rows)
    cdef int[::1] mark = np.full(n_rows, -1, dtype=np.int32), touched = np.zeros(max(n_rows, 1), dtype=np.int32)
    with nogil:
        for g in range(n_blocks):
            limit = limits[g]
            count = 0
            for j in range(column_start[g], column_start[g + 1]):
                for e in range(start[j], start[j + 1]):
                    i, a = row[e], value[e]
                    if mark[i] != g:
                        mark[i] = g
                        touched[count] = i
                        count += 1
                        block_low[i] = block_high[i] = summed_low[i] = summed_high[i] = 0.0
                    block_low[i] += least_product(a, lower[j], upper[j])
                    block_high[i] -= least_product(-a, lower[j], upper[j])
                    if limit < INFINITY:
                        summed_low[i] = fmin(summed_low[i], limit * a / own_value[own_start[j]])
                        summed_high[i] = fmax(summed_high[i], limit * a / own_value[own_start[j]])
            for e in range(count):
                i = touched[e]
                if limit < INFINITY:
                    block_low[i] = fmax(block_low[i], summed_low[i])
                    block_high[i] = fmin(block_high[i], summed_high[i])
                low[i] += block_low[i]
                high[i] += block_high[i]
        for j in range(column_start[n_blocks], n):
            for e in range(start[j], start[j + 1]):
                low[row[e]] += least_product(value[e], lower[j], upper[j])
                high[row[e]] -= least_product(-value[e], lower[j], upper[j])
    return least, most


cdef limits_of(program):
    """Return each block's limit: of its first private row, if it has every column and no entry < 0; else infinity."""
    cdef const int[::1] column_start = program.column_start, private_start = program.private_start
    cdef const int[::1] own_start = program.own_start, own_row = program.own_row
    cdef const double[::1] own_value = program.own_value, lower = program.lower, upper = program.upper
    cdef int g, j, n = len(program.start) - 1, n_rows = program.n_rows
    cdef double[::1] limits = np.empty(len(program.column_start) - 1)
    with nogil:
        for g in range(limits.shape[0]):
            limits[g] = INFINITY if private_start[g + 1] == private_start[g] \
                else fmax(upper[n + n_rows + private_start[g]], 0.0)
            for j in range(column_start[g], column_start[g + 1]):
                if lower[j] < 0.0 or own_start[j + 1] == own_start[j] or own_row[own_start[j]] != 0 \
                        or own_value[own_start[j]] <= 0.0:
                    limits[g] = INFINITY
                    break
    return limits


cdef inline double least_product(double a, double lower, double upper) noexcept nogil:
    """Return the least a x for lower <= x <= upper."""
    if a == 0.0:
        return 0.0
    return a * lower if a > 0.0 else a * upper


def kept_entries(const int[::1] place, const int[::1] start, const int[::1] row, const double[::1] value):
    """Return (start, row, value) of the entries in rows whose `place` is not -1, renumbered by `place`."""
    cdef int j, n = <int>start.shape[0] - 1
    cdef Py_ssize_t e, count = 0
    for e in range(row.shape[0]):
        count += place[row[e]] >= 0
    starts, rows, values = np.zeros(n + 1, dtype=np.int32), np.empty(count, dtype=np.int32), np.empty(count)
    cdef int[::1] start_view = starts, row_view = rows
    cdef double[::1] value_view = values
    count = 0
    with nogil:
        for j in range(n):
            for e in range(start[j], start[j + 1]):
                if place[row[e]] >= 0:
                    row_view[count] = place[row[e]]
                    value_view[count] = value[e]
                    count += 1
            start_view[j + 1] = <int>count
    return starts, rows, values


def row_terms(int n_rows, const int[::1] start, const int[::1] row, const double[::1] value, const double[::1] x):
    """Return, for each coupling row, the sum of its positive terms a x and the size of the sum of its negative terms.

    Parameters
    ----------
    n_rows : int
    start, row, value : CSC arrays
        Entries in coupling rows.
    x : ndarray (columns,)

    Returns
    -------
    positive, negative : ndarray (rows,)
    """
    cdef int j, e, n = <int>start.shape[0] - 1
    cdef double term
    positive, negative = np.zeros(n_rows), np.zeros(n_rows)
    cdef double[::1] up = positive, down = negative
    with nogil:
        for j in range(n):
            if x[j] != 0.0:
                for e in range(start[j], start[j + 1]):
                    term = value[e] * x[j]
                    if term > 0.0:
                        up[row[e]] += term
                    else:
                        down[row[e]] -= term
    return positive, negative
