"""A basis of a block program with one key variable for each block, and its values (docs/method/blocks.md, K9 to K11).

Variables are numbered: first the columns, then the blocks' sums, then the coupling rows' activities. The value of a
block's key follows from the other variables of its block. The other basic variables occupy the positions of a working
basis with one column for each coupling row. A position may hold an artificial variable: it is fixed at zero, and its
cost is chosen so that the basis has given prices.
"""

import numpy as np

from libc.math cimport INFINITY, fabs
from libc.string cimport memset

from copter.methods.blocks.working_inverse cimport WorkingInverse

# Largest distance of a value outside its bounds, relative to 1 or to 1 % of the largest bound of a row.
cdef double TOLERANCE = 1e-9
cdef double RATE = 1e-7  # entries of a tableau row of at most this size count as zero
cdef double TIE = 1e-12  # reduced costs, and differences of steps, of at most this size count as zero
cdef double PIVOT = 1e-6  # least size of a pivot
# Most relative difference of a pivot computed by row and by column; more calls for fresh values.
cdef double DRIFT = 1e-6
cdef int FLIPS = 4  # most breakpoints that one ratio test passes for each variable; a few are usual where keys change


cdef class BlockBasis:
    """A dual feasible basis and its values.

    Parameters
    ----------
    program : BlockProgram
        No block has a private row but the sum of its columns.
    scale : ndarray (rows,)
        Scales of the coupling rows.
    cost : ndarray (columns,)
        Scaled and perturbed; later edits are written into it.
    dense : bool
        Whether the working basis has a dense inverse.
    """

    def __init__(self, program, const double[::1] scale, double[::1] cost, bint dense=True):
        cdef int g, j, e, r, n_rows = program.n_rows, n = <int>len(program.cost), first, widest = 1
        cdef int blocks = <int>len(program.column_start) - 1
        cdef const int[::1] private_start = program.private_start
        cdef const double[::1] value = program.value, lower = program.lower, upper = program.upper
        self.n_rows, self.n_blocks, self.n_columns = n_rows, blocks, n
        self.column_start, self.start, self.row = program.column_start, program.start, program.row
        self.n_entries, self.value, self.cost = <int>value.shape[0], np.empty(value.shape[0]), cost
        total, first = n + blocks + n_rows, n + blocks
        self.bounds = np.empty((2, total))
        self.low, self.high = self.bounds[0], self.bounds[1]
        self.block_of = np.empty(n, dtype=np.int32)
        with nogil:
            for e in range(self.n_entries):
                self.value[e] = value[e] * scale[self.row[e]]
            for j in range(n):
                self.low[j], self.high[j] = lower[j], upper[j]
            for r in range(n_rows):
                self.low[first + r], self.high[first + r] = lower[n + r] * scale[r], upper[n + r] * scale[r]
            for g in range(blocks):
                self.low[n + g], self.high[n + g] = -INFINITY, INFINITY
                if private_start[g + 1] > private_start[g]:
                    r = n + n_rows + private_start[g]
                    self.low[n + g], self.high[n + g] = lower[r], upper[r]
                widest = max(widest, self.column_start[g + 1] - self.column_start[g])
                for j in range(self.column_start[g], self.column_start[g + 1]):
                    self.block_of[j] = g
        self.values = np.zeros(total)
        self.x = self.values
        self.at_uppers = np.zeros(total, dtype=np.uint8)
        self.at_upper = self.at_uppers
        whole, real = np.empty(total + n_rows + 4 * widest, dtype=np.int32), np.zeros(5 * n_rows)
        whole[:total] = -1
        self.place, self.others, self.bucket = whole[:total], whole[total:total + n_rows], whole[total + n_rows:]
        self.alike = np.zeros(blocks, dtype=np.uint8)
        self.keys = np.full(self.n_blocks, -1, dtype=np.int32)
        self.counts = np.zeros(self.n_blocks, dtype=np.int32)
        self.key, self.count = self.keys, self.counts
        self.heads = np.full(n_rows, ARTIFICIAL, dtype=np.int32)
        self.head = self.heads
        self.artificial, self.rho, self.alpha, self.shift, self.factors = real.reshape(5, n_rows)
        self.prices = np.zeros(n_rows)
        self.y = self.prices
        self.inverse = WorkingInverse(n_rows) if dense else None
        with nogil:
            self.set_tolerance()
            for g in range(self.n_blocks):
                self.alike[g] = self.has_twins(g)
                if self.alike[g]:
                    self.drop_twins(g)

    def rewrite(self, const unsigned char[::1] changed, program, const double[::1] scale, const double[::1] cost):
        """Take over the columns of blocks that have changed in place; their sums and the rows follow by `renew`.

        A block that has other costs or entries is a new one: artificial variables replace its basic ones.

        Parameters
        ----------
        changed : ndarray (blocks,) uint8
            As for :class:`.SlottedProgram`.
        program : BlockProgram
            The unscaled program with the same places of columns and entries.
        scale : ndarray (rows,)
        cost : ndarray (columns,)
            Scaled and perturbed.
        """
        cdef int g, j, e, p, v, last, first = self.n_columns + self.n_blocks
        cdef const double[::1] value = program.value, lower = program.lower, upper = program.upper
        with nogil:
            for p in range(self.n_rows):
                v = self.head[p]
                if 0 <= v < first and changed[self.block(v)] >= NEW:
                    self.head[p], self.place[v] = ARTIFICIAL, -1
                    self.count[self.block(v)] -= 1
            for g in range(self.n_blocks):
                if changed[g] == 0:
                    continue
                last = self.column_start[g + 1]
                for j in range(self.column_start[g], last):
                    self.low[j], self.high[j], self.cost[j] = lower[j], upper[j], cost[j]
                if changed[g] == REWRITTEN:
                    for e in range(self.start[self.column_start[g]], self.start[last]):
                        self.value[e] = value[e] * scale[self.row[e]]
                    self.alike[g] = self.has_twins(g)
                if self.alike[g]:
                    self.drop_twins(g)

    # Starting points ----------------------------------------------------------------------------------------------

    def begin(self, double[::1] y):
        """Start from prices: fill each block at best for them, with an artificial variable in rows of nonzero price."""
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
        """Start from a given basis: its inverse, prices, heads, keys of blocks, and flags of variables at upper bounds.

        Blocks without a variable among the heads are filled at best for the prices. Returns False if a nonbasic
        variable has no bound to rest at.
        """
        cdef int g, p, r, v, first = self.n_columns + self.n_blocks
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
            if self.place[first + r] < 0 and not self.rest_row(r):
                return False
        for g in range(self.n_blocks):
            self.key[g] = keys[g]
            if not (self.rest_block(g) if self.count[g] > 0 else self.settle(g)):
                return False
        self.refresh()
        return True

    cdef bint rest_row(self, int r) noexcept nogil:
        """Put a nonbasic row at the bound that its price asks for; return False if it has none."""
        cdef int v = self.n_columns + self.n_blocks + r
        if fabs(self.y[r]) > TIE:
            self.at_upper[v] = self.y[r] < 0.0
        elif fabs(self.high[v] if self.at_upper[v] else self.low[v]) == INFINITY:
            self.at_upper[v] = not self.at_upper[v]
        return self.rest(v)

    cdef bint rest_block(self, int g) noexcept nogil:
        """Put a block's nonbasic variables other than its key at their bounds; return False if one has none."""
        cdef int j, s = self.n_columns + g
        for j in range(self.column_start[g], self.column_start[g + 1]):
            if j != self.key[g] and self.place[j] < 0 and not self.rest(j):
                return False
        return s == self.key[g] or self.place[s] >= 0 or self.rest(s)

    cdef bint rest(self, int v) noexcept nogil:
        """Put a nonbasic variable at its bound; return False if it has none."""
        self.x[v] = self.high[v] if self.at_upper[v] else self.low[v]
        return fabs(self.x[v]) < INFINITY

    cdef bint settle(self, int g) noexcept nogil:
        """Fill a block in ascending order of reduced cost; return False if its bounds contradict each other."""
        cdef int j, best, s = self.n_columns + g, first = self.column_start[g], last = self.column_start[g + 1]
        cdef double total = 0.0, price, least, room, width
        for j in range(first, last):
            self.at_upper[j] = 0
            self.x[j] = self.low[j]
            total += self.low[j]
        if total > self.high[s] + self.tolerance:
            return False
        while True:  # ends: each pass takes a column to its upper bound
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

    cdef unsigned int empty_buckets(self, int n) noexcept nogil:
        """Empty at least twice as many buckets as there are columns; return the mask of their numbers."""
        cdef int i, mask = 1
        while mask < 2 * n:  # ends: mask doubles
            mask *= 2
        for i in range(mask):
            self.bucket[i] = -1
        return <unsigned int>(mask - 1)

    cdef bint has_twins(self, int g) noexcept nogil:
        """Return whether two columns of a block have the same entries."""
        cdef int i, first = self.column_start[g], last = self.column_start[g + 1]
        cdef unsigned int at, mask
        if last - first < 2:
            return False
        mask = self.empty_buckets(last - first)
        for i in range(first, last):
            at = self.hash_of(i) & mask
            while self.bucket[at] >= 0:  # ends: half of the buckets are free
                if self.same_entries(i, self.bucket[at]):
                    return True
                at = (at + 1) & mask
            self.bucket[at] = i
        return False

    cdef void drop_twins(self, int g) noexcept nogil:
        """Fix each column of a block that has a twin with the same entries and no larger cost."""
        cdef int i, j, first = self.column_start[g], last = self.column_start[g + 1]
        cdef unsigned int at, mask = self.empty_buckets(last - first)
        cdef int* bucket = &self.bucket[0]
        for i in range(first, last):
            if self.high[i] < INFINITY:
                continue
            at = self.hash_of(i) & mask
            # ends: half of the buckets are free
            while bucket[at] >= 0 and not (self.low[i] == self.low[bucket[at]] and self.same_entries(i, bucket[at])):
                at = (at + 1) & mask
            j = bucket[at]
            if j >= 0 and self.cost[i] >= self.cost[j]:
                self.high[i] = self.low[i]
                continue
            if j >= 0:
                self.high[j] = self.low[j]
            bucket[at] = i

    cdef unsigned int hash_of(self, int j) noexcept nogil:
        """Return a hash of a column's rows and first coefficient."""
        cdef unsigned int result = 2166136261u
        cdef int e
        for e in range(self.start[j], self.start[j + 1]):
            result = (result ^ <unsigned int>self.row[e]) * 16777619u
        if self.start[j] < self.start[j + 1]:
            result = (result ^ <unsigned int>(<long long>(self.value[self.start[j]] * 4096.0))) * 16777619u
        return result ^ (result >> 15)

    cdef bint same_entries(self, int i, int j) noexcept nogil:
        """Return whether two columns have the same entries."""
        cdef int e, size = self.start[i + 1] - self.start[i]
        if self.start[j + 1] - self.start[j] != size:
            return False
        for e in range(size):
            if self.row[self.start[i] + e] != self.row[self.start[j] + e]:
                return False
            if self.value[self.start[i] + e] != self.value[self.start[j] + e]:
                return False
        return True

    cdef void refresh(self) noexcept nogil:
        """Compute the values of all basic variables from those of the nonbasic ones."""
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
        self.inverse.apply(shift, &self.place[first], &self.alpha[0])
        for p in range(m):
            self.alpha[p] = 0.0 - self.alpha[p]
            self.put(p, self.alpha[p])
        for p in range(m):
            v = self.head[p]
            if 0 <= v < first:
                self.move_key(v, self.alpha[p])

    # One variable -------------------------------------------------------------------------------------------------

    cdef double dot(self, int j, const double* y) noexcept nogil:
        cdef int e
        cdef double total = 0.0
        for e in range(self.start[j], self.start[j + 1]):
            total += self.value[e] * y[self.row[e]]
        return total

    cdef int block(self, int v) noexcept nogil:
        return self.block_of[v] if v < self.n_columns else v - self.n_columns

    cdef double sign(self, int v) noexcept nogil:
        """Return the coefficient of a variable in its block's sum row."""
        return 1.0 if v < self.n_columns else -1.0

    cdef double key_share(self, int v) noexcept nogil:
        """Return how far the key of a block falls when its variable v rises by one."""
        return self.sign(v) * self.sign(self.key[self.block(v)])

    cdef void move_key(self, int v, double amount) noexcept nogil:
        self.x[self.key[self.block(v)]] -= self.key_share(v) * amount

    cdef void put(self, int p, double amount) noexcept nogil:
        """Set the value of the variable at a position."""
        if self.head[p] == ARTIFICIAL:
            self.artificial[p] = amount
        else:
            self.x[self.head[p]] = amount

    cdef double excess(self, int v) noexcept nogil:
        """Return how far a variable is above its upper bound, or below its lower one (negative)."""
        return beyond(self.x[v], self.low[v], self.high[v])

    cdef void reduced(self, int v, double* cost, double* entry) noexcept nogil:
        """Write the reduced cost of a variable, and its entry in the tableau row of rho."""
        cdef int k, r
        cdef double share
        if v >= self.n_columns + self.n_blocks:
            r = v - self.n_columns - self.n_blocks
            cost[0], entry[0] = self.y[r], -self.rho[r]
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
        """Add `amount` times a variable's column to out (rows,), with the matching move of its key."""
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

    cdef void swap(self, int p) noexcept nogil:
        """Exchange the variable at a position with the key of its block (K10)."""
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

    # Steps of one variable ----------------------------------------------------------------------------------------

    cdef bint step_of(self, int v, double cost, double entry, double side, double* step) noexcept nogil:
        """Return whether a nonbasic variable limits the dual step; write the step at which it does."""
        return limits(self.low[v], self.high[v], self.at_upper[v], cost, entry, side, RATE, step)

    cdef double range_of(self, int v) noexcept nogil:
        """Return how far a variable can move until it, or the key of its settled block, meets its other bound."""
        cdef int k
        cdef double width = self.high[v] - self.low[v], direction, room
        if v >= self.n_columns + self.n_blocks or self.count[self.block(v)] > 0:
            return width
        k = self.key[self.block(v)]
        direction = -self.key_share(v) * (-1.0 if self.at_upper[v] else 1.0)
        room = self.high[k] - self.x[k] if direction > 0.0 else self.x[k] - self.low[k]
        return min(width, max(room, 0.0))

    cdef void flip(self, int v) noexcept nogil:
        """Move a variable over its range; if the key meets its bound first, the variable becomes the key."""
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
        self.change(g)
        if amount < width:
            self.at_upper[k] = -self.key_share(v) * direction > 0.0
            self.x[k] = self.high[k] if self.at_upper[k] else self.low[k]
            self.x[v] += direction * amount
            self.key[g] = v
            return
        self.move_key(v, direction * amount)
        self.at_upper[v] = not self.at_upper[v]
        self.x[v] = self.high[v] if self.at_upper[v] else self.low[v]

    cdef void change(self, int g) noexcept nogil:
        """Take note that a block's variables have changed places; for heirs that store distances."""

    # Accuracy -----------------------------------------------------------------------------------------------

    cdef void set_tolerance(self) noexcept nogil:
        """Set how far a value may be outside its bounds, by the largest finite |bound| of a row."""
        cdef int v
        cdef double largest = 0.0
        for v in range(self.n_columns + self.n_blocks, self.n_columns + self.n_blocks + self.n_rows):
            largest = max(largest, fabs(self.low[v]) if fabs(self.low[v]) < INFINITY else 0.0)
            largest = max(largest, fabs(self.high[v]) if fabs(self.high[v]) < INFINITY else 0.0)
        self.tolerance = TOLERANCE * max(1.0, largest * 1e-2)

    def error(self):
        """Return the larger of two errors: relative residual of the rows, largest reduced cost of a basic variable."""
        cdef int j, e, p, v, r, first = self.n_columns + self.n_blocks
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
