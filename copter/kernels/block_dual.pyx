"""The dual simplex method on blocks that share a sum each (docs/blocks.md, K7 to K10).

Variables are numbered: columns first, then the sums of the blocks, then the activities of the coupling rows. Every block
has a key variable, whose value follows from the others of its block. The other basic variables stand at the positions
of a working basis with as many columns as there are coupling rows. A position may hold an artificial variable, fixed at
zero, whose cost makes given prices those of the basis.
"""

import numpy as np

from libc.math cimport INFINITY, fabs
from libc.string cimport memset

from copter.kernels.working_inverse cimport WorkingInverse

cdef enum:
    ARTIFICIAL = -1
    AGAIN = -2  # in place of an entering variable: settle blocks first
    STALE = -3  # in place of an ending: settle blocks, then go on

cpdef enum Ending:
    OPTIMAL
    INFEASIBLE
    UNFINISHED
    UNSTABLE

cdef enum:
    NEAR = 4  # times the coupling rows: blocks that are hot at first
    OFTEN = 25  # pivots between two passes over the blocks that are not
    LOOK = 100  # pivots after which the hot blocks are chosen anew

cdef double RATE = 1e-9  # least entry of a tableau row that counts
cdef double PIVOT = 1e-7  # least pivot
cdef double TIE = 1e-12  # steps this close are taken as equal, and the larger pivot is taken


cdef class BlockDual:
    """The state of the method: a dual feasible basis and its values.

    Parameters
    ----------
    n_rows : int
    column_start : ndarray (blocks + 1,) int32
    start, row, value : CSC arrays
    cost, lower, upper : ndarray (columns,)
    least, most : ndarray (blocks,)
        Bounds of each block's sum.
    row_lower, row_upper : ndarray (rows,)
    """

    def __init__(self, int n_rows, column_start, start, row, value, cost, lower, upper, least, most, row_lower,
                 row_upper):
        cdef int g
        self.n_rows, self.n_blocks, self.n_columns = n_rows, len(column_start) - 1, len(cost)
        self.column_start, self.start, self.row, self.value = column_start, start, row, value
        self.cost = cost
        n, total = self.n_columns, self.n_columns + self.n_blocks + n_rows
        self.bounds = np.empty((2, total))
        self.bounds[0] = np.concatenate((lower, least, row_lower))
        self.bounds[1] = np.concatenate((upper, most, row_upper))
        self.low, self.high = self.bounds[0], self.bounds[1]
        self.values = np.zeros(total)
        self.x = self.values
        self.at_uppers = np.zeros(total, dtype=np.uint8)
        self.at_upper = self.at_uppers
        self.place = np.full(total, -1, dtype=np.int32)
        self.block_of = np.repeat(np.arange(self.n_blocks, dtype=np.int32), np.diff(column_start))
        self.keys = np.full(self.n_blocks, -1, dtype=np.int32)
        self.counts = np.zeros(self.n_blocks, dtype=np.int32)
        self.key, self.count = self.keys, self.counts
        self.heads = np.full(n_rows, ARTIFICIAL, dtype=np.int32)
        self.head = self.heads
        self.artificial = np.zeros(n_rows)
        self.prices = np.zeros(n_rows)
        self.y = self.prices
        self.inverse = WorkingInverse(n_rows)
        self.rho, self.alpha, self.shift = np.zeros(n_rows), np.zeros(n_rows), np.zeros(n_rows)
        self.flipped = np.zeros(total, dtype=np.int32)
        self.heap_step, self.heap_of = np.zeros(total), np.zeros(total, dtype=np.int32)
        self.listed, self.others = np.zeros(n_rows, dtype=np.int32), np.zeros(n_rows, dtype=np.int32)
        self.factors = np.zeros(n_rows)
        self.stamp = np.zeros(self.n_blocks, dtype=np.int32)
        self.radii = np.zeros(self.n_blocks)
        self.radius = self.radii
        self.known_prices = np.zeros(n_rows)
        self.moved, self.is_moved = np.zeros(self.n_blocks, dtype=np.int32), np.zeros(self.n_blocks, dtype=np.uint8)
        self.n_moved = 0
        self.length = np.add.reduceat(np.concatenate((np.abs(value), [0.0])), start[:-1]) * (np.diff(start) > 0)
        self.tolerance = 1e-9
        for g in range(self.n_blocks):
            self.drop_twins(g)
        self.pivots = self.flips = self.visits = self.next_look = 0
        self.everything = False

    # Where it starts ----------------------------------------------------------------------------------------------

    def begin(self, double[::1] y):
        """Start from prices: every block at its best for them, an artificial variable where a price is not zero."""
        cdef int r, g, v
        cdef int first = self.n_columns + self.n_blocks
        self.inverse.reset()
        for g in range(first + self.n_rows):
            self.place[g] = -1
        for r in range(self.n_rows):
            v = first + r
            self.y[r] = 0.0
            if y[r] > 0.0 and self.low[v] > -INFINITY:
                self.head[r], self.at_upper[v], self.x[v], self.y[r] = ARTIFICIAL, 0, self.low[v], y[r]
            elif y[r] < 0.0 and self.high[v] < INFINITY:
                self.head[r], self.at_upper[v], self.x[v], self.y[r] = ARTIFICIAL, 1, self.high[v], y[r]
            else:
                self.head[r], self.place[v] = v, r
        for g in range(self.n_blocks):
            self.count[g] = 0
            if not self.settle(g):
                return False
        self.refresh()
        return True

    def take(self, WorkingInverse inverse, double[::1] y, int[::1] heads, int[::1] keys, unsigned char[::1] at_upper):
        """Start from a basis: its inverse, prices, heads, the keys of its blocks, and who rests at an upper bound.

        Blocks without a variable among the heads are settled at the prices. False where a variable that should rest has
        no bound to rest at.
        """
        cdef int g, j, p, r, v, s, first = self.n_columns + self.n_blocks
        self.inverse = inverse
        self.y[:] = y
        self.count[:] = 0
        self.place[:] = -1
        self.at_upper[:] = at_upper
        for p in range(self.n_rows):
            v = heads[p]
            self.head[p] = v
            if v != ARTIFICIAL:
                self.place[v] = p
                if v < first:
                    self.count[self.block(v)] += 1
        for r in range(self.n_rows):
            v = first + r
            if self.place[v] < 0:
                if fabs(y[r]) > TIE:
                    self.at_upper[v] = y[r] < 0.0
                elif fabs(self.high[v] if self.at_upper[v] else self.low[v]) == INFINITY:
                    self.at_upper[v] = not self.at_upper[v]
                if not self.rest(v):
                    return False
        for g in range(self.n_blocks):
            if self.count[g] == 0:
                if not self.settle(g):
                    return False
                continue
            self.key[g], s = keys[g], self.n_columns + g
            for j in range(self.column_start[g], self.column_start[g + 1]):
                if j != keys[g] and self.place[j] < 0 and not self.rest(j):
                    return False
            if s != keys[g] and self.place[s] < 0 and not self.rest(s):
                return False
        self.refresh()
        return True

    cdef bint rest(self, int v) noexcept nogil:
        """Put a variable at its bound; False where there is none."""
        self.x[v] = self.high[v] if self.at_upper[v] else self.low[v]
        return fabs(self.x[v]) < INFINITY

    cdef bint settle(self, int g) noexcept nogil:
        """Fill a block in the order of its reduced costs; False where its bounds contradict each other."""
        cdef int j, best, s = self.n_columns + g, first = self.column_start[g], last = self.column_start[g + 1]
        cdef double total = 0.0, price, least, room, width
        for j in range(first, last):
            self.at_upper[j] = 0
            self.x[j] = self.low[j]
            total += self.low[j]
        if total > self.high[s] + self.tolerance:
            return False
        while True:
            best, least = -1, INFINITY
            for j in range(first, last):
                if self.at_upper[j] or self.low[j] == self.high[j]:
                    continue
                price = self.cost[j] - self.dot(j, &self.y[0])
                if price < least:
                    best, least = j, price
            if best < 0 or (least >= 0.0 and total >= self.low[s]):
                break
            self.at_upper[s] = least < 0.0
            room = (self.high[s] if least < 0.0 else self.low[s]) - total
            width = self.high[best] - self.low[best]
            if width >= room and room < INFINITY:
                self.x[best] += max(room, 0.0)
                self.x[s] = self.high[s] if least < 0.0 else self.low[s]
                self.key[g] = best
                return True
            if width == INFINITY:
                return False
            self.x[best] = self.high[best]
            self.at_upper[best] = 1
            total += width
        if total < self.low[s] - self.tolerance:
            return False
        self.key[g], self.x[s] = s, total
        return True

    cdef void refresh(self) noexcept nogil:
        """Values of all basic variables from those of the others."""
        cdef int g, j, k, e, r, p, v, s, m = self.n_rows, first = self.n_columns + self.n_blocks
        cdef double rest
        cdef double* shift = &self.shift[0]
        memset(shift, 0, m * sizeof(double))
        for g in range(self.n_blocks):
            k, s, rest = self.key[g], self.n_columns + g, 0.0
            for j in range(self.column_start[g], self.column_start[g + 1]):
                if j != k and self.place[j] < 0 and self.x[j] != 0.0:
                    rest += self.x[j]
                    for e in range(self.start[j], self.start[j + 1]):
                        shift[self.row[e]] += self.value[e] * self.x[j]
            if k == s:
                self.x[s] = rest
                continue
            rest = (self.x[s] if self.place[s] < 0 else 0.0) - rest
            self.x[k] = rest
            if rest != 0.0:
                for e in range(self.start[k], self.start[k + 1]):
                    shift[self.row[e]] += self.value[e] * rest
        for r in range(m):
            if self.place[first + r] < 0:
                shift[r] -= self.x[first + r]
        memset(&self.alpha[0], 0, m * sizeof(double))
        for r in range(m):
            if shift[r] != 0.0:
                self.inverse.add_column(r, -shift[r], &self.alpha[0])
        for p in range(m):
            self.put(p, self.alpha[p])
        for p in range(m):
            v = self.head[p]
            if 0 <= v < first:
                self.move_key(v, self.alpha[p])

    # One variable -------------------------------------------------------------------------------------------------

    cdef inline double dot(self, int j, const double* y) noexcept nogil:
        cdef int e
        cdef double total = 0.0
        for e in range(self.start[j], self.start[j + 1]):
            total += self.value[e] * y[self.row[e]]
        return total

    cdef inline int block(self, int v) noexcept nogil:
        return self.block_of[v] if v < self.n_columns else v - self.n_columns

    cdef inline double sign(self, int v) noexcept nogil:
        """Coefficient of a variable in its block's row."""
        return 1.0 if v < self.n_columns else -1.0

    cdef inline double key_share(self, int v) noexcept nogil:
        """How much the key falls where v of its block rises by one."""
        return self.sign(v) * self.sign(self.key[self.block(v)])

    cdef inline void move_key(self, int v, double amount) noexcept nogil:
        self.x[self.key[self.block(v)]] -= self.key_share(v) * amount

    cdef inline void put(self, int p, double amount) noexcept nogil:
        """Set the value of the variable at a position."""
        if self.head[p] == ARTIFICIAL:
            self.artificial[p] = amount
        else:
            self.x[self.head[p]] = amount

    cdef inline double excess(self, int v) noexcept nogil:
        """How far a variable is below (negative) or above its bounds."""
        if self.x[v] < self.low[v]:
            return self.x[v] - self.low[v]
        return max(self.x[v] - self.high[v], 0.0)

    cdef inline void reduced(self, int v, double* cost, double* entry) noexcept nogil:
        """Reduced cost of a variable, and its entry in the tableau row of rho."""
        cdef int k
        cdef double share
        if v >= self.n_columns + self.n_blocks:
            cost[0], entry[0] = self.y[v - self.n_columns - self.n_blocks], -self.rho[v - self.n_columns - self.n_blocks]
            return
        cost[0] = entry[0] = 0.0
        if v < self.n_columns:
            cost[0], entry[0] = self.cost[v] - self.dot(v, &self.y[0]), self.dot(v, &self.rho[0])
        k = self.key[self.block(v)]
        if k < self.n_columns:
            share = self.key_share(v)
            cost[0] -= share * (self.cost[k] - self.dot(k, &self.y[0]))
            entry[0] -= share * self.dot(k, &self.rho[0])

    cdef void effective(self, int v, double amount, double* out) noexcept nogil:
        """out += amount times the column of a variable, its key moved along, (rows,)."""
        cdef int e, k
        cdef double share
        if v >= self.n_columns + self.n_blocks:
            out[v - self.n_columns - self.n_blocks] -= amount
            return
        if v < self.n_columns:
            for e in range(self.start[v], self.start[v + 1]):
                out[self.row[e]] += amount * self.value[e]
        k = self.key[self.block(v)]
        if k < self.n_columns:
            share = self.key_share(v) * amount
            for e in range(self.start[k], self.start[k + 1]):
                out[self.row[e]] -= share * self.value[e]

    # The main loop ------------------------------------------------------------------------------------------------

    def run(self, int most):
        """At most so many pivots: how it ended."""
        cdef int status, last = self.pivots + most
        if self.pivots >= self.next_look:
            self.look()
        while True:
            with nogil:
                status = self.loop(last)
                if status == STALE or status == OPTIMAL:
                    if self.resettle() or status == STALE:
                        continue
            return status

    def error(self):
        """How far rows are from closed, relative to their size, and basic reduced costs from zero: the larger."""
        cdef int g, j, k, e, p, v, r, first = self.n_columns + self.n_blocks
        cdef double worst = 0.0, cost, entry
        size = np.ones(self.n_rows)
        cdef double[::1] left = np.zeros(self.n_rows), scale = size
        with nogil:
            for j in range(self.n_columns):
                if self.x[j] != 0.0:
                    for e in range(self.start[j], self.start[j + 1]):
                        left[self.row[e]] += self.value[e] * self.x[j]
                        scale[self.row[e]] += fabs(self.value[e] * self.x[j])
            for r in range(self.n_rows):
                worst = max(worst, fabs(left[r] - self.x[first + r]) / scale[r])
            memset(&self.rho[0], 0, self.n_rows * sizeof(double))
            for p in range(self.n_rows):
                v = self.head[p]
                if v != ARTIFICIAL:
                    self.reduced(v, &cost, &entry)
                    worst = max(worst, fabs(cost))
        return worst

    def look(self):
        """Find for every settled block how far prices may move before it changes; the nearest are hot (K10)."""
        cdef int g
        with nogil:
            self.inverse.measure()
            for g in range(self.n_blocks):
                self.radius[g] = self.radius_of(g) if self.count[g] == 0 else 0.0
                self.is_moved[g] = False
        self.n_moved = 0
        self.next_look = self.pivots + LOOK
        count = min(self.n_blocks, NEAR * self.n_rows)
        near = np.argpartition(self.radii, count - 1)[:count].astype(np.int32)
        near.sort()
        for g in near:
            self.heat(g)
        self.known_prices[:] = self.y

    cdef int resettle(self) noexcept nogil:
        """Settle blocks that are not hot at the present prices: how many changed, which are hot from now on."""
        cdef int g, changed = 0
        self.passes += 1
        self.since = 0
        for g in range(self.n_blocks):
            if not self.is_moved[g] and self.count[g] == 0 and not self.is_settled(g):
                self.settle(g)
                self.note(g)
                changed += 1
        if changed:
            self.refresh()
        return changed

    cdef void drop_twins(self, int g) noexcept nogil:
        """Fix columns of a block that equal another one and cost no less."""
        cdef int i, j, e, size, first = self.column_start[g], last = self.column_start[g + 1]
        for i in range(first, last):
            size = self.start[i + 1] - self.start[i]
            for j in range(first, last):
                if j == i or self.high[j] < INFINITY or self.high[i] < INFINITY or self.low[i] != self.low[j]:
                    continue
                if self.start[j + 1] - self.start[j] != size or self.cost[j] < self.cost[i]:
                    continue
                if self.cost[j] == self.cost[i] and j < i:
                    continue
                for e in range(size):
                    if self.row[self.start[i] + e] != self.row[self.start[j] + e]:
                        break
                    if self.value[self.start[i] + e] != self.value[self.start[j] + e]:
                        break
                else:
                    self.high[j] = self.low[j]

    cdef bint is_settled(self, int g) noexcept nogil:
        """Whether no reduced cost of a block has the wrong sign."""
        cdef int j, e, k = self.key[g], s = self.n_columns + g
        cdef double key_cost = 0.0, cost
        if k < self.n_columns:
            key_cost = self.cost[k] - self.dot(k, &self.y[0])
            if self.low[s] < self.high[s] and (-key_cost if self.at_upper[s] else key_cost) < -TIE:
                return False
        for j in range(self.column_start[g], self.column_start[g + 1]):
            if j == k or self.low[j] == self.high[j]:
                continue
            cost = self.cost[j] - key_cost
            for e in range(self.start[j], self.start[j + 1]):
                cost -= self.value[e] * self.y[self.row[e]]
            if (-cost if self.at_upper[j] else cost) < -TIE:
                return False
        return True

    cdef double radius_of(self, int g) noexcept nogil:
        """The largest move of any price, within which no reduced cost of a settled block changes its sign."""
        cdef int j, k = self.key[g], s = self.n_columns + g
        cdef double key_cost = 0.0, key_length = 0.0, cost, least = INFINITY
        if k < self.n_columns:
            key_cost, key_length = self.cost[k] - self.dot(k, &self.y[0]), self.length[k]
            if self.low[s] < self.high[s]:
                least = max(-key_cost if self.at_upper[s] else key_cost, 0.0) / max(key_length, 1e-300)
        for j in range(self.column_start[g], self.column_start[g + 1]):
            if j == k or self.low[j] == self.high[j]:
                continue
            cost = self.cost[j] - self.dot(j, &self.y[0]) - key_cost
            cost = max(-cost if self.at_upper[j] else cost, 0.0)
            if cost < least * (self.length[j] + key_length):
                least = cost / (self.length[j] + key_length)
        return least

    cdef void note(self, int g) noexcept nogil:
        """The radius of a block holds no longer: it is looked at in every pivot."""
        self.radius[g] = 0.0
        self.heat(g)

    cdef void heat(self, int g) noexcept nogil:
        """Look at a block in every pivot whose step may be longer than its radius."""
        if not self.is_moved[g]:
            self.is_moved[g] = True
            self.moved[self.n_moved] = g
            self.n_moved += 1

    cdef int loop(self, int last) noexcept nogil:
        cdef int p, q
        cdef double excess, step
        while True:
            p = self.choose_row(&excess)
            if p < 0:
                return OPTIMAL
            if self.pivots >= last:
                return UNFINISHED
            self.since += 1
            if self.since > OFTEN:
                return STALE
            self.inverse.row(p, &self.rho[0])
            q = self.choose_column(excess, &step)
            if q == AGAIN:
                continue
            self.everything = False
            if q < 0:
                return INFEASIBLE
            if not self.pivot(p, q, excess > 0.0, step):
                return UNSTABLE
            self.pivots += 1

    cdef int choose_row(self, double* excess) noexcept nogil:
        """The position whose variable is farthest outside its bounds, in units of its row's length; a key is swapped."""
        cdef int p, v, k, best = -1, best_key = -1, first = self.n_columns + self.n_blocks
        cdef double most = 0.0, over, score
        for p in range(self.n_rows):
            v = self.head[p]
            over = self.artificial[p] if v == ARTIFICIAL else self.excess(v)
            if fabs(over) > self.tolerance:
                score = over * over / self.inverse.norm[p]
                if score > most:
                    most, best, best_key, excess[0] = score, p, -1, over
            if 0 <= v < first:
                k = self.key[self.block(v)]
                over = self.excess(k)
                if fabs(over) > self.tolerance:
                    score = over * over / self.inverse.norm[p]
                    if score > most:
                        most, best, best_key, excess[0] = score, p, k, over
        if best_key >= 0:
            self.swap(best)
        return best

    cdef void swap(self, int p) noexcept nogil:
        """The variable at a position and the key of its block change places (K8)."""
        cdef int v = self.head[p], g = self.block(v), k = self.key[g], i, w, count = 0
        cdef int first = self.n_columns + self.n_blocks
        for i in range(self.n_rows):
            w = self.head[i]
            if i != p and 0 <= w < first and self.block(w) == g:
                self.others[count] = i
                self.factors[count] = self.sign(w) * self.sign(v)
                count += 1
        self.inverse.combine(p, -self.sign(k) * self.sign(v), count, &self.others[0], &self.factors[0])
        self.head[p], self.place[k] = k, p
        self.key[g], self.place[v] = v, -1

    # The ratio test -----------------------------------------------------------------------------------------------

    cdef inline bint step_of(self, int v, double cost, double entry, double side, double* step) noexcept nogil:
        """Whether a variable at a bound limits the step, and where."""
        cdef double rate = -side * entry
        if self.low[v] == self.high[v]:
            return False
        if self.at_upper[v]:
            rate, cost = -rate, -cost
        if rate <= RATE:
            return False
        step[0] = max(cost, 0.0) / rate
        return True

    cdef int first_of(self, int g, double side, double end, double* step) noexcept nogil:
        """The variable of a settled block whose reduced cost is the first to reach zero, no later than end; or -1."""
        cdef int j, e, k = self.key[g], s = self.n_columns + g, best = -1
        cdef double key_cost = 0.0, key_entry = 0.0, cost, entry, sign = 1.0, here
        cdef const double* y = &self.y[0]
        cdef const double* rho = &self.rho[0]
        if k < self.n_columns:
            key_cost = self.cost[k]
            for e in range(self.start[k], self.start[k + 1]):
                key_cost -= self.value[e] * y[self.row[e]]
                key_entry += self.value[e] * rho[self.row[e]]
            if self.step_of(s, key_cost, key_entry, side, &here) and here < end:
                best, end = s, here
        for j in range(self.column_start[g], self.column_start[g + 1]):
            if j == k:
                continue
            cost, entry = self.cost[j] - key_cost, -key_entry
            for e in range(self.start[j], self.start[j + 1]):
                cost -= self.value[e] * y[self.row[e]]
                entry += self.value[e] * rho[self.row[e]]
            if self.step_of(j, cost, entry, side, &here) and here < end:
                best, end = j, here
        step[0] = end
        return best

    cdef int choose_column(self, double excess, double* step) noexcept nogil:
        """The entering variable: the last breakpoint at which the dual objective still rises; those before flip."""
        cdef int v, g, n, r, flipped = 0, first = self.n_columns + self.n_blocks
        cdef double side = -1.0 if excess > 0.0 else 1.0, end = INFINITY, here, left = fabs(excess), reach
        self.visits += 1
        memset(&self.shift[0], 0, self.n_rows * sizeof(double))
        n = self.hard_breakpoints(side, &end)
        for r in range(n // 2 - 1, -1, -1):
            self.sink(r, n)
        reach = self.reach(side, end)
        for r in range(self.n_moved):
            if self.radius[self.moved[r]] <= reach:
                n = self.scan(self.moved[r], side, n, end)
        if self.everything:
            for g in range(self.n_blocks):
                if not self.is_moved[g]:
                    n = self.scan(g, side, n, end)
        while n > 0:
            v, here = self.heap_of[0], self.heap_step[0]
            n = self.drop(n)
            left -= self.rate_of(v) * self.range_of(v)
            if left <= self.tolerance:
                return self.largest_of(v, here, n, step)
            self.flip(v)
            self.flips += 1
            if v >= first or self.count[self.block(v)] > 0:
                self.flipped[flipped] = v
                flipped += 1
            else:
                self.note(self.block(v))
                n = self.scan(self.block(v), side, n, end)
        if self.everything:
            return -1
        self.take_back(flipped)
        self.resettle()
        self.everything = True
        return AGAIN

    cdef void take_back(self, int flipped) noexcept nogil:
        """Undo the flips of a search that is given up: prices have not moved."""
        cdef int r, v
        for r in range(flipped):
            v = self.flipped[r]
            self.at_upper[v] = not self.at_upper[v]
            self.x[v] = self.high[v] if self.at_upper[v] else self.low[v]
        for r in range(self.n_moved):
            if self.count[self.moved[r]] == 0 and not self.is_settled(self.moved[r]):
                self.settle(self.moved[r])
        self.refresh()

    cdef double reach(self, double side, double step) noexcept nogil:
        """How far a step takes any price from where it was when the radii were measured."""
        cdef int i
        cdef double most = 0.0
        if step == INFINITY:
            return INFINITY
        for i in range(self.n_rows):
            most = max(most, fabs(self.y[i] - step * side * self.rho[i] - self.known_prices[i]))
        return most * (1.0 + 1e-9) + TIE

    cdef int hard_breakpoints(self, double side, double* end) noexcept nogil:
        """Breakpoints of rows and of the blocks that are not settled: their number; the first that ends the search."""
        cdef int p, g, v, r, n = 0, first = self.n_columns + self.n_blocks
        for r in range(self.n_rows):
            if self.place[first + r] < 0:
                n = self.consider(first + r, self.y[r], -self.rho[r], side, n, end)
        for p in range(self.n_rows):
            v = self.head[p]
            if v < 0 or v >= first:
                continue
            g = self.block(v)
            if self.stamp[g] != self.visits:
                self.stamp[g] = self.visits
                n = self.hard_of(g, side, n, end)
        return n

    cdef int hard_of(self, int g, double side, int n, double* end) noexcept nogil:
        """Breakpoints of one block that is not settled."""
        cdef int j, k = self.key[g], s = self.n_columns + g
        cdef double key_cost = 0.0, key_entry = 0.0
        if k < self.n_columns:
            self.both(k, &key_cost, &key_entry)
        if k != s and self.place[s] < 0:
            n = self.consider(s, key_cost, key_entry, side, n, end)
        for j in range(self.column_start[g], self.column_start[g + 1]):
            if j != k and self.place[j] < 0 and self.low[j] < self.high[j]:
                n = self.hard_column(j, key_cost, key_entry, side, n, end)
        return n

    cdef int hard_column(self, int j, double key_cost, double key_entry, double side, int n, double* end) noexcept nogil:
        cdef double cost, entry
        self.both(j, &cost, &entry)
        return self.consider(j, cost - key_cost, entry - key_entry, side, n, end)

    cdef inline void both(self, int j, double* cost, double* entry) noexcept nogil:
        """Cost of a column less its price, and its product with rho."""
        cdef int e
        cdef double price = self.cost[j], product = 0.0
        for e in range(self.start[j], self.start[j + 1]):
            price -= self.value[e] * self.y[self.row[e]]
            product += self.value[e] * self.rho[self.row[e]]
        cost[0], entry[0] = price, product

    cdef int scan(self, int g, double side, int n, double end) noexcept nogil:
        """Add the first breakpoint of a settled block."""
        cdef double here
        cdef int v
        if self.count[g] > 0:
            return n
        v = self.first_of(g, side, end, &here)
        if v < 0:
            return n
        self.heap_step[n], self.heap_of[n] = here, v
        self.rise(n)
        return n + 1

    cdef int drop(self, int n) noexcept nogil:
        """Take the first breakpoint off the heap."""
        self.heap_step[0], self.heap_of[0] = self.heap_step[n - 1], self.heap_of[n - 1]
        self.sink(0, n - 1)
        return n - 1

    cdef double rate_of(self, int v) noexcept nogil:
        cdef double cost, entry
        self.reduced(v, &cost, &entry)
        return fabs(entry)

    cdef int largest_of(self, int v, double here, int n, double* step) noexcept nogil:
        """Of the breakpoints that are as good as the chosen one, that of the largest pivot."""
        cdef int other
        cdef double most = self.rate_of(v), rate, last = here + TIE
        step[0] = here
        while n > 0 and self.heap_step[0] <= last:
            other, here = self.heap_of[0], self.heap_step[0]
            n = self.drop(n)
            rate = self.rate_of(other)
            if rate > most:
                v, most, step[0] = other, rate, here
        return v

    cdef inline int consider(self, int v, double cost, double entry, double side, int n, double* end) noexcept nogil:
        """Add a breakpoint of a variable that is not of a settled block; those that cannot flip end the search."""
        cdef double here
        if not self.step_of(v, cost, entry, side, &here) or here > end[0]:
            return n
        if self.high[v] - self.low[v] == INFINITY:
            end[0] = here
        self.heap_step[n], self.heap_of[n] = here, v
        return n + 1

    cdef double range_of(self, int v) noexcept nogil:
        """How far a variable at a bound can go before it, or the key of its settled block, meets the other bound."""
        cdef int k
        cdef double width = self.high[v] - self.low[v], direction, room
        if v >= self.n_columns + self.n_blocks or self.count[self.block(v)] > 0:
            return width
        k = self.key[self.block(v)]
        direction = -self.key_share(v) * (-1.0 if self.at_upper[v] else 1.0)
        room = self.high[k] - self.x[k] if direction > 0.0 else self.x[k] - self.low[k]
        return min(width, max(room, 0.0))

    cdef void flip(self, int v) noexcept nogil:
        """Move a variable over its range; where the key meets its bound first, the variable becomes the key."""
        cdef int k, g
        cdef double width = self.high[v] - self.low[v], amount = self.range_of(v), direction
        direction = -1.0 if self.at_upper[v] else 1.0
        self.effective(v, direction * amount, &self.shift[0])
        if v >= self.n_columns + self.n_blocks:
            self.at_upper[v] = not self.at_upper[v]
            self.x[v] = self.high[v] if self.at_upper[v] else self.low[v]
            return
        g = self.block(v)
        k = self.key[g]
        if amount < width:
            self.at_upper[k] = -self.key_share(v) * direction > 0.0
            self.x[k] = self.high[k] if self.at_upper[k] else self.low[k]
            self.x[v] += direction * amount
            self.key[g] = v
            return
        self.move_key(v, direction * amount)
        self.at_upper[v] = not self.at_upper[v]
        self.x[v] = self.high[v] if self.at_upper[v] else self.low[v]

    cdef void sink(self, int at, int n) noexcept nogil:
        cdef int child, v = self.heap_of[at]
        cdef double step = self.heap_step[at]
        while 2 * at + 1 < n:
            child = 2 * at + 1
            if child + 1 < n and self.heap_step[child + 1] < self.heap_step[child]:
                child += 1
            if self.heap_step[child] >= step:
                break
            self.heap_step[at], self.heap_of[at] = self.heap_step[child], self.heap_of[child]
            at = child
        self.heap_step[at], self.heap_of[at] = step, v

    cdef void rise(self, int at) noexcept nogil:
        cdef int v = self.heap_of[at]
        cdef double step = self.heap_step[at]
        while at > 0 and self.heap_step[(at - 1) // 2] > step:
            self.heap_step[at], self.heap_of[at] = self.heap_step[(at - 1) // 2], self.heap_of[(at - 1) // 2]
            at = (at - 1) // 2
        self.heap_step[at], self.heap_of[at] = step, v

    # The pivot ----------------------------------------------------------------------------------------------------

    cdef bint pivot(self, int p, int q, bint to_upper, double step) noexcept nogil:
        """Move prices and values, and exchange the variable at position p for q; False where the pivot is too small."""
        cdef int i, g, v, m = self.n_rows, first = self.n_columns + self.n_blocks
        cdef double side = -1.0 if to_upper else 1.0, theta, bound
        cdef double* alpha = &self.alpha[0]
        for i in range(m):
            self.y[i] -= step * side * self.rho[i]
        memset(alpha, 0, m * sizeof(double))
        for i in range(m):
            if self.shift[i] != 0.0:
                self.inverse.add_column(i, self.shift[i], alpha)
        self.move(alpha, 1.0)
        memset(&self.shift[0], 0, m * sizeof(double))
        self.effective(q, 1.0, &self.shift[0])
        memset(alpha, 0, m * sizeof(double))
        for i in range(m):
            if self.shift[i] != 0.0:
                self.inverse.add_column(i, self.shift[i], alpha)
        if fabs(alpha[p]) < PIVOT:
            return False
        v = self.head[p]
        if v == ARTIFICIAL:
            theta = self.artificial[p] / alpha[p]
        else:
            bound = self.high[v] if to_upper else self.low[v]
            theta = (self.x[v] - bound) / alpha[p]
        self.move(alpha, theta)
        self.x[q] += theta
        if q < first:
            self.move_key(q, theta)
            self.count[self.block(q)] += 1
            self.note(self.block(q))
        if v != ARTIFICIAL:
            self.x[v] = bound
            self.at_upper[v] = to_upper
            self.place[v] = -1
            if v < first:
                self.count[self.block(v)] -= 1
        self.inverse.pivot(p, alpha, &self.rho[0])
        self.head[p], self.place[q] = q, p
        if 0 <= v < first:
            g = self.block(v)
            self.note(g)
            if self.count[g] == 0 and fabs(self.excess(self.key[g])) > self.tolerance:
                if not self.settle(g):
                    return False
                self.refresh()
        return True

    cdef void move(self, const double* alpha, double theta) noexcept nogil:
        """The basic variables' values fall by theta times alpha, keys follow."""
        cdef int i, v, first = self.n_columns + self.n_blocks
        for i in range(self.n_rows):
            if alpha[i] == 0.0:
                continue
            v = self.head[i]
            if v == ARTIFICIAL:
                self.artificial[i] -= theta * alpha[i]
                continue
            self.x[v] -= theta * alpha[i]
            if v < first:
                self.move_key(v, -theta * alpha[i])
