"""How far prices may move before a group's optimal solution changes (equation A8 of docs/method/algorithm.md)."""

from libc.math cimport INFINITY, fabs

from copter.methods.proximal.groups cimport Groups

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


cdef double group_radius(Groups columns, Py_ssize_t g, const double* x, const double* reduced,
                         const double* weight) noexcept nogil:
    """Return the radius of one group with a finite limit; 0 unless it is all zero or has one column at the limit."""
    cdef const int* entry_start = columns.entry_start
    cdef const int* row = columns.row
    cdef const double* coefficient = columns.coefficient
    cdef int j, first = columns.start[g], last = columns.start[g + 1], chosen = -1
    cdef double radius, here, limit = columns.limit[g]
    for j in range(first, last):
        if columns.lower[j] != 0.0 or columns.upper[j] < limit:
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


cdef double radius_of(Groups columns, Py_ssize_t g, const double* x, const double* reduced,
                      const double* weight) noexcept nogil:
    """Return the radius of one group; 0 without a finite limit, or without columns."""
    if columns.limit[g] == INFINITY or columns.start[g] == columns.start[g + 1]:
        return 0.0
    return group_radius(columns, g, x, reduced, weight)


def settled_radius(Groups columns, const double[::1] x, const double[::1] reduced, const double[::1] weight,
                   double[::1] radius):
    """Write each group's radius: x stays optimal while no price moves by more than radius * weight of its row.

    0 for a group without a finite limit, with bounds on single columns, or with columns strictly between bounds.
    """
    cdef Py_ssize_t g
    with nogil:
        for g in range(columns.count):
            radius[g] = radius_of(columns, g, &x[0], &reduced[0], &weight[0])
