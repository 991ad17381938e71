"""The groups whose best column prices may change, as far as they have moved (equation A8).

Groups are sorted by their radius into buckets. Prices at a distance from the base prices open the buckets of all radii
up to that distance; the groups of the others keep their columns there, so that only the sums of these count.
"""

import numpy as np

from libc.math cimport INFINITY, fabs
from libc.stdint cimport int64_t
from libc.string cimport memcpy, memset

from copter.methods.proximal.accumulate cimport easy_total
from copter.methods.proximal.groups cimport GENERAL, HELD, Groups, reduced_cost
from copter.methods.proximal.project cimport Dual, Projection, Slacks, projected

cdef int LEAST_POWER = -24  # radii below this power of two share the first bucket, and each further power has one
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
    """Return the radius of one plain group; 0 unless it is all zero or has one column at the limit."""
    cdef const int* entry_start = columns.entry_start
    cdef const int* row = columns.row
    cdef const double* coefficient = columns.coefficient
    cdef int j, first = columns.start[g], last = columns.start[g + 1], chosen = -1
    cdef double radius, here, limit = columns.limit[g]
    for j in range(first, last):
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
    """Return the radius of one group: infinite for a held one, 0 for one that is neither plain nor held, or empty."""
    if columns.kind[g] == HELD:
        return INFINITY
    if columns.kind[g] == GENERAL or columns.start[g] == columns.start[g + 1]:
        return 0.0
    return group_radius(columns, g, x, reduced, weight)


cdef inline int bucket_of(double radius) noexcept nogil:
    """Return the bucket of a radius, or of a distance."""
    cdef int64_t bits
    memcpy(&bits, &radius, sizeof(double))
    bits = (bits >> 52) - (1023 + LEAST_POWER)  # the exponent
    return <int>min(max(bits, 0), BUCKETS - 1)


cdef class OpenGroups(Dual):
    """The dual of a proximal subproblem of plain and held groups, which projects only open groups."""

    def __init__(self):
        self.m = self.n_groups = self.n_columns = self.n_entries = self.pieces = -1
        self.out, self.part = Projection.__new__(Projection), Groups.__new__(Groups)
        self.part.all_easy, self.first_move = True, INFINITY

    cdef int reserve(self, Groups columns, Py_ssize_t m, Py_ssize_t pieces) except -1:
        """Make room for a program of m rows, all of whose groups may be opened."""
        cdef Py_ssize_t groups = columns.count, n = columns.n_columns, entries = columns.entry_start[n]
        if self.m != m:
            self.m, self.pieces = m, -1
            self.base, self.weight = np.empty((2, m))
            self.rest, self.trial = np.empty((BUCKETS + 1, m + 1)), np.empty((3, m))
        if self.pieces != pieces:
            self.pieces = pieces
            self.out.activity, self.out.value = np.empty((pieces, m)), np.empty(pieces)
        if self.n_groups < groups:
            self.n_groups = groups + groups // 4
            self.limit, self.multiplier = np.empty((2, self.n_groups))
            self.order, self.start = np.empty((2, self.n_groups + 1), dtype=np.int32)
            self.bucket, self.kind = np.empty((2, self.n_groups), dtype=np.uint8)
        if self.n_columns < n:
            self.n_columns = n + n // 4
            self.x, self.found = np.empty((2, self.n_columns))
            self.cost, self.lower, self.upper = np.empty((3, self.n_columns))
            self.free, self.place = np.empty(self.n_columns, dtype=np.uint8), np.empty(self.n_columns, dtype=np.int32)
            self.entry_start = np.empty(self.n_columns + 1, dtype=np.int32)
            self.center, self.out.x, self.out.free = self.x, self.found, self.free
        if self.n_entries < entries:
            self.n_entries = entries + entries // 4
            self.row, self.coefficient = np.empty(self.n_entries, dtype=np.int32), np.empty(self.n_entries)
        self.out.multiplier = self.multiplier
        return 0

    cpdef int begin_at(self, Groups columns, double[::1] point, Slacks slacks, const double[::1] prices,
                       double sigma, double idle, Py_ssize_t pieces, bint all_open) except -1:
        """Sort the groups of a program by their radii at a point and prices.

        Parameters
        ----------
        columns : Groups
            All plain or held.
        point : ndarray (n,)
            Changed by :meth:`write_back`.
        slacks : Slacks
        prices : ndarray (m,)
        sigma : float
            Proximal parameter.
        idle : float
            Size of a zero price, in units of the largest cost over the row's scale.
        pieces : int
            Of the open groups, each projected by one thread, where there are `threaded` columns or more.
        all_open : bool
            Whether to open all groups at once, without a copy.
        """
        cdef Groups part = self.part
        cdef Py_ssize_t g, i, j, k, m = prices.shape[0]
        cdef Py_ssize_t* first = self.first
        cdef const double* y = &prices[0]
        self.reserve(columns, m, pieces)
        cdef double* rest = &self.rest[0, 0]
        self.whole, self.point, self.slacks, self.sigma = columns, point, slacks, sigma
        self.columns = columns if all_open else part
        part.start, part.limit, part.kind = &self.start[0], &self.limit[0], &self.kind[0]
        part.cost, part.lower, part.upper = &self.cost[0], &self.lower[0], &self.upper[0]
        part.entry_start, part.row, part.coefficient = &self.entry_start[0], &self.row[0], &self.coefficient[0]
        with nogil:
            self.cost_size = 0.0
            for j in range(columns.n_columns):
                self.cost_size = max(self.cost_size, fabs(columns.cost[j]))
            for i in range(m):
                self.base[i], self.weight[i] = y[i], fabs(y[i])
                if self.slacks.scale[i] > 0.0:
                    self.weight[i] += idle * self.cost_size / max(self.slacks.scale[i], 1e-300)
                else:
                    self.weight[i] += 1.0
            memset(rest, 0, (BUCKETS + 1) * (m + 1) * sizeof(double))
            memset(first, 0, (BUCKETS + 1) * sizeof(Py_ssize_t))
            if all_open:
                self.open_all()
                return 0
            for g in range(columns.count):
                for j in range(columns.start[g], columns.start[g + 1]):
                    self.found[j] = reduced_cost(columns, j, y)  # `found` is not in use yet
                i = bucket_of(radius_of(columns, g, &point[0], &self.found[0], &self.weight[0]))
                self.bucket[g] = <unsigned char>i
                first[i + 1] += 1
                rest = &self.rest[i, 0]
                for j in range(columns.start[g], columns.start[g + 1]):
                    if point[j] != 0.0:
                        rest[m] += columns.cost[j] * point[j]
                        for k in range(columns.entry_start[j], columns.entry_start[j + 1]):
                            rest[columns.row[k]] += columns.coefficient[k] * point[j]
            for i in range(BUCKETS):
                first[i + 1] += first[i]
            for i in range(BUCKETS - 1, -1, -1):
                for k in range(m + 1):
                    self.rest[i, k] += self.rest[i + 1, k]
            for g in range(columns.count - 1, -1, -1):
                i = self.bucket[g] + 1
                first[i] -= 1
                self.order[first[i]] = <int>g
            for i in range(BUCKETS):  # the last loop has moved every bucket's end to its beginning
                first[i] = first[i + 1]
            first[BUCKETS] = columns.count
            self.start[0] = self.entry_start[0] = 0
            self.before[0] = self.opened = self.now = 0
            self.least = 1
        return 0

    cdef void open_all(self) noexcept nogil:
        """Open all groups where they are; the first bucket still says what they use."""
        cdef Py_ssize_t j, k, n = self.whole.n_columns
        for j in range(n):
            if self.point[j] != 0.0:
                for k in range(self.whole.entry_start[j], self.whole.entry_start[j + 1]):
                    self.rest[0, self.whole.row[k]] += self.whole.coefficient[k] * self.point[j]
        memcpy(&self.x[0], &self.point[0], n * sizeof(double))
        memset(&self.multiplier[0], 0, self.whole.count * sizeof(double))
        self.first[BUCKETS], self.before[BUCKETS] = self.whole.count, n
        self.opened = self.now = self.least = BUCKETS

    cdef double distance(self, const double* y) noexcept nogil:
        """Return the distance of prices from the base prices, in units of their size."""
        cdef Py_ssize_t i
        cdef double here, largest = 0.0
        for i in range(self.m):
            here = fabs(y[i] - self.base[i]) / self.weight[i]
            if here > largest:
                largest = here
        return largest

    cdef void open_bucket(self) noexcept nogil:
        """Copy the groups of the next bucket."""
        cdef const int* start = self.whole.start
        cdef const int* entry_start = self.whole.entry_start
        cdef const double* cost = self.whole.cost
        cdef Py_ssize_t g, e, j, k, n = self.before[self.opened]
        cdef int entries = self.entry_start[n]
        for e in range(self.first[self.opened], self.first[self.opened + 1]):
            g = self.order[e]
            self.limit[e], self.kind[e], self.multiplier[e] = self.whole.limit[g], self.whole.kind[g], 0.0
            for j in range(start[g], start[g + 1]):
                self.place[n], self.x[n], self.found[n] = <int>j, self.point[j], self.point[j]
                self.cost[n], self.lower[n], self.upper[n] = cost[j], self.whole.lower[j], self.whole.upper[j]
                for k in range(entry_start[j], entry_start[j + 1]):
                    self.row[entries], self.coefficient[entries] = self.whole.row[k], self.whole.coefficient[k]
                    entries += 1
                n += 1
                self.entry_start[n] = entries
            self.start[e + 1] = <int>n
        self.opened += 1
        self.before[self.opened] = n

    cdef void show(self, int buckets) noexcept nogil:
        """Make the groups of the first so many buckets those that are projected."""
        self.columns.count, self.columns.n_columns = self.first[buckets], self.before[buckets]
        self.out.pieces = self.pieces if self.columns.n_columns >= self.threaded else 1

    cdef void open_for(self, const double* y) noexcept nogil:
        """Open and show what prices y need."""
        cdef int needed = max(bucket_of(self.distance(y)) + 1, self.least)
        while self.opened < needed:  # ends: each turn opens a bucket
            self.open_bucket()
        self.show(needed)
        self.now = needed

    cdef double first_length(self, const double* start, const double* direction) noexcept nogil:
        cdef Py_ssize_t i
        cdef double size = 0.0
        for i in range(self.m):
            size = max(size, fabs(direction[i]) / self.weight[i])
        return min(self.first_move / size if size > 0.0 else 1.0, Dual.first_length(self, start, direction))

    cdef double at(self, const double* y, double* slack, double* residual) noexcept nogil:
        cdef Py_ssize_t i
        cdef double value
        cdef double* rest
        self.open_for(y)
        rest = &self.rest[self.now, 0]
        value = rest[self.m] + projected(self.columns, &self.center[0], self.sigma, y, self.out, self.threads)
        for i in range(self.m):
            value -= y[i] * rest[i]
        return value + self.with_slacks(y, rest, slack, residual)

    cdef double minimum(self, const double* y) noexcept nogil:
        """Return the sum of min (c - A'y)'x over all groups at prices y."""
        cdef Py_ssize_t i
        cdef double value
        cdef double* rest
        cdef int now = self.now
        self.open_for(y)
        rest = &self.rest[self.now, 0]
        value = rest[self.m] + easy_total(self.columns, y)
        for i in range(self.m):
            value -= y[i] * rest[i]
        self.now = now
        self.show(now)
        return value

    cdef double accept(self, double* longest, double* length) noexcept nogil:
        """Move to the point of the last projection; returns the objective. A move of `length` or more is written."""
        cdef Py_ssize_t j, n = self.before[self.now]
        cdef double value = self.rest[self.now, self.m], largest = 0.0
        self.least = self.now
        for j in range(n):
            largest = max(largest, fabs(self.found[j] - self.x[j]))
        if largest >= length[0]:
            length[0] = largest
            for j in range(n):
                longest[j] = self.found[j] - self.x[j]
            memset(longest + n, 0, (self.before[self.opened] - n) * sizeof(double))
        for j in range(n):
            self.x[j] = self.found[j]
            value += self.columns.cost[j] * self.x[j]
        return value

    cdef void write_back(self) noexcept nogil:
        """Write the open groups' point into the whole one."""
        cdef Py_ssize_t j, n = self.before[self.opened]
        if self.columns is self.whole:
            memcpy(&self.point[0], &self.x[0], n * sizeof(double))
            return
        for j in range(n):
            self.point[self.place[j]] = self.x[j]
