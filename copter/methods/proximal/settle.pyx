"""How far prices may move before a group's optimal solution changes (equation A8 of docs/method/algorithm.md)."""

from libc.math cimport INFINITY, fabs

cdef double REST = 1e-12  # share of a group's limit: a column this close to zero, or to the limit, counts as at it


cdef inline double reach(double margin, double move) noexcept nogil:
    """Return how many moves, each of size `move`, a margin withstands; 0 for a negative margin."""
    if margin < 0.0:
        return 0.0
    return margin / move if move > 0.0 else INFINITY


cdef double size_of(const int* row, const double* coefficient, int first, int last,
                    const double* weight) noexcept nogil:
    """Return the weighted 1-norm sum of |a| w of a column."""
    cdef int k
    cdef double total = 0.0
    for k in range(first, last):
        total += fabs(coefficient[k]) * weight[row[k]]
    return total


cdef double size_of_difference(const int* row, const double* coefficient, int first, int last, int other_first,
                               int other_last, const double* weight) noexcept nogil:
    """Return sum |a - b| w of two columns, or an upper bound of it where both are long."""
    cdef int k, h
    cdef double total
    if (last - first) * (other_last - other_first) > 64:
        return (size_of(row, coefficient, first, last, weight)
                + size_of(row, coefficient, other_first, other_last, weight))
    total = size_of(row, coefficient, first, last, weight)
    for h in range(other_first, other_last):
        for k in range(first, last):
            if row[k] == row[h]:
                total += (fabs(coefficient[k] - coefficient[h]) - fabs(coefficient[k])) * weight[row[k]]
                break
        else:
            total += fabs(coefficient[h]) * weight[row[h]]
    return total


cdef double group_radius(int first, int last, double limit, const double* lower, const double* upper, const double* x,
                         const double* reduced, const int* entry_start, const int* row, const double* coefficient,
                         const double* weight) noexcept nogil:
    """Return the radius of one group with a finite limit; 0 unless it is all zero or has one column at the limit."""
    cdef int j, chosen = -1
    cdef double radius, here
    for j in range(first, last):
        if lower[j] != 0.0 or upper[j] < limit:
            return 0.0
        if x[j] > REST * limit:
            if chosen >= 0 or x[j] < limit - REST * limit:
                return 0.0
            chosen = j
    if chosen < 0:
        radius = INFINITY
        for j in range(first, last):
            here = reach(reduced[j], size_of(row, coefficient, entry_start[j], entry_start[j + 1], weight))
            if here < radius:
                radius = here
        return radius
    radius = reach(-reduced[chosen],
                   size_of(row, coefficient, entry_start[chosen], entry_start[chosen + 1], weight))
    for j in range(first, last):
        if j != chosen:
            here = reach(reduced[j] - reduced[chosen],
                         size_of_difference(row, coefficient, entry_start[j], entry_start[j + 1], entry_start[chosen],
                                            entry_start[chosen + 1], weight))
            if here < radius:
                radius = here
    return radius


def settled_radius(const int[::1] start, const double[::1] limit, const double[::1] lower, const double[::1] upper,
                   const double[::1] x, const double[::1] reduced, const int[::1] entry_start, const int[::1] row,
                   const double[::1] coefficient, const double[::1] weight, double[::1] radius):
    """Write each group's radius: x stays optimal while no price moves by more than radius * weight of its row.

    0 for a group without a finite limit, with bounds on single columns, or with columns strictly between bounds.
    """
    cdef Py_ssize_t g
    cdef const int* rows = &row[0] if row.shape[0] else NULL
    cdef const double* coefficients = &coefficient[0] if row.shape[0] else NULL
    cdef const double* weights = &weight[0] if weight.shape[0] else NULL
    with nogil:
        for g in range(start.shape[0] - 1):
            if limit[g] == INFINITY or start[g] == start[g + 1]:
                radius[g] = 0.0
            else:
                radius[g] = group_radius(start[g], start[g + 1], limit[g], &lower[0], &upper[0], &x[0], &reduced[0],
                                         &entry_start[0], rows, coefficients, weights)
