"""Domain propagation: the bounds of columns that the rows of a program imply (method/integer.md, M2 and M3)."""

import numpy as np

from libc.math cimport ceil, fabs, floor, isinf, rint

cdef double FEASIBLE = 1e-6  # a row holds if its least activity exceeds its side by at most this times (1 + |side|)
cdef double INTEGRAL = 1e-6  # an integer column's bound this close to a whole number counts as that number
cdef double WORTHWHILE = 1e-3  # a continuous column's bound moves only if the cut exceeds this share of its range
cdef double LARGEST = 1e8  # an infinite bound of a continuous column is replaced only by one of smaller size than this


cdef class Propagator:
    """The rows of one program, by row and by column, and the working memory of a propagation.

    `row_lower` and `row_upper` are the caller's arrays: changes of their entries hold from the next call on.
    """

    cdef const int[::1] row_start, row_column, column_start, column_row
    cdef const double[::1] row_value, row_lower, row_upper
    cdef const unsigned char[::1] integer
    cdef double[::1] trail_lower, trail_upper
    cdef int[::1] queue, trail
    cdef unsigned char[::1] queued
    cdef long long[::1] stamp
    cdef long long decision, budget
    cdef int head, waiting, n_trail

    def __init__(self, row_start, row_column, row_value, row_lower, row_upper, column_start, column_row, integer):
        cdef Py_ssize_t m = len(row_lower), n = len(integer)
        self.row_start, self.row_column, self.row_value = row_start, row_column, row_value
        self.row_lower, self.row_upper = row_lower, row_upper
        self.column_start, self.column_row, self.integer = column_start, column_row, integer
        self.queue, self.queued = np.zeros(m, dtype=np.int32), np.zeros(m, dtype=np.uint8)
        self.trail, self.stamp = np.zeros(n, dtype=np.int32), np.zeros(n, dtype=np.int64)
        self.trail_lower, self.trail_upper = np.zeros(n), np.zeros(n)
        self.head = self.waiting = self.n_trail = 0
        self.decision = 0

    def propagate(self, double[::1] lower, double[::1] upper, long long budget):
        """Tighten bounds in place, starting from all rows; visit at most `budget` entries.

        Returns False if a row contradicts the bounds.
        """
        cdef int i
        cdef bint holds
        with nogil:
            self.budget = budget
            self.begin()
            for i in range(<int>self.row_lower.shape[0]):
                self.wake(i)
            holds = self.run(lower, upper)
        return holds

    def restrict(self, double[::1] lower, double[::1] upper, int column, double low, double high, long long budget):
        """Tighten one column's bounds in place and propagate to the rows.

        Returns False, with all bounds restored, if a row contradicts the new bounds.
        """
        cdef bint holds
        with nogil:
            self.budget = budget
            holds = self.attempt(lower, upper, column, low, high)
        return holds

    def fix_all(
        self, double[::1] lower, double[::1] upper, const long long[::1] order, const double[::1] target,
        long long budget,
    ):
        """Fix columns in the given order, each at the whole number nearest its target that the rows allow.

        If the nearest whole number contradicts a row, the next one on the other side of the target is tried. Returns
        the place in the order of the first column that can take neither, or the order's length.
        """
        cdef Py_ssize_t at, n = order.shape[0]
        cdef int j
        cdef double value
        cdef bint up
        with nogil:
            self.budget = budget
            for at in range(n):
                j = <int>order[at]
                if lower[j] == upper[j]:
                    continue
                value = nearest(target[j], lower[j], upper[j])
                if self.attempt(lower, upper, j, value, value):
                    continue
                up = value < upper[j] and (target[j] >= value or value == lower[j])
                if up:
                    if not self.attempt(lower, upper, j, value + 1.0, upper[j]):
                        break
                elif not self.attempt(lower, upper, j, lower[j], value - 1.0):
                    break
                value = lower[j] if up else upper[j]
                if isinf(value) or not self.attempt(lower, upper, j, value, value):
                    break
            else:
                at = n
        return at

    cdef void begin(self) noexcept nogil:
        self.decision += 1
        self.n_trail = 0

    cdef void wake(self, int row) noexcept nogil:
        cdef int m = <int>self.queue.shape[0], place
        if self.queued[row]:
            return
        self.queued[row] = 1
        place = self.head + self.waiting
        self.queue[place if place < m else place - m] = row
        self.waiting += 1

    cdef void remember(self, double[::1] lower, double[::1] upper, int column) noexcept nogil:
        if self.stamp[column] == self.decision:
            return
        self.stamp[column] = self.decision
        self.trail[self.n_trail] = column
        self.trail_lower[self.n_trail], self.trail_upper[self.n_trail] = lower[column], upper[column]
        self.n_trail += 1

    cdef bint attempt(self, double[::1] lower, double[::1] upper, int column, double low, double high) noexcept nogil:
        """Restrict a column's bounds and propagate; restore all bounds if a row is contradicted."""
        cdef int q, k
        if low < lower[column]:
            low = lower[column]
        if high > upper[column]:
            high = upper[column]
        if low > high:
            return False
        self.begin()
        self.remember(lower, upper, column)
        lower[column], upper[column] = low, high
        for q in range(self.column_start[column], self.column_start[column + 1]):
            self.wake(self.column_row[q])
        if self.run(lower, upper):
            return True
        for q in range(self.n_trail):
            k = self.trail[q]
            lower[k], upper[k] = self.trail_lower[q], self.trail_upper[q]
        return False

    cdef bint run(self, double[::1] lower, double[::1] upper) noexcept nogil:
        """Visit waiting rows until none waits; return False if a row cannot hold."""
        cdef int m = <int>self.queue.shape[0], i
        cdef bint holds = True
        while self.waiting > 0:  # ends: rows are woken by visits alone, and each visit takes from the budget
            i = self.queue[self.head]
            self.head = self.head + 1 if self.head + 1 < m else 0
            self.waiting -= 1
            self.queued[i] = 0
            if holds and self.budget > 0:
                self.budget -= self.row_start[i + 1] - self.row_start[i]
                holds = self.visit(lower, upper, i)
        return holds

    cdef bint visit(self, double[::1] lower, double[::1] upper, int i) noexcept nogil:
        """Tighten the bounds of the columns of one row; return False if the row cannot hold."""
        cdef double least = 0.0, most = 0.0, a, low, high, side, rest, bound
        cdef int no_least = 0, no_most = 0, p, q, j, from_upper
        cdef bint rises
        for p in range(self.row_start[i], self.row_start[i + 1]):
            a, j = self.row_value[p], self.row_column[p]
            low = lower[j] if a > 0 else upper[j]
            high = upper[j] if a > 0 else lower[j]
            if isinf(low):
                no_least += 1
            else:
                least += a * low
            if isinf(high):
                no_most += 1
            else:
                most += a * high
        if no_least == 0 and least > self.row_upper[i] + FEASIBLE * (1.0 + fabs(self.row_upper[i])):
            return False
        if no_most == 0 and most < self.row_lower[i] - FEASIBLE * (1.0 + fabs(self.row_lower[i])):
            return False
        if (no_least > 1 or isinf(self.row_upper[i]) or (no_most == 0 and most <= self.row_upper[i])) and (
            no_most > 1 or isinf(self.row_lower[i]) or (no_least == 0 and least >= self.row_lower[i])
        ):
            return True
        for p in range(self.row_start[i], self.row_start[i + 1]):
            a, j = self.row_value[p], self.row_column[p]
            if lower[j] == upper[j]:
                continue
            for from_upper in range(2):
                side = self.row_upper[i] if from_upper else self.row_lower[i]
                if isinf(side):
                    continue
                # Activity of the row without this column: tighter bounds of columns before it only strengthen it.
                rises = (a > 0) == (from_upper == 1)
                low = lower[j] if rises else upper[j]
                q = no_least if from_upper else no_most
                rest = least if from_upper else most
                if isinf(low):
                    if q > 1:
                        continue
                elif q > 0:
                    continue
                else:
                    rest -= a * low
                bound = (side - rest) / a
                if self.tighten(lower, upper, j, bound, rises):
                    if lower[j] > upper[j]:
                        if lower[j] - upper[j] > FEASIBLE * (1.0 + fabs(upper[j])):
                            return False
                        lower[j] = upper[j]
                    for q in range(self.column_start[j], self.column_start[j + 1]):
                        self.wake(self.column_row[q])
                    break  # the other side's sum used this column's old bound: the row's next visit checks it
        return True

    cdef bint tighten(self, double[::1] lower, double[::1] upper, int j, double bound, bint above) noexcept nogil:
        """Tighten one bound of a column if the cut is large enough; return whether it moved."""
        cdef double now = upper[j] if above else lower[j], other = lower[j] if above else upper[j], gain
        if self.integer[j]:
            bound = floor(bound + INTEGRAL) if above else ceil(bound - INTEGRAL)
        gain = now - bound if above else bound - now
        if isinf(now):
            if not self.integer[j] and fabs(bound) > LARGEST:
                return False
        elif self.integer[j]:
            if gain < 0.5:
                return False
        elif gain <= WORTHWHILE * (1.0 + fabs(now) if isinf(other) else fabs(now - other)):
            return False
        self.remember(lower, upper, j)
        if above:
            upper[j] = bound
        else:
            lower[j] = bound
        return True


cdef inline double nearest(double target, double lower, double upper) noexcept nogil:
    """Return the whole number nearest a target within whole bounds."""
    cdef double value = rint(target)
    if value < lower:
        return lower
    return upper if value > upper else value
