"""Coordinate descent on the augmented Lagrangian over the working columns, within each block's limit."""

import numpy as np

from libc.math cimport INFINITY

from copter.methods.proximal.groups cimport Groups


cdef class Sweep:
    """Exact coordinate steps from x, in place, on the augmented Lagrangian of equations A10 and A11.

    Parameters
    ----------
    columns : Groups
    row_lower, row_upper, penalty : ndarray (m,)
    center, x : ndarray (n,)
    sigma : float

    Attributes
    ----------
    activity, price : ndarray (m,)
        A x, and each row's multiplier at it.
    """

    cdef Groups columns
    cdef const double[::1] row_lower, row_upper, penalty, center
    cdef double[::1] x, y, _activity, _price
    cdef double[::1] slope
    cdef int[::1] active, active_end
    cdef double sigma
    cdef readonly object activity
    cdef readonly object price

    def __init__(self, Groups columns, const double[::1] row_lower, const double[::1] row_upper,
                 const double[::1] penalty, const double[::1] center, double sigma, double[::1] x):
        self.columns, self.row_lower, self.row_upper, self.penalty = columns, row_lower, row_upper, penalty
        self.center, self.sigma, self.x = center, sigma, x
        self.activity, self.price = np.zeros(row_lower.shape[0]), np.zeros(row_lower.shape[0])
        self._activity, self._price, self.y = self.activity, self.price, np.zeros(row_lower.shape[0])
        self.active_end = None

    def begin(self, const double[::1] y):
        """Take these prices, and compute the activities and multipliers at x anew."""
        cdef Py_ssize_t j, k, r
        cdef Groups columns = self.columns
        with nogil:
            for r in range(y.shape[0]):
                self.y[r] = y[r]
                self._activity[r] = 0.0
            for j in range(columns.n_columns):
                if self.x[j] != 0.0:
                    for k in range(columns.entry_start[j], columns.entry_start[j + 1]):
                        self._activity[columns.row[k]] += columns.coefficient[k] * self.x[j]
            for r in range(y.shape[0]):
                self._price[r] = self.row_price(r)

    cdef double row_price(self, Py_ssize_t r) noexcept nogil:
        """Return a row's multiplier at its activity (equation A10): y - penalty * (activity - slack)."""
        cdef double shifted = self._activity[r] - self.y[r] / self.penalty[r]
        if shifted < self.row_lower[r]:
            return self.penalty[r] * (self.row_lower[r] - shifted)
        if shifted > self.row_upper[r]:
            return self.penalty[r] * (self.row_upper[r] - shifted)
        return 0.0

    cdef double gradient_of(self, Py_ssize_t j) noexcept nogil:
        cdef double gradient = self.columns.cost[j] + (self.x[j] - self.center[j]) / self.sigma
        cdef Py_ssize_t k
        for k in range(self.columns.entry_start[j], self.columns.entry_start[j + 1]):
            gradient -= self.columns.coefficient[k] * self._price[self.columns.row[k]]
        return gradient

    cdef double curvature_of(self, Py_ssize_t j) noexcept nogil:
        """Return an upper bound of the second derivative along one column."""
        cdef double curvature = 1.0 / self.sigma
        cdef Py_ssize_t k
        for k in range(self.columns.entry_start[j], self.columns.entry_start[j + 1]):
            curvature += self.penalty[self.columns.row[k]] * self.columns.coefficient[k] * self.columns.coefficient[k]
        return curvature

    cdef void move(self, Py_ssize_t j, double step) noexcept nogil:
        """Move one column, and update the activities and prices of its rows."""
        cdef Py_ssize_t k
        cdef int r
        self.x[j] += step
        for k in range(self.columns.entry_start[j], self.columns.entry_start[j + 1]):
            r = self.columns.row[k]
            self._activity[r] += self.columns.coefficient[k] * step
            self._price[r] = self.row_price(r)

    def sweep(self):
        """Make one pass of exact coordinate steps over the groups; return the largest step.

        First each column of a group that gains by shrinking shrinks. Then, in a group with a limit, the cheapest column
        takes the room that is left, and weight of the dearest column beyond it (a pair step, which keeps the sum).
        """
        return self.over(True, -1.0)

    def sweep_and_keep(self, double margin):
        """Make one pass as :meth:`sweep` does, and keep the active columns.

        Active is a column above its lower bound, and one whose gradient exceeds zero, or the least of a group with a
        limit if that is less, by at most `margin`.
        """
        if self.active_end is None:
            self.slope, self.active = np.empty(self.columns.n_columns), np.empty(self.columns.n_columns, dtype=np.int32)
            self.active_end = np.empty(self.columns.count, dtype=np.int32)
        return self.over(True, margin)

    def sweep_active(self):
        """Make one pass over the columns that the last :meth:`sweep_and_keep` has kept."""
        return self.over(False, -1.0)

    cdef double over(self, bint every, double margin):
        """Return the largest step of one pass over every column, or over the active ones; keep those anew if the
        margin is not negative.
        """
        cdef Groups columns = self.columns
        cdef const double* lower = columns.lower
        cdef const double* upper = columns.upper
        cdef Py_ssize_t g, i, j, best, worst, last
        cdef bint limited
        cdef double gradient, low, high, room, first, second, step, wanted, largest = 0.0
        with nogil:
            for g in range(columns.count):
                limited = columns.limit[g] < INFINITY
                room = columns.limit[g]
                best = worst = -1
                low, high = INFINITY, -INFINITY
                last = columns.start[g + 1] if every else self.active_end[g]
                for i in range(columns.start[g], last):
                    j = i if every else self.active[i]
                    gradient = self.gradient_of(j)
                    if gradient > 0.0 or not limited:
                        first = self.curvature_of(j)
                        step = min(max(-gradient / first, lower[j] - self.x[j]), upper[j] - self.x[j])
                        if step != 0.0:
                            self.move(j, step)
                            largest = max(largest, abs(step))
                            gradient += first * step
                    room -= self.x[j]
                    if gradient < low and self.x[j] < upper[j]:
                        low, best = gradient, j
                    if gradient > high and self.x[j] > lower[j]:
                        high, worst = gradient, j
                    if margin >= 0.0:
                        self.slope[j] = gradient
                if margin >= 0.0:
                    self.keep(g, (min(low, 0.0) if limited else 0.0) + margin)
                if limited and best >= 0:
                    low, first = self.gradient_of(best), self.curvature_of(best)
                    wanted = min(-low / first, upper[best] - self.x[best])
                    step = max(0.0, min(wanted, room))
                    if step > 0.0:
                        self.move(best, step)
                        largest = max(largest, step)
                    if step < wanted and worst >= 0 and worst != best:
                        low += first * step
                        high, second = self.gradient_of(worst), self.curvature_of(worst)
                        step = min((high - low) / (2.0 * (first + second)), upper[best] - self.x[best],
                                   self.x[worst] - lower[worst])
                        if step > 0.0:
                            self.move(best, step)
                            self.move(worst, -step)
                            largest = max(largest, step)
        return largest

    cdef void keep(self, Py_ssize_t g, double most) noexcept nogil:
        """Keep a group's columns that are above their lower bounds, or whose gradients are at most this."""
        cdef Py_ssize_t j, count = self.columns.start[g]
        for j in range(self.columns.start[g], self.columns.start[g + 1]):
            if self.x[j] > self.columns.lower[j] or self.slope[j] <= most:
                self.active[count] = <int> j
                count += 1
        self.active_end[g] = <int> count
