"""Carathéodory's walk from a point of the optimal face to a vertex (docs/method/algorithm.md, Purification)."""

import numpy as np

from libc.math cimport INFINITY, fabs, isfinite

from copter.methods.proximal.groups cimport Groups

cdef double SNAP = 1e-9  # a column this close to a bound (relative to its range) is put on the bound
cdef double TIGHT = 1e-7  # a row this close to a bound (relative) counts as tight
cdef double LEVEL = 1e-12  # a direction whose slope is below this (relative to the costs) counts as free of cost
cdef double STILL = 1e-12  # entries of a direction, or relative changes that it makes, below this count as zero
# Pivots below this (relative to the largest entry) count as zero: the constraints depend on each other.
cdef double DEPENDENT = 1e-11


cdef class Walk:
    """A walk over the columns of a working set; x changes in place. Columns near a bound are put on it at once.

    Parameters
    ----------
    columns : Groups
    x : ndarray (n,)
    row_lower, row_upper, row_scale : ndarray (m,)
        Of the coupling rows.

    Attributes
    ----------
    activity, row_tight : (m,)
        Usage of each row, and 1 for the rows whose usage is at a bound.
    room, limit_tight : (g,)
        How much each group's sum may still grow, and 1 for the groups whose sum is at its limit.
    n_tight : int
        Rows that are tight at the start.
    """

    cdef Groups columns
    cdef readonly double[::1] activity, room
    cdef readonly unsigned char[::1] row_tight, limit_tight
    cdef readonly Py_ssize_t n_tight
    cdef double[::1] x
    cdef const double[::1] row_lower, row_upper, row_scale
    cdef const double* lower
    cdef const double* upper
    cdef const double* cost
    cdef const double* coefficient
    cdef const int* entry_start
    cdef const int* row
    cdef int[::1] waiting, group  # the columns between bounds at the start, and the groups of these
    cdef int[::1] unsure  # groups whose sum may exceed their limit: as it is, or by columns put on bounds
    cdef unsigned char[::1] held  # 1 for columns that stay where they are because the face is unbounded along them
    # Scratch: the pending columns and their direction, the distinct groups among them, the constraints' matrix.
    cdef int[::1] pending, groups, place, row_place, member
    cdef double[::1] direction, change, per_group
    cdef double[:, ::1] matrix
    cdef Py_ssize_t n_waiting, n_unsure, n_pending, n_groups

    def __init__(self, Groups columns, double[::1] x, const double[::1] row_lower, const double[::1] row_upper,
                 const double[::1] row_scale):
        cdef Py_ssize_t n = x.shape[0], m = row_lower.shape[0]
        self.columns, self.x = columns, x
        self.row_lower, self.row_upper, self.row_scale = row_lower, row_upper, row_scale
        self.lower, self.upper, self.cost = columns.lower, columns.upper, columns.cost
        self.entry_start, self.row, self.coefficient = columns.entry_start, columns.row, columns.coefficient
        self.activity, self.change = np.zeros((2, m))
        self.room, self.per_group = np.empty((2, columns.count))
        self.waiting, self.group = np.empty((2, n), dtype=np.int32)
        self.place, self.unsure = np.empty((2, columns.count), dtype=np.int32)
        self.row_place = np.empty(m, dtype=np.int32)
        self.row_tight, self.limit_tight = np.empty(m, dtype=np.uint8), np.empty(columns.count, dtype=np.uint8)
        self.held = np.zeros(n, dtype=np.uint8)
        self.n_tight = self.n_waiting = self.n_unsure = self.n_pending = self.n_groups = 0
        with nogil:
            self.look()

    cdef void look(self) noexcept nogil:
        """Put columns on bounds; find the rows' and the groups' sums, what is tight, and the columns that wait."""
        cdef Py_ssize_t g, i, j, k
        cdef const int* start = self.columns.start
        cdef double* x = &self.x[0]
        cdef double* room = &self.room[0]
        cdef double* activity = &self.activity[0] if self.activity.shape[0] else NULL
        cdef double total, limit
        cdef bint moves
        for g in range(self.columns.count):
            total, limit, moves = 0.0, self.columns.limit[g], False
            for j in range(start[g], start[g + 1]):
                if x[j] != self.lower[j] and x[j] != self.upper[j]:
                    moves = True
                    self.snap(j)
                    if self.between(j):
                        self.waiting[self.n_waiting], self.group[j] = <int>j, <int>g
                        self.n_waiting += 1
                if x[j] != 0.0:
                    total += x[j]
                    for k in range(self.entry_start[j], self.entry_start[j + 1]):
                        activity[self.row[k]] += self.coefficient[k] * x[j]
            room[g] = limit - total
            if moves or room[g] < 0.0:
                self.unsure[self.n_unsure] = <int>g
                self.n_unsure += 1
            self.limit_tight[g] = room[g] <= SNAP * (1.0 + (limit if isfinite(limit) else 0.0))
        for i in range(self.activity.shape[0]):
            limit = TIGHT * (1.0 + (fabs(self.row_upper[i]) if isfinite(self.row_upper[i]) else 0.0))
            self.row_tight[i] = (fabs(self.activity[i] - self.row_upper[i]) <= limit
                                 or fabs(self.activity[i] - self.row_lower[i]) <= limit)
            self.n_tight += self.row_tight[i]

    cdef allocate(self, Py_ssize_t columns):
        """Make room for so many pending columns, and keep the present ones."""
        pending, groups = np.empty((2, columns), dtype=np.int32)
        if self.n_pending:
            pending[: self.n_pending] = self.pending[: self.n_pending]
            groups[: self.n_groups] = self.groups[: self.n_groups]
        self.pending, self.groups = pending, groups
        self.member = np.empty(columns, dtype=np.int32)
        self.direction = np.zeros(columns)
        self.matrix = np.empty((self.activity.shape[0] + columns, columns))

    cdef bint between(self, Py_ssize_t j) noexcept nogil:
        """Return whether a column is strictly between its bounds."""
        return self.lower[j] < self.x[j] < self.upper[j] and not self.held[j]

    cdef void snap(self, Py_ssize_t j) noexcept nogil:
        """Put a column exactly on a bound that it misses by rounding only: a share of its range, one if infinite."""
        cdef double span = self.upper[j] - self.lower[j]
        cdef double near = SNAP * (span if isfinite(span) else 1.0)
        if self.x[j] <= self.lower[j] + near:
            self.x[j] = self.lower[j]
        elif self.x[j] >= self.upper[j] - near:
            self.x[j] = self.upper[j]

    cdef Py_ssize_t take_group(self, Py_ssize_t at):
        """Append the waiting columns of the next group to the pending ones; return where the rest begins."""
        cdef int group = self.group[self.waiting[at]]
        while at < self.n_waiting and self.group[self.waiting[at]] == group:  # ends: at grows to the last column
            if self.n_pending == self.pending.shape[0]:
                self.allocate(2 * self.n_pending)
            self.pending[self.n_pending] = self.waiting[at]
            self.n_pending += 1
            at += 1
        self.groups[self.n_groups] = group
        self.n_groups += 1
        return at

    cdef Py_ssize_t constraints(self) noexcept nogil:
        """Return the number of tight rows and of tight limits of the pending groups."""
        cdef Py_ssize_t i, count = 0
        for i in range(self.row_tight.shape[0]):
            count += self.row_tight[i]
        for i in range(self.n_groups):
            count += self.limit_tight[self.groups[i]]
        return count

    cdef Py_ssize_t fill_matrix(self) noexcept nogil:
        """Write tight rows (scaled) and tight limits of the pending columns as a dense matrix; return its row count."""
        cdef Py_ssize_t i, e, k, n = 0
        cdef int j
        cdef Py_ssize_t m = self.row_tight.shape[0]
        for i in range(m):
            if self.row_tight[i]:
                self.row_place[i] = <int>n
                for e in range(self.n_pending):
                    self.matrix[n, e] = 0.0
                n += 1
        for i in range(self.n_groups):
            self.place[self.groups[i]] = -1
            if self.limit_tight[self.groups[i]]:
                self.place[self.groups[i]] = <int>n
                for e in range(self.n_pending):
                    self.matrix[n, e] = 0.0
                n += 1
        for e in range(self.n_pending):
            j = self.pending[e]
            for k in range(self.entry_start[j], self.entry_start[j + 1]):
                if self.row_tight[self.row[k]]:
                    self.matrix[self.row_place[self.row[k]], e] += self.coefficient[k] / self.row_scale[self.row[k]]
            if self.place[self.group[j]] >= 0:
                self.matrix[self.place[self.group[j]], e] = 1.0
        return n

    cdef bint null_direction(self) noexcept nogil:
        """Find a direction of the pending columns that keeps all tight constraints and never raises the cost.

        Gauss-Jordan elimination with full pivoting: the first column without a pivot moves by one, and the pivots'
        columns balance it. Returns False if there is no such direction.
        """
        cdef Py_ssize_t rows = self.fill_matrix(), n = self.n_pending, rank = 0, i, e, best_row, best_column
        cdef double best, factor, largest = 1.0, slope = 0.0
        for e in range(n):
            self.member[e] = -1  # the pivot row of a column
            for i in range(rows):
                largest = max(largest, fabs(self.matrix[i, e]))
        while rank < rows and rank < n:  # ends: rank grows to the number of rows
            best = 0.0
            best_row = best_column = 0
            for i in range(rank, rows):
                for e in range(n):
                    if self.member[e] < 0 and fabs(self.matrix[i, e]) > best:
                        best, best_row, best_column = fabs(self.matrix[i, e]), i, e
            if best <= DEPENDENT * largest:
                break
            for e in range(n):
                factor = self.matrix[rank, e]
                self.matrix[rank, e] = self.matrix[best_row, e]
                self.matrix[best_row, e] = factor
            self.member[best_column] = <int>rank
            factor = 1.0 / self.matrix[rank, best_column]
            for e in range(n):
                self.matrix[rank, e] *= factor
            for i in range(rows):
                factor = self.matrix[i, best_column]
                if i != rank and factor != 0.0:
                    for e in range(n):
                        self.matrix[i, e] -= factor * self.matrix[rank, e]
            rank += 1
        if rank >= n:
            return False
        best_column = 0
        while self.member[best_column] >= 0:  # ends: a column without a pivot is left, as the rank is below n
            best_column += 1
        for e in range(n):
            self.direction[e] = -self.matrix[self.member[e], best_column] if self.member[e] >= 0 else 0.0
        self.direction[best_column] = 1.0
        for e in range(n):
            slope += self.direction[e] * self.cost[self.pending[e]]
        if slope > 0.0:
            for e in range(n):
                self.direction[e] = -self.direction[e]
        return True

    cdef void follow(self) noexcept nogil:
        """Go as far as bounds, rows and limits allow, and mark what became tight.

        If nothing blocks the way, go the opposite way, if that costs nothing. If nothing blocks either way, the face
        contains a line and has no vertex there: the column that would move most is held where it is.
        """
        cdef Py_ssize_t e, most = 0
        cdef double slope = 0.0, largest = 0.0
        for e in range(self.n_pending):
            slope += self.direction[e] * self.cost[self.pending[e]]
            largest = max(largest, fabs(self.cost[self.pending[e]]))
        if self.advance():
            return
        if fabs(slope) <= LEVEL * (1.0 + largest):
            for e in range(self.n_pending):
                self.direction[e] = -self.direction[e]
            if self.advance():
                return
        for e in range(self.n_pending):
            if fabs(self.direction[e]) > fabs(self.direction[most]):
                most = e
        self.held[self.pending[most]] = 1

    cdef double reach_of(self, Py_ssize_t e) noexcept nogil:
        """Return how far a pending column may go along its direction."""
        cdef double step = self.direction[e]
        cdef int j = self.pending[e]
        if fabs(step) <= STILL:
            return INFINITY
        return ((self.upper[j] if step > 0.0 else self.lower[j]) - self.x[j]) / step

    cdef bint advance(self) noexcept nogil:
        """Go to the first bound, row or limit in the way; return False if there is none."""
        cdef Py_ssize_t e, i, k, m = self.activity.shape[0]
        cdef int j
        cdef double length = INFINITY, reach, goal
        for i in range(m):
            self.change[i] = 0.0
        for i in range(self.n_groups):
            self.per_group[self.groups[i]] = 0.0
        for e in range(self.n_pending):
            j = self.pending[e]
            length = min(length, self.reach_of(e))
            self.per_group[self.group[j]] += self.direction[e]
            for k in range(self.entry_start[j], self.entry_start[j + 1]):
                self.change[self.row[k]] += self.coefficient[k] * self.direction[e]
        for i in range(m):
            length = min(length, self.row_reach(i))
        for i in range(self.n_groups):
            length = min(length, self.limit_reach(self.groups[i]))
        if length == INFINITY:
            return False
        length = max(length, 0.0)
        for e in range(self.n_pending):  # the reaches, before anything moves
            j = self.pending[e]
            reach = self.reach_of(e)
            if reach <= length * (1.0 + 1e-12):
                self.x[j] = self.upper[j] if self.direction[e] > 0.0 else self.lower[j]
            else:
                goal = self.x[j] + length * self.direction[e]
                self.x[j] = min(max(goal, self.lower[j]), self.upper[j])
            self.snap(j)
        for i in range(m):
            if self.row_reach(i) <= length * (1.0 + 1e-12):
                self.row_tight[i] = 1
            self.activity[i] += length * self.change[i]
        for i in range(self.n_groups):
            j = self.groups[i]
            if self.limit_reach(j) <= length * (1.0 + 1e-12):
                self.limit_tight[j] = 1
            self.room[j] -= length * self.per_group[j]
        return True

    cdef double row_reach(self, Py_ssize_t i) noexcept nogil:
        """Return the step at which a loose row becomes tight."""
        if self.row_tight[i] or fabs(self.change[i]) <= STILL * self.row_scale[i]:
            return INFINITY
        return ((self.row_upper[i] if self.change[i] > 0.0 else self.row_lower[i]) - self.activity[i]) / self.change[i]

    cdef double limit_reach(self, Py_ssize_t g) noexcept nogil:
        """Return the step at which a loose limit becomes tight."""
        if self.limit_tight[g] or self.per_group[g] <= STILL:
            return INFINITY
        return self.room[g] / self.per_group[g]

    cdef void drop_resting(self) noexcept nogil:
        """Drop the pending columns that have reached a bound, and the groups without pending columns."""
        cdef Py_ssize_t e, n = 0, groups = 0
        for e in range(self.n_pending):
            if self.between(self.pending[e]):
                self.pending[n] = self.pending[e]
                if groups == 0 or self.groups[groups - 1] != self.group[self.pending[n]]:
                    self.groups[groups] = self.group[self.pending[n]]
                    groups += 1
                n += 1
        self.n_pending, self.n_groups = n, groups

    def run(self, Py_ssize_t max_steps, must_stop):
        """Follow null directions until none is left; return their number. `must_stop` is asked before each."""
        cdef Py_ssize_t at = 0, steps = 0
        if self.n_waiting == 0:
            return 0
        self.allocate(64)
        while steps < max_steps and not must_stop():  # ends: steps are counted, each asks must_stop
            # Take whole groups, until their columns outnumber the constraints that bind them.
            while at < self.n_waiting and self.n_pending <= self.constraints():  # ends: at grows to n_waiting
                at = self.take_group(at)
            if self.n_pending == 0:
                return steps
            if not self.null_direction():
                if at == self.n_waiting:
                    return steps
                at = self.take_group(at)
                continue
            self.follow()
            self.drop_resting()
            steps += 1
        return steps

    def settle(self):
        """Take what a group's sum is above its limit, by columns put on bounds, from its column with most room."""
        cdef Py_ssize_t i, g, j, most
        cdef const int* start = self.columns.start
        cdef double* x = &self.x[0]
        cdef double total
        with nogil:
            for i in range(self.n_unsure):
                g, total = self.unsure[i], 0.0
                for j in range(start[g], start[g + 1]):
                    total += x[j]
                if not total > self.columns.limit[g]:
                    continue
                most = -1
                for j in range(start[g], start[g + 1]):
                    if self.lower[j] < x[j] < self.upper[j]:
                        if most < 0 or x[j] - self.lower[j] > x[most] - self.lower[most]:
                            most = j
                if most >= 0:
                    x[most] = max(self.lower[most], x[most] + (self.columns.limit[g] - total))
