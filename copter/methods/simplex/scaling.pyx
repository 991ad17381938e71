"""Geometric scaling of a sparse matrix by powers of two (equation D10)."""

import numpy as np

from libc.math cimport INFINITY, fabs, frexp, ldexp, sqrt


def geometric_scaling(
    const int[::1] start,
    const int[::1] index,
    const double[::1] value,
    int passes,
    double[::1] row,
    double[::1] column,
    double[::1] scaled,
):
    """Write factors of rows and columns, powers of two, and the scaled entries.

    Each pass divides a line by the root of the product of its least and largest entry, the rows first. Then rows are
    divided by their largest entry, and columns, so that those have entries of one at most, nearly.
    """
    cdef Py_ssize_t m = row.shape[0], n = column.shape[0], i, j, p, turn
    cdef double low, high, size
    least_array, most_array = np.empty(m), np.empty(m)
    cdef double[::1] least = least_array, most = most_array
    with nogil:
        for i in range(m):
            row[i] = 1.0
        for j in range(n):
            column[j] = 1.0
        for turn in range(passes + 1):
            for i in range(m):
                least[i], most[i] = INFINITY, 0.0
            for j in range(n):
                for p in range(start[j], start[j + 1]):
                    size = fabs(value[p]) * column[j]
                    if size > 0.0:
                        least[index[p]] = min(least[index[p]], size)
                        most[index[p]] = max(most[index[p]], size)
            for i in range(m):
                if most[i] > 0.0:
                    row[i] = 1.0 / (most[i] if turn == passes else sqrt(least[i]) * sqrt(most[i]))
            for j in range(n):
                low, high = INFINITY, 0.0
                for p in range(start[j], start[j + 1]):
                    size = fabs(value[p]) * row[index[p]]
                    if size > 0.0:
                        low, high = min(low, size), max(high, size)
                if high > 0.0:
                    column[j] = 1.0 / (high if turn == passes else sqrt(low) * sqrt(high))
        for i in range(m):
            row[i] = power_of_two(row[i])
        for j in range(n):
            column[j] = power_of_two(column[j])
            for p in range(start[j], start[j + 1]):
                scaled[p] = value[p] * row[index[p]] * column[j]


cdef inline double power_of_two(double x) noexcept nogil:
    """The nearest one below or above, by the root of two."""
    cdef int exponent
    cdef double share = frexp(x, &exponent)
    return ldexp(1.0, exponent if share > 0.70710678118654752 else exponent - 1)
