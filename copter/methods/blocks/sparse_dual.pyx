"""The dual simplex method on a block program with many coupling rows (docs/method/blocks.md, K9 to K12).

As :class:`.BlockDual`, but the working basis has sparse factors, the rows' lengths are updated from pivot to pivot, and
a ratio test looks only at blocks whose reduced costs may have come to zero, given how far the prices have moved (K17).
"""

import numpy as np

cimport cython
from libc.math cimport INFINITY, fabs, frexp, ldexp
from libc.string cimport memcpy, memset

from copter.methods.blocks.block_basis cimport (
    ARTIFICIAL, DRIFT, FLIPS, PIVOT, RATE, REWRITTEN, TIE, BlockBasis, beyond, limits,
)
from copter.methods.blocks.breakpoints cimport Breakpoints
from copter.methods.simplex.middle_factor cimport MiddleFactor

cdef enum:  # how a run ends: copter.methods.blocks.basis.Ending
    OPTIMAL = 0
    INFEASIBLE = 1
    UNFINISHED = 2
    UNSTABLE = 3

cdef enum:  # how one pivot ends
    DONE = 0
    REFUSED = 1  # the pivot is small or inexact, and the factors are not fresh
    AVOIDED = 2  # the same with fresh factors: other rows first
    BROKEN = 3

cdef double FIRST_PIVOT = 1e-3  # least pivot of factors at a start: columns that nearly depend on others are left out
cdef double LATER_PIVOT = 1e-8  # least pivot of later factors
cdef double HARRIS = 1e-9  # reduced costs may get so far on the wrong side, for the sake of a larger pivot
cdef double FORGOTTEN = 4.0  # a row is chosen anew if its length's square is so many times the one noted
cdef double LEAST_NORM = 1e-6  # least square of a row's length after an update
cdef double AVOID = 1e6  # factor on the squared length of a row whose pivot was refused
cdef double LONG = 1e6  # squared length of a row of the inverse above which a start leaves its variable out
cdef double NOTHING = 1e-14  # smaller multipliers count as zero
cdef double WRONG = 1e-7  # a reduced cost of an unsettled block is wrong beyond this; the block's basic ones then leave
cdef double WIDER = 4.0  # growth of a ratio test's reach where the breakpoints within it do not suffice
cdef int NEAR = 16  # one in so many rows, those of the largest multipliers, is read by itself; and at least
cdef int LEAST_NEAR = 8  # so many
cdef enum:
    TOGETHER = 64  # blocks of which only the least distance is looked at while it is longer than the step
cdef double ROUNDED = 1e-12  # part of the size of costs and prices by which rounding may shorten a block's distance
cdef double CHUNK = 1e6  # operations between two looks at the clock while rows are measured
cdef double MOST_WORK = 4e8  # operations of one factorisation
cdef int ROUNDS = 30  # most times that blocks are settled anew between two pivots
cdef int MOST_TROUBLE = 60  # refused pivots in a row after which a run ends UNSTABLE
cdef int SPARE = 12  # updates of the factors for which there must be room before a pivot


@cython.final
cdef class SparseDual(BlockBasis):
    """The dual simplex method with sparse factors: pivots from a dual feasible basis to an optimal one.

    Artificial variables have unit columns: the one at position p that of row p.

    Parameters
    ----------
    As :class:`BlockBasis`.
    """

    def __init__(self, program, scale, cost):
        BlockBasis.__init__(self, program, scale, cost, False)
        cdef int m = self.n_rows, n = self.n_columns, blocks = self.n_blocks, total = n + blocks + m
        self.factor, self.ahead = MiddleFactor(m), Breakpoints(total)
        self.factor.most_work = MOST_WORK
        cdef double[::1] real = np.zeros(6 * m + 2 * n + 3 * blocks + 1)
        self.norm, self.tau, self.kept_norm = real[:m], real[m:2 * m], real[2 * m:3 * m]
        self.half_row, self.half_column = real[3 * m:4 * m], real[4 * m:5 * m]
        self.over, real = real[5 * m:6 * m], real[6 * m:]
        self.now, self.slope, real = real[:n], real[n:2 * n], real[2 * n:]
        self.until, self.girth, self.charge = real[:blocks], real[blocks:2 * blocks], real[2 * blocks:3 * blocks]
        self.nearest = np.zeros(blocks // TOGETHER + 1)
        cdef int[::1] whole = np.zeros(5 * m + 3 * blocks + 2, dtype=np.int32)
        self.base_start, self.fresh_head, whole = whole[:m + 1], whole[m + 1:2 * m + 1], whole[2 * m + 1:]
        self.spots, self.rho_spots, self.row_end, whole = whole[:m], whole[m:2 * m], whole[2 * m:3 * m], whole[3 * m:]
        self.stamp, self.kicked, self.near = whole[:blocks], whole[blocks:2 * blocks], whole[2 * blocks:]
        self.norm[:] = 1.0
        self.stuck = np.zeros(m, dtype=np.uint8)
        self.unit_row, self.old_row = np.full(m, -1, dtype=np.int32), np.full(m, -1, dtype=np.int32)
        self.unmeasured = True
        self.base_index, self.base_value = np.empty(0, dtype=np.int32), np.empty(0)
        self.row_start, self.row_block = np.zeros(m + 1, dtype=np.int32), np.empty(self.n_entries + 1, dtype=np.int32)
        self.row_size = np.empty(self.n_entries + 1)
        self.stale, self.listed, self.swapped = True, False, False
        self.n_rho = self.n_near = self.visits = 0
        self.moved, self.reach = 0.0, INFINITY
        self.measure_blocks()
        self.pivots = self.flips = self.factorisations = 0
        self.passes = 0.0

    @property
    def work(self):
        """Operations so far: of the factors, and of passes over entries."""
        return self.factor.work + self.passes

    # Starting points ----------------------------------------------------------------------------------------------

    def begin_at(self, const double[::1] y, const double[::1] x=None):
        """Start from prices, and from a point, if there is one: its fractional columns become basic.

        Returns False if a block's bounds contradict each other.

        Parameters
        ----------
        y : ndarray (rows,)
            Scaled.
        x : ndarray (columns,), optional
        """
        cdef int r, g, v, count = 0, m = self.n_rows, first = self.n_columns + self.n_blocks
        self.pivots = self.flips = self.factorisations = 0
        with nogil:
            for v in range(first + m):
                self.place[v], self.at_upper[v] = -1, 0
            for r in range(m):
                self.norm[r], self.head[r], self.y[r], self.unit_row[r] = 1.0, ARTIFICIAL, 0.0, -1
            for r in range(m):
                v = first + r
                if y[r] > NOTHING and self.low[v] > -INFINITY:
                    self.at_upper[v], self.x[v], self.y[r] = 0, self.low[v], y[r]
                elif y[r] < -NOTHING and self.high[v] < INFINITY:
                    self.at_upper[v], self.x[v], self.y[r] = 1, self.high[v], y[r]
                else:
                    self.head[count], self.place[v] = v, count
                    count += 1
            for g in range(self.n_blocks):
                self.count[g] = 0
        self.unmeasured, self.measured = True, 0
        for g in range(self.n_blocks):
            if x is not None:
                count = self.basic_columns(g, x, count)
                if self.count[g] > 0:
                    continue
            if not self.settle(g):
                return False
        self.forget_distances()
        self.stale = True
        return True

    cdef int basic_columns(self, int g, const double[::1] x, int count) noexcept nogil:
        """Let a block's columns strictly between bounds be basic, the largest one as the key; return the count."""
        cdef int j, k = -1, s = self.n_columns + g, found = 0
        cdef double total = 0.0, near = 1e-7, large = 0.0
        for j in range(self.column_start[g], self.column_start[g + 1]):
            total += x[j]
            if x[j] > self.low[j] + near and x[j] < self.high[j] - near:
                found += 1
                if x[j] > large:
                    large, k = x[j], j
        if not (total < self.high[s] - near * (1.0 + fabs(total)) and total > self.low[s] + near):
            if found < 2:
                return count
        elif found < 1:
            return count
        else:
            k = s
        if k < 0 or count + found - (k != s) > self.n_rows:
            return count
        for j in range(self.column_start[g], self.column_start[g + 1]):
            self.at_upper[j] = x[j] >= self.high[j] - near and self.high[j] < INFINITY
            self.x[j] = self.high[j] if self.at_upper[j] else self.low[j]
            if j != k and x[j] > self.low[j] + near and x[j] < self.high[j] - near:
                self.head[count], self.place[j] = j, count
                count += 1
                self.count[g] += 1
        self.key[g] = k
        if k != s:
            self.at_upper[s] = self.high[s] < INFINITY and not total < self.high[s] - near * (1.0 + fabs(total))
            self.x[s] = self.high[s] if self.at_upper[s] else self.low[s]
        return count

    def enter(self, double[::1] y, int[::1] heads, int[::1] keys, unsigned char[::1] at_upper, double[::1] norms=None):
        """Start from a given basis, as :meth:`BlockBasis.take` without an inverse; also the squared lengths of rows."""
        cdef int g, p, r, v, m = self.n_rows, first = self.n_columns + self.n_blocks
        self.y[:] = y
        self.count[:] = 0
        self.place[:] = -1
        self.unit_row[:] = -1
        self.measured = 0
        self.at_upper[:] = at_upper
        for p in range(m):
            v = heads[p]
            self.head[p] = v
            self.norm[p] = 1.0 if norms is None or p >= norms.shape[0] else norms[p]
            if v != ARTIFICIAL:
                self.place[v] = p
                if v < first:
                    self.count[self.block(v)] += 1
        for r in range(m):
            if self.place[first + r] < 0 and not self.rest_row(r):
                return False
        for g in range(self.n_blocks):
            self.key[g] = keys[g]
            if not (self.rest_block(g) if self.count[g] > 0 else self.settle(g)):
                return False
        self.forget_distances()
        self.stale = True
        return True

    def rewrite(self, const unsigned char[::1] changed, program, const double[::1] scale, const double[::1] cost):
        """Take over columns that have changed in place, as :meth:`BlockBasis.rewrite`."""
        cdef int g, p, j
        self.measured = 0
        BlockBasis.rewrite(self, changed, program, scale, cost)
        with nogil:
            for g in range(self.n_blocks):
                if changed[g]:
                    self.change(g)
                if changed[g] == REWRITTEN:
                    self.measure_block(g)
                    self.listed = False
                if self.count[g] == 0:
                    for j in range(self.column_start[g], self.column_start[g + 1]):
                        if self.cost[j] != cost[j]:
                            self.cost[j] = cost[j]
                            self.change(g)
            for p in range(self.n_rows):
                if self.head[p] == ARTIFICIAL and self.unit_row[p] < 0:
                    self.expel(p)

    cdef void expel(self, int p) noexcept nogil:
        """Let an artificial variable take the place of a basic one that is gone; the factors still have its column."""
        cdef int t, i, r = -1, m = self.n_rows
        cdef double largest = 0.0
        if self.stale or self.factor.worn() or self.factor.updates + SPARE >= self.factor.most_updates:
            self.stale = True
            return
        self.row_of(p)
        for t in range(self.n_rho):
            i = self.rho_spots[t]
            if fabs(self.rho[i]) > largest:
                largest, r = fabs(self.rho[i]), i
        if largest < PIVOT:
            self.stale = True
            return
        memset(&self.alpha[0], 0, m * sizeof(double))
        self.alpha[r] = 1.0
        self.load()
        if fabs(self.alpha[p] - self.rho[r]) > DRIFT * (1.0 + largest) or not self.exchange(p):
            self.stale = True
            return
        self.unit_row[p] = r

    def renew(self, const double[::1] least, const double[::1] most, const double[::1] row_lower,
              const double[::1] row_upper, const unsigned char[::1] changed=None):
        """Continue with new bounds of the sums and rows, as :meth:`BlockDual.renew`."""
        cdef int g, r, v, n = self.n_columns, first = self.n_columns + self.n_blocks
        cdef bint holds = True, known = changed is not None
        self.pivots = self.flips = self.factorisations = 0
        self.stuck[:] = 0
        self.factor.work = self.passes = 0.0
        with nogil:
            for r in range(self.n_rows):
                self.low[first + r], self.high[first + r] = row_lower[r], row_upper[r]
            self.set_tolerance()
            for r in range(self.n_rows):
                holds = holds and (self.place[first + r] >= 0 or self.rest_row(r))
            for g in range(self.n_blocks):
                if not holds:
                    break
                v = n + g
                if self.low[v] == least[g] and self.high[v] == most[g] and not (known and changed[g]):
                    continue
                self.low[v], self.high[v] = least[g], most[g]
                self.change(g)
                holds = self.rest_block(g) if self.count[g] > 0 else self.settle(g)
            if holds and not self.stale:
                self.refresh()
        return holds

    # The basis ------------------------------------------------------------------------------------------------------

    cdef void list_rows(self) noexcept nogil:
        """List the blocks of each row, and by how much its price may bring two of a block's reduced costs together."""
        cdef int i, e, g, at, m = self.n_rows
        for i in range(m + 1):
            self.row_start[i] = 0
        for e in range(self.start[self.n_columns]):
            self.row_start[self.row[e] + 1] += 1
        for i in range(m):
            self.row_start[i + 1] += self.row_start[i]
            self.row_end[i] = self.row_start[i]
        for g in range(self.n_blocks):
            for e in range(self.start[self.column_start[g]], self.start[self.column_start[g + 1]]):
                if self.value[e] == 0.0:
                    continue
                i = self.row[e]
                at = self.row_end[i] - 1
                if at >= self.row_start[i] and self.row_block[at] == g:  # below zero: two columns or more meet the row
                    self.row_size[at] = -max(fabs(self.row_size[at]), fabs(self.value[e]))
                    continue
                self.row_block[at + 1], self.row_size[at + 1] = g, fabs(self.value[e])
                self.row_end[i] = at + 2
        for i in range(m):
            for at in range(self.row_start[i], self.row_end[i]):
                if self.row_size[at] < 0.0:
                    self.row_size[at] *= -2.0
        self.listed = True
        self.passes += 4.0 * self.n_entries

    cdef void measure_blocks(self) noexcept nogil:
        """Measure every block."""
        cdef int g
        for g in range(self.n_blocks):
            self.measure_block(g)
        self.forget_distances()

    cdef void measure_block(self, int g) noexcept nogil:
        """Note by how much two reduced costs of a block may approach if no price moves by more than one."""
        cdef int j, e
        cdef double total, most = 0.0, second = 0.0
        for j in range(self.column_start[g], self.column_start[g + 1]):
            total = 0.0
            for e in range(self.start[j], self.start[j + 1]):
                total += fabs(self.value[e])
            if total > most:
                most, second = total, most
            elif total > second:
                second = total
        self.girth[g] = most + second

    cdef void forget_distances(self) noexcept nogil:
        """Look at every block in the next ratio test."""
        cdef int g
        self.moved, self.reach = 0.0, INFINITY
        for g in range(self.n_blocks):
            self.change(g)

    cdef void change(self, int g) noexcept nogil:
        self.note(g, -INFINITY)

    cdef void note(self, int g, double until) noexcept nogil:
        """Set how far prices may have moved when a block has to be looked at again."""
        self.until[g] = until
        if until < self.nearest[g // TOGETHER]:
            self.nearest[g // TOGETHER] = until

    cdef int column_of(self, int v, int at) noexcept nogil:
        """Write the working column of a basic variable from place `at` on; return where it ends."""
        cdef int e, r, k
        if v >= self.n_columns + self.n_blocks:
            self.base_index[at], self.base_value[at] = v - self.n_columns - self.n_blocks, -1.0
            return at + 1
        self.effective(v, 1.0, &self.alpha[0])
        k = self.key[self.block(v)]
        if v < self.n_columns:
            for e in range(self.start[v], self.start[v + 1]):
                r = self.row[e]
                if self.alpha[r] != 0.0:
                    self.base_index[at], self.base_value[at], self.alpha[r] = r, self.alpha[r], 0.0
                    at += 1
        if k < self.n_columns:
            for e in range(self.start[k], self.start[k + 1]):
                r = self.row[e]
                if self.alpha[r] != 0.0:
                    self.base_index[at], self.base_value[at], self.alpha[r] = r, self.alpha[r], 0.0
                    at += 1
        return at

    cdef int factorise(self) noexcept nogil:
        """Factorise the basis; artificial variables fill the rows that have no pivot. Returns 0 if that fails."""
        cdef int p, v, k, at = 0, size = 0, m = self.n_rows, first = self.n_columns + self.n_blocks, found
        for p in range(m):
            v = self.head[p]
            size += 1
            if 0 <= v < self.n_columns:
                size += self.start[v + 1] - self.start[v]
            if 0 <= v < first:
                k = self.key[self.block(v)]
                size += self.start[k + 1] - self.start[k] if k < self.n_columns else 0
        if size > self.base_index.shape[0]:
            with gil:
                self.base_index, self.base_value = np.empty(2 * size, dtype=np.int32), np.empty(2 * size)
        memset(&self.alpha[0], 0, m * sizeof(double))
        for p in range(m):
            v = self.head[p]
            self.base_start[p] = at
            self.kept_norm[p] = self.norm[p]
            self.tau[p] = self.y[p]
            self.old_row[p] = self.unit_row[p]
            self.fresh_head[p] = -1 if v == ARTIFICIAL and self.unit_row[p] < 0 else p
            if v != ARTIFICIAL:
                at = self.column_of(v, at)
            elif self.unit_row[p] >= 0:
                self.base_index[at], self.base_value[at] = self.unit_row[p], 1.0
                at += 1
        self.base_start[m] = at
        found = self.factor.factorise(&self.base_start[0], &self.base_index[0], &self.base_value[0], m,
                                      &self.fresh_head[0])
        self.factorisations += 1
        if found < 0:
            return 0
        for p in range(m):
            if self.head[p] != ARTIFICIAL:
                self.place[self.head[p]] = -2
            self.spots[p] = self.head[p]
        for p in range(m):
            k = self.fresh_head[p]
            if k >= m:
                self.head[p], self.norm[p], self.unit_row[p], self.unmeasured = ARTIFICIAL, 1.0, p, True
                continue
            self.head[p], self.norm[p], self.unit_row[p] = self.spots[k], self.kept_norm[k], self.old_row[k]
            if self.head[p] != ARTIFICIAL:
                self.place[self.head[p]] = p
        for p in range(m):
            v = self.spots[p]
            if v != ARTIFICIAL and self.place[v] == -2:
                self.place[v] = -1
                if v < first:
                    self.count[self.block(v)] -= 1
                    self.change(self.block(v))
                    if not self.rest(v) and not self.settle(self.block(v)):
                        return 0
                elif not self.rest_row(v - first):
                    return 0
        self.stale = False
        return 1

    cdef void price(self) noexcept nogil:
        """Compute the prices of the basis; an artificial variable's cost is the price that its row has."""
        cdef int p, v, k, m = self.n_rows, first = self.n_columns + self.n_blocks
        cdef double most = 0.0
        cdef double* y = &self.tau[0]
        for p in range(m):
            v = self.head[p]
            if v == ARTIFICIAL:
                y[p] = self.y[self.unit_row[p]]
                continue
            y[p] = self.cost[v] if v < self.n_columns else 0.0
            if v < first:
                k = self.key[self.block(v)]
                if k < self.n_columns:
                    y[p] -= self.key_share(v) * self.cost[k]
        self.factor.btran(y)
        for p in range(m):
            if self.place[first + p] >= 0:
                y[p] = 0.0
            most = max(most, fabs(y[p] - self.y[p]))
        memcpy(&self.y[0], y, m * sizeof(double))
        self.moved += most

    cdef void look(self, int g) noexcept nogil:
        """Compute the reduced costs of a block, and how far prices may move before one of them changes its sign."""
        cdef int j, e, k = self.key[g], s = self.n_columns + g
        cdef double total, size, largest = 0.0, key_cost = 0.0, near = INFINITY
        for j in range(self.column_start[g], self.column_start[g + 1]):
            total, size = self.cost[j], fabs(self.cost[j])
            for e in range(self.start[j], self.start[j + 1]):
                total -= self.value[e] * self.y[self.row[e]]
                size += fabs(self.value[e] * self.y[self.row[e]])
            self.now[j] = total
            largest = max(largest, size)
        self.passes += 2.0 * (self.start[self.column_start[g + 1]] - self.start[self.column_start[g]])
        if k < self.n_columns:
            key_cost = self.now[k]
            if self.place[s] < 0 and self.low[s] < self.high[s]:
                near = -key_cost if self.at_upper[s] else key_cost
        for j in range(self.column_start[g], self.column_start[g + 1]):
            if j != k and self.place[j] < 0 and self.low[j] < self.high[j]:
                total = self.now[j] - key_cost
                near = min(near, -total if self.at_upper[j] else total)
        if near == INFINITY:
            self.note(g, INFINITY)
            return
        near -= ROUNDED * largest
        if near <= 0.0:
            self.change(g)
        else:
            self.note(g, self.moved + near / self.girth[g] if self.girth[g] > 0.0 else INFINITY)

    cdef bint restore(self) noexcept nogil:
        """Make fresh factors, prices, costs and values; return False if that fails.

        If it has to look at the clock on the way, `paused` says so, and the next call goes on.
        """
        cdef int rounds = 0
        cdef double before
        self.paused = False
        while True:  # ends: each round more blocks are settled for good
            self.factor.least_pivot = FIRST_PIVOT if self.unmeasured else LATER_PIVOT
            if self.measured == 0 and not self.factorise():
                return False
            if self.unmeasured:
                before = self.factor.work + self.passes
                while self.measured < self.n_rows:  # ends: each pass measures a row
                    self.row_of(self.measured)
                    self.measured += 1
                    self.paused = self.factor.work + self.passes > before + CHUNK
                    if self.paused:
                        self.stale = True
                        return True
                self.measured = 0
                self.straighten()
                self.unmeasured = False
                if self.stale:
                    continue
            self.price()
            self.orient()
            if self.release() == 0:
                break
            rounds += 1
            if rounds > ROUNDS:
                return False
        self.resettle()
        self.refresh()
        return True

    cdef void straighten(self) noexcept nogil:
        """Let artificial variables replace those whose rows of the inverse are long: their columns nearly depend."""
        cdef int p, v, worst, _count, first = self.n_columns + self.n_blocks
        for _count in range(self.n_rows):
            worst = 0
            for p in range(self.n_rows):
                if self.norm[p] > self.norm[worst]:
                    worst = p
            if self.norm[worst] <= LONG or self.stale:
                return
            v = self.head[worst]
            if v != ARTIFICIAL:
                self.head[worst], self.place[v] = ARTIFICIAL, -1
                if v < first:
                    self.count[self.block(v)] -= 1
                    self.change(self.block(v))
                    if not self.rest(v):
                        self.settle(self.block(v))
                else:
                    self.rest_row(v - first)
            self.unit_row[worst] = -1
            self.expel(worst)

    cdef void orient(self) noexcept nogil:
        """Let rows rest at the bound that their price asks for; a price without such a bound becomes zero."""
        cdef int r, v, first = self.n_columns + self.n_blocks
        for r in range(self.n_rows):
            v = first + r
            if self.place[v] >= 0 or self.low[v] == self.high[v] or fabs(self.y[r]) <= TIE:
                continue
            if fabs(self.low[v] if self.y[r] > 0.0 else self.high[v]) == INFINITY:
                self.moved += fabs(self.y[r])
                self.y[r] = 0.0
            else:
                self.at_upper[v] = self.y[r] < 0.0
                self.rest(v)

    cdef int release(self) noexcept nogil:
        """Let the basic variables leave of blocks with a wrong reduced cost, and settle them; return their number.

        Where a basic column's reduced cost is nearly zero, its cost is shifted.
        """
        cdef int g, p, v, k, count = 0, first = self.n_columns + self.n_blocks
        cdef double rest
        for g in range(self.n_blocks):
            self.kicked[g] = 0
        for p in range(self.n_rows):
            v = self.head[p]
            if 0 <= v < first:
                k = self.key[self.block(v)]
                rest = self.cost[v] - self.dot(v, &self.y[0]) if v < self.n_columns else 0.0
                if k < self.n_columns:
                    rest -= self.key_share(v) * (self.cost[k] - self.dot(k, &self.y[0]))
                if fabs(rest) > WRONG:
                    self.kicked[self.block(v)] = 1
                elif v < self.n_columns:
                    self.cost[v] -= rest
        for g in range(self.n_blocks):
            if self.count[g] > 0 and not self.kicked[g] and self.until[g] <= self.moved and not self.is_settled(g):
                self.kicked[g] = 1
            count += self.kicked[g]
        if count:
            for p in range(self.n_rows):
                v = self.head[p]
                if 0 <= v < first and self.kicked[self.block(v)]:
                    self.head[p], self.place[v], self.unit_row[p] = ARTIFICIAL, -1, -1
                    self.count[self.block(v)] -= 1
            for g in range(self.n_blocks):
                if self.kicked[g]:
                    self.change(g)
                    self.settle(g)
            self.stale = True
        return count

    cdef int resettle(self) noexcept nogil:
        """Fill settled blocks anew whose reduced costs have a wrong sign; return how many."""
        cdef int g, changed = 0
        for g in range(self.n_blocks):
            if self.count[g] == 0 and self.until[g] <= self.moved and not self.is_settled(g):
                self.change(g)
                self.settle(g)
                changed += 1
        self.passes += self.n_blocks
        return changed

    cdef bint is_settled(self, int g) noexcept nogil:
        """Return whether the reduced costs of a block have the sign that its bounds require."""
        cdef int j, k = self.key[g], s = self.n_columns + g
        cdef double key_cost = 0.0, cost, least = -TIE if self.count[g] == 0 else -WRONG
        self.look(g)
        if k < self.n_columns:
            key_cost = self.now[k]
            if self.place[s] < 0 and self.low[s] < self.high[s] \
                    and (-key_cost if self.at_upper[s] else key_cost) < least:
                return False
        for j in range(self.column_start[g], self.column_start[g + 1]):
            cost = self.now[j] - key_cost
            if (-cost if self.at_upper[j] else cost) < least and j != k and self.place[j] < 0 \
                    and self.low[j] < self.high[j]:
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
        self.factor.ftran(shift)
        for p in range(m):
            shift[p] = 0.0 - shift[p]
            self.put(p, shift[p])
        for p in range(m):
            v = self.head[p]
            if 0 <= v < first:
                self.move_key(v, shift[p])
        for p in range(m):
            self.assess(p)
        memset(shift, 0, m * sizeof(double))
        self.passes += self.n_columns + self.n_entries

    cdef void swap(self, int p) noexcept nogil:
        """Exchange the variable at a position with the key of its block (K10)."""
        cdef int v = self.head[p], g = self.block(v), k = self.key[g], j, i, w, s = self.n_columns + g
        cdef double scale = -self.sign(k) * self.sign(v)
        self.head[p], self.place[k] = k, p
        self.key[g], self.place[v] = v, -1
        self.change(g)
        self.assess_block(g)
        if self.factor.updates + self.count[g] + 2 >= self.factor.most_updates:
            self.stale = True
            return
        if scale != 1.0 and self.factor.combine(p, scale, p, 0.0) < 0:
            self.stale = True
            return
        if self.count[g] == 1:
            return
        for j in range(self.column_start[g], self.column_start[g + 1] + 1):
            w = j if j < self.column_start[g + 1] else s
            i = self.place[w]
            if i >= 0 and i != p and self.factor.combine(i, 1.0, p, -scale * self.sign(w) * self.sign(v)) < 0:
                self.stale = True
                return

    # The main loop --------------------------------------------------------------------------------------------------

    def run(self, int most):
        """Make at most `most` pivots; return an ending as numbered by copter.methods.blocks.basis.Ending."""
        cdef int status, last = self.pivots + most, rounds = 0, before
        with nogil:
            if not self.listed:
                self.list_rows()
            status = OPTIMAL
            if self.stale:
                status = OPTIMAL if self.restore() else UNSTABLE
                if self.paused:
                    status = UNFINISHED
            elif self.pivots == 0 and self.resettle():
                self.refresh()
            while status == OPTIMAL:  # ends: passes without a pivot are at most ROUNDS, pivots at most `most`
                before = self.pivots
                status = self.loop(last)
                rounds = 0 if self.pivots > before else rounds + 1
                if status == OPTIMAL:
                    if not self.resettle():
                        break
                    if rounds > ROUNDS:
                        status = UNSTABLE
                        break
                    self.refresh()
                    continue
                break
        return status

    def renewed(self):
        """Make fresh factors, prices and values; returns whether that worked and no artificial variable is left."""
        cdef int p
        cdef bint holds
        with nogil:
            self.stale, self.measured = True, 0
            holds = self.restore()
            while self.paused:  # ends: each call measures more rows
                holds = self.restore()
            for p in range(self.n_rows):
                holds = holds and self.head[p] != ARTIFICIAL
        return holds

    cdef int loop(self, int last) noexcept nogil:
        cdef int p, q, found, trouble = 0, longer = 0
        cdef bint idle
        cdef double excess, step
        while True:  # ends: each pass counts a pivot, up to last, or trouble
            if self.stale or self.factor.worn() or self.factor.updates + SPARE >= self.factor.most_updates:
                if not self.restore():
                    return UNSTABLE
                if self.paused:
                    return UNFINISHED
            p = self.choose_row(&excess)
            idle = p < 0
            if idle:
                p = self.choose_artificial(&excess)
            if p < 0:
                return OPTIMAL
            if self.pivots >= last:
                return UNFINISHED
            if self.swapped:
                self.swap(p)
                if self.stale:
                    continue
            if not self.row_of(p) and not idle:
                longer += 1
                if longer > self.n_rows:
                    return UNSTABLE
                continue
            longer = 0
            q = self.choose_column(excess, &step)
            if idle and q < 0:
                self.stuck[p] += 1
                continue
            if q < 0:
                if self.factor.updates > 0 and trouble < MOST_TROUBLE:
                    self.stale = True
                    trouble += 1
                    continue
                return INFEASIBLE if q == -1 else UNSTABLE
            found = self.pivot(p, q, excess > 0.0, step)
            if found == DONE:
                self.pivots += 1
                trouble = 0
                continue
            trouble += 1
            if found == BROKEN or trouble > MOST_TROUBLE:
                return UNSTABLE
            if found == AVOIDED:
                self.norm[p] *= AVOID
            if found == AVOIDED and idle:
                self.stuck[p] = 2
            self.stale = True

    cdef int choose_row(self, double* excess) noexcept nogil:
        """Choose the leaving position by dual steepest edge: largest violation over row length; keys are swapped in.

        `over` has the square of the larger violation at each position, of its variable or of that one's key; it may be
        too large where another position has moved the key since.
        """
        cdef int p, v, best
        cdef double most, own, key
        self.swapped = False
        while True:  # ends: a position that does not violate a bound is not taken again
            most, best = 0.0, -1
            for p in range(self.n_rows):
                if self.over[p] > most * self.norm[p]:
                    most, best = self.over[p] / self.norm[p], p
            self.passes += self.n_rows
            if best < 0:
                return -1
            most = self.over[best]
            self.assess(best)
            if self.over[best] >= most:
                break
        v = self.head[best]
        own = self.artificial[best] if v == ARTIFICIAL else beyond(self.x[v], self.low[v], self.high[v])
        key = 0.0
        if 0 <= v < self.n_columns + self.n_blocks:
            v = self.key[self.block_of[v] if v < self.n_columns else v - self.n_columns]
            key = beyond(self.x[v], self.low[v], self.high[v])
        self.swapped = fabs(key) > fabs(own)
        excess[0] = key if self.swapped else own
        return best

    cdef void assess(self, int p) noexcept nogil:
        """Note by how much the variable at a position, or its key, violates a bound."""
        cdef int v = self.head[p]
        cdef double excess, other
        if v == ARTIFICIAL:
            excess = fabs(self.artificial[p])
        else:
            excess = fabs(beyond(self.x[v], self.low[v], self.high[v]))
            if v < self.n_columns + self.n_blocks:
                v = self.key[self.block_of[v] if v < self.n_columns else v - self.n_columns]
                other = fabs(beyond(self.x[v], self.low[v], self.high[v]))
                excess = max(excess, other)
        self.over[p] = excess * excess if excess > self.tolerance else 0.0

    cdef void assess_block(self, int g) noexcept nogil:
        """Do so for all positions of a block."""
        cdef int j, s = self.n_columns + g
        if self.count[g] == 0:
            return
        for j in range(self.column_start[g], self.column_start[g + 1]):
            if self.place[j] >= 0:
                self.assess(self.place[j])
        if self.place[s] >= 0:
            self.assess(self.place[s])

    cdef int choose_artificial(self, double* excess) noexcept nogil:
        """Choose an artificial variable to leave at no cost, in the direction that takes its row's price to zero.

        Where that meets no breakpoint, the other direction is tried next, and then none.
        """
        cdef int p
        self.passes += self.n_rows
        for p in range(self.n_rows):
            if self.head[p] == ARTIFICIAL and self.stuck[p] < 2:
                excess[0] = -1e-300 if (self.y[self.unit_row[p]] > 0.0) == (self.stuck[p] == 0) else 1e-300
                return p
        return -1

    cdef bint row_of(self, int p) noexcept nogil:
        """Compute row p of the inverse; return False if it is so much longer than noted that others go first."""
        cdef int i, m = self.n_rows
        cdef double total = 0.0, before = self.norm[p]
        cdef double* rho = &self.rho[0]
        memset(rho, 0, m * sizeof(double))
        rho[p] = 1.0
        self.factor._upper_btran(rho)
        memcpy(&self.half_row[0], rho, m * sizeof(double))
        self.factor.half_btran(rho)
        self.n_rho = 0
        self.longest = 0.0
        for i in range(m):
            if fabs(rho[i]) > NOTHING:
                self.longest = max(self.longest, fabs(rho[i]))
                total += rho[i] * rho[i]
                self.rho_spots[self.n_rho] = i
                self.n_rho += 1
            else:
                rho[i] = 0.0
        self.passes += m
        self.norm[p] = max(total, LEAST_NORM)
        return self.swapped or total <= FORGOTTEN * before

    # The ratio test -------------------------------------------------------------------------------------------------

    cdef void divide(self) noexcept nogil:
        """Part the row's entries into few large ones and the rest, and list the blocks that meet a large one."""
        cdef int t, i, e, g, size, above = 0, most = self.n_rows // NEAR + LEAST_NEAR
        cdef int[40] counts
        cdef double limit, entry
        self.visits += 2
        self.n_near = 0
        self.rest_size = 0.0
        limit = 0.0
        if self.n_rho > most:
            memset(counts, 0, sizeof(counts))
            for t in range(self.n_rho):
                frexp(fabs(self.rho[self.rho_spots[t]]) / self.longest, &size)
                counts[min(1 - size, 39)] += 1
            for size in range(40):  # the entries of at least 2^-size times the longest
                above += counts[size]
                if above > most:
                    limit = 2.0 * ldexp(self.longest, -size)
                    break
        for t in range(self.n_rho):
            i = self.rho_spots[t]
            entry = fabs(self.rho[i])
            if entry < limit:
                self.rest_size = max(self.rest_size, entry)
                continue
            for e in range(self.row_start[i], self.row_end[i]):
                g = self.row_block[e]
                if self.stamp[g] < self.visits - 1:
                    self.stamp[g], self.charge[g] = self.visits - 1, 0.0
                    self.near[self.n_near] = g
                    self.n_near += 1
                self.charge[g] += entry * self.row_size[e]
            self.passes += 2.0 * (self.row_end[i] - self.row_start[i])
        for t in range(self.n_near):
            g = self.near[t]
            entry = self.charge[g] / self.girth[g] if self.girth[g] > 0.0 else 0.0
            self.charge[g] = min(self.longest, entry + self.rest_size)
        self.passes += 4.0 * self.n_rho + 2.0 * self.n_near

    cdef bint gather(self, double side, double end, double reach) noexcept nogil:
        """Add the breakpoints of blocks that a step of `reach` may bring to zero; return whether blocks remain."""
        cdef int g, t, c, left = 0
        cdef double last, least
        for t in range(self.n_near):
            g = self.near[t]
            last = self.moved + reach * self.charge[g]
            if self.stamp[g] < self.visits and (self.until[g] > last or not self.read(g, last, side, end)):
                left |= self.until[g] < INFINITY
        self.passes += 2.0 * self.n_near
        if self.rest_size == 0.0:
            return left
        last = self.moved + reach * self.rest_size
        for c in range(self.nearest.shape[0]):
            if self.nearest[c] > last:
                left |= self.nearest[c] < INFINITY
                continue
            least = INFINITY
            for g in range(c * TOGETHER, min((c + 1) * TOGETHER, self.n_blocks)):
                if self.until[g] > last:
                    left |= self.until[g] < INFINITY
                elif self.stamp[g] < self.visits - 1 and not self.read(g, last, side, end):
                    left |= self.until[g] < INFINITY
                least = min(least, self.until[g])
            self.nearest[c] = least
            self.passes += TOGETHER
        self.passes += self.nearest.shape[0]
        return left

    cdef bint read(self, int g, double last, double side, double end) noexcept nogil:
        """Add the breakpoints of a block; return False if its distance turns out to be longer than `last`."""
        cdef int j, e
        cdef double total
        self.look(g)
        if self.until[g] > last:
            return False
        self.stamp[g] = self.visits
        for j in range(self.column_start[g], self.column_start[g + 1]):
            total = 0.0
            for e in range(self.start[j], self.start[j + 1]):
                total += self.value[e] * self.rho[self.row[e]]
            self.slope[j] = total
        self.passes += self.start[self.column_start[g + 1]] - self.start[self.column_start[g]]
        if self.count[g] == 0:
            self.scan(g, side, end)
            return True
        if self.key[g] != self.n_columns + g:
            self.consider(self.n_columns + g, side, &end)
        for j in range(self.column_start[g], self.column_start[g + 1]):
            if j != self.key[g]:
                self.consider(j, side, &end)
        return True

    cdef void entries_of(self, int v, double* cost, double* entry) noexcept nogil:
        """Write the reduced cost of a variable, and its entry in the tableau row."""
        cdef int k, r, n = self.n_columns
        if v >= n + self.n_blocks:
            r = v - n - self.n_blocks
            cost[0], entry[0] = self.y[r], -self.rho[r]
            return
        if v < n:
            k = self.key[self.block_of[v]]
            cost[0], entry[0] = self.now[v], self.slope[v]
            if k < n:
                cost[0] -= self.now[k]
                entry[0] -= self.slope[k]
            return
        k = self.key[v - n]
        cost[0] = entry[0] = 0.0
        if k < n:
            cost[0], entry[0] = self.now[k], self.slope[k]

    cdef void consider(self, int v, double side, double* end) noexcept nogil:
        """Add the breakpoint of a variable outside settled blocks; one that cannot flip lowers `end` to its step."""
        cdef double here, cost, entry
        if self.place[v] >= 0:
            return
        self.entries_of(v, &cost, &entry)
        if not limits(self.low[v], self.high[v], self.at_upper[v], cost, entry, side, RATE, &here) or here > end[0]:
            return
        if self.high[v] - self.low[v] == INFINITY:
            end[0] = min(end[0], here + HARRIS / fabs(entry))
        self.ahead.add(v, here)

    cdef void scan(self, int g, double side, double end) noexcept nogil:
        """Add the breakpoint of a settled block: the first of its reduced costs to reach zero."""
        cdef int j, k = self.key[g], s = self.n_columns + g, best = -1
        cdef double key_cost = 0.0, key_entry = 0.0, here
        if k < self.n_columns:
            key_cost, key_entry = self.now[k], self.slope[k]
            if limits(self.low[s], self.high[s], self.at_upper[s], key_cost, key_entry, side, RATE, &here) \
                    and here < end:
                best, end = s, here
        for j in range(self.column_start[g], self.column_start[g + 1]):
            if j != k and limits(self.low[j], self.high[j], self.at_upper[j], self.now[j] - key_cost,
                                 self.slope[j] - key_entry, side, RATE, &here) and here < end:
                best, end = j, here
        if best >= 0:
            self.ahead.add(best, end)

    cdef int choose_column(self, double excess, double* step) noexcept nogil:
        """Choose the entering variable: the last breakpoint up to which the dual objective rises; earlier ones flip.

        Blocks are looked at in the order of their distances, while the step goes on. Returns -1 if all breakpoints
        together do not suffice: the program is infeasible; -2 if they are too many.
        """
        cdef int v, t, count = 0, first = self.n_columns + self.n_blocks
        cdef bint rest
        cdef double side = -1.0 if excess > 0.0 else 1.0, left = fabs(excess), end = INFINITY, here, cost, entry
        cdef double covered
        self.ahead.size = self.ahead.most = 0
        self.divide()
        for t in range(self.n_rho):
            v = first + self.rho_spots[t]
            if self.place[v] < 0 and self.low[v] < self.high[v]:
                self.consider(v, side, &end)
        self.passes += 2.0 * self.n_rho
        covered = min(self.reach / self.longest, end)
        rest = self.gather(side, end, covered)
        while True:  # ends: flips are at most FLIPS for each variable, and the reach grows until no block remains
            if rest and (self.ahead.size == 0 or self.ahead.step[0] > covered):
                covered = max(WIDER * covered, RATE)
                if self.ahead.size:
                    covered = min(covered, self.ahead.step[0])
                rest = self.gather(side, end, covered)
                continue
            if self.ahead.size == 0:
                return -1
            here = self.ahead.step[0]
            v = self.ahead.take()
            self.entries_of(v, &cost, &entry)
            left -= fabs(entry) * self.range_of(v)
            if left <= self.tolerance:
                self.reach = max(here * self.longest, RATE)
                return self.largest_of(v, here, step)
            self.flip(v)
            self.flips += 1
            count += 1
            if count > FLIPS * self.place.shape[0]:
                return -2
            if v < first and self.count[self.block(v)] == 0:
                self.scan(self.block(v), side, end)
            elif v < first:
                self.assess_block(self.block(v))

    cdef int largest_of(self, int v, double here, double* step) noexcept nogil:
        """Return the variable with the largest pivot among those whose breakpoint is hardly beyond that of v."""
        cdef int other
        cdef double cost, entry, most, last
        self.entries_of(v, &cost, &entry)
        most = fabs(entry)
        step[0], last = here, here + HARRIS / most
        # ends: each pass takes a breakpoint, and none is added
        while self.ahead.size > 0 and self.ahead.step[0] <= last:
            here = self.ahead.step[0]
            other = self.ahead.take()
            self.entries_of(other, &cost, &entry)
            last = min(last, here + HARRIS / max(fabs(entry), RATE))
            if fabs(entry) > most:
                v, most, step[0] = other, fabs(entry), here
        return v

    # One pivot ------------------------------------------------------------------------------------------------------

    cdef int pivot(self, int p, int q, bint to_upper, double step) noexcept nogil:
        """Update prices and values and let q enter at position p."""
        cdef int i, g, v, t, m = self.n_rows, first = self.n_columns + self.n_blocks
        cdef double side = -1.0 if to_upper else 1.0, theta, bound = 0.0, cost, entry, rest
        cdef double* alpha = &self.alpha[0]
        cdef bint moves = False
        self.entries_of(q, &cost, &entry)
        memset(alpha, 0, m * sizeof(double))
        self.effective(q, 1.0, alpha)
        self.load()
        if fabs(alpha[p]) < PIVOT or fabs(alpha[p] - entry) > DRIFT * (1.0 + fabs(alpha[p])):
            memset(&self.shift[0], 0, m * sizeof(double))  # the flips stay: values are computed anew
            return REFUSED if self.factor.updates > 0 else AVOIDED
        rest = cost + step * side * entry
        if q >= self.n_columns or fabs(rest) > WRONG:
            step -= rest / (side * entry)
            rest = 0.0
        for t in range(self.n_rho):
            i = self.rho_spots[t]
            self.y[i] -= step * side * self.rho[i]
        self.moved += fabs(step) * self.rest_size
        for t in range(self.n_near):
            g = self.near[t]
            self.note(g, self.until[g] - fabs(step) * (self.charge[g] - self.rest_size))
        if q < self.n_columns:  # its reduced cost is zero from now on, whatever the ratio test let pass
            self.cost[q] -= rest
        for i in range(m):
            if self.shift[i] != 0.0:
                moves = True
                break
        if moves:
            self.factor.ftran(&self.shift[0])
        v = self.head[p]
        if v == ARTIFICIAL:
            theta = (self.artificial[p] - self.shift[p]) / alpha[p]
        else:
            bound = self.high[v] if to_upper else self.low[v]
            theta = (self.x[v] - self.shift[p] - bound) / alpha[p]
        if moves:
            for i in range(m):
                self.shift[i] += theta * alpha[i]
            self.move(&self.shift[0], 1.0)
            memset(&self.shift[0], 0, m * sizeof(double))
        else:
            self.move(alpha, theta)
        self.x[q] += theta
        if q < first:
            self.move_key(q, theta)
            self.count[self.block(q)] += 1
            self.change(self.block(q))
        if v != ARTIFICIAL:
            self.x[v] = bound
            self.at_upper[v] = to_upper
            self.place[v] = -1
            if v < first:
                self.count[self.block(v)] -= 1
                self.change(self.block(v))
        if not self.exchange(p):
            return BROKEN
        self.head[p], self.place[q], self.unit_row[p] = q, p, -1
        self.passes += 6.0 * m
        if 0 <= v < first:
            g = self.block(v)
            if self.count[g] == 0 and fabs(self.excess(self.key[g])) > self.tolerance:
                self.shift_block(g, -1.0)
                self.change(g)
                if not self.settle(g):
                    return BROKEN
                self.shift_block(g, 1.0)
                self.factor.ftran(&self.shift[0])
                self.move(&self.shift[0], 1.0)
                memset(&self.shift[0], 0, m * sizeof(double))
            self.assess_block(g)
        self.assess(p)
        if q < first:
            self.assess_block(self.block(q))
        return DONE

    cdef void load(self) noexcept nogil:
        """Solve for the column in `alpha`, in place."""
        self.factor.half_ftran(&self.alpha[0])
        memcpy(&self.half_column[0], &self.alpha[0], self.n_rows * sizeof(double))
        self.factor._upper_ftran(&self.alpha[0])

    cdef bint exchange(self, int p) noexcept nogil:
        """Replace the basic column at a position by the one of which `alpha` is the solution; update rows' lengths."""
        cdef int i, m = self.n_rows
        cdef double ratio, norm = self.norm[p], inverse = 1.0 / self.alpha[p]
        cdef double* alpha = &self.alpha[0]
        cdef double* tau = &self.tau[0]
        memcpy(tau, &self.rho[0], m * sizeof(double))
        self.factor.ftran(tau)
        for i in range(m):
            if alpha[i] == 0.0:
                continue
            ratio = alpha[i] * inverse
            self.norm[i] = max(self.norm[i] - ratio * (2.0 * tau[i] - ratio * norm), LEAST_NORM)
        self.norm[p] = max(norm * inverse * inverse, LEAST_NORM)
        return self.factor.replace(&self.half_column[0], &self.half_row[0], p) == 0

    cdef void shift_block(self, int g, double sign) noexcept nogil:
        """Add what a block uses of the rows, times `sign`, to the shift."""
        cdef int j, e
        for j in range(self.column_start[g], self.column_start[g + 1]):
            if self.x[j] != 0.0:
                for e in range(self.start[j], self.start[j + 1]):
                    self.shift[self.row[e]] += sign * self.value[e] * self.x[j]

    cdef void move(self, const double* alpha, double theta) noexcept nogil:
        """Lower the basic variables' values by theta times alpha, and update the keys."""
        cdef int i, v, k, n = self.n_columns, first = n + self.n_blocks
        cdef double by
        for i in range(self.n_rows):
            if alpha[i] == 0.0:
                continue
            v, by = self.head[i], theta * alpha[i]
            if v == ARTIFICIAL:
                self.artificial[i] -= by
            else:
                self.x[v] -= by
                if v < n:
                    k = self.key[self.block_of[v]]
                    self.x[k] += by if k < n else -by
                elif v < first:
                    k = self.key[v - n]
                    self.x[k] -= by
            self.assess(i)

    def true_prices(self, const double[::1] cost):
        """Return the prices of the basis for the given costs, not for the perturbed ones.

        Prices of infinite bounds are zero.

        Parameters
        ----------
        cost : ndarray (columns,)

        Returns
        -------
        ndarray (rows,)
        """
        cdef int p, v, k, m = self.n_rows, first = self.n_columns + self.n_blocks
        prices = np.zeros(m)
        cdef double[::1] y = prices
        if self.stale:
            return np.array(self.y)
        with nogil:
            for p in range(m):
                v = self.head[p]
                if v == ARTIFICIAL or v >= first:
                    continue
                if v < self.n_columns:
                    y[p] = cost[v] - self.cost[v]
                k = self.key[self.block(v)]
                if k < self.n_columns:
                    y[p] -= self.key_share(v) * (cost[k] - self.cost[k])
            self.factor.btran(&y[0])
            for p in range(m):
                y[p] += self.y[p]
                if fabs(self.low[first + p] if y[p] > 0.0 else self.high[first + p]) == INFINITY:
                    y[p] = 0.0
        return prices

    @property
    def norms(self):
        """The squared lengths of the rows of the basis's inverse, as far as they are known."""
        return np.array(self.norm)
