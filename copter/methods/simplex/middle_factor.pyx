"""Sparse LU factors of a basis, with updates between the factors (equation D4).

A new column a at position p turns B = L T U, with the earlier updates T, into L T T' U, where
T' = I + (h - U e) r' with h = (L T)^-1 a, e the unit vector of p and r = U^-T e. Both vectors are by-products of a
pivot, and stay sparse where the inverse is dense: then these updates have far fewer entries than those in product form.
"""

import numpy as np

from libc.math cimport fabs
from libc.stdlib cimport calloc, free, malloc
from libc.string cimport memset

from copter.methods.simplex.basis_factor cimport MOST_UPDATES, TINY, WEAR, BasisFactor
from copter.methods.simplex.entries cimport append, ensure, free_entries


cdef class MiddleFactor(BasisFactor):
    """LU factors of a basis with the given number of rows.

    A solve B x = b is :meth:`half_ftran`, whose result a later update needs, and `_upper_ftran`.
    """

    def __cinit__(self, int rows):
        self.left_start = <int *>malloc(2 * (MOST_UPDATES + 2) * sizeof(int))
        self.scale = <double *>malloc((MOST_UPDATES + 2) * sizeof(double))
        self.whole = <double *>calloc(2 * rows + 2, sizeof(double))
        if self.left_start == NULL or self.scale == NULL or self.whole == NULL:
            raise MemoryError(f"a basis of {rows} rows")
        self.right_start = self.left_start + MOST_UPDATES + 2

    def __dealloc__(self):
        free_entries(&self.left)
        free_entries(&self.right)
        free(self.left_start)
        free(self.scale)
        free(self.whole)

    cdef void half_ftran(self, double *x) noexcept nogil:
        """Solve with the lower factor and the updates."""
        cdef int k, p
        cdef double total
        self._lower_ftran(x)
        for k in range(self.updates):
            total = 0.0
            for p in range(self.right_start[k], self.right_start[k + 1]):
                total += self.right.value[p] * x[self.right.index[p]]
            if total == 0.0:
                continue
            total /= self.scale[k]
            for p in range(self.left_start[k], self.left_start[k + 1]):
                x[self.left.index[p]] -= self.left.value[p] * total
        if self.updates:
            self.work += self.right_start[self.updates] + 0.5 * self.left_start[self.updates]

    cdef void ftran(self, double *x) noexcept nogil:
        self.half_ftran(x)
        self._upper_ftran(x)

    cdef void btran(self, double *y) noexcept nogil:
        self._upper_btran(y)
        self.half_btran(y)

    cdef void half_btran(self, double *y) noexcept nogil:
        """Solve with the transposes of the updates and of the lower factor, after `_upper_btran`."""
        cdef int k, p
        cdef double total
        for k in range(self.updates - 1, -1, -1):
            total = 0.0
            for p in range(self.left_start[k], self.left_start[k + 1]):
                total += self.left.value[p] * y[self.left.index[p]]
            if total == 0.0:
                continue
            total /= self.scale[k]
            for p in range(self.right_start[k], self.right_start[k + 1]):
                y[self.right.index[p]] -= self.right.value[p] * total
        if self.updates:
            self.work += self.left_start[self.updates] + 0.5 * self.right_start[self.updates]
        self._lower_btran(y)

    cdef int replace(self, const double *half, const double *row, int position) noexcept nogil:
        """Replace the basic column at a position by the one a.

        Parameters
        ----------
        half : (rows,)
            (L T)^-1 a, as :meth:`half_ftran` leaves it.
        row : (rows,)
            U^-T e for the position's unit vector e.

        Returns
        -------
        int
            0, or -1 if memory is short, or if the basis would be singular.
        """
        cdef int i, p, k = self.updates, m = self.rows, begin
        cdef double total = 1.0, value
        if ensure(&self.left, m + 1) < 0 or ensure(&self.right, m + 1) < 0:
            return -1
        if k == 0:
            self.left.size = self.right.size = 0
            self.left_start[0] = self.right_start[0] = 0
        begin = self.left.size
        for p in range(self.upper_column_start[position], self.upper_column_start[position + 1]):
            i = self.upper_by_column.index[p]
            append(&self.left, i, half[i] - self.upper_by_column.value[p])
            self.mark[i] = 3
        append(&self.left, position, half[position] - self.pivot[position])
        self.mark[position] = 3
        for i in range(m):
            if fabs(row[i]) > TINY:
                append(&self.right, i, row[i])
            if fabs(half[i]) > TINY and self.mark[i] == 0:
                append(&self.left, i, half[i])
        for p in range(begin, self.left.size):
            i = self.left.index[p]
            self.mark[i] = 0
            value = self.left.value[p]
            total += value * row[i]
        self.left_start[k + 1], self.right_start[k + 1] = self.left.size, self.right.size
        self.work += 2.0 * m
        if fabs(total) <= TINY:
            return -1
        self.scale[k] = total
        self.updates = k + 1
        return 0

    cdef int combine(self, int position, double own, int other, double share) noexcept nogil:
        """Replace the column at a position by `own` times itself and `share` times the one at another; as `replace`."""
        cdef int p, found
        cdef double *half = self.whole
        cdef double *row = self.whole + self.rows
        half[position] += own * self.pivot[position]
        for p in range(self.upper_column_start[position], self.upper_column_start[position + 1]):
            half[self.upper_by_column.index[p]] += own * self.upper_by_column.value[p]
        if share != 0.0:
            half[other] += share * self.pivot[other]
            for p in range(self.upper_column_start[other], self.upper_column_start[other + 1]):
                half[self.upper_by_column.index[p]] += share * self.upper_by_column.value[p]
        row[position] = 1.0
        self._upper_btran(row)
        found = self.replace(half, row, position)
        memset(half, 0, 2 * self.rows * sizeof(double))
        return found

    cdef bint worn(self) noexcept nogil:
        if self.updates >= self.most_updates:
            return True
        return self.updates >= 20 and (
            self.left_start[self.updates] + self.right_start[self.updates]
            > WEAR * (self.lower.size + self.upper.size + self.rows)
        )

    # For tests --------------------------------------------------------------------------------------------------------

    def exchange(self, column, int row):
        """Replace the basic column at a row; raises ValueError if only fresh factors would have room for it."""
        if self.updates >= self.most_updates:
            raise ValueError(f"{self.updates} columns have been exchanged: make fresh factors first")
        half, unit = np.array(column, dtype=np.float64), np.zeros(self.rows)
        unit[row] = 1.0
        cdef double[::1] x = half, y = unit
        self.half_ftran(&x[0])
        self._upper_btran(&y[0])
        if self.replace(&x[0], &y[0], row) < 0:
            raise MemoryError(f"the factors of a basis of {self.rows} rows")
