"""Classes of columns with the same entries in moving rows, and their slopes along a tableau row (K13)."""

import numpy as np

from libc.string cimport memset

cdef enum:
    EMPTY = 0  # number of the class of columns without entries in moving rows
    WORTH = 2  # classes must save all but a share of 1 / WORTH of the multiplications


cdef class ColumnClasses:
    """Classes of columns whose reduced costs move alike.

    Only rows whose activity is at a bound have a multiplier in a tableau row. The moving rows are those of them with a
    nonzero price when the classes are formed; columns with equal entries in moving rows form a class. All other rows
    are late: once one has a multiplier, its columns must be looked at one by one.

    Where classes would save less than half of the multiplications, every column is `alone` in its class, number
    1 + column, and all rows move: such classes need no search, and a column may get other entries.

    Parameters
    ----------
    n_rows : int
    start, row, value : CSC arrays
    alone : bool
        Whether every column is known to be alone in its class.
    """

    def __init__(self, int n_rows, const int[::1] start, const int[::1] row, const double[::1] value,
                 bint alone=False):
        cdef int size = 4
        self.n_rows, self.n_columns = n_rows, len(start) - 1
        self.start, self.row, self.value = start, row, value
        cdef int n = self.n_columns + 1, nnz
        cdef double[::1] real = np.zeros(3 * n)
        self.slope, self.moved, self.ahead = real[:n], real[n:2 * n], real[2 * n:]
        self.class_of = np.zeros(max(self.n_columns, 1), dtype=np.int32)
        self.n_classes, self.n_moving, self.n_late, self.work, self.late_work = 1, 0, 0, 0, 0
        self.alone = self.listed = False
        if alone:
            self.isolate()
            return
        while size < 2 * self.n_columns:  # ends: size doubles
            size *= 2
        nnz = <int>len(row) + 1
        cdef int[::1] whole = np.empty(4 * n_rows + 2 + 2 * nnz + n + 1 + size, dtype=np.int32)
        self.place, self.moving, self.late = whole[:n_rows], whole[n_rows:2 * n_rows], whole[2 * n_rows:3 * n_rows]
        self.place[:] = -1
        self.row_start, whole = whole[3 * n_rows:4 * n_rows + 2], whole[4 * n_rows + 2:]
        self.column, self.class_row, whole = whole[:nnz], whole[nnz:2 * nnz], whole[2 * nnz:]
        self.class_start, self.table = whole[:n + 1], whole[n + 1:]
        self.class_start[:] = 0
        self.was_late = np.zeros(n_rows, dtype=np.uint8)
        real = np.zeros(n_rows + nnz)
        self.rate, self.class_value = real[:n_rows], real[n_rows:]

    # Forming classes --------------------------------------------------------------------------------------

    cdef bint covers(self, const double* y) noexcept nogil:
        """Return whether all rows with a nonzero price are moving rows, and few late rows were met."""
        cdef int i
        if self.alone:
            return True
        if 2 * self.late_work > self.start[self.n_columns]:
            return False
        for i in range(self.n_rows):
            if y[i] != 0.0 and self.place[i] < 0:
                return False
        return True

    cdef bint are_few(self, const double* y) noexcept nogil:
        """Return whether most moving rows still have a price: the others split classes for nothing."""
        cdef int i, priced = 0
        for i in range(self.n_rows):
            priced += y[i] != 0.0
        return self.alone or 2 * priced >= self.n_moving

    cdef void choose(self, const double* y, bint again) noexcept nogil:
        """Form classes by the rows of nonzero price, and with `again` also the late rows met; moves become zero."""
        cdef int i
        if self.alone:
            self.forget()
            return
        self.n_moving = 0
        for i in range(self.n_rows):
            self.place[i] = -1
            if y[i] != 0.0 or (again and self.was_late[i]):
                self.place[i], self.moving[self.n_moving] = self.n_moving, i
                self.n_moving += 1
            self.was_late[i] = 0
        self.late_work = 0
        self.classify()
        if WORTH * self.class_start[self.n_classes] > self.start[self.n_columns]:
            self.isolate()

    cdef void list_rows(self) noexcept nogil:
        """List the columns with an entry in each row: those of row i are column[row_start[i]:row_start[i + 1]]."""
        cdef int i, j, e
        if self.listed:
            return
        self.listed = True
        for i in range(self.n_rows + 2):
            self.row_start[i] = 0
        for e in range(self.start[self.n_columns]):
            self.row_start[self.row[e] + 2] += 1
        for i in range(2, self.n_rows + 2):
            self.row_start[i] += self.row_start[i - 1]
        for j in range(self.n_columns):
            for e in range(self.start[j], self.start[j + 1]):
                self.column[self.row_start[self.row[e] + 1]] = j
                self.row_start[self.row[e] + 1] += 1

    cdef void isolate(self) noexcept nogil:
        """Let every column be alone in its class."""
        cdef int j
        self.alone, self.n_classes, self.n_late = True, self.n_columns + 1, 0
        for j in range(self.n_columns):
            self.class_of[j] = j + 1
        self.slope[EMPTY] = 0.0
        self.forget()

    cdef void classify(self) noexcept nogil:
        """Give each column the number of its class."""
        cdef int j, at, mask = <int>len(self.table) - 1
        for j in range(mask + 1):
            self.table[j] = -1
        self.n_classes, self.class_start[0], self.class_start[1] = 1, 0, 0
        self.work += self.start[self.n_columns]
        for j in range(self.n_columns):
            at = self.size_of(j)
            self.class_of[j] = self.find(j, at, mask) if at > 0 else EMPTY
        memset(&self.slope[0], 0, self.n_classes * sizeof(double))
        self.forget()

    cdef bint assign(self, int j) noexcept nogil:
        """Give an edited column the number of its class; return False if there is no room for it: then classify all."""
        cdef int size = self.start[j + 1] - self.start[j], c = self.n_classes
        if c > self.n_columns or self.class_start[c] + size > self.start[self.n_columns]:
            return False
        size = self.size_of(j)
        self.class_of[j] = self.find(j, size, <int>len(self.table) - 1) if size > 0 else EMPTY
        if self.n_classes > c:
            self.slope[c] = self.moved[c] = 0.0
        return True

    cdef int size_of(self, int j) noexcept nogil:
        """Append a column's entries in moving rows to the list of classes' entries; return how many."""
        cdef int e, first = self.class_start[self.n_classes], at = first
        for e in range(self.start[j], self.start[j + 1]):
            self.class_row[at], self.class_value[at] = self.place[self.row[e]], self.value[e]
            at += self.place[self.row[e]] >= 0
        return at - first

    cdef int find(self, int j, int size, int mask) noexcept nogil:
        """Return the class with the entries just appended; make a new class if none has them."""
        cdef unsigned int hashed = 2166136261u
        cdef int e, c, at, first = self.class_start[self.n_classes], other
        for e in range(first, first + size):
            hashed = (hashed ^ <unsigned int>self.class_row[e]) * 16777619u
            hashed = (hashed ^ <unsigned int>(<long long>(self.class_value[e] * 4096.0))) * 16777619u
        at = <int>((hashed ^ (hashed >> 15)) & <unsigned int>mask)
        while self.table[at] >= 0:  # ends: half of the table is free
            c = self.table[at]
            other = self.class_start[c]
            if self.class_start[c + 1] - other == size:
                e = 0
                # ends: e grows to size
                while e < size and (self.class_row[other + e] == self.class_row[first + e]
                                    and self.class_value[other + e] == self.class_value[first + e]):
                    e += 1
                if e == size:
                    return c
            at = (at + 1) & mask
        c = self.n_classes
        self.table[at] = c
        self.class_start[c + 1] = first + size
        self.n_classes += 1
        return c

    # Slopes and moves ---------------------------------------------------------------------------------------------

    cdef void forget(self) noexcept nogil:
        """Set all moves to zero."""
        memset(&self.moved[0], 0, self.n_classes * sizeof(double))

    cdef bint spread(self, const double* rho) noexcept nogil:
        """Compute the classes' slopes, the products with rho; return whether late rows make some columns differ."""
        cdef int i, s, c, e
        cdef double total
        if self.alone:
            for c in range(self.n_columns):
                total = 0.0
                for e in range(self.start[c], self.start[c + 1]):
                    total += self.value[e] * rho[self.row[e]]
                self.slope[c + 1] = total
            self.work += self.start[self.n_columns]
            return False
        self.n_late = 0
        for i in range(self.n_rows):
            s = self.place[i]
            if s >= 0:
                self.rate[s] = rho[i]
            elif rho[i] != 0.0:
                self.list_rows()
                if self.row_start[i] < self.row_start[i + 1]:
                    self.late[self.n_late], self.was_late[i] = i, 1
                    self.n_late += 1
                    self.late_work += self.row_start[i + 1] - self.row_start[i]
        for c in range(1, self.n_classes):
            total = 0.0
            for e in range(self.class_start[c], self.class_start[c + 1]):
                total += self.class_value[e] * self.rate[self.class_row[e]]
            self.slope[c] = total
        self.work += self.class_start[self.n_classes]
        return self.n_late > 0

    cdef void move(self, double step) noexcept nogil:
        """Add a step along the slopes to the classes' moves."""
        cdef int c
        for c in range(1, self.n_classes):
            self.moved[c] += step * self.slope[c]

    cdef void look_ahead(self, double step) noexcept nogil:
        """Compute the classes' moves as they will be after a step along the slopes."""
        cdef int c
        for c in range(self.n_classes):
            self.ahead[c] = self.moved[c] + step * self.slope[c]
