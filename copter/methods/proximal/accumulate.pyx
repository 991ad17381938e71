"""Sums over the entries of flat columns: reduced costs, activities, and the least value of each group."""

from libc.math cimport INFINITY, fabs
from libc.string cimport memset


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


def idle_columns(const int[::1] start, const double[::1] reduced, const double[::1] cost, const double[::1] lower,
                 const double[::1] upper, const double[::1] x, double slack, unsigned char[::1] idle):
    """Write 1 for each idle column: one at its lower bound whose reduced cost is far from attractive.

    An idle column is not fixed, and its reduced cost exceeds the least one of its group (or zero) by more than `slack`
    times the group's largest |cost|.
    """
    cdef Py_ssize_t g, j
    cdef double least, largest
    with nogil:
        for g in range(start.shape[0] - 1):
            least = 0.0
            largest = 0.0
            for j in range(start[g], start[g + 1]):
                if reduced[j] < least:
                    least = reduced[j]
                if fabs(cost[j]) > largest:
                    largest = fabs(cost[j])
            for j in range(start[g], start[g + 1]):
                idle[j] = x[j] == lower[j] and lower[j] != upper[j] and reduced[j] - least > slack * largest


def block_violation(const int[::1] start, const double[::1] limit, const double[::1] lower, const double[::1] upper,
                    const double[::1] x):
    """Return the violations of column bounds and group limits: (sum of squares, largest)."""
    cdef Py_ssize_t g, j
    cdef double total, over, squares = 0.0, largest = 0.0
    with nogil:
        for g in range(start.shape[0] - 1):
            total = 0.0
            for j in range(start[g], start[g + 1]):
                total += x[j]
                over = x[j] - upper[j]
                if lower[j] - x[j] > over:
                    over = lower[j] - x[j]
                if over > 0.0:
                    squares += over * over
                    if over > largest:
                        largest = over
            over = total - limit[g]
            if over > 0.0:
                squares += over * over
                if over > largest:
                    largest = over
    return squares, largest
