"""Proximal steps on a working set of plain groups over few rows, in one compiled call.

The same steps as those of `proximal_point.py` and `settling.py`, on arrays that are kept from call to call: a round of
few changes spends more time on the calls between kernels than in them.
"""

import numpy as np

from libc.math cimport INFINITY, fabs, isfinite
from libc.string cimport memcpy

from copter.methods.proximal.accumulate cimport plain_total
from copter.methods.proximal.ascent cimport Ascent
from copter.methods.proximal.groups cimport Groups, reduced_cost
from copter.methods.proximal.project cimport Dual, Projection, Slacks
from copter.methods.proximal.settle cimport radius_of


cdef struct Rules:
    # What `proximal_point.py` and `settling.py` say.
    Py_ssize_t settles, threaded  # columns from which groups are left out, and from which there are several threads
    double share, worth, wider, idle
    int most_violated, easy, most_newton, threads
    double least_sigma, largest_sigma


cdef class Program:
    """The program of a run of steps: all columns of a working set, or those of its open groups."""

    cdef Groups columns
    cdef double[::1] x, multiplier
    cdef unsigned char[::1] free
    cdef const double[::1] lower, upper  # of the rows, less what the settled groups use
    cdef double cost  # of the settled groups


cdef double kth(double* value, Py_ssize_t n, Py_ssize_t k) noexcept nogil:
    """Return the value that would be at place k in ascending order; reorders them."""
    cdef Py_ssize_t low = 0, high = n - 1, i, j
    cdef double pivot, other
    while low < high:  # ends: the interval shrinks
        pivot, i, j = value[(low + high) // 2], low, high
        while i <= j:  # ends: i grows or j falls
            while value[i] < pivot:  # ends: a value that is no smaller lies ahead
                i += 1
            while value[j] > pivot:  # ends: a value that is no larger lies ahead
                j -= 1
            if i <= j:
                other = value[i]
                value[i], value[j] = value[j], other
                i, j = i + 1, j - 1
        if k <= j:
            high = j
        elif k >= i:
            low = i
        else:
            break
    return value[k]


cdef inline double relative_gap(double objective, double bound) noexcept nogil:
    """Return |P - D| / (1 + |P| + |D|), equation F10."""
    return fabs(objective - bound) / (1.0 + fabs(objective) + fabs(bound))


cdef class Steps:
    """The steps' arrays, and their solves."""

    cdef Ascent ascent
    cdef Dual dual
    cdef Projection out
    cdef Slacks slacks
    cdef Program whole, opened
    cdef Rules rules
    cdef Py_ssize_t m, room, entries, groups, columns, pieces
    cdef int threads
    cdef double sigma, gap, offset, tolerance, growth, radius
    cdef int proximal_steps, newton_steps, most_steps
    # by row: prices, base prices and their unit, the slacks' centers and parameters, sums, signed prices
    cdef double[::1] y, base, weight, slack, slack_sigma, used, signed, row_tolerance, lower_left, upper_left
    cdef const double[::1] row_scale
    cdef double[::1] radii, order, reduced  # of the whole working set
    cdef int[::1] chosen  # open groups
    cdef double total  # objective of the whole point, and what it uses of the rows
    cdef double[::1] all_used
    cdef double[::1] center, found, move, longest  # by column of a program
    cdef int[::1] place, start, entry_start, row  # of the open groups
    cdef double[::1] x, limit, cost, lower, upper, coefficient, multiplier
    cdef unsigned char[::1] free, plain

    def __init__(self):
        self.m = self.room = self.entries = self.groups = self.columns = self.pieces = -1
        self.ascent, self.dual = Ascent.__new__(Ascent), Dual.__new__(Dual)
        self.out, self.slacks = Projection.__new__(Projection), Slacks.__new__(Slacks)
        self.whole, self.opened = Program.__new__(Program), Program.__new__(Program)
        self.opened.columns = Groups.__new__(Groups)
        self.ascent.dual, self.dual.out, self.dual.slacks = self.dual, self.out, self.slacks

    cdef int reserve_rows(self, Py_ssize_t m) except -1:
        """Make room for so many rows."""
        if self.m == m:
            return 0
        self.m = self.ascent.m = self.slacks.count = m
        self.pieces = -1
        self.y, self.base, self.weight, self.slack, self.slack_sigma, self.all_used = np.empty((6, m))
        self.used, self.signed, self.row_tolerance, self.lower_left, self.upper_left = np.empty((5, m))
        cdef Ascent ascent = self.ascent
        ascent.here, ascent.found, self.dual.trial = np.empty((3, m)), np.empty((3, m)), np.empty((3, m))
        ascent.matrix, ascent.factor, ascent.factorises = np.empty((m, m)), np.empty((m, m)), True
        ascent.direction, ascent.total = np.empty((2, m))
        ascent.touched = np.zeros(2 * m, dtype=np.int32)
        ascent.base, ascent.weight, ascent.tolerance = self.base, self.weight, self.row_tolerance
        self.slacks.center, self.slacks.sigma = self.slack, self.slack_sigma
        return 0

    cdef int reserve_columns(self, Py_ssize_t n) except -1:
        """Make room for a program of so many columns."""
        if self.columns < n:
            self.columns = n + n // 4
            self.center, self.found, self.move, self.longest = np.empty((4, self.columns))
        return 0

    cdef int reserve_open(self, Py_ssize_t n, Py_ssize_t groups, Py_ssize_t entries) except -1:
        """Make room for the open groups."""
        if self.room < n:
            self.room = n + n // 4
            self.x, self.cost, self.lower, self.upper = np.empty((4, self.room))
            self.free, self.place = np.empty(self.room, dtype=np.uint8), np.empty(self.room, dtype=np.int32)
            self.entry_start = np.empty(self.room + 1, dtype=np.int32)
        if self.groups < groups:
            self.groups = groups + groups // 4
            self.limit, self.multiplier = np.empty((2, self.groups))
            self.start, self.plain = np.empty(self.groups + 1, dtype=np.int32), np.ones(self.groups, dtype=np.uint8)
        if self.entries < entries:
            self.entries = entries + entries // 4
            self.row, self.coefficient = np.empty(self.entries, dtype=np.int32), np.empty(self.entries)
        return 0

    def solve(self, ws, rows, const double[::1] prices, double sigma, control, rules):
        """Do `solve_working_set` of `proximal_point.py`, for 1 to 64 rows and plain groups.

        rules: its numbers and those of `settling.py`, in the order of :class:`Rules`.

        Returns
        -------
        tuple
            The fields of its `Progress`.
        """
        cdef Py_ssize_t i, j, n, m = prices.shape[0]
        cdef bint settles, opens, converged, left, ended
        cdef double trust = control.trust_radius
        cdef Program part, whole = self.whole
        cdef const double[::1] tolerance = control.row_tolerance
        cdef Rules* rule = &self.rules
        (rule.settles, rule.threaded, rule.share, rule.worth, rule.wider, rule.idle, rule.most_violated, rule.easy,
         rule.most_newton, rule.threads, rule.least_sigma, rule.largest_sigma) = rules
        self.reserve_rows(m)
        self.row_scale, settings, stop = rows.scale, control.settings, control.stop
        whole.columns, whole.x, whole.free, whole.multiplier = ws.groups(), ws.x, ws.free, ws.multiplier
        whole.lower, whole.upper, whole.cost = rows.lower, rows.upper, 0.0
        self.slacks.scale, self.sigma = self.row_scale, sigma
        self.offset, self.tolerance, self.growth = control.offset, control.tolerance, settings.sigma_growth
        self.most_steps, self.threads = settings.max_proximal_steps, settings.n_threads
        self.proximal_steps = self.newton_steps = 0
        n = whole.columns.n_columns
        settles = n >= rule.settles
        with nogil:
            for i in range(m):
                self.y[i] = self.base[i] = prices[i]
                self.weight[i], self.row_tolerance[i] = 1.0, tolerance[i]
        self.radius = INFINITY
        if settles:
            self.settle()
        while True:  # ends: every round makes the radius larger, until all groups are open or the prices stay inside
            opens = settles and self.open()
            part = self.opened if opens else whole
            converged = self.take_steps(part, stop)
            if opens:
                self.close()
            left = settles and self.distance() > trust
            ended = not settles or left or converged or self.inside(&self.y[0]) or stop()
            if ended:
                break
            self.radius = rule.wider * max(self.radius, self.distance())
        if left:
            self.bring_back(trust)
        displacement = np.zeros(0)
        if not converged and not left:  # only then does anybody look for a ray
            displacement, j = np.zeros(n), part.columns.n_columns
            displacement[np.asarray(self.place)[:j] if opens else slice(None)] = np.asarray(self.longest)[:j]
        whole.columns, whole.x, whole.free, whole.multiplier, whole.lower, whole.upper = (None,) * 6
        return (np.array(self.y), self.sigma, self.proximal_steps, self.newton_steps, self.gap, converged and not left,
                displacement, left)

    # Settled groups -------------------------------------------------------------------------------------------------

    cdef int settle(self) except -1:
        """Find the radii of all groups, and the first one."""
        cdef Groups columns = self.whole.columns
        cdef Py_ssize_t g, i, j, k, place = <Py_ssize_t>(self.rules.share * columns.count)
        cdef double largest = 0.0
        if self.radii is None or self.radii.shape[0] < columns.count:
            self.radii, self.order = np.empty((2, columns.count + columns.count // 4))
            self.chosen = np.empty(columns.count + columns.count // 4, dtype=np.int32)
        if self.reduced is None or self.reduced.shape[0] < columns.n_columns:
            self.reduced = np.empty(columns.n_columns + columns.n_columns // 4)
        with nogil:
            for j in range(columns.n_columns):
                largest = max(largest, fabs(columns.cost[j]))
            for i in range(self.m):
                self.weight[i] = fabs(self.y[i])
                if self.row_scale[i] > 0.0:
                    self.weight[i] += self.rules.idle * largest / max(self.row_scale[i], 1e-300)
                else:
                    self.weight[i] += 1.0
                self.all_used[i] = 0.0
            self.total = 0.0
            for g in range(columns.count):
                for j in range(columns.start[g], columns.start[g + 1]):
                    self.reduced[j] = reduced_cost(columns, j, &self.y[0])
                    self.total += columns.cost[j] * self.whole.x[j]
                    for k in range(columns.entry_start[j], columns.entry_start[j + 1]):
                        self.all_used[columns.row[k]] += columns.coefficient[k] * self.whole.x[j]
                self.radii[g] = radius_of(columns, g, &self.whole.x[0], &self.reduced[0], &self.weight[0])
            memcpy(&self.order[0], &self.radii[0], columns.count * sizeof(double))
            self.radius = kth(&self.order[0], columns.count, place)
        return 0

    cdef double distance(self) noexcept nogil:
        """Return the distance of the prices from the base prices, in units of their size."""
        cdef Py_ssize_t i
        cdef double here, largest = 0.0
        for i in range(self.m):
            here = fabs(self.y[i] - self.base[i]) / self.weight[i]
            if here > largest:
                largest = here
        return largest

    cdef bint inside(self, const double* y) noexcept nogil:
        """Return whether prices are within the radius."""
        cdef Py_ssize_t i
        for i in range(self.m):
            if not fabs(y[i] - self.base[i]) <= self.radius * self.weight[i]:
                return False
        return True

    cdef void bring_back(self, double trust) noexcept nogil:
        """Move the prices to the edge of the trust region, along the line from the base (equation A9)."""
        cdef Py_ssize_t i
        cdef double share = min(1.0, trust / self.distance())
        for i in range(self.m):
            self.y[i] = self.base[i] + (self.y[i] - self.base[i]) * share

    cdef bint open(self) except -1:
        """Copy the groups whose radius is no larger than the present one; False if these are too many.

        What the others cost and use is the sum over all groups less that over the open ones.
        """
        cdef Program part = self.opened, whole = self.whole
        cdef Groups columns = whole.columns, found = part.columns
        cdef Py_ssize_t g, i, j, k, e, n = 0, count = 0, entries = 0
        with nogil:
            for g in range(columns.count):
                self.chosen[count] = <int>g
                count += self.radii[g] <= self.radius
            for e in range(count):
                g = self.chosen[e]
                n += columns.start[g + 1] - columns.start[g]
                entries += columns.entry_start[columns.start[g + 1]] - columns.entry_start[columns.start[g]]
        if count > self.rules.worth * columns.count or n == 0:
            self.radius = INFINITY
            return False
        self.reserve_open(n, count, entries)
        part.cost, n, entries = self.total, 0, 0
        with nogil:
            for i in range(self.m):
                self.used[i] = self.all_used[i]
            self.entry_start[0] = 0
            for e in range(count):
                g = self.chosen[e]
                self.start[e], self.limit[e], self.multiplier[e] = <int>n, columns.limit[g], whole.multiplier[g]
                for j in range(columns.start[g], columns.start[g + 1]):
                    self.place[n], self.x[n], self.cost[n] = <int>j, whole.x[j], columns.cost[j]
                    self.lower[n], self.upper[n], self.free[n] = columns.lower[j], columns.upper[j], whole.free[j]
                    part.cost -= columns.cost[j] * whole.x[j]
                    for k in range(columns.entry_start[j], columns.entry_start[j + 1]):
                        self.row[entries], self.coefficient[entries] = columns.row[k], columns.coefficient[k]
                        self.used[columns.row[k]] -= columns.coefficient[k] * whole.x[j]
                        entries += 1
                    n += 1
                    self.entry_start[n] = <int>entries
            self.start[count] = <int>n
            for i in range(self.m):
                self.lower_left[i] = whole.lower[i] - self.used[i]
                self.upper_left[i] = whole.upper[i] - self.used[i]
        found.count, found.n_columns, found.all_plain = count, n, True
        found.start, found.limit, found.plain = &self.start[0], &self.limit[0], &self.plain[0]
        found.cost, found.lower, found.upper = &self.cost[0], &self.lower[0], &self.upper[0]
        found.entry_start = &self.entry_start[0]
        found.row, found.coefficient = &self.row[0], &self.coefficient[0]
        part.x, part.free, part.multiplier = self.x, self.free, self.multiplier
        part.lower, part.upper = self.lower_left, self.upper_left
        return True

    cdef void close(self) noexcept:
        """Take the open groups' point into the whole one, and into the sums over all groups."""
        cdef Program part = self.opened
        cdef Groups columns = part.columns
        cdef Py_ssize_t i, j, k
        self.total = part.cost
        for i in range(self.m):
            self.all_used[i] = self.used[i]
        for j in range(columns.n_columns):
            self.whole.x[self.place[j]] = part.x[j]
            self.total += columns.cost[j] * part.x[j]
            for k in range(columns.entry_start[j], columns.entry_start[j + 1]):
                self.all_used[columns.row[k]] += columns.coefficient[k] * part.x[j]

    # Steps ----------------------------------------------------------------------------------------------------------

    cdef int begin(self, Program part) except -1:
        """Prepare the subproblem of a program."""
        cdef Groups columns = part.columns
        cdef Py_ssize_t n = columns.n_columns, pieces = self.threads if n >= self.rules.threaded else 1, i, j, k
        self.reserve_columns(n)
        if self.pieces != pieces:
            self.pieces = pieces
            self.out.activity, self.out.value = np.empty((pieces, self.m)), np.empty(pieces)
        self.out.x, self.out.free, self.out.multiplier = self.found, part.free, part.multiplier
        self.dual.columns, self.dual.center, self.dual.cost_size = columns, self.center, 0.0
        self.dual.threads = self.rules.threads if pieces > 1 else 1
        self.slacks.lower, self.slacks.upper = part.lower, part.upper
        self.ascent.radius = self.radius
        with nogil:
            for i in range(self.m):
                self.slack[i] = 0.0
            for j in range(n):
                self.dual.cost_size = max(self.dual.cost_size, fabs(columns.cost[j]))
                self.longest[j] = 0.0
                if part.x[j] != 0.0:
                    for k in range(columns.entry_start[j], columns.entry_start[j + 1]):
                        self.slack[columns.row[k]] += columns.coefficient[k] * part.x[j]
            for i in range(self.m):
                self.slack[i] = min(max(self.slack[i], part.lower[i]), part.upper[i])
        return 0

    cdef bint take_steps(self, Program part, stop) except -1:
        """Take proximal steps until the program's gap is closed (True), or the prices are outside the radius."""
        cdef Groups columns = part.columns
        cdef Py_ssize_t i, j, n = columns.n_columns
        cdef int _step, taken, violated = 0
        cdef bint feasible
        cdef double objective, length, longest = 0.0, dual, offset = self.offset + part.cost
        self.gap = INFINITY
        self.begin(part)
        for _step in range(self.most_steps):
            memcpy(&self.center[0], &part.x[0], n * sizeof(double))
            self.dual.sigma = self.sigma
            for i in range(self.m):
                self.slack_sigma[i] = self.sigma * (self.row_scale[i] * self.row_scale[i])
            taken = self.ascent.climb(&self.y[0], stop, self.rules.most_newton, None)
            self.newton_steps += taken
            memcpy(&self.y[0], &self.ascent.here[0, 0], self.m * sizeof(double))
            memcpy(&self.slack[0], &self.ascent.here[1, 0], self.m * sizeof(double))
            if not self.inside(&self.y[0]):
                return False
            self.proximal_steps += 1
            with nogil:
                objective = length = 0.0
                for j in range(n):
                    self.move[j] = self.found[j] - part.x[j]
                    length = max(length, fabs(self.move[j]))
                    part.x[j] = self.found[j]
                    objective += columns.cost[j] * part.x[j]
                if length >= longest:
                    memcpy(&self.longest[0], &self.move[0], n * sizeof(double))
                    longest = length
                dual = self.dual_value(part)
                self.gap = relative_gap(objective + offset, dual + offset)
                feasible = True
                for i in range(self.m):
                    feasible = feasible and fabs(self.ascent.here[2, i]) <= self.row_tolerance[i]
            if feasible and self.gap <= self.tolerance:
                return True
            violated = 0 if feasible else violated + 1
            if stop() or violated >= self.rules.most_violated:
                return False
            if feasible and taken <= self.rules.easy:
                self.sigma = min(self.sigma * self.growth, self.rules.largest_sigma)
            elif not feasible:
                self.sigma = max(self.sigma / self.growth, self.rules.least_sigma)
        return False

    cdef double dual_value(self, Program part) noexcept nogil:
        """Return the dual value of a program at the present prices, those of the wrong sign as zero (equation A3)."""
        cdef Py_ssize_t i
        cdef double value = 0.0
        for i in range(self.m):
            self.signed[i] = self.y[i]
            if (not isfinite(part.lower[i]) and self.y[i] > 0.0) or (not isfinite(part.upper[i]) and self.y[i] < 0.0):
                self.signed[i] = 0.0
            if self.signed[i] != 0.0:
                value += self.signed[i] * (part.lower[i] if self.signed[i] > 0.0 else part.upper[i])
        return value + plain_total(part.columns, &self.signed[0])
