"""Judges a point and prices of a whole program, in two passes over its entries (F8 to F11, method/simplex.md)."""

import numpy as np

from libc.math cimport INFINITY, fabs, fmax, fmin, sqrt

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
    objective : float
    violation, largest, size : float
        Violations of rows and bounds: Euclidean norm, maximum; norm of the rows' bounds (the larger finite ones).
    bound : float
        Dual objective; leaves out wrong-signed reduced costs of columns that neither a bound nor a row limits.
    margin : float
        Largest amount by which rounding may have raised the bound; infinite if there is, or may be, such a reduced
        cost.
    wrong, wrong_most, cost_size : float
        Euclidean norm and maximum of those reduced costs; Euclidean norm of the costs.
    """
    cdef int i, j, e, n = cost.shape[0], m = y.shape[0]
    cdef double objective = 0.0, squares = 0.0, largest = 0.0, bound = 0.0, size = 0.0, error = 0.0, wrong = 0.0
    cdef double wrong_most = 0.0, norm_b = 0.0, norm_c = 0.0, q, used, slack, low, high, near, over, term
    # activity, least activity, sum of the least activity's absolute terms
    cdef double[:, ::1] rows = np.zeros((3, max(m, 1)))
    cdef bint known = False
    with nogil:
        for i in range(m):
            if fabs(lower[n + i] if y[i] > 0.0 else upper[n + i]) == INFINITY:
                y[i] = 0.0
        for j in range(n):
            q, used = cost[j], fabs(cost[j])
            norm_c += q * q
            objective += q * x[j]
            for e in range(start[j], start[j + 1]):
                i = index[e]
                term = value[e] * y[i]
                q -= term
                used += fabs(term)
                rows[0, i] += value[e] * x[j]
            low, high = lower[j], upper[j]
            over = fmax(low - x[j], x[j] - high)
            if over > 0.0:
                squares += over * over
                largest = fmax(largest, over)
            slack = 4.0 * HALF_ULP * (start[j + 1] - start[j] + 2) * used
            if q - slack < 0.0 and high == INFINITY:
                if not known:
                    least_activity(start, index, value, lower, upper, n, rows)
                    known = True
                high = implied(j, start, index, value, lower, upper, n, rows)
            near = low if q > 0.0 else high
            if q != 0.0:
                if fabs(near) == INFINITY:
                    wrong += q * q
                    wrong_most = fmax(wrong_most, fabs(q))
                    error = INFINITY
                    continue
                term = q * near
                bound += term
                size += fabs(term)
            if slack > 0.0:
                if fabs(q) <= slack:
                    near = fmax(fabs(low), fabs(high))
                error += slack * fabs(near)
        for i in range(m):
            low, high = lower[n + i], upper[n + i]
            over = fmax(low - rows[0, i], rows[0, i] - high)
            if over > 0.0:
                squares += over * over
                largest = fmax(largest, over)
            near = fmax(fabs(low) if low > -INFINITY else 0.0, fabs(high) if high < INFINITY else 0.0)
            norm_b += near * near
            if y[i] != 0.0:
                term = y[i] * (low if y[i] > 0.0 else high)
                bound += term
                size += fabs(term)
        error = 1.01 * (error + HALF_ULP * (n + m + 16) * size)
    return objective, sqrt(squares), largest, sqrt(norm_b), bound, error, sqrt(wrong), wrong_most, sqrt(norm_c)


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


cdef double implied(int j, const int[::1] start, const int[::1] index, const double[::1] value,
                    const double[::1] lower, const double[::1] upper, int n, double[:, ::1] rows) noexcept nogil:
    """Return a column's largest value that a row with an upper bound allows (D12), raised by more than rounding."""
    cdef int e, i
    cdef double most = INFINITY, room
    if lower[j] == -INFINITY:
        return most
    for e in range(start[j], start[j + 1]):
        i = index[e]
        if value[e] > 0.0 and upper[n + i] < INFINITY and rows[1, i] > -INFINITY:
            room = upper[n + i] - rows[1, i] + OUTWARD * (fabs(upper[n + i]) + rows[2, i])
            most = fmin(most, lower[j] + fmax(room, 0.0) / value[e] * (1.0 + OUTWARD))
    return most if lower[j] == 0.0 else most + OUTWARD * fabs(lower[j])
