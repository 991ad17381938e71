"""Reduced costs of all columns, kept from pivot to pivot, and a row of the tableau by its few entries (K10)."""

import numpy as np

cdef enum:
    DENSE = 3  # what an entry costs that is added by rows, in entries that are gone through by columns


cdef class ReducedCosts:
    """Costs less prices, and their slopes along one row of the tableau.

    A row of the tableau is summed up over the rows of the matrix whose multiplier is not zero, so that the work is in
    proportion to the columns that it touches.

    Parameters
    ----------
    n_rows : int
    start, row, value : CSC arrays
    """

    def __init__(self, int n_rows, const int[::1] start, const int[::1] row, const double[::1] value):
        cdef int j, e, r, at
        self.n_rows, self.n_columns, self.n_touched = n_rows, len(start) - 1, 0
        self.work, self.is_dense = 0, False
        self.start, self.row, self.value = start, row, value
        first, owner = np.zeros(n_rows + 1, dtype=np.int32), np.empty(len(row), dtype=np.int32)
        entry = np.empty(len(row))
        np.cumsum(np.bincount(row, minlength=n_rows), out=first[1:])
        cdef int[::1] place = first[:n_rows].copy(), column = owner
        cdef double[::1] by_row = entry
        with nogil:
            for j in range(self.n_columns):
                for e in range(start[j], start[j + 1]):
                    r = row[e]
                    at = place[r]
                    column[at], by_row[at] = j, value[e]
                    place[r] += 1
        self.row_start, self.column, self.by_row = first, owner, entry
        self.cost, self.slope = np.zeros((2, max(self.n_columns, 1)))
        self.touched = np.zeros(max(self.n_columns, 1), dtype=np.int32)
        self.is_touched = np.zeros(max(self.n_columns, 1), dtype=np.uint8)

    cdef void fill(self, const double* cost, const double* y) noexcept nogil:
        """Reduced costs at prices y; no slopes."""
        cdef int j, e
        cdef double total
        self.move(0.0)
        for j in range(self.n_columns):
            total = cost[j]
            for e in range(self.start[j], self.start[j + 1]):
                total -= self.value[e] * y[self.row[e]]
            self.cost[j] = total

    cdef void spread(self, const double* rho) noexcept nogil:
        """Slopes: the products of the columns with rho; slopes of before are forgotten.

        Where rho meets most entries, all columns are gone through in order, and all are touched.
        """
        cdef int i, j, e, count = 0
        cdef long long met = 0
        cdef double factor
        self.move(0.0)
        for i in range(self.n_rows):
            if rho[i] != 0.0:
                met += self.row_start[i + 1] - self.row_start[i]
        self.is_dense = DENSE * met > self.start[self.n_columns]
        self.work += self.start[self.n_columns] if self.is_dense else DENSE * met
        if self.is_dense:
            for j in range(self.n_columns):
                factor = 0.0
                for e in range(self.start[j], self.start[j + 1]):
                    factor += self.value[e] * rho[self.row[e]]
                self.slope[j] = factor
            return
        for i in range(self.n_rows):
            factor = rho[i]
            if factor == 0.0:
                continue
            for e in range(self.row_start[i], self.row_start[i + 1]):
                j = self.column[e]
                self.slope[j] += factor * self.by_row[e]
                if not self.is_touched[j]:
                    self.is_touched[j] = True
                    self.touched[count] = j
                    count += 1
        self.n_touched = count

    cdef void move(self, double step) noexcept nogil:
        """Reduced costs after a step along the slopes, which are forgotten."""
        cdef int t, j
        if self.is_dense:
            for j in range(self.n_columns):
                self.cost[j] += step * self.slope[j]
                self.slope[j] = 0.0
            self.is_dense = False
            return
        for t in range(self.n_touched):
            j = self.touched[t]
            self.cost[j] += step * self.slope[j]
            self.slope[j] = 0.0
            self.is_touched[j] = False
        self.n_touched = 0
