"""How far prices may move before a column improves a block that is not re-solved (method/blocks.md, K17)."""

import numpy as np

from libc.math cimport INFINITY, fabs, fmax, fmin

cdef double ALIKE = 1e-12  # two columns whose difference is below this share of their norm count as equal


def column_reach(const int[::1] column_start, const int[::1] start, const int[::1] row, const double[::1] value,
                 const double[::1] cost, const double[::1] lower, const double[::1] upper, const double[:, ::1] sums,
                 const double[::1] x, const double[::1] y, const double[::1] weight, double tie):
    """Find each block's best values, nearest to the last ones, and how far prices may move before they change.

    Parameters
    ----------
    column_start : ndarray (blocks + 1,) int32
    start, row, value : CSC arrays
    cost, lower, upper : ndarray (columns,)
    sums : ndarray (2, blocks)
        Lower, then upper bounds of the blocks' sums; infinite for none.
    x : ndarray (columns,)
        The last values.
    y, weight : ndarray (rows,)
        Prices, and the size of a unit move of each price.
    tie : float
        Reduced costs that differ by no more than this count as equal.

    Returns
    -------
    held : ndarray (columns,)
        Best values of each settled block, the last ones where these are best: the cheapest columns fill its sum
        in the shares that they had.
    reach : ndarray (columns,)
        While no price i moves by more than reach * weight[i], the column is no better than its block's cheapest.
        Negative for all columns of an unsettled block: single columns have bounds, or its sum has no limit.
    worth : ndarray (blocks,)
        Cost of one more unit of a block's sum where a bound of the sum binds; else zero.
    loss : ndarray (blocks,)
        Cost of the last values less that of `held`, at the prices; zero for an unsettled block.
    """
    cdef int g, n = <int>cost.shape[0], n_blocks = <int>column_start.shape[0] - 1
    kept, found, prices, better = np.zeros(n), np.empty(n), np.zeros(n_blocks), np.zeros(n_blocks)
    cdef double[::1] held = kept, reach = found, worth = prices, loss = better
    cdef int j
    cdef double[::1] spread = np.zeros(max(y.shape[0], 1)), reduced = np.empty(max(n, 1))
    with nogil:
        for g in range(n_blocks):
            if column_start[g] < column_start[g + 1]:
                worth[g] = of_block(column_start[g], column_start[g + 1], start, row, value, cost, lower, upper,
                                    sums[0, g], sums[1, g], x, y, weight, tie, &spread[0], &reduced[0], held, reach)
                if reach[column_start[g]] >= 0.0:
                    for j in range(column_start[g], column_start[g + 1]):
                        loss[g] += reduced[j] * (x[j] - held[j])
    return kept, found, prices, better


cdef double of_block(int first, int last, const int[::1] start, const int[::1] row, const double[::1] value,
                     const double[::1] cost, const double[::1] lower, const double[::1] upper, double least,
                     double most, const double[::1] x, const double[::1] y, const double[::1] weight, double tie,
                     double* spread, double* reduced, double[::1] held, double[::1] reach) noexcept nogil:
    """Fill in the values and reaches of a block's columns; return the cost of one more unit of its sum."""
    cdef int j, e, best = first
    cdef double q, amount, before = 0.0, size
    for j in range(first, last):
        q = cost[j]
        for e in range(start[j], start[j + 1]):
            q -= value[e] * y[row[e]]
        reduced[j] = q
        if q < reduced[best]:
            best = j
    for j in range(first, last):
        if reduced[j] <= reduced[best] + tie:
            before += x[j]
    least = fmax(least, 0.0)
    q = reduced[best]
    amount = most if q < -tie else least if q > tie else fmin(fmax(before, least), most)
    if not settled(first, last, best, amount, before, tie, lower, upper, x, reduced, held):
        for j in range(first, last):
            reach[j] = -1.0
        return 0.0
    size = size_of(best, start, row, value, weight)
    for e in range(start[best], start[best + 1]):
        spread[row[e]] = value[e]
    for j in range(first, last):
        if amount == 0.0 and q > tie:
            reach[j] = over(reduced[j], size_of(j, start, row, value, weight))
        elif j != best:
            reach[j] = over(reduced[j] - q, distance(j, start, row, value, weight, spread, size))
        else:
            reach[j] = over(fabs(q), size) if least < most else INFINITY
    for e in range(start[best], start[best + 1]):
        spread[row[e]] = 0.0
    return q if q < 0.0 or least > 0.0 else 0.0


cdef bint settled(int first, int last, int best, double amount, double before, double tie, const double[::1] lower,
                  const double[::1] upper, const double[::1] x, const double* reduced,
                  double[::1] held) noexcept nogil:
    """Put a block's sum on its cheapest columns in their last shares; return whether their bounds allow it."""
    cdef int j
    cdef double share = amount / before if before > 0.0 else 0.0
    if amount == INFINITY:
        return False
    for j in range(first, last):
        held[j] = x[j] * share if reduced[j] <= reduced[best] + tie else 0.0
    if before <= 0.0:
        held[best] = amount
    for j in range(first, last):
        if lower[j] != 0.0 or not held[j] <= upper[j]:
            return False
    return True


cdef inline double over(double margin, double move) noexcept nogil:
    """Return how many moves, each of size `move`, a margin withstands."""
    return margin / move if move > 0.0 else INFINITY


cdef double size_of(int j, const int[::1] start, const int[::1] row, const double[::1] value,
                    const double[::1] weight) noexcept nogil:
    """Return the weighted 1-norm sum of |a| w of a column."""
    cdef int e
    cdef double total = 0.0
    for e in range(start[j], start[j + 1]):
        total += fabs(value[e]) * weight[row[e]]
    return total


cdef double distance(int j, const int[::1] start, const int[::1] row, const double[::1] value,
                     const double[::1] weight, const double* spread, double size) noexcept nogil:
    """Return sum |a - b| w of a column a and the column b in `spread` with norm `size`; 0 for nearly equal ones."""
    cdef int e
    cdef double total = size, b
    for e in range(start[j], start[j + 1]):
        b = spread[row[e]]
        total += (fabs(value[e] - b) - fabs(b)) * weight[row[e]]
    return total if total > ALIKE * size else 0.0


def largest_of_rows(int n_rows, const int[::1] row, const double[::1] value):
    """Return the largest |entry| of each row, (rows,)."""
    cdef Py_ssize_t e
    found = np.zeros(n_rows)
    cdef double[::1] largest = found
    with nogil:
        for e in range(row.shape[0]):
            largest[row[e]] = fmax(largest[row[e]], fabs(value[e]))
    return found
