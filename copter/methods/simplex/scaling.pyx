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


def scaled_costs(const double[::1] c, const double[::1] column, double[::1] cost, bint minimised):
    """Write the costs of all variables, scaled and minimised, zero for logical ones; return their unit.

    The unit is the power of two next to the largest; it is negative where the program maximises.
    """
    cdef Py_ssize_t j, n = c.shape[0]
    cdef double largest = 0.0, unit = 1.0
    with nogil:
        for j in range(n):
            cost[j] = c[j] * column[j]
            largest = max(largest, fabs(cost[j]))
        if 0.0 < largest < INFINITY:
            unit = power_of_two(largest)
        if not minimised:
            unit = -unit
        for j in range(n):
            cost[j] /= unit
        for j in range(n, cost.shape[0]):
            cost[j] = 0.0
    return unit


def scaled_bounds(const double[::1] col_lower, const double[::1] col_upper, const double[::1] row_lower,
                  const double[::1] row_upper, const double[::1] row, const double[::1] column, double[::1] lower,
                  double[::1] upper):
    """Write the scaled bounds of all variables: columns first, then the logical ones of the rows."""
    cdef Py_ssize_t i, j, m = row.shape[0], n = column.shape[0]
    with nogil:
        for j in range(n):
            lower[j], upper[j] = col_lower[j] / column[j], col_upper[j] / column[j]
        for i in range(m):
            lower[n + i], upper[n + i] = -row_upper[i] * row[i], -row_lower[i] * row[i]


cdef inline double power_of_two(double x) noexcept nogil:
    """The nearest one below or above, by the root of two."""
    cdef int exponent
    cdef double share = frexp(x, &exponent)
    return ldexp(1.0, exponent if share > 0.70710678118654752 else exponent - 1)
