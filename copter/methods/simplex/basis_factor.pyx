"""Sparse LU factors of a simplex basis, with updates in product form (equation D4).

Markowitz's rule chooses pivots among entries that are large enough in their column: first rows and columns with one
entry, then pivots with the least possible fill-in. Afterwards each basic variable is assigned to the row of its pivot,
so that the solutions of B x = b and B'y = c are both indexed by rows.
"""

import numpy as np

from libc.math cimport fabs
from libc.stdlib cimport calloc, free, realloc
from libc.string cimport memcpy

from copter.methods.simplex.entries cimport append, ensure, free_entries, link, transpose, unlink

cdef double THRESHOLD = 0.1  # a pivot has at least this share of the largest |entry| of its column
cdef double LEAST_PIVOT = 1e-9  # a smaller pivot counts as zero: its column depends on others
cdef double TINY = 1e-14  # entries of smaller size count as zero, in elimination, solves and rows of the tableau
cdef int SEARCHED = 4  # rows and columns searched for each pivot, at least one of them with a candidate
cdef int MOST_UPDATES = 100  # column exchanges between two factorisations
# Operations of one factorisation, about a tenth of a second: the clock is not asked within it.
cdef double MOST_WORK = 3e7
cdef double WEAR = 3.0  # refactorise once the updates have this many times the entries of the fresh factors


cdef class BasisFactor:
    """LU factors of a basis with the given number of rows."""

    def __cinit__(self, int rows):
        cdef int *at
        cdef size_t line = rows + 2
        self.rows, self.updates, self.work = rows, 0, 0.0
        self.most_updates, self.most_work, self.least_pivot = MOST_UPDATES, MOST_WORK, LEAST_PIVOT
        self.pool = <int *>calloc(24 * line + 2 * (MOST_UPDATES + 2), sizeof(int))
        self.pivot = <double *>calloc(2 * line, sizeof(double))
        if self.pool == NULL or self.pivot == NULL:
            raise MemoryError(f"a basis of {rows} rows")
        self.multiplier = self.pivot + line
        at = self.pool
        self.lower_start, self.lower_row_start, self.upper_start = at, at + line, at + 2 * line
        self.upper_column_start, self.order, self.mark, self.new_head = (
            at + 3 * line, at + 4 * line, at + 5 * line, at + 6 * line
        )
        at += 7 * line
        self.column_begin, self.column_length, self.column_room = at, at + line, at + 2 * line
        self.column_row, self.column_head, self.column_after, self.column_before = (
            at + 3 * line, at + 4 * line, at + 5 * line, at + 6 * line
        )
        at += 7 * line
        self.row_begin, self.row_length, self.row_room = at, at + line, at + 2 * line
        self.row_head, self.row_after, self.row_before = at + 3 * line, at + 4 * line, at + 5 * line
        at += 6 * line
        self.lower_used, self.lower_rows_used = at, at + line
        self.upper_used, self.upper_columns_used = at + 2 * line, at + 3 * line
        self.eta_start = at + 4 * line
        self.eta_row = self.eta_start + MOST_UPDATES + 2

    def __dealloc__(self):
        free_entries(&self.lower)
        free_entries(&self.upper)
        free_entries(&self.lower_by_row)
        free_entries(&self.upper_by_column)
        free_entries(&self.eta)
        free_entries(&self.active)
        free(self.row_active)
        free(self.pool)
        free(self.pivot)

    # Factors ----------------------------------------------------------------------------------------------------------

    cdef int factorise(
        self, const int *start, const int *index, const double *value, int columns, int *head
    ) noexcept nogil:
        """Factorise the columns named by `head`: a column, or columns + i for the unit column of row i; -1 for none.

        Reorders `head` by the pivots' rows. Unit columns replace dependent columns: returns their number, -1 if memory
        is short, or -2 if fill-in would take too long.
        """
        cdef int step = 0, row = -1, column = -1
        cdef double end = self.work + self.most_work
        self.updates = 0
        self.eta.size = 0
        if self._load(start, index, value, columns, head) < 0:
            return -1
        # ends: step grows to the number of rows, and work is limited
        while step < self.rows and self._choose(&row, &column):
            if self._eliminate(row, column, step) < 0:
                return -1
            if self.work > end:
                return -2
            step += 1
        return self._finish(step, columns, head)

    cdef int _load(
        self, const int *start, const int *index, const double *value, int columns, int *head
    ) noexcept nogil:
        """Load the active matrix: by columns with values, by rows without, and both in lists by count."""
        cdef int m = self.rows, k, p, j, i, at = 0
        self.lower.size = self.upper.size = self.active.size = 0
        for i in range(m):
            self.row_length[i] = 0
            self.column_row[i] = -1
            self.mark[i] = 0
        for i in range(m + 1):
            self.column_head[i] = self.row_head[i] = -1
        for k in range(m):
            j = head[k]
            self.column_begin[k] = self.active.size
            if j < 0:
                self.column_length[k] = self.column_room[k] = 0
                link(self.column_head, self.column_after, self.column_before, k, 0)
                continue
            if ensure(&self.active, 1 if j >= columns else start[j + 1] - start[j]) < 0:
                return -1
            if j >= columns:
                append(&self.active, j - columns, 1.0)
                self.row_length[j - columns] += 1
            else:
                for p in range(start[j], start[j + 1]):
                    append(&self.active, index[p], value[p])
                    self.row_length[index[p]] += 1
            self.column_length[k] = self.column_room[k] = self.active.size - self.column_begin[k]
            link(self.column_head, self.column_after, self.column_before, k, self.column_length[k])
        for i in range(m):
            self.row_begin[i] = at
            self.row_room[i] = self.row_length[i]
            at += self.row_length[i]
            link(self.row_head, self.row_after, self.row_before, i, self.row_length[i])
            self.row_length[i] = 0
        self.row_size = 0
        if self._need_rows(at) < 0:
            return -1
        self.row_size = at
        for k in range(m):
            for p in range(self.column_begin[k], self.column_begin[k] + self.column_length[k]):
                i = self.active.index[p]
                self.row_active[self.row_begin[i] + self.row_length[i]] = k
                self.row_length[i] += 1
        self.work += 6.0 * m + 4.0 * at
        return 0

    cdef int _need_rows(self, int more) noexcept nogil:
        cdef void *grown
        if self.row_size + more > self.row_active_room:
            self.row_active_room = 2 * (self.row_size + more) + 64
            grown = realloc(self.row_active, self.row_active_room * sizeof(int))
            if grown == NULL:
                return -1
            self.row_active = <int *>grown
        return 0

    cdef int _choose(self, int *row, int *column) noexcept nogil:
        """Choose the next pivot; return 0 if none is left."""
        cdef int count, item, after, looked
        cdef double least, size
        while True:  # ends: each pass returns, or takes a column out of the list of count one
            item = self.column_head[1]
            if item >= 0:
                if fabs(self.active.value[self.column_begin[item]]) > self.least_pivot:
                    row[0], column[0] = self.active.index[self.column_begin[item]], item
                    return 1
                unlink(self.column_head, self.column_after, self.column_before, item)
                link(self.column_head, self.column_after, self.column_before, item, 0)
                continue
            item = self.row_head[1]
            row[0] = column[0] = -1
            least, size, looked = 1e300, 0.0, 0
            if item >= 0:
                self._look_in_row(item, row, column, &least, &size)
                if row[0] >= 0:
                    return 1
            for count in range(2, self.rows + 1):
                item = self.column_head[count]
                while item >= 0:  # ends: the columns of one count, each once
                    after = self.column_after[item]
                    self._look_in_column(item, row, column, &least, &size)
                    looked += 1
                    if row[0] >= 0 and (looked >= SEARCHED or least <= (count - 1.0) * (count - 1.0)):
                        return 1
                    item = after
                item = self.row_head[count]
                while item >= 0:  # ends: the rows of one count, each once
                    self._look_in_row(item, row, column, &least, &size)
                    looked += 1
                    if row[0] >= 0 and (looked >= SEARCHED or least <= count * (count - 1.0)):
                        return 1
                    item = self.row_after[item]
            return row[0] >= 0

    cdef void _look_in_column(self, int column, int *row, int *best_column, double *least, double *size) noexcept nogil:
        """Look for a better pivot in one column, by Markowitz count, then by size."""
        cdef int p, begin = self.column_begin[column], end = begin + self.column_length[column]
        cdef double largest = 0.0, cost, value
        for p in range(begin, end):
            largest = max(largest, fabs(self.active.value[p]))
        self.work += 2.0 * (end - begin)
        if largest <= self.least_pivot:  # depends on the columns before it
            unlink(self.column_head, self.column_after, self.column_before, column)
            link(self.column_head, self.column_after, self.column_before, column, 0)
            return
        for p in range(begin, end):
            value = fabs(self.active.value[p])
            if value < THRESHOLD * largest:
                continue
            cost = (self.row_length[self.active.index[p]] - 1.0) * (end - begin - 1.0)
            if cost < least[0] or (cost == least[0] and value > size[0]):
                least[0], size[0] = cost, value
                row[0], best_column[0] = self.active.index[p], column

    cdef void _look_in_row(self, int row, int *best_row, int *column, double *least, double *size) noexcept nogil:
        """Look for a better pivot in one row; a row's only entry may be small in its column: it causes no fill-in."""
        cdef int q, k, p, at, begin = self.row_begin[row], end = begin + self.row_length[row]
        cdef double largest, cost, value
        for q in range(begin, end):
            k = self.row_active[q]
            cost = (self.column_length[k] - 1.0) * (end - begin - 1.0)
            if cost > least[0]:
                continue
            largest, value = 0.0, 0.0
            at = self.column_begin[k]
            for p in range(at, at + self.column_length[k]):
                largest = max(largest, fabs(self.active.value[p]))
                if self.active.index[p] == row:
                    value = fabs(self.active.value[p])
            self.work += self.column_length[k]
            if value <= self.least_pivot or (value < THRESHOLD * largest and end - begin > 1):
                continue
            if cost < least[0] or (cost == least[0] and value > size[0]):
                least[0], size[0] = cost, value
                best_row[0], column[0] = row, k

    cdef int _eliminate(self, int row, int column, int step) noexcept nogil:
        """Eliminate the pivot's row and column from the active matrix."""
        cdef int p, q, k, i, at, length, first = self.lower.size
        cdef double value, pivot = 0.0
        cdef int begin = self.column_begin[column], end = begin + self.column_length[column]
        unlink(self.column_head, self.column_after, self.column_before, column)
        unlink(self.row_head, self.row_after, self.row_before, row)
        self.order[step], self.column_row[column] = row, step
        self.lower_start[step], self.upper_start[step] = first, self.upper.size
        if ensure(&self.lower, end - begin) < 0 or ensure(&self.upper, self.row_length[row]) < 0:
            return -1
        for p in range(begin, end):
            if self.active.index[p] == row:
                pivot = self.active.value[p]
        self.pivot[row] = pivot
        for p in range(begin, end):
            i = self.active.index[p]
            if i != row:
                value = self.active.value[p] / pivot
                append(&self.lower, i, value)
                self.multiplier[i] = value
                self.mark[i] = 1
                self._drop_from_row(i, column)
        length = self.row_length[row]
        for q in range(length):
            k = self.row_active[self.row_begin[row] + q]
            if k == column:
                continue
            p = self.column_begin[k]
            while self.active.index[p] != row:  # ends: the row is in the column
                p += 1
            value = self.active.value[p]
            at = self.column_begin[k] + self.column_length[k] - 1
            self.active.index[p], self.active.value[p] = self.active.index[at], self.active.value[at]
            self.column_length[k] -= 1
            append(&self.upper, k, value)
            if end - begin > 1 and self._subtract(k, value, first) < 0:
                return -1
            unlink(self.column_head, self.column_after, self.column_before, k)
            link(self.column_head, self.column_after, self.column_before, k, self.column_length[k])
        for p in range(first, self.lower.size):
            i = self.lower.index[p]
            self.mark[i] = 0
            unlink(self.row_head, self.row_after, self.row_before, i)
            link(self.row_head, self.row_after, self.row_before, i, self.row_length[i])
        self.column_length[column] = self.row_length[row] = 0
        self.work += 4.0 * (end - begin + length) + 10.0
        return 0

    cdef int _subtract(self, int column, double factor, int first) noexcept nogil:
        """Subtract factor * (the multipliers from `first` on) from a column; drop tiny entries, append fill-in."""
        cdef int p = self.column_begin[column], end = p + self.column_length[column], i, at
        self.work += 2.0 * (end - p + self.lower.size - first)
        while p < end:  # ends: p grows, or the end falls
            i = self.active.index[p]
            if self.mark[i] == 1:
                self.mark[i] = 2
                self.active.value[p] -= factor * self.multiplier[i]
                if fabs(self.active.value[p]) < TINY:
                    end -= 1
                    self.active.index[p], self.active.value[p] = self.active.index[end], self.active.value[end]
                    self._drop_from_row(i, column)
                    continue
            p += 1
        self.column_length[column] = end - self.column_begin[column]
        for p in range(first, self.lower.size):
            i = self.lower.index[p]
            if self.mark[i] == 2:
                self.mark[i] = 1
                continue
            if fabs(factor * self.multiplier[i]) < TINY:
                continue
            if self._room_in_column(column) < 0 or self._room_in_row(i) < 0:
                return -1
            at = self.column_begin[column] + self.column_length[column]
            self.active.index[at], self.active.value[at] = i, -factor * self.multiplier[i]
            self.column_length[column] += 1
            self.row_active[self.row_begin[i] + self.row_length[i]] = column
            self.row_length[i] += 1
        return 0

    cdef int _room_in_column(self, int column) noexcept nogil:
        """Make room for one more entry; a full column moves to the end of the storage."""
        cdef int length = self.column_length[column], begin
        if length < self.column_room[column]:
            return 0
        if ensure(&self.active, 2 * length + 4) < 0:
            return -1
        begin = self.active.size
        memcpy(self.active.index + begin, self.active.index + self.column_begin[column], length * sizeof(int))
        memcpy(self.active.value + begin, self.active.value + self.column_begin[column], length * sizeof(double))
        self.column_begin[column], self.column_room[column] = begin, 2 * length + 4
        self.active.size += 2 * length + 4
        return 0

    cdef int _room_in_row(self, int row) noexcept nogil:
        cdef int length = self.row_length[row]
        if length < self.row_room[row]:
            return 0
        if self._need_rows(2 * length + 4) < 0:
            return -1
        memcpy(self.row_active + self.row_size, self.row_active + self.row_begin[row], length * sizeof(int))
        self.row_begin[row], self.row_room[row] = self.row_size, 2 * length + 4
        self.row_size += 2 * length + 4
        return 0

    cdef void _drop_from_row(self, int row, int column) noexcept nogil:
        cdef int q = self.row_begin[row], last = q + self.row_length[row] - 1
        while self.row_active[q] != column:  # ends: the column is in the row
            q += 1
        self.row_active[q] = self.row_active[last]
        self.row_length[row] -= 1

    cdef int _finish(self, int done, int columns, int *head) noexcept nogil:
        """Put unit columns for dependent ones, transpose the factors, and order `head` by pivots."""
        cdef int m = self.rows, k, p, at = 0, step = done, row
        for row in range(m):
            self.new_head[row] = -1
        for k in range(m):
            if self.column_row[k] >= 0:
                self.new_head[self.order[self.column_row[k]]] = head[k]
        for row in range(m):
            if self.new_head[row] < 0:
                self.new_head[row] = columns + row
                self.order[step], self.pivot[row] = row, 1.0
                self.lower_start[step], self.upper_start[step] = self.lower.size, self.upper.size
                step += 1
        self.lower_start[m], self.upper_start[m] = self.lower.size, self.upper.size
        for k in range(m):
            p, self.upper_start[k] = self.upper_start[k], at
            while p < self.upper_start[k + 1]:  # ends: p grows to the start of the next
                if self.column_row[self.upper.index[p]] >= 0:
                    self.upper.index[at] = self.order[self.column_row[self.upper.index[p]]]
                    self.upper.value[at] = self.upper.value[p]
                    at += 1
                p += 1
        self.upper_start[m] = self.upper.size = at
        memcpy(head, self.new_head, m * sizeof(int))
        if transpose(&self.lower, self.lower_start, self.order, m, &self.lower_by_row, self.lower_row_start) < 0:
            return -1
        if transpose(&self.upper, self.upper_start, self.order, m, &self.upper_by_column, self.upper_column_start) < 0:
            return -1
        self._list_used()
        self.work += 8.0 * m + 4.0 * (self.lower.size + self.upper.size)
        return m - done

    cdef void _list_used(self) noexcept nogil:
        """List the pivots that solves must process, in order; unit columns, most of a basis, need no work."""
        cdef int k, row
        self.lower_count = self.lower_row_count = self.upper_count = self.upper_column_count = 0
        for k in range(self.rows):
            row = self.order[k]
            if self.lower_start[k] < self.lower_start[k + 1]:
                self.lower_used[self.lower_count] = k
                self.lower_count += 1
            if self.upper_start[k] < self.upper_start[k + 1] or self.pivot[row] != 1.0:
                self.upper_used[self.upper_count] = k
                self.upper_count += 1
        for k in range(self.rows - 1, -1, -1):
            row = self.order[k]
            if self.lower_row_start[row] < self.lower_row_start[row + 1]:
                self.lower_rows_used[self.lower_row_count] = row
                self.lower_row_count += 1
            if self.upper_column_start[row] < self.upper_column_start[row + 1] or self.pivot[row] != 1.0:
                self.upper_columns_used[self.upper_column_count] = row
                self.upper_column_count += 1

    # Systems ----------------------------------------------------------------------------------------------------------

    cdef void ftran(self, double *x) noexcept nogil:
        """Solve B x = b in place."""
        cdef int k, p, row
        cdef double value, touched = 0.0
        self._lower_ftran(x)
        self._upper_ftran(x)
        for k in range(self.updates):
            row = self.eta_row[k]
            if x[row] == 0.0:
                continue
            value = x[row] = x[row] / self.eta.value[self.eta_start[k]]
            for p in range(self.eta_start[k] + 1, self.eta_start[k + 1]):
                x[self.eta.index[p]] -= self.eta.value[p] * value
            touched += self.eta_start[k + 1] - self.eta_start[k]
        self.work += touched

    cdef void btran(self, double *y) noexcept nogil:
        """Solve B'y = c in place."""
        cdef int k, p, row
        cdef double value
        for k in range(self.updates - 1, -1, -1):
            row = self.eta_row[k]
            value = y[row]
            for p in range(self.eta_start[k] + 1, self.eta_start[k + 1]):
                value -= self.eta.value[p] * y[self.eta.index[p]]
            y[row] = value / self.eta.value[self.eta_start[k]]
        self.work += self.eta.size
        self._upper_btran(y)
        self._lower_btran(y)

    cdef void _lower_ftran(self, double *x) noexcept nogil:
        """Solve with the lower factor."""
        cdef int t, k, p
        cdef double value, touched = self.lower_count
        for t in range(self.lower_count):
            k = self.lower_used[t]
            value = x[self.order[k]]
            if value != 0.0:
                for p in range(self.lower_start[k], self.lower_start[k + 1]):
                    x[self.lower.index[p]] -= self.lower.value[p] * value
                touched += self.lower_start[k + 1] - self.lower_start[k]
        self.work += touched

    cdef void _upper_ftran(self, double *x) noexcept nogil:
        """Solve with the upper factor."""
        cdef int t, p, row
        cdef double value, touched = self.upper_column_count
        for t in range(self.upper_column_count):
            row = self.upper_columns_used[t]
            if x[row] == 0.0:
                continue
            if fabs(x[row]) < TINY:
                x[row] = 0.0
                continue
            value = x[row] = x[row] / self.pivot[row]
            for p in range(self.upper_column_start[row], self.upper_column_start[row + 1]):
                x[self.upper_by_column.index[p]] -= self.upper_by_column.value[p] * value
            touched += self.upper_column_start[row + 1] - self.upper_column_start[row]
        self.work += touched

    cdef void _upper_btran(self, double *y) noexcept nogil:
        """Solve with the upper factor's transpose."""
        cdef int t, k, p, row
        cdef double value, touched = self.upper_count
        for t in range(self.upper_count):
            k = self.upper_used[t]
            row = self.order[k]
            if y[row] == 0.0:
                continue
            if fabs(y[row]) < TINY:
                y[row] = 0.0
                continue
            value = y[row] = y[row] / self.pivot[row]
            for p in range(self.upper_start[k], self.upper_start[k + 1]):
                y[self.upper.index[p]] -= self.upper.value[p] * value
            touched += self.upper_start[k + 1] - self.upper_start[k]
        self.work += touched

    cdef void _lower_btran(self, double *y) noexcept nogil:
        """Solve with the lower factor's transpose."""
        cdef int t, p, row
        cdef double value, touched = self.lower_row_count
        for t in range(self.lower_row_count):
            row = self.lower_rows_used[t]
            value = y[row]
            if value != 0.0:
                for p in range(self.lower_row_start[row], self.lower_row_start[row + 1]):
                    y[self.lower_by_row.index[p]] -= self.lower_by_row.value[p] * value
                touched += self.lower_row_start[row + 1] - self.lower_row_start[row]
        self.work += touched

    cdef int update(self, const double *alpha, const int *spots, int count, int row) noexcept nogil:
        """Replace the basic column at a row by a, given alpha = B^-1 a, not zero in `count` rows `spots`.

        Returns -1 if memory is short.
        """
        cdef int i, k
        if ensure(&self.eta, self.rows + 1) < 0:
            return -1
        self.eta_row[self.updates] = row
        self.eta_start[self.updates] = self.eta.size
        append(&self.eta, row, alpha[row])
        for k in range(count):
            i = spots[k]
            if i != row and fabs(alpha[i]) > TINY:
                append(&self.eta, i, alpha[i])
        self.updates += 1
        self.eta_start[self.updates] = self.eta.size
        return 0

    cdef bint worn(self) noexcept nogil:
        """Return whether so many columns were replaced that a fresh factorisation pays."""
        if self.updates >= self.most_updates:
            return True
        return self.updates >= 20 and self.eta.size > WEAR * (self.lower.size + self.upper.size + self.rows)

    # For tests --------------------------------------------------------------------------------------------------------

    def factorise_columns(self, const int[::1] start, const int[::1] index, const double[::1] value, int[::1] head):
        """Factorise the basis of these matrix columns; return how many were replaced by unit columns."""
        cdef int found = self.factorise(
            &start[0], &index[0] if index.shape[0] else NULL, &value[0] if value.shape[0] else NULL,
            <int>(start.shape[0] - 1), &head[0],
        )
        if found == -2:
            raise ArithmeticError(f"the factors of a basis of {self.rows} rows fill in")
        if found < 0:
            raise MemoryError(f"the factors of a basis of {self.rows} rows")
        return found

    def solve(self, right, bint transposed=False):
        """Return x with B x = right, or B'x = right if `transposed`."""
        solution = np.array(right, dtype=np.float64)
        cdef double[::1] x = solution
        if transposed:
            self.btran(&x[0])
        else:
            self.ftran(&x[0])
        return solution

    def exchange(self, column, int row):
        """Replace the basic column at a row; raises ValueError if only fresh factors would have room for it."""
        if self.updates >= self.most_updates:
            raise ValueError(f"{self.updates} columns have been exchanged: make fresh factors first")
        cdef double[::1] alpha = self.solve(column)
        cdef int[::1] spots = np.arange(self.rows, dtype=np.int32)
        if self.update(&alpha[0], &spots[0], self.rows, row) < 0:
            raise MemoryError(f"the factors of a basis of {self.rows} rows")
