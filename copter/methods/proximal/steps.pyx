"""Proximal steps on a working set of plain and held groups over few rows, in one compiled call.

The same steps as those of `proximal_point.py`, on arrays that are kept from call to call and on the groups that the
prices open: a round of few changes spends more time on the calls between kernels than in them.
"""

import numpy as np

from libc.math cimport INFINITY, fabs, isfinite
from libc.string cimport memcpy

from copter.methods.proximal.ascent cimport Ascent
from copter.methods.proximal.groups cimport Groups
from copter.methods.proximal.open_groups cimport OpenGroups
from copter.methods.proximal.project cimport Slacks

cdef double FIRST_MOVE = 0.1  # in a trust region, a line search first moves prices by at most this share of their size


cdef inline double relative_gap(double objective, double bound) noexcept nogil:
    """Return |P - D| / (1 + |P| + |D|), equation F10."""
    return fabs(objective - bound) / (1.0 + fabs(objective) + fabs(bound))


cdef class Steps:
    """The steps' arrays, and their solves."""

    cdef Ascent ascent
    cdef OpenGroups groups
    cdef Slacks slacks
    cdef Py_ssize_t m
    cdef double sigma, gap, offset, tolerance, growth, least_sigma, largest_sigma
    cdef int proximal_steps, newton_steps, most_steps, most_violated, easy, most_newton
    # by row: prices, the slacks' centers and parameters, signed prices
    cdef double[::1] y, slack, slack_sigma, signed, row_tolerance
    cdef const double[::1] lower, upper, row_scale
    cdef double[::1] longest  # by column of the open groups, of which so many were open at the last step
    cdef Py_ssize_t moved

    def __init__(self):
        self.m = -1
        self.ascent, self.groups = Ascent.__new__(Ascent), OpenGroups()
        self.slacks = Slacks.__new__(Slacks)
        self.ascent.dual = self.groups

    cdef int reserve(self, Py_ssize_t m, Py_ssize_t n) except -1:
        """Make room for so many rows and columns."""
        cdef Ascent ascent = self.ascent
        if self.longest is None or self.longest.shape[0] < n:
            self.longest = np.empty(n + n // 4)
        if self.m == m:
            return 0
        self.m = ascent.m = self.slacks.count = m
        self.y, self.slack, self.slack_sigma, self.signed, self.row_tolerance = np.empty((5, m))
        ascent.here, ascent.found = np.empty((3, m)), np.empty((3, m))
        ascent.matrix, ascent.factor, ascent.factorises = np.empty((m, m)), np.empty((m, m)), True
        ascent.direction, ascent.total = np.empty((2, m))
        ascent.touched = np.zeros(2 * m, dtype=np.int32)
        ascent.tolerance = self.row_tolerance
        self.slacks.center, self.slacks.sigma = self.slack, self.slack_sigma
        return 0

    def solve(self, ws, rows, const double[::1] prices, double sigma, control, rules):
        """Do `solve_working_set` of `proximal_point.py`, for 1 to 64 rows, and plain and held groups.

        rules: columns from which there are several threads, their number, the size of a zero price, and the largest
        distance of prices; then the numbers of `proximal_point.py`: most steps with a violated row, easy steps, most
        Newton steps, least and largest sigma.

        Returns
        -------
        tuple
            The fields of its `Progress`.
        """
        cdef Py_ssize_t i, m = prices.shape[0], n, pieces
        cdef bint converged, left
        cdef double trust, idle, share
        cdef const double[::1] tolerance = control.row_tolerance
        cdef OpenGroups groups = self.groups
        cdef Groups columns = ws.groups()
        settings, stop = control.settings, control.stop
        n, pieces = columns.n_columns, settings.n_threads
        (groups.threaded, groups.threads, idle, trust, self.most_violated, self.easy, self.most_newton,
         self.least_sigma, self.largest_sigma) = rules
        self.lower, self.upper, self.row_scale = rows.lower, rows.upper, rows.scale
        self.slacks.scale, self.slacks.lower, self.slacks.upper = self.row_scale, self.lower, self.upper
        self.reserve(m, n)
        # Prices without a trust region open most groups; a copy of many columns would take much memory.
        all_open = not trust < INFINITY and n >= groups.threaded
        groups.begin_at(columns, ws.x, self.slacks, prices, sigma, idle, pieces, all_open)
        groups.first_move = FIRST_MOVE if trust < INFINITY else INFINITY
        self.ascent.base, self.ascent.weight = groups.base, groups.weight
        self.sigma, self.offset, self.tolerance, self.growth = (sigma, control.offset, control.tolerance,
                                                                settings.sigma_growth)
        self.most_steps, self.ascent.radius = settings.max_proximal_steps, trust
        self.proximal_steps = self.newton_steps = 0
        for i in range(m):
            self.y[i], self.row_tolerance[i] = prices[i], tolerance[i]
            self.slack[i] = min(max(groups.rest[0, i], self.lower[i]), self.upper[i])
        converged = self.take_steps(stop)
        groups.write_back()
        left = groups.distance(&self.y[0]) > trust
        if left:  # to the edge of the trust region, along the line from the base (equation A9)
            share = trust / groups.distance(&self.y[0])
            for i in range(m):
                self.y[i] = prices[i] + (self.y[i] - prices[i]) * share
        displacement = np.zeros(0)
        if not converged and not left:  # only then does anybody look for a ray
            displacement, i = np.zeros(n), self.moved
            displacement[slice(None) if groups.columns is columns else np.asarray(groups.place)[:i]] = self.longest[:i]
        groups.whole, groups.columns, groups.point, self.lower, self.upper = (None,) * 5
        self.slacks.lower, self.slacks.upper = None, None
        return (np.array(self.y), self.sigma, self.proximal_steps, self.newton_steps, self.gap, converged and not left,
                displacement, left)

    cdef bint take_steps(self, stop) except -1:
        """Take proximal steps until the program's gap is closed (True), or the prices are outside the region."""
        cdef Py_ssize_t i
        cdef int _step, taken, violated = 0
        cdef bint feasible
        cdef double objective, length = 0.0, dual
        cdef OpenGroups groups = self.groups
        self.gap, self.moved = INFINITY, 0
        for _step in range(self.most_steps):
            groups.sigma = self.sigma
            for i in range(self.m):
                self.slack_sigma[i] = self.sigma * (self.row_scale[i] * self.row_scale[i])
            taken = self.ascent.climb(&self.y[0], stop, self.most_newton, None)
            self.newton_steps += taken
            memcpy(&self.y[0], &self.ascent.here[0, 0], self.m * sizeof(double))
            memcpy(&self.slack[0], &self.ascent.here[1, 0], self.m * sizeof(double))
            if groups.distance(&self.y[0]) > self.ascent.radius:
                return False
            self.proximal_steps += 1
            with nogil:
                for i in range(self.moved, groups.before[groups.opened]):
                    self.longest[i] = 0.0
                objective = groups.accept(&self.longest[0], &length)
                self.moved = groups.before[groups.opened]
                dual = self.dual_value()
                self.gap = relative_gap(objective + self.offset, dual + self.offset)
                feasible = True
                for i in range(self.m):
                    feasible = feasible and fabs(self.ascent.here[2, i]) <= self.row_tolerance[i]
            if feasible and self.gap <= self.tolerance:
                return True
            violated = 0 if feasible else violated + 1
            if stop() or violated >= self.most_violated:
                return False
            if feasible and taken <= self.easy:
                self.sigma = min(self.sigma * self.growth, self.largest_sigma)
            elif not feasible:
                self.sigma = max(self.sigma / self.growth, self.least_sigma)
        return False

    cdef double dual_value(self) noexcept nogil:
        """Return the dual value at the present prices, those of the wrong sign as zero (equation A3)."""
        cdef Py_ssize_t i
        cdef double value = 0.0, price
        for i in range(self.m):
            price = self.y[i]
            if (not isfinite(self.lower[i]) and price > 0.0) or (not isfinite(self.upper[i]) and price < 0.0):
                price = 0.0
            self.signed[i] = price
            if price != 0.0:
                value += price * (self.lower[i] if price > 0.0 else self.upper[i])
        return value + self.groups.minimum(&self.signed[0])
