"""Judges a point and prices of a whole program, in two passes over its entries (F8 to F11, method/simplex.md)."""

import numpy as np

from libc.math cimport INFINITY, fabs
from copter.methods.tally cimport Tally, add_column, add_row, figures_of, outside

cdef double HALF_ULP = 2.0 ** -53  # largest relative error of one rounded operation in float64
# A bound that rows imply is moved out by this relative amount, more than rounding moved it in.
cdef double OUTWARD = 1e-12


def prove_point(const int[::1] start, const int[::1] index, const double[::1] value, const double[::1] cost,
                const double[::1] lower, const double[::1] upper, const double[::1] x, double[::1] y):
    """Judge a point and prices of a minimisation.

    Parameters
    ----------
    start, index, value : CSC arrays
    cost : ndarray (columns,)
    lower, upper : ndarray (columns + rows,)
        Bounds of columns, then of rows.
    x : ndarray (columns,)
    y : ndarray (rows,)
        Prices; a price is set to zero if its row lacks the bound that the price's sign needs.

    Returns
    -------
    objective, violation, largest, size, bound, margin, wrong, wrong_most, cost_size : float
        See `copter/methods/tally.pxd`.
    """
    cdef int i, j, e, n = cost.shape[0], m = y.shape[0]
    cdef double q, used, slack, high, term
    # activity, least activity, sum of the least activity's absolute terms
    cdef double[:, ::1] rows = np.zeros((3, max(m, 1)))
    cdef bint known = False
    cdef Tally tally = Tally(0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0)
    with nogil:
        for i in range(m):
            if fabs(lower[n + i] if y[i] > 0.0 else upper[n + i]) == INFINITY:
                y[i] = 0.0
        for j in range(n):
            q, used = cost[j], fabs(cost[j])
            tally.costs += q * q
            tally.objective += q * x[j]
            for e in range(start[j], start[j + 1]):
                i = index[e]
                term = value[e] * y[i]
                q -= term
                used += fabs(term)
                rows[0, i] += value[e] * x[j]
            outside(&tally, max(lower[j] - x[j], x[j] - upper[j]))
            slack = 4.0 * HALF_ULP * (start[j + 1] - start[j] + 2) * used
            high = upper[j]
            if q - slack < 0.0 and high == INFINITY:
                if not known:
                    least_activity(start, index, value, lower, upper, n, rows)
                    known = True
                high = implied(j, start, index, value, lower[j], &upper[n], rows)
            add_column(&tally, q, slack, lower[j], high)
        for i in range(m):
            add_row(&tally, rows[0, i], y[i], lower[n + i], upper[n + i])
    return figures_of(&tally, HALF_ULP, n + m)


cdef void least_activity(const int[::1] start, const int[::1] index, const double[::1] value, const double[::1] lower,
                         const double[::1] upper, int n, double[:, ::1] rows) noexcept nogil:
    """Write each row's least activity within the columns' bounds, and the sum of its terms' absolute values."""
    cdef int j, e
    cdef double at
    for j in range(n):
        for e in range(start[j], start[j + 1]):
            if value[e] == 0.0:
                continue
            at = value[e] * (lower[j] if value[e] > 0.0 else upper[j])
            rows[1, index[e]] += at
            rows[2, index[e]] += fabs(at)


cdef double implied(int j, const int[::1] start, const int[::1] index, const double[::1] value, double lower,
                    const double* row_upper, double[:, ::1] rows) noexcept nogil:
    """Return a column's largest value that a row with an upper bound allows (D12), raised by more than rounding.

    `lower` is the column's lower bound.
    """
    cdef int e, i
    cdef double most = INFINITY, room
    if lower == -INFINITY:
        return most
    for e in range(start[j], start[j + 1]):
        i = index[e]
        if value[e] > 0.0 and row_upper[i] < INFINITY and rows[1, i] > -INFINITY:
            room = row_upper[i] - rows[1, i] + OUTWARD * (fabs(row_upper[i]) + rows[2, i])
            most = min(most, lower + max(room, 0.0) / value[e] * (1.0 + OUTWARD))
    return most if lower == 0.0 else most + OUTWARD * fabs(lower)
