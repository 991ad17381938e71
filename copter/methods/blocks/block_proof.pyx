"""Judges a point of a block program: objective, violations, and a bound from its prices (F8 to F11, K15)."""

import numpy as np

from libc.math cimport INFINITY, fabs
from copter.methods.tally cimport Tally, add_column, add_row, add_term, figures_of, outside

cdef double HALF_ULP = 2.0 ** -53  # largest relative error of one rounded operation in float64


def prove(program, const double[::1] x, const double[::1] y, double[::1] reduced=None):
    """Judge a point of a program whose blocks have no private row but a limit on their sum.

    Parameters
    ----------
    program : BlockProgram
    x, y : ndarray (columns,), (rows,)
        Prices of the rows have the sign of a finite bound.
    reduced : ndarray (columns,), optional
        Written: costs less what the columns use of the rows at these prices.

    Returns
    -------
    objective, violation, largest, size, bound, margin, wrong, wrong_most, cost_size : float
        See `copter/methods/tally.pxd`.
    """
    cdef const int[::1] column_start = program.column_start, sum_start = program.private_start
    cdef const int[::1] start = program.start, row = program.row
    cdef const double[::1] value = program.value, cost = program.cost, lower = program.lower, upper = program.upper
    cdef int g, i, j, e, first, last, n_blocks = column_start.shape[0] - 1, n = cost.shape[0], m = y.shape[0]
    cdef double total, used, lows, room, price, q, least, most
    if reduced is None:
        reduced = np.empty(n)
    cdef double[::1] rounding = np.empty(max(n, 1)), activity = np.zeros(m)
    cdef Tally tally = Tally(0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0)
    with nogil:
        for g in range(n_blocks):
            first, last = column_start[g], column_start[g + 1]
            least, most = -INFINITY, INFINITY
            if sum_start[g + 1] > sum_start[g]:
                least, most = lower[n + m + sum_start[g]], upper[n + m + sum_start[g]]
            total = lows = 0.0
            for j in range(first, last):
                q, used = cost[j], fabs(cost[j])
                tally.costs += q * q
                tally.objective += q * x[j]
                for e in range(start[j], start[j + 1]):
                    q -= value[e] * y[row[e]]
                    used += fabs(value[e] * y[row[e]])
                if x[j] != 0.0:
                    for e in range(start[j], start[j + 1]):
                        activity[row[e]] += value[e] * x[j]
                reduced[j] = q
                rounding[j] = 4.0 * HALF_ULP * (start[j + 1] - start[j] + 2) * used
                total += x[j]
                lows += lower[j]
                outside(&tally, max(lower[j] - x[j], x[j] - upper[j]))
            outside(&tally, max(least - total, total - most))
            # The sum's price is at most the least reduced cost of a column that only the sum's limit bounds.
            price = sum_price(first, last, least, most, reduced, lower, upper)
            if price != 0.0:
                add_term(&tally, price * (least if price > 0.0 else most))
            room = max(most - lows, 0.0) * (1.0 + 1e-15) if lows > -INFINITY else INFINITY
            for j in range(first, last):
                q = reduced[j] - price
                add_column(&tally, q, rounding[j] + 2.0 * HALF_ULP * fabs(q), lower[j],
                           min(upper[j], lower[j] + room))
        for i in range(m):
            add_row(&tally, activity[i], y[i], lower[n + i], upper[n + i])
    return figures_of(&tally, HALF_ULP, column_start[n_blocks] + n_blocks + m)


cdef double sum_price(int first, int last, double least, double most, const double[::1] reduced,
                      const double[::1] lower, const double[::1] upper) noexcept nogil:
    """Return the price of a block's sum with the (nearly) best bound: where the cheapest columns fill the sum."""
    cdef int j, best
    cdef double room = most, width, floor = -INFINITY, needed = least
    # Cheapest columns first: those of negative reduced cost until the limit is full, then others up to the least sum.
    for j in range(first, last):
        if lower[j] == -INFINITY:
            return 0.0
        room -= lower[j]
        needed -= lower[j]
    if not (room < INFINITY or needed > -INFINITY):
        return 0.0
    while True:  # ends: the floor rises past a column in each pass
        best = -1
        for j in range(first, last):
            if reduced[j] > floor and upper[j] > lower[j] and (best < 0 or reduced[j] < reduced[best]):
                best = j
        if best < 0 or (reduced[best] >= 0.0 and needed <= 0.0):
            return 0.0 if needed <= 0.0 else max(floor, 0.0)
        floor = reduced[best]
        if floor < 0.0 and room < INFINITY and upper[best] - lower[best] >= room:
            return floor
        width = 0.0
        for j in range(first, last):
            if reduced[j] == floor:
                width += upper[j] - lower[j]
        if floor < 0.0 and room < INFINITY and width >= room:
            return floor
        if floor >= 0.0 and width >= needed:
            return floor
        room -= width
        needed -= width
