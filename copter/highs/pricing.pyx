"""The cheapest whole point of each request at given prices, by depth-first branch and bound (method/plans.md, M19)."""

import numpy as np

from libc.math cimport NAN, ceil, fabs, isinf
from libc.stdlib cimport free, malloc
from libc.string cimport memcpy
from posix.time cimport CLOCK_MONOTONIC, clock_gettime, timespec

cdef double FEASIBLE = 1e-9  # a private row holds if it lacks at most this times (1 + |side|)
cdef double LARGEST = 1e15  # a lack or value above this is none


cdef struct Block:
    # min sum w_k t_k, 0 <= t_k <= cap_k whole, sum_k h[i, k] t_k >= lack_i; columns in the order of branching
    int n, m, main, most, count  # most points to be kept, and those that are
    long long nodes
    double best  # points must cost less
    double *w
    double *cap
    double *h  # (m, n) by row
    double *reach  # (m, n + 1): most that the columns from k on can add to row i
    double *rate  # (m, n + 1): least cost of a unit of row i by the columns from k on
    double *lack
    double *t
    double *kept_t  # (most, n), the cheapest first
    double *kept_cost


cdef void keep(Block *b, int k, double cost) noexcept nogil:
    """Keep a point whose columns from k on are at zero, in place of the dearest if there are enough."""
    cdef int i, at
    if b.count < b.most:
        b.count += 1
    at = b.count - 1
    while at > 0 and b.kept_cost[at - 1] > cost:  # ends: at falls to 0
        b.kept_cost[at] = b.kept_cost[at - 1]
        memcpy(b.kept_t + at * b.n, b.kept_t + (at - 1) * b.n, b.n * sizeof(double))
        at -= 1
    b.kept_cost[at] = cost
    for i in range(b.n):
        b.kept_t[at * b.n + i] = b.t[i] if i < k else 0.0
    if b.count == b.most:
        b.best = b.kept_cost[b.most - 1]


cdef double least_cost(Block *b, int k, double lack) noexcept nogil:
    """Cost of filling the main row by shares of the columns from k on, which are sorted by their cost of a unit."""
    cdef double cost = 0.0, part
    cdef double *h = b.h + b.main * b.n
    while lack > 0.0 and k < b.n and h[k] > 0.0:  # ends: k grows to b.n
        part = lack / h[k]
        if part <= b.cap[k]:
            return cost + b.w[k] * part
        cost += b.w[k] * b.cap[k]
        lack -= h[k] * b.cap[k]
        k += 1
    return cost


cdef void branch(Block *b, int k, double cost) noexcept nogil:
    """Try the values of column k; the columns before it have theirs."""
    cdef int i
    cdef double most, v, step
    cdef bint holds = True, falls
    if b.nodes <= 0:
        return
    b.nodes -= 1
    for i in range(b.m):
        if b.lack[i] > 0.0:
            holds = False
            if b.reach[i * (b.n + 1) + k] < b.lack[i]:
                return
            if cost + b.lack[i] * b.rate[i * (b.n + 1) + k] >= b.best:
                return
    if holds:
        if cost < b.best:
            keep(b, k, cost)
        return
    if k == b.n or cost + least_cost(b, k, b.lack[b.main]) >= b.best:
        return
    most = 0.0
    for i in range(b.m):
        if b.lack[i] > 0.0 and b.h[i * b.n + k] > 0.0:
            most = max(most, ceil(b.lack[i] / b.h[i * b.n + k]))
    most = min(most, b.cap[k])
    falls = b.h[b.main * b.n + k] > 0.0  # then smaller values cost more in the end
    v, step = (most, -1.0) if falls else (0.0, 1.0)
    while 0.0 <= v <= most and b.nodes > 0:  # ends: v moves by one, nodes count down
        for i in range(b.m):
            b.lack[i] -= b.h[i * b.n + k] * v
        b.t[k] = v
        if (v < most or not falls) and cost + b.w[k] * v + least_cost(b, k + 1, b.lack[b.main]) >= b.best:
            v = -2.0  # and so do all that follow
        else:
            branch(b, k + 1, cost + b.w[k] * v)
        for i in range(b.m):
            b.lack[i] += b.h[i * b.n + k] * b.t[k]
        b.t[k] = 0.0
        v += step


cdef class Pricer:
    """Small programs side by side: min d'x, row_lower <= B x <= row_upper, lower <= x <= upper, x whole.

    Parameters
    ----------
    first : ndarray (blocks + 1,) int32
        Columns of block g are first[g] to first[g + 1].
    row_first : ndarray (blocks + 1,) int32
        Rows of each block.
    matrix_first : ndarray (blocks + 1,) int64
        Entries of each block in `matrix`.
    matrix : ndarray
        The blocks' coefficients, dense, by row.
    row_lower, row_upper, lower, upper : ndarray
    """

    cdef const int[::1] first, row_first
    cdef const long long[::1] matrix_first
    cdef const double[::1] matrix, row_lower, row_upper, lower, upper
    cdef int widest, tallest

    def __init__(self, first, row_first, matrix_first, matrix, row_lower, row_upper, lower, upper):
        self.first, self.row_first, self.matrix_first, self.matrix = first, row_first, matrix_first, matrix
        self.row_lower, self.row_upper, self.lower, self.upper = row_lower, row_upper, lower, upper
        self.widest = int(np.diff(first).max(initial=0))
        self.tallest = 2 * int(np.diff(row_first).max(initial=0))

    def price(
        self, const double[::1] reduced, double[::1] x, double[::1] bound, long long nodes, double until = LARGEST
    ):
        """Write each block's cheapest point into `x` and a lower bound on its cost into `bound`.

        `x` has a point of each block on entry, whose first entry is NaN if none is known; blocks without one keep the
        NaN. A bound of -inf: costs without end. A block whose search takes more than `nodes` nodes has the bound of
        its relaxation, and so have those that are left at the time `until` of ``time.perf_counter()``. Returns the
        number of blocks whose search was complete.
        """
        return self.all(reduced, x, bound, 1, None, nodes, until)

    def several(
        self, const double[::1] reduced, double[::1] x, int[::1] count, int most, long long nodes, double until
    ):
        """Write the `most` cheapest points of each block into `x`, and how many there are into `count`.

        Parameters
        ----------
        x : ndarray (most * columns,)
            The points of block g are the rows of x[most * first[g] : most * first[g + 1]], the cheapest first.
        count : ndarray (blocks,) int32
            Points found within so many nodes; in blocks that are left at the time `until`, none.
        """
        cdef double[::1] bound = np.empty(count.shape[0])
        x[:] = NAN
        self.all(reduced, x, bound, most, count, nodes, until)

    cdef int all(
        self, const double[::1] reduced, double[::1] x, double[::1] bound, int most, int[::1] count, long long nodes,
        double until
    ) except -1:
        """Search all blocks; returns how many to the end."""
        cdef int n = self.widest, m = self.tallest, g, found
        cdef int whole = 0
        cdef timespec moment
        cdef double *work = <double *>malloc(
            (3 * n + most * (n + 1) + m + m * n + 2 * m * (n + 1) + 2 * n + m + 16) * sizeof(double)
        )
        cdef int *order = <int *>malloc((n + 1) * sizeof(int))
        if work == NULL or order == NULL:
            free(work)
            free(order)
            raise MemoryError
        with nogil:
            for g in range(<int>self.first.shape[0] - 1):
                clock_gettime(CLOCK_MONOTONIC, &moment)
                if moment.tv_sec + 1e-9 * moment.tv_nsec >= until:
                    nodes = 0
                whole += self.one(g, reduced, x, bound, most, &found, nodes, work, order)
                if count is not None:
                    count[g] = found
        free(work)
        free(order)
        return whole

    cdef bint one(
        self, int g, const double[::1] d, double[::1] x, double[::1] bound, int most, int *count, long long nodes,
        double *work, int *order
    ) noexcept nogil:
        """Search one block; returns whether to the end."""
        cdef int c0 = self.first[g], n = self.first[g + 1] - self.first[g]
        cdef int r0 = self.row_first[g], rows = self.row_first[g + 1] - self.row_first[g]
        cdef const double *a = &self.matrix[self.matrix_first[g]] if rows else NULL
        cdef Block b
        cdef int i, j, k, side, p, m = 0
        cdef double base = 0.0, value, side_value, size, root = 0.0, found, ratio, known = 0.0
        cdef double *at = work
        cdef double *h
        cdef double *ratios
        cdef double *into
        into = &x[most * c0] if n else NULL
        count[0] = 0
        b.n, b.most, b.count = n, most, 0
        b.w = work
        b.cap = b.w + n
        b.t = b.cap + n
        b.kept_t = b.t + n
        b.kept_cost = b.kept_t + most * n
        b.lack = b.kept_cost + most
        at = b.lack + 2 * rows
        h = at
        b.h = h
        b.reach = h + 2 * rows * n
        b.rate = b.reach + 2 * rows * (n + 1)
        ratios = b.rate + 2 * rows * (n + 1)
        for j in range(n):
            order[j] = j
            b.t[j] = 0.0
            value = self.lower[c0 + j] if d[c0 + j] >= 0.0 else self.upper[c0 + j]
            if isinf(value):
                bound[g] = -fabs(value)
                return False
            base += d[c0 + j] * value
        # the main row is the one whose relaxation costs most: first pass over the rows in the columns' own order
        b.main = -1
        for i in range(rows):
            for side in range(2):
                side_value = self.row_upper[r0 + i] if side else self.row_lower[r0 + i]
                if isinf(side_value):
                    continue
                value = 0.0
                for j in range(n):
                    size = self.lower[c0 + j] if d[c0 + j] >= 0.0 else self.upper[c0 + j]
                    if a[i * n + j] != 0.0:
                        value += a[i * n + j] * size
                    # a step away from that end adds this to what is lacking
                    h[m * n + j] = a[i * n + j] * (1.0 if (d[c0 + j] >= 0.0) != (side == 1) else -1.0)
                b.lack[m] = (value - side_value if side else side_value - value) - FEASIBLE * (1.0 + fabs(side_value))
                m += 1
        b.m = m
        for j in range(n):
            b.w[j] = fabs(d[c0 + j])
            b.cap[j] = self.upper[c0 + j] - self.lower[c0 + j]
        found = -1.0
        for i in range(m):
            if b.lack[i] <= 0.0:
                continue
            sort_by_rate(h + i * n, b.w, order, ratios, n)
            value, size = 0.0, b.lack[i]
            for k in range(n):
                j = order[k]
                if h[i * n + j] <= 0.0 or size <= 0.0:
                    break
                ratio = min(size / h[i * n + j], b.cap[j])
                value += ratio * b.w[j]
                size -= ratio * h[i * n + j]
            if value > found:
                found, b.main = value, i
            root = max(root, value)
        bound[g] = base + root
        if b.main < 0:
            for j in range(n):
                into[j] = self.lower[c0 + j] if d[c0 + j] >= 0.0 else self.upper[c0 + j]
            count[0] = 1
            return True
        sort_by_rate(h + b.main * n, b.w, order, ratios, n)
        permute(b.w, order, ratios, n)
        permute(b.cap, order, ratios, n)
        for i in range(m):
            permute(h + i * n, order, ratios, n)
            b.reach[i * (n + 1) + n], b.rate[i * (n + 1) + n] = 0.0, LARGEST
            for k in range(n - 1, -1, -1):
                value, ratio = b.reach[i * (n + 1) + k + 1], b.rate[i * (n + 1) + k + 1]
                if h[i * n + k] > 0.0 and b.cap[k] > 0.0:
                    value += h[i * n + k] * b.cap[k]
                    ratio = min(ratio, b.w[k] / h[i * n + k])
                b.reach[i * (n + 1) + k], b.rate[i * (n + 1) + k] = value, ratio
        b.best, b.nodes = LARGEST, nodes
        if n and into[0] == into[0]:
            for j in range(n):
                known += d[c0 + j] * into[j]
            b.best = known - base + 1e-12 * (fabs(known) + fabs(base))
        branch(&b, 0, 0.0)
        count[0] = b.count
        for p in range(b.count):
            for k in range(n):
                j = order[k]
                value = b.kept_t[p * n + k]
                into[p * n + j] = self.lower[c0 + j] + value if d[c0 + j] >= 0.0 else self.upper[c0 + j] - value
        if b.nodes > 0:
            bound[g] = base + b.best
            return True
        return False


cdef void sort_by_rate(const double *h, const double *w, int *order, double *rates, int n) noexcept nogil:
    """Sort columns by their cost of a unit of one row; those that do not add to it come last, cheap ones first."""
    cdef int i, k, j
    for j in range(n):
        rates[j] = w[j] / h[j] if h[j] > 0.0 else LARGEST * (1.0 + w[j])
    for i in range(1, n):
        j, k = order[i], i
        while k > 0 and rates[order[k - 1]] > rates[j]:  # ends: k falls to 0
            order[k] = order[k - 1]
            k -= 1
        order[k] = j


cdef void permute(double *values, const int *order, double *work, int n) noexcept nogil:
    """Bring values into an order."""
    cdef int k
    for k in range(n):
        work[k] = values[order[k]]
    for k in range(n):
        values[k] = work[k]
