"""The dual simplex method on a block program (docs/method/blocks.md, K10, K12 and K13).

Most blocks are settled: only their key is basic. A ratio test passes the breakpoints of a settled block together
(flips of the whole block); classes of columns find these breakpoints.
"""

from libc.math cimport INFINITY, fabs, sqrt
from libc.string cimport memset

from copter.methods.blocks.block_basis cimport ARTIFICIAL, DRIFT, FLIPS, PIVOT, RATE, REWRITTEN, TIE, BlockBasis
from copter.methods.blocks.block_items cimport BlockItems
from copter.methods.blocks.breakpoints cimport Breakpoints
from copter.methods.blocks.working_inverse cimport WorkingInverse

cdef enum:
    STALE = -3  # returned in place of an ending: compute reduced costs and values anew, then go on

cdef enum:  # how a run ends: copter.methods.blocks.basis.Ending
    OPTIMAL = 0
    INFEASIBLE = 1
    UNFINISHED = 2
    UNSTABLE = 3

cdef int OFTEN = 25  # pivots between two looks at the loose blocks
cdef int CHECKED = 4  # looks between two checks of the rounding error
cdef int LOOSE = 16  # items are sorted anew once more than one block in LOOSE is loose
cdef int MANY = 64  # breakpoints; more unused ones than this within reach shrink the reach
cdef int ROUNDS = 20  # most times that blocks are settled anew between two pivots; one or two are usual
cdef double FARTHER = 4.0  # the next ratio test's reach is this many times the last step


cdef class BlockDual(BlockItems):
    """The dual simplex method: pivots from a dual feasible basis to an optimal one.

    Parameters
    ----------
    As :class:`BlockItems`.
    """

    def __init__(self, program, scale, cost, bint alone=False):
        BlockItems.__init__(self, program, scale, cost, alone)
        total = self.n_columns + self.n_blocks + self.n_rows
        self.ahead = Breakpoints(total)
        self.since = self.unchecked = 0
        self.reach = INFINITY
        self.looked = self.classed = self.astray = False
        self.pivots = self.flips = self.passes = 0

    def renew(self, const double[::1] least, const double[::1] most, const double[::1] row_lower,
              const double[::1] row_upper, const unsigned char[::1] changed=None):
        """Continue with new bounds of the sums and rows. Counters restart.

        Settled blocks whose bounds have changed are filled anew; others stay as they are. Returns False if a block's
        bounds contradict each other, or a variable has no bound to rest at: then start again with `begin` or `take`.

        Parameters
        ----------
        least, most, row_lower, row_upper : ndarray
            Of all blocks, of all rows; scaled.
        changed : ndarray (blocks,) uint8, optional
            The blocks that `rewrite` has written.
        """
        cdef int g, r, v, settled = 0, n = self.n_columns, first = self.n_columns + self.n_blocks
        cdef bint holds = True, known = changed is not None
        self.pivots = self.flips = self.passes = 0
        self.work = self.classes.work = 0
        with nogil:
            for r in range(self.n_rows):
                self.low[first + r], self.high[first + r] = row_lower[r], row_upper[r]
            self.set_tolerance()
            for r in range(self.n_rows):
                v = first + r
                holds = holds and (self.place[v] >= 0 or self.rest_row(r))
            for g in range(self.n_blocks):
                if not holds:
                    break
                v = n + g
                if self.low[v] == least[g] and self.high[v] == most[g] and not (known and changed[g]):
                    continue
                self.low[v], self.high[v] = least[g], most[g]
                if known and changed[g] == REWRITTEN and not self.classes.alone:
                    self.reclassify(g)
                if self.count[g] > 0:
                    holds = self.rest_block(g)
                    self.change(g)
                    continue
                settled += 1
                self.looked &= self.classes.alone or LOOSE * settled <= self.n_blocks
                if self.looked:
                    self.change(g)
                holds = self.settle(g)
            if holds:
                if self.looked:
                    self.relay()
                self.refresh()
        return holds

    cdef void reclassify(self, int g) noexcept nogil:
        """Find the classes of a block's new columns; without room for new classes, all are formed anew."""
        cdef int j
        self.classes.listed = False
        for j in range(self.column_start[g], self.column_start[g + 1]):
            self.classed = self.classed and self.classes.assign(j)
        self.looked &= self.classed

    def begin(self, double[::1] y):
        self.looked = self.classed = False
        return BlockBasis.begin(self, y)

    def take(self, WorkingInverse inverse, double[::1] y, int[::1] heads, int[::1] keys, unsigned char[::1] at_upper):
        self.looked = self.classed = False
        return BlockBasis.take(self, inverse, y, heads, keys, at_upper)

    # The main loop ------------------------------------------------------------------------------------------------

    def run(self, int most):
        """Make at most `most` pivots; return an ending as numbered by copter.methods.blocks.basis.Ending.

        The run ends UNSTABLE if rounding makes it cycle: if blocks are settled anew more than `ROUNDS` times without a
        pivot, or a ratio test passes more than `FLIPS` breakpoints for each variable.
        """
        cdef int status, last = self.pivots + most, before, rounds = 0
        with nogil:
            while True:  # ends: passes without a pivot are at most ROUNDS, pivots at most `most`
                if not self.looked or self.unchecked >= CHECKED or not self.look_again():
                    self.look()
                before = self.pivots
                status = self.loop(last)
                rounds = 0 if self.pivots > before else rounds + 1
                if rounds > ROUNDS:
                    status = UNSTABLE
                    break
                if status != STALE and not (status == OPTIMAL and self.resettle()):
                    break
        return status

    cdef int loop(self, int last) noexcept nogil:
        cdef int p, q
        cdef double excess, step
        while True:  # ends: each pass counts a pivot, up to last
            p = self.choose_row(&excess)
            if p < 0:
                return OPTIMAL
            if self.pivots >= last:
                return UNFINISHED
            self.since += 1
            if self.since > OFTEN:
                return STALE
            self.inverse.row(p, &self.place[self.n_columns + self.n_blocks], &self.rho[0])
            q = self.choose_column(excess, sqrt(self.inverse.norm[p]), &step)
            if q < 0:
                return UNSTABLE if self.astray else INFEASIBLE
            if not self.pivot(p, q, excess > 0.0, step):
                return UNSTABLE
            self.pivots += 1

    cdef int choose_row(self, double* excess) noexcept nogil:
        """Choose the leaving position by dual steepest edge: largest violation over row length; keys are swapped in."""
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
            self.change(self.block(best_key))
            self.swap(best)
        return best

    cdef bint pivot(self, int p, int q, bint to_upper, double step) noexcept nogil:
        """Update prices and values and let q enter at position p; return False if the pivot is small or inexact."""
        cdef int i, g, v, m = self.n_rows, first = self.n_columns + self.n_blocks
        cdef double side = -1.0 if to_upper else 1.0, theta, bound, cost, entry
        cdef double* alpha = &self.alpha[0]
        self.reduced(q, &cost, &entry)
        for i in range(m):
            self.y[i] -= step * side * self.rho[i]
        self.advance(step * side)
        self.inverse.apply(&self.shift[0], &self.place[first], alpha)
        self.move(alpha, 1.0)
        memset(&self.shift[0], 0, m * sizeof(double))
        self.effective(q, 1.0, &self.shift[0])
        self.inverse.apply(&self.shift[0], &self.place[first], alpha)
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
        if v != ARTIFICIAL:
            self.x[v] = bound
            self.at_upper[v] = to_upper
            self.place[v] = -1
            if v < first:
                self.count[self.block(v)] -= 1
        self.inverse.pivot(p, alpha, &self.rho[0])
        self.head[p], self.place[q] = q, p
        if q < first:
            self.change(self.block(q))
        if 0 <= v < first:
            g = self.block(v)
            self.change(g)
            if self.count[g] == 0 and fabs(self.excess(self.key[g])) > self.tolerance:
                if not self.settle(g):
                    return False
                self.refresh()
        self.relay()
        return True

    cdef void move(self, const double* alpha, double theta) noexcept nogil:
        """Lower the basic variables' values by theta times alpha, and update the keys."""
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

    cdef int choose_column(self, double excess, double length, double* step) noexcept nogil:
        """Choose the entering variable: the last breakpoint up to which the dual objective rises; earlier ones flip.

        Usually few breakpoints are passed, so the search first looks within a reach relative to the row's length, and
        beyond it only if those do not suffice. Returns -1 if all breakpoints together do not suffice: the program is
        infeasible.
        """
        cdef int v
        cdef double side = -1.0 if excess > 0.0 else 1.0, left = fabs(excess)
        memset(&self.shift[0], 0, self.n_rows * sizeof(double))
        self.spread()
        v = self.passed(self.reach / length, side, &left, step)
        if v < 0 and self.reach < INFINITY and not self.astray:
            v = self.passed(INFINITY, side, &left, step)
            if v >= 0:
                self.reach = max(self.reach, FARTHER * step[0] * length)
        elif v >= 0 and self.ahead.most > MANY:
            self.reach = max(0.5 * self.reach if self.reach < INFINITY else 0.0, FARTHER * step[0] * length)
        return v

    cdef int passed(self, double end, double side, double* left, double* step) noexcept nogil:
        """Pass the breakpoints up to `end`, as in :meth:`choose_column`; return -1 if they do not suffice."""
        cdef int v, count = 0
        cdef double here, farthest = end
        self.astray = False
        self.visits += 1
        self.ahead.size = self.ahead.most = 0
        self.classes.look_ahead(side * min(end, 1e30))  # finite, or equal slopes would differ
        self.hard_breakpoints(side, &end)
        if end < farthest and not self.classes.alone:
            self.classes.look_ahead(side * end)
        self.scan_all(side, end)
        while self.ahead.size > 0:  # ends: flips are at most FLIPS for each variable
            here = self.ahead.step[0]
            v = self.ahead.take()
            left[0] -= self.rate_of(v) * self.range_of(v)
            if left[0] <= self.tolerance:
                return self.largest_of(v, here, step)
            self.flip(v)
            self.flips += 1
            count += 1
            if count > FLIPS * len(self.place):
                self.astray = True
                return -1
            if v < self.n_columns + self.n_blocks and self.count[self.block(v)] == 0:
                self.scan(self.block(v), side, end)
        return -1

    cdef void scan_all(self, double side, double end) noexcept nogil:
        """Collect the breakpoints of the settled blocks."""
        cdef int c, e, t, n = self.n_pairs
        cdef double reach
        cdef const double* ahead = &self.classes.ahead[0]
        if self.classes.alone:
            for t in range(self.n_blocks):
                self.scan_once(t, side, end)
            return
        for c in range(n):
            reach = ahead[self.plus_of[c]] - ahead[self.minus_of[c]]
            if self.least[c] < reach:
                for e in range(self.pair_start[c], self.pair_start[c + 1]):
                    if self.base[self.item[e]] < reach:
                        self.scan_once(self.block(self.item[e]), side, end)
        for t in range(self.n_loose):
            self.scan_once(self.loose[t], side, end)
        for t in range(self.n_late_blocks):
            self.scan_once(self.late_blocks[t], side, end)

    cdef void scan_once(self, int g, double side, double end) noexcept nogil:
        """Scan a block unless this search has scanned it already."""
        if self.stamp[g] != self.visits:
            self.stamp[g] = self.visits
            self.scan(g, side, end)

    cdef void hard_breakpoints(self, double side, double* end) noexcept nogil:
        """Collect breakpoints of rows and unsettled blocks; the first that cannot flip lowers `end` to its step."""
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
        """Collect the breakpoints of one unsettled block."""
        cdef int j
        if self.is_changed[g] or self.is_late[g]:
            self.hard_exactly(g, side, end)
            return
        self.hard_item(self.n_columns + g, side, end)
        for j in range(self.column_start[g], self.column_start[g + 1]):
            self.hard_item(j, side, end)

    cdef void hard_item(self, int v, double side, double* end) noexcept nogil:
        """Do :meth:`consider` by the stored distance of a variable, which is infinite if it is basic or fixed."""
        cdef int p = self.plus[v], m = self.minus[v]
        cdef double rate, price
        if not self.base[v] <= self.classes.ahead[p] - self.classes.ahead[m]:
            return
        rate = side * (self.classes.slope[p] - self.classes.slope[m])
        price = self.base[v] - (self.classes.moved[p] - self.classes.moved[m])
        if rate > RATE and price <= end[0] * rate:
            if self.high[v] - self.low[v] == INFINITY:
                end[0] = max(price, 0.0) / rate
            self.ahead.add(v, max(price, 0.0) / rate)

    cdef void hard_exactly(self, int g, double side, double* end) noexcept nogil:
        """Do :meth:`hard_of` column by column, for a block whose items are out of date."""
        cdef int j, k = self.key[g], s = self.n_columns + g
        cdef double key_cost = 0.0, key_entry = 0.0, cost, entry
        if k < self.n_columns:
            key_cost, key_entry = self.cost[k] - self.dot(k, &self.y[0]), self.dot(k, &self.rho[0])
        if k != s and self.place[s] < 0:
            self.consider(s, key_cost, key_entry, side, end)
        for j in range(self.column_start[g], self.column_start[g + 1]):
            if j != k and self.place[j] < 0 and self.low[j] < self.high[j]:
                cost, entry = self.cost[j] - self.dot(j, &self.y[0]), self.dot(j, &self.rho[0])
                self.consider(j, cost - key_cost, entry - key_entry, side, end)

    cdef void consider(self, int v, double cost, double entry, double side, double* end) noexcept nogil:
        """Add the breakpoint of a variable outside settled blocks; one that cannot flip lowers `end` to its step."""
        cdef double here
        if not self.step_of(v, cost, entry, side, &here) or here > end[0]:
            return
        if self.high[v] - self.low[v] == INFINITY:
            end[0] = here
        self.ahead.add(v, here)

    cdef void scan(self, int g, double side, double end) noexcept nogil:
        """Add the breakpoint of a settled block: the first of its reduced costs to reach zero."""
        cdef int s = self.n_columns + g, best, earlier
        if self.count[g] > 0:
            return
        if self.is_changed[g] or self.is_late[g]:
            self.scan_exactly(g, side, end)
            return
        best = self.first_within(s, s + 1, side, &end)
        earlier = self.first_within(self.column_start[g], self.column_start[g + 1], side, &end)
        best = earlier if earlier >= 0 else best
        if best >= 0:
            self.ahead.add(best, end)

    cdef void scan_exactly(self, int g, double side, double end) noexcept nogil:
        """Do :meth:`scan` column by column, for a block whose items are out of date."""
        cdef int j, k = self.key[g], s = self.n_columns + g, best = -1
        cdef double key_cost = 0.0, key_entry = 0.0, here
        if k < self.n_columns:
            key_cost, key_entry = self.cost[k] - self.dot(k, &self.y[0]), self.dot(k, &self.rho[0])
            if self.step_of(s, key_cost, key_entry, side, &here) and here < end:
                best, end = s, here
        for j in range(self.column_start[g], self.column_start[g + 1]):
            if j == k:
                continue
            if self.step_of(j, self.cost[j] - self.dot(j, &self.y[0]) - key_cost,
                            self.dot(j, &self.rho[0]) - key_entry, side, &here) and here < end:
                best, end = j, here
        if best >= 0:
            self.ahead.add(best, end)

    cdef double rate_of(self, int v) noexcept nogil:
        cdef double cost, entry
        self.reduced(v, &cost, &entry)
        return fabs(entry)

    cdef int largest_of(self, int v, double here, double* step) noexcept nogil:
        """Return the variable with the largest pivot among those whose breakpoint ties with that of v."""
        cdef int other
        cdef double most = self.rate_of(v), rate, last = here + TIE
        step[0] = here
        # ends: each pass takes a breakpoint, and none is added
        while self.ahead.size > 0 and self.ahead.step[0] <= last:
            here = self.ahead.step[0]
            other = self.ahead.take()
            rate = self.rate_of(other)
            if rate > most:
                v, most, step[0] = other, rate, here
        return v

    # Against rounding ---------------------------------------------------------------------------------------------

    cdef bint look_again(self) noexcept nogil:
        """List the loose blocks under their pairs if there are many; return False if classes do not fit the prices."""
        if self.since > OFTEN:
            if self.classes.alone or not self.classes.covers(&self.y[0]):
                return False
            self.since = 0
            self.unchecked += 1
            self.inverse.measure(&self.place[self.n_columns + self.n_blocks])
            if LOOSE * self.n_loose > self.n_blocks:
                self.restart()
        return True

    cdef void look(self) noexcept nogil:
        """Compute the reduced costs and row lengths anew."""
        self.inverse.measure(&self.place[self.n_columns + self.n_blocks])
        self.resettle()
        cdef bint fits = self.classed and self.classes.covers(&self.y[0])
        if not (fits and (self.looked or self.classes.are_few(&self.y[0]))):
            self.classes.choose(&self.y[0], self.looked)
            self.lay()
        elif not self.looked or self.classes.alone or LOOSE * self.n_loose > self.n_blocks:
            self.lay()
        self.looked = self.classed = True

    cdef int resettle(self) noexcept nogil:
        """Compute reduced costs anew and fill blocks anew whose reduced costs have a wrong sign; return how many."""
        cdef int g, changed = 0
        self.passes += 1
        self.since = self.unchecked = 0
        self.work += self.n_entries
        self.fill()
        for g in range(self.n_blocks):
            if self.count[g] == 0 and not self.is_settled(g):
                self.settle(g)
                changed += 1
        if changed:
            self.refresh()
            self.lay()
        return changed

    cdef bint is_settled(self, int g) noexcept nogil:
        """Return whether all reduced costs of a block have the sign that its bounds require."""
        cdef int j, k = self.key[g], s = self.n_columns + g
        cdef double key_cost = 0.0, cost
        if k < self.n_columns:
            key_cost = self.now[k]
            if self.low[s] < self.high[s] and (-key_cost if self.at_upper[s] else key_cost) < -TIE:
                return False
        for j in range(self.column_start[g], self.column_start[g + 1]):
            cost = self.now[j] - key_cost
            if (-cost if self.at_upper[j] else cost) < -TIE and j != k and self.low[j] < self.high[j]:
                return False
        return True
