"""Sums over the entries of flat columns: reduced costs, activities, and the least value of each group."""

from libc.math cimport INFINITY
from libc.string cimport memset


def reduced_costs(const double[::1] cost, const int[::1] entry_start, const int[::1] row,
                  const double[::1] coefficient, const double[::1] y, double[::1] reduced):
    """Write reduced = cost - A'y, column by column."""
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
    """Write activity = A x."""
    cdef Py_ssize_t j, k
    with nogil:
        if activity.shape[0]:
            memset(&activity[0], 0, activity.shape[0] * sizeof(double))
        for j in range(x.shape[0]):
            if x[j] != 0.0:
                for k in range(entry_start[j], entry_start[j + 1]):
                    activity[row[k]] += coefficient[k] * x[j]


def group_least(const int[::1] start, const double[::1] value, double[::1] least):
    """Write the least value of every group (infinity for an empty one)."""
    cdef Py_ssize_t g, j
    cdef double best
    with nogil:
        for g in range(start.shape[0] - 1):
            best = INFINITY
            for j in range(start[g], start[g + 1]):
                if value[j] < best:
                    best = value[j]
            least[g] = best


def plain_groups(const int[::1] start, const double[::1] limit, const double[::1] lower, const double[::1] upper,
                 unsigned char[::1] plain):
    """Write 1 for the groups with lower bounds of zero and upper bounds no smaller than a finite limit.

    Over such a group the least of d'x is limit * min(0, least d).
    """
    cdef Py_ssize_t g, j
    cdef bint yes
    with nogil:
        for g in range(start.shape[0] - 1):
            yes = limit[g] < INFINITY
            for j in range(start[g], start[g + 1]):
                if lower[j] != 0.0 or upper[j] < limit[g]:
                    yes = False
                    break
            plain[g] = yes
