"""Sums over the entries of flat columns: reduced costs, activities, and the least value of each group."""

import numpy as np

from libc.math cimport INFINITY, fabs, isfinite, sqrt
from libc.string cimport memset

from copter.methods.proximal.groups cimport HELD, Groups, reduced_cost

cdef struct Sums:
    # c'x, the sizes of costs or of rows' bounds squared, and the squares and the largest of violations
    double value, sizes, squares, largest


def reduced_costs(const double[::1] cost, const int[::1] entry_start, const int[::1] row,
                  const double[::1] coefficient, const double[::1] y, double[::1] reduced):
    """Write cost - A'y to `reduced`, column by column."""
    cdef Py_ssize_t j, k
    cdef double total
    with nogil:
        for j in range(cost.shape[0]):
            total = cost[j]
            for k in range(entry_start[j], entry_start[j + 1]):
                total -= coefficient[k] * y[row[k]]
            reduced[j] = total


def activities(const int[::1] entry_start, const int[::1] row, const double[::1] coefficient, const double[::1] x,
               double[::1] activity):
    """Write A x to `activity`."""
    cdef Py_ssize_t j, k
    with nogil:
        if activity.shape[0]:
            memset(&activity[0], 0, activity.shape[0] * sizeof(double))
        for j in range(x.shape[0]):
            if x[j] != 0.0:
                for k in range(entry_start[j], entry_start[j + 1]):
                    activity[row[k]] += coefficient[k] * x[j]


def group_least(const int[::1] start, const double[::1] value, double[::1] least):
    """Write the least value of each group (infinity for an empty group) to `least`."""
    cdef Py_ssize_t g, j
    cdef double best
    with nogil:
        for g in range(start.shape[0] - 1):
            best = INFINITY
            for j in range(start[g], start[g + 1]):
                if value[j] < best:
                    best = value[j]
            least[g] = best


def least_columns(Groups columns, const int[::1] slots, const long[::1] key, const double[::1] y, double rounding,
                  double[::1] least, int[::1] column, double[::1] threshold):
    """Write each slot's least reduced cost at prices y, its column as `key` has it (slot << 32 | column), and its
    threshold.

    A slot without a group has infinity and -1. The threshold is the least reduced cost or zero, whichever is less,
    lowered by a relative rounding.

    least, column, threshold: ndarray (n_slots,)
    """
    cdef Py_ssize_t g, j, at, slot = 0, n_slots = least.shape[0]
    cdef double best, value
    cdef const double* prices = &y[0]
    with nogil:
        for g in range(slots.shape[0] + 1):
            while slot < (slots[g] if g < slots.shape[0] else n_slots):  # ends: slot grows
                least[slot], column[slot], threshold[slot] = INFINITY, -1, -rounding
                slot += 1
            if g == slots.shape[0]:
                break
            best, at = INFINITY, columns.start[g]
            for j in range(columns.start[g], columns.start[g + 1]):
                value = reduced_cost(columns, j, prices)
                if value < best:
                    best, at = value, j
            least[slot], column[slot] = best, <int>key[at]
            best = min(best, 0.0)
            threshold[slot] = best - rounding * (1.0 - best)
            slot += 1


def all_easy_minimum(Groups columns, const double[::1] y):
    """Return (the sum of min (c - A'y)'x over all groups, True) if all are plain or held; (0, False) otherwise."""
    cdef double total = 0.0
    if columns.all_easy:
        with nogil:
            total = easy_total(columns, &y[0])
    return total, columns.all_easy


cdef double easy_total(Groups columns, const double* y) noexcept nogil:
    """Return the sum of min (c - A'y)'x over all groups, which are plain or held."""
    cdef Py_ssize_t g, j
    cdef double best, total = 0.0
    for g in range(columns.count):
        best = 0.0
        if columns.kind[g] == HELD:
            for j in range(columns.start[g], columns.start[g + 1]):
                total += reduced_cost(columns, j, y) * columns.lower[j]
            continue
        for j in range(columns.start[g], columns.start[g + 1]):
            best = min(best, reduced_cost(columns, j, y))
        total += columns.limit[g] * best
    return total


def moved(const double[::1] cost, const double[::1] found, double[::1] x, double[::1] move):
    """Move x to the point that was found, and write the move; returns (cost'x, largest move)."""
    cdef Py_ssize_t j
    cdef double objective = 0.0, largest = 0.0
    with nogil:
        for j in range(x.shape[0]):
            move[j] = found[j] - x[j]
            largest = max(largest, fabs(move[j]))
            x[j] = found[j]
            objective += cost[j] * x[j]
    return objective, largest


def raise_new(Groups columns, const long[::1] new, const double[::1] y, double[::1] x):
    """Raise new columns of negative reduced cost at prices y.

    In a group without a limit all of them go to their upper bounds. In a group whose columns are all at lower bounds
    the best column is raised, as far as the limit allows.

    Parameters
    ----------
    columns : Groups
    new : ndarray int64
        Positions of the new columns, ascending.
    y, x : ndarray (m,), (n,)
    """
    cdef Py_ssize_t e, j, best, g = 0
    cdef double total, reduced, least = 0.0
    cdef bint resting
    e = 0
    with nogil:
        while e < new.shape[0]:  # ends: e grows to the number of new columns
            while columns.start[g + 1] <= new[e]:  # ends: the last group ends behind the last column
                g += 1
            best = -1
            while e < new.shape[0] and new[e] < columns.start[g + 1]:  # ends: e grows
                j = new[e]
                e += 1
                reduced = reduced_cost(columns, j, &y[0])
                if not (reduced < 0.0 and columns.upper[j] > columns.lower[j] and isfinite(columns.upper[j])):
                    continue
                if columns.limit[g] == INFINITY:
                    x[j] = columns.upper[j]
                elif best < 0 or reduced < least:
                    best, least = j, reduced
            if best < 0:
                continue
            total, resting = 0.0, True
            for j in range(columns.start[g], columns.start[g + 1]):
                total += x[j]
                resting = resting and x[j] == columns.lower[j]
            if resting:
                x[best] = min(columns.upper[best], columns.lower[best] + max(columns.limit[g] - total, 0.0))


def fit(Groups columns, double share, double[::1] x):
    """Project x onto the bounds, and onto limits that are exceeded by more than a share, by shrinking the group."""
    cdef Py_ssize_t g, j
    cdef double total, factor
    with nogil:
        for g in range(columns.count):
            total = 0.0
            for j in range(columns.start[g], columns.start[g + 1]):
                x[j] = min(max(x[j], columns.lower[j]), columns.upper[j])
                total += x[j]
            if total > columns.limit[g] * (1.0 + share):
                factor = columns.limit[g] / total
                for j in range(columns.start[g], columns.start[g + 1]):
                    x[j] = min(max(x[j] * factor, columns.lower[j]), columns.upper[j])


def primal_sums(Groups columns, const double[::1] x, const double[::1] lower, const double[::1] upper):
    """Return (c'x, relative violation, largest violation, norm of the costs) of a point over rows lower <= Ax <= upper.

    Violations are those of rows, column bounds and group limits, relative to the norm of the rows' larger bounds.
    """
    activity = np.empty(max(lower.shape[0], 1))
    cdef double[::1] use = activity
    cdef Sums columns_, rows
    with nogil:
        columns_ = point_sums(columns, &x[0], &use[0], lower.shape[0])
        rows = row_sums(&use[0], &lower[0], &upper[0], lower.shape[0])
    return (columns_.value, sqrt(rows.squares + columns_.squares) / (1.0 + sqrt(rows.sizes)),
            max(rows.largest, columns_.largest), sqrt(columns_.sizes))


cdef Sums point_sums(Groups columns, const double* x, double* activity, Py_ssize_t m) noexcept nogil:
    """Write A x to `activity`; returns c'x, c'c, and the violations of bounds and limits."""
    cdef Py_ssize_t g, j, k
    cdef double total, over
    cdef Sums sums
    sums.value = sums.sizes = sums.squares = sums.largest = 0.0
    for k in range(m):
        activity[k] = 0.0
    for g in range(columns.count):
        total = 0.0
        for j in range(columns.start[g], columns.start[g + 1]):
            sums.sizes += columns.cost[j] * columns.cost[j]
            total += x[j]
            over = max(x[j] - columns.upper[j], columns.lower[j] - x[j])
            if over > 0.0:
                sums.squares += over * over
                sums.largest = max(sums.largest, over)
            sums.value += columns.cost[j] * x[j] if x[j] != 0.0 else 0.0
            for k in range(columns.entry_start[j], columns.entry_start[j + 1]):
                activity[columns.row[k]] += columns.coefficient[k] * x[j]
        over = total - columns.limit[g]
        if over > 0.0:
            sums.squares += over * over
            sums.largest = max(sums.largest, over)
    return sums


cdef Sums row_sums(const double* activity, const double* lower, const double* upper, Py_ssize_t m) noexcept nogil:
    """Return the violations of rows, and the squares of their larger finite bounds as sizes."""
    cdef Py_ssize_t i
    cdef double over, bound
    cdef Sums sums
    sums.value = sums.sizes = sums.squares = sums.largest = 0.0
    for i in range(m):
        over = max(activity[i] - upper[i], lower[i] - activity[i])
        if over > 0.0:
            sums.squares += over * over
            sums.largest = max(sums.largest, over)
        bound = max(fabs(lower[i]) if isfinite(lower[i]) else 0.0, fabs(upper[i]) if isfinite(upper[i]) else 0.0)
        sums.sizes += bound * bound
    return sums


def easy_minimum(const int[::1] start, const double[::1] limit, const double[::1] lower, const double[::1] upper,
                 const double[::1] reduced, unsigned char[::1] easy):
    """Return the sum of min reduced'x over the easy groups; `easy` is written: 1 for an easy group, else 0.

    Easy are groups whose columns are all held by equal bounds, and those with a finite limit, lower bounds of zero and
    upper bounds no smaller than the limit: over such a group the minimum is limit * min(0, least reduced cost).
    """
    cdef Py_ssize_t g, j
    cdef bint plain, held
    cdef double best, at_lower, total = 0.0
    with nogil:
        for g in range(start.shape[0] - 1):
            plain, held = limit[g] < INFINITY, True
            best = at_lower = 0.0
            for j in range(start[g], start[g + 1]):
                plain = plain and lower[j] == 0.0 and upper[j] >= limit[g]
                held = held and lower[j] == upper[j]
                if not (plain or held):
                    break
                best = min(best, reduced[j])
                at_lower += reduced[j] * lower[j]
            easy[g] = plain or held
            if plain:
                total += limit[g] * best
            elif held:
                total += at_lower
    return total


def idle_columns(Groups columns, const double[::1] y, const double[::1] x, double slack, unsigned char[::1] idle):
    """Write 1 for each idle column: one at its lower bound whose reduced cost at prices y is far from attractive.

    An idle column is not fixed, and its reduced cost exceeds the least one of its group (or zero) by more than `slack`
    times the group's largest |cost|. Returns the number of idle columns.
    """
    cdef Py_ssize_t g, j, count = 0
    cdef double least, largest
    with nogil:
        for g in range(columns.count):
            least = largest = 0.0
            for j in range(columns.start[g], columns.start[g + 1]):
                least = min(least, reduced_cost(columns, j, &y[0]))
                largest = max(largest, fabs(columns.cost[j]))
            for j in range(columns.start[g], columns.start[g + 1]):
                idle[j] = (x[j] == columns.lower[j] and columns.lower[j] != columns.upper[j]
                           and reduced_cost(columns, j, &y[0]) - least > slack * largest)
                count += idle[j]
    return count
