"""Judges a point of a block program: objective, violations, and a bound from its prices (F8 to F11, K18)."""

import numpy as np

from libc.math cimport INFINITY, fabs, fmax, fmin, sqrt

cdef double HALF_ULP = 2.0 ** -53  # largest relative error of one rounded operation in float64


def prove(const int[::1] column_start, const int[::1] start, const int[::1] row, const double[::1] value,
          const double[::1] cost, const double[:, ::1] bounds, const double[:, ::1] sums, const double[:, ::1] rows,
          const double[::1] x, const double[::1] y):
    """Judge a point of a program whose blocks have no private row but a limit on their sum.

    Parameters
    ----------
    column_start : ndarray (blocks + 1,) int32
    start, row, value : CSC arrays
    cost : ndarray (columns,)
    bounds, sums, rows : ndarray (2, columns), (2, blocks), (2, rows)
        Lower, then upper bounds of columns, of the blocks' sums, of the coupling rows.
    x, y : ndarray (columns,), (rows,)
        Prices of the rows have the sign of a finite bound.

    Returns
    -------
    objective : float
    violation, largest : float
        Euclidean norm and maximum of the violations of rows, sums and bounds.
    size : float
        Euclidean norm of the rows' bounds: for each row the finite bound larger in size.
    bound : float
        Dual objective; leaves out reduced costs of the wrong sign on unbounded columns.
    margin : float
        Largest amount by which rounding may have raised the bound; infinite if an unbounded column has a reduced cost
        of the wrong sign, or may have one that rounding hides.
    wrong, wrong_most, cost_size : float
        Euclidean norm and maximum of reduced costs of the wrong sign; Euclidean norm of the costs.
    """
    cdef int g, i, j, e, n_blocks = column_start.shape[0] - 1, m = y.shape[0], first, last, count = 0
    cdef double objective = 0.0, squares = 0.0, largest = 0.0, bound = 0.0, size = 0.0, error = 0.0, wrong = 0.0
    cdef double wrong_most = 0.0, total, used, lows, room, price, q, slack, low, high, term, over, norm_b = 0.0
    cdef double norm_c = 0.0, near
    cdef double[::1] reduced = np.empty(max(cost.shape[0], 1)), rounding = np.empty(max(cost.shape[0], 1))
    cdef double[::1] activity = np.zeros(m)
    with nogil:
        for g in range(n_blocks):
            first, last = column_start[g], column_start[g + 1]
            total = lows = 0.0
            for j in range(first, last):
                q, used = cost[j], fabs(cost[j])
                norm_c += q * q
                objective += q * x[j]
                for e in range(start[j], start[j + 1]):
                    q -= value[e] * y[row[e]]
                    used += fabs(value[e] * y[row[e]])
                    activity[row[e]] += value[e] * x[j]
                reduced[j] = q
                rounding[j] = 4.0 * HALF_ULP * (start[j + 1] - start[j] + 2) * used
                total += x[j]
                lows += bounds[0, j]
                over = fmax(bounds[0, j] - x[j], x[j] - bounds[1, j])
                if over > 0.0:
                    squares += over * over
                    largest = fmax(largest, over)
            over = fmax(sums[0, g] - total, total - sums[1, g])
            if over > 0.0:
                squares += over * over
                largest = fmax(largest, over)
            # The sum's price is at most the least reduced cost of a column that only the sum's limit bounds.
            price = sum_price(first, last, sums[0, g], sums[1, g], &reduced[0], bounds)
            if price != 0.0:
                term = price * (sums[0, g] if price > 0.0 else sums[1, g])
                bound += term
                size += fabs(term)
            room = sums[1, g] - lows if lows > -INFINITY else INFINITY
            for j in range(first, last):
                q = reduced[j] - price
                slack = rounding[j] + 2.0 * HALF_ULP * fabs(q)
                low, high = bounds[0, j], fmin(bounds[1, j], bounds[0, j] + fmax(room, 0.0) * (1.0 + 1e-15))
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
                count += 1
        for i in range(m):
            over = fmax(rows[0, i] - activity[i], activity[i] - rows[1, i])
            if over > 0.0:
                squares += over * over
                largest = fmax(largest, over)
            near = fmax(fabs(rows[0, i]) if rows[0, i] > -INFINITY else 0.0,
                        fabs(rows[1, i]) if rows[1, i] < INFINITY else 0.0)
            norm_b += near * near
            if y[i] != 0.0:
                term = y[i] * (rows[0, i] if y[i] > 0.0 else rows[1, i])
                bound += term
                size += fabs(term)
        error = 1.01 * (error + HALF_ULP * (count + n_blocks + m + 16) * size)
    return objective, sqrt(squares), largest, sqrt(norm_b), bound, error, sqrt(wrong), wrong_most, sqrt(norm_c)


cdef double sum_price(int first, int last, double least, double most, const double* reduced,
                      const double[:, ::1] bounds) noexcept nogil:
    """Return the price of a block's sum with the (nearly) best bound: where the cheapest columns fill the sum."""
    cdef int j, best
    cdef double room = most, width, floor = -INFINITY, needed = least
    # Cheapest columns first: those of negative reduced cost until the limit is full, then others up to the least sum.
    for j in range(first, last):
        if bounds[0, j] == -INFINITY:
            return 0.0
        room -= bounds[0, j]
        needed -= bounds[0, j]
    if not (room < INFINITY or needed > -INFINITY):
        return 0.0
    while True:  # ends: the floor rises past a column in each pass
        best = -1
        for j in range(first, last):
            if reduced[j] > floor and bounds[1, j] > bounds[0, j] and (best < 0 or reduced[j] < reduced[best]):
                best = j
        if best < 0 or (reduced[best] >= 0.0 and needed <= 0.0):
            return 0.0 if needed <= 0.0 else fmax(floor, 0.0)
        floor = reduced[best]
        width = 0.0
        for j in range(first, last):
            if reduced[j] == floor:
                width += bounds[1, j] - bounds[0, j]
        if floor < 0.0 and room < INFINITY and width >= room:
            return floor
        if floor >= 0.0 and width >= needed:
            return floor
        room -= width
        needed -= width
