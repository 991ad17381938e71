"""The flat arrays of a working set, as its kernels read them: one record, made once for many passes."""

import numpy as np

from libc.math cimport INFINITY


cdef class Groups:
    """Columns in groups: group g owns columns start[g] to start[g + 1] - 1, whose sum is at most limit[g].

    Parameters
    ----------
    start, limit : ndarray (g + 1,) int32, (g,)
    cost, lower, upper : ndarray (n,)
    entry_start, row, coefficient : ndarray
        CSC arrays of the columns over rows. None of the arrays is copied.

    Attributes
    ----------
    kind : array (g,)
        Plain, held, or neither.
    all_easy : bool
        Whether every group is plain or held: then min (c - A'y)'x over a group is limit * min(0, least reduced cost),
        or all columns are at their bounds.
    """

    def __init__(self, const int[::1] start, const double[::1] limit, const double[::1] cost, const double[::1] lower,
                 const double[::1] upper, const int[::1] entry_start, const int[::1] row,
                 const double[::1] coefficient):
        self._start, self._limit, self._cost, self._lower, self._upper = start, limit, cost, lower, upper
        self._entry_start, self._row, self._coefficient = entry_start, row, coefficient
        self.count, self.n_columns = limit.shape[0], cost.shape[0]
        self.start, self.entry_start = &start[0], &entry_start[0]
        self.limit, self.cost, self.lower, self.upper = &limit[0], &cost[0], &lower[0], &upper[0]
        self.row, self.coefficient = &row[0], &coefficient[0]
        self._kind = np.empty(max(self.count, 1), dtype=np.uint8)
        self.kind = &self._kind[0]
        cdef Py_ssize_t g, j
        cdef bint plain, held
        self.all_easy = True
        with nogil:
            for g in range(self.count):
                plain, held = limit[g] < INFINITY, True
                for j in range(start[g], start[g + 1]):
                    plain = plain and lower[j] == 0.0 and upper[j] >= limit[g]
                    held = held and lower[j] == upper[j]
                    if not (plain or held):
                        break
                self._kind[g] = PLAIN if plain else HELD if held else GENERAL
                self.all_easy = self.all_easy and (plain or held)
