"""The dual simplex method on a block program (docs/blocks.md, K8 and K10).

Most blocks are settled: nothing of them but their key is basic. Their columns take part in a ratio test by whole-block
flips, and a block that prices cannot change within a step is not looked at.
"""

import numpy as np

from libc.math cimport INFINITY, fabs
from libc.string cimport memset

from copter.kernels.block_basis cimport ARTIFICIAL, BlockBasis
from copter.kernels.breakpoints cimport Breakpoints
from copter.kernels.reduced_costs cimport ReducedCosts

cdef enum:
    STALE = -3  # in place of an ending: look again, then go on
    FIRST = 64  # blocks that are looked at first
    NEAR = 4  # times the coupling rows: blocks that are put in order, at least
    OFTEN = 25  # pivots between two passes over all blocks
    BY_ROWS = 3  # what an entry costs that is summed up by rows, in multiplications by columns

cdef enum:  # how a run ends: copter.blocks.basis.Ending
    OPTIMAL = 0
    INFEASIBLE = 1
    UNFINISHED = 2
    UNSTABLE = 3

cdef double CLOSE = 1e-5  # a radius this small is as good as none
cdef double RATE = 1e-7  # least entry of a tableau row that counts
cdef double PIVOT = 1e-6  # least pivot
cdef double DRIFT = 1e-6  # relative difference, made by rounding, of a pivot's values by row and by column
cdef double TIE = 1e-12  # steps this close are taken as equal, and the larger pivot is taken


cdef class BlockDual(BlockBasis):
    """The method: pivots from a dual feasible basis to an optimal one.

    Parameters
    ----------
    As :class:`BlockBasis`.
    """

    def __init__(self, int n_rows, column_start, start, row, value, cost, lower, upper, least, most, row_lower,
                 row_upper):
        BlockBasis.__init__(self, n_rows, column_start, start, row, value, cost, lower, upper, least, most, row_lower,
                            row_upper)
        total = self.n_columns + self.n_blocks + self.n_rows
        self.ahead = Breakpoints(total)
        self.stamp = np.zeros(self.n_blocks, dtype=np.int32)
        self.radii = np.zeros(self.n_blocks)
        self.radius, self.known_prices = self.radii, np.zeros(n_rows)
        self.order, self.fresh = np.zeros((2, self.n_blocks), dtype=np.int32)
        self.is_fresh = np.zeros(self.n_blocks, dtype=np.uint8)
        lengths = np.add.reduceat(np.concatenate((np.abs(value), [0.0])), start[:self.n_columns])
        self.length = lengths * (np.diff(start) > 0)
        self.n_near = self.n_fresh = self.visits = self.since = 0
        self.looked = self.by_rows = False
        self.costs = None
        self.work_by_rows = self.work_by_radii = 0.0
        self.pivots = self.flips = self.passes = 0

    # The main loop ------------------------------------------------------------------------------------------------

    def run(self, int most):
        """At most so many pivots: how it ended, as copter.blocks.basis.Ending counts."""
        cdef int status, last = self.pivots + most
        while True:
            if not self.looked or self.since > OFTEN:
                self.look()
            with nogil:
                status = self.loop(last)
                if status == STALE or (status == OPTIMAL and self.resettle()):
                    continue
            return status

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
            if q < 0:
                return INFEASIBLE
            if not self.pivot(p, q, excess > 0.0, step):
                return UNSTABLE
            self.pivots += 1

    cdef int choose_row(self, double* excess) noexcept nogil:
        """The position whose variable is farthest outside its bounds, in lengths of its row; a key is swapped in."""
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

    cdef bint pivot(self, int p, int q, bint to_upper, double step) noexcept nogil:
        """Move prices and values, and exchange the variable at position p for q; False where the pivot is too small."""
        cdef int i, g, v, m = self.n_rows, first = self.n_columns + self.n_blocks
        cdef double side = -1.0 if to_upper else 1.0, theta, bound, cost, entry
        cdef double* alpha = &self.alpha[0]
        self.reduced(q, &cost, &entry)
        for i in range(m):
            self.y[i] -= step * side * self.rho[i]
        if self.by_rows:
            self.costs.move(step * side)
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
        if fabs(alpha[p]) < PIVOT or fabs(alpha[p] - entry) > DRIFT * fabs(alpha[p]):
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

    # The ratio test -----------------------------------------------------------------------------------------------

    cdef int choose_column(self, double excess, double* step) noexcept nogil:
        """The entering variable: the last breakpoint at which the dual objective still rises; those before flip.

        Settled blocks are looked at in the order of their radii: those within reach of a step first. -1 for none.
        """
        cdef int v, r, at = 0, upto = FIRST
        cdef double side = -1.0 if excess > 0.0 else 1.0, end = INFINITY, left = fabs(excess), known
        self.visits += 1
        memset(&self.shift[0], 0, self.n_rows * sizeof(double))
        self.ahead.size = 0
        self.hard_breakpoints(side, &end)
        if self.by_rows:
            self.scan_touched(side, end)
            return self.last_breakpoint(&left, side, end, INFINITY, step)
        for r in range(self.n_fresh):
            self.scan(self.fresh[r], side, end)
        while True:
            if upto > self.n_near:
                upto = self.n_blocks
            for r in range(at, upto):
                if not self.is_fresh[self.order[r]]:
                    self.scan(self.order[r], side, end)
            at, upto = upto, 2 * upto
            known = INFINITY if at == self.n_blocks else self.steps_within(side, self.radius[self.order[at]])
            v = self.last_breakpoint(&left, side, end, known, step)
            if v >= 0 or at == self.n_blocks:
                return v

    cdef double steps_within(self, double side, double radius) noexcept nogil:
        """The longest step that takes no price farther than so from where it was when radii were measured."""
        cdef int i
        cdef double away, slope, longest = INFINITY
        radius -= TIE
        for i in range(self.n_rows):
            away, slope = self.y[i] - self.known_prices[i], -side * self.rho[i]
            if fabs(away) > radius:
                return -1.0
            if slope != 0.0:
                longest = min(longest, (radius - (away if slope > 0.0 else -away)) / fabs(slope))
        return longest

    cdef void scan_touched(self, double side, double end) noexcept nogil:
        """Breakpoints of the settled blocks that the row of the tableau touches: all there are."""
        cdef int t, g
        self.costs.spread(&self.rho[0])
        for t in range(self.costs.n_touched):
            g = self.block_of[self.costs.touched[t]]
            if self.stamp[g] != self.visits:
                self.stamp[g] = self.visits
                self.scan(g, side, end)

    cdef int last_breakpoint(self, double* left, double side, double end, double known, double* step) noexcept nogil:
        """Walk over the known breakpoints as long as the dual objective rises, and flip; -1 where they do not suffice."""
        cdef int v
        cdef double here
        while self.ahead.size > 0 and self.ahead.step[0] <= known:
            here = self.ahead.step[0]
            v = self.ahead.take()
            left[0] -= self.rate_of(v) * self.range_of(v)
            if left[0] <= self.tolerance:
                return self.largest_of(v, here, step)
            self.flip(v)
            self.flips += 1
            if v < self.n_columns + self.n_blocks and self.count[self.block(v)] == 0:
                self.note(self.block(v))
                self.scan(self.block(v), side, end)
        return -1

    cdef void hard_breakpoints(self, double side, double* end) noexcept nogil:
        """Breakpoints of rows and of the blocks that are not settled; the first that cannot flip ends the search."""
        cdef int p, g, v, r, first = self.n_columns + self.n_blocks
        for r in range(self.n_rows):
            if self.place[first + r] < 0:
                self.consider(first + r, self.y[r], -self.rho[r], side, end)
        for p in range(self.n_rows):
            v = self.head[p]
            if v < 0 or v >= first:
                continue
            g = self.block(v)
            if self.stamp[g] != self.visits:
                self.stamp[g] = self.visits
                self.hard_of(g, side, end)

    cdef void hard_of(self, int g, double side, double* end) noexcept nogil:
        """Breakpoints of one block that is not settled."""
        cdef int j, k = self.key[g], s = self.n_columns + g
        cdef double key_cost = 0.0, key_entry = 0.0, cost, entry
        if k < self.n_columns:
            self.both(k, &key_cost, &key_entry)
        if k != s and self.place[s] < 0:
            self.consider(s, key_cost, key_entry, side, end)
        for j in range(self.column_start[g], self.column_start[g + 1]):
            if j != k and self.place[j] < 0 and self.low[j] < self.high[j]:
                self.both(j, &cost, &entry)
                self.consider(j, cost - key_cost, entry - key_entry, side, end)

    cdef void both(self, int j, double* cost, double* entry) noexcept nogil:
        """Cost of a column less its price, and its product with rho."""
        cdef int e
        cdef double price = self.cost[j], product = 0.0
        for e in range(self.start[j], self.start[j + 1]):
            price -= self.value[e] * self.y[self.row[e]]
            product += self.value[e] * self.rho[self.row[e]]
        cost[0], entry[0] = price, product

    cdef void consider(self, int v, double cost, double entry, double side, double* end) noexcept nogil:
        """Add a breakpoint of a variable that is not of a settled block; those that cannot flip end the search."""
        cdef double here
        if not self.step_of(v, cost, entry, side, &here) or here > end[0]:
            return
        if self.high[v] - self.low[v] == INFINITY:
            end[0] = here
        self.ahead.add(v, here)

    cdef bint step_of(self, int v, double cost, double entry, double side, double* step) noexcept nogil:
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

    cdef void scan(self, int g, double side, double end) noexcept nogil:
        """Add the first breakpoint of a settled block."""
        cdef double here
        cdef int v
        if self.count[g] > 0:
            return
        self.scanned += 1
        v = self.first_by_rows(g, side, end, &here) if self.by_rows else self.first_of(g, side, end, &here)
        if v >= 0:
            self.ahead.add(v, here)

    cdef int first_by_rows(self, int g, double side, double end, double* step) noexcept nogil:
        """As first_of, from the reduced costs and slopes that are kept."""
        cdef int j, k = self.key[g], s = self.n_columns + g, best = -1
        cdef double key_cost = 0.0, key_entry = 0.0, here
        if k < self.n_columns:
            key_cost, key_entry = self.costs.cost[k], self.costs.slope[k]
            if self.step_of(s, key_cost, key_entry, side, &here) and here < end:
                best, end = s, here
        for j in range(self.column_start[g], self.column_start[g + 1]):
            if j == k:
                continue
            if self.step_of(j, self.costs.cost[j] - key_cost, self.costs.slope[j] - key_entry, side, &here):
                if here < end:
                    best, end = j, here
        step[0] = end
        return best

    cdef int first_of(self, int g, double side, double end, double* step) noexcept nogil:
        """The variable of a settled block whose reduced cost is the first to reach zero, no later than end; or -1."""
        cdef int j, e, k = self.key[g], s = self.n_columns + g, best = -1
        cdef double key_cost = 0.0, key_entry = 0.0, cost, entry, here
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

    cdef double rate_of(self, int v) noexcept nogil:
        cdef double cost, entry
        self.reduced(v, &cost, &entry)
        return fabs(entry)

    cdef int largest_of(self, int v, double here, double* step) noexcept nogil:
        """Of the breakpoints that are as good as the chosen one, that of the largest pivot."""
        cdef int other
        cdef double most = self.rate_of(v), rate, last = here + TIE
        step[0] = here
        while self.ahead.size > 0 and self.ahead.step[0] <= last:
            here = self.ahead.step[0]
            other = self.ahead.take()
            rate = self.rate_of(other)
            if rate > most:
                v, most, step[0] = other, rate, here
        return v

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

    # Where blocks are looked at ------------------------------------------------------------------------------------

    def look(self):
        """Choose how ratio tests go from here, by counted multiplications (K10).

        Either settled blocks are put in the order of their radii: how far prices may move before they change. Or the
        reduced costs of all columns are kept, and the rows of the tableau are summed up by their entries.
        """
        cdef int g
        cdef double pivots = max(self.since, 1), share = <double>self.n_entries / max(self.n_blocks, 1)
        if self.costs is None:
            self.costs = ReducedCosts(self.n_rows, self.start, self.row, self.value)
        if self.looked and self.by_rows:
            self.work_by_rows = BY_ROWS * self.costs.visited / pivots
        elif self.looked:
            self.work_by_radii = 2.0 * share * self.scanned / pivots
        with nogil:
            self.costs.fill(&self.cost[0], &self.y[0])
            self.resettle()
            self.inverse.measure()
            for g in range(self.n_blocks):
                self.radius[g] = self.radius_of(g) if self.count[g] == 0 else 0.0
                self.is_fresh[g] = False
        self.n_near = min(self.n_blocks, max(NEAR * self.n_rows, self.n_blocks // 8, int((self.radii <= CLOSE).sum())))
        by_rows = self.work_by_rows or BY_ROWS * self.inverse.density() * self.n_entries
        self.by_rows = by_rows < (self.work_by_radii or 2.0 * share * self.n_near)
        self.looked = True
        self.n_fresh = self.scanned = self.costs.visited = 0
        if not self.by_rows:
            self.put_in_order()
        self.known_prices[:] = self.y

    def put_in_order(self):
        """Blocks by their radii, the nearest in order."""
        order, near = np.arange(self.n_blocks), self.n_near
        if near < self.n_blocks:
            order = np.argpartition(self.radii, near)
        order[:near] = order[:near][np.argsort(self.radii[order[:near]])]
        self.order = order.astype(np.int32)

    cdef double radius_of(self, int g) noexcept nogil:
        """The largest move of any price, within which no reduced cost of a settled block changes its sign."""
        cdef int j, k = self.key[g], s = self.n_columns + g
        cdef double key_cost = 0.0, key_length = 0.0, cost, least = INFINITY
        if k < self.n_columns:
            key_cost, key_length = self.costs.cost[k], self.length[k]
            if self.low[s] < self.high[s]:
                least = max(-key_cost if self.at_upper[s] else key_cost, 0.0) / max(key_length, 1e-300)
        for j in range(self.column_start[g], self.column_start[g + 1]):
            if j == k or self.low[j] == self.high[j]:
                continue
            cost = self.costs.cost[j] - key_cost
            cost = max(-cost if self.at_upper[j] else cost, 0.0)
            if cost < least * (self.length[j] + key_length):
                least = cost / (self.length[j] + key_length)
        return least

    cdef void note(self, int g) noexcept nogil:
        """The radius of a block holds no longer: it is looked at in every pivot."""
        self.radius[g] = 0.0
        if not self.is_fresh[g]:
            self.is_fresh[g] = True
            self.fresh[self.n_fresh] = g
            self.n_fresh += 1

    cdef int resettle(self) noexcept nogil:
        """Settle blocks anew whose reduced costs have the wrong sign, by rounding or by an edit: how many."""
        cdef int g, changed = 0
        self.passes += 1
        self.since = 0
        for g in range(self.n_blocks):
            if self.count[g] == 0 and not self.is_settled(g):
                self.settle(g)
                self.note(g)
                changed += 1
        if changed:
            self.refresh()
        return changed
