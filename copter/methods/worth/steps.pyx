"""Newton's steps of the smoothed dual over prices, and the points along them (docs/method/concave_worth.md, W10)."""

import numpy as np

from libc.math cimport INFINITY, fabs
from scipy.linalg.cython_lapack cimport dposv

cdef double RIDGE = 1e-9  # share of a row's own curvature that is added to it
cdef double FLAT = 1e-7  # least curvature of a row: its usage for each unit of price, as a share of both


cdef class Steps:
    """The rows of a model, between `lower` and `upper`, and the last step of their prices.

    Attributes
    ----------
    slope, step, new : ndarray (rows,)
        Slope of the smoothed dual, Newton's step, and the last prices along it.
    decrement : float
        What the step promises to gain.
    loose : float
        Prices of units that are unused or overused.
    steepest : float
        Largest slope of a row that may move.
    still : ndarray (rows,) int8
        Rows whose prices stay; none at first.
    """

    cdef const double[::1] lower, upper
    cdef readonly object slope, step, new
    cdef double[::1] slope_, step_, new_
    cdef double[::1] system, right, curvature
    cdef int[::1] free
    cdef readonly object still
    cdef char[::1] still_
    cdef readonly double decrement, loose, steepest

    def __init__(self, const double[::1] lower, const double[::1] upper):
        cdef int m = lower.shape[0]
        self.lower, self.upper = lower, upper
        self.slope, self.step, self.new = np.zeros((3, m))
        self.slope_, self.step_, self.new_ = self.slope, self.step, self.new
        self.system, self.right, self.curvature = np.zeros(m * m), np.zeros(m), np.zeros(m)
        self.free = np.zeros(m, dtype=np.int32)
        self.still = np.zeros(m, dtype=np.int8)
        self.still_ = self.still

    cdef inline double paid(self, int k, double sign, double used) noexcept nogil:
        """The bound of a row that a price of this sign is paid for; at zero, the one that is violated, or its usage."""
        if sign > 0.0 or (sign == 0.0 and used > self.upper[k]):
            return self.upper[k]
        if sign < 0.0 or (sign == 0.0 and used < self.lower[k]):
            return self.lower[k]
        return used

    def direct(self, const double[::1] y, const double[::1] used, const double[:, ::1] hessian, double size,
               double damping):
        """Set slope and step after a response at prices y; `size` is about that of the objective.

        A row at price zero moves only where its bound is violated, and not to the price's other sign.
        """
        cdef int k, n = 0, m = self.lower.shape[0], kept = 0
        with nogil:
            self.loose, self.steepest, self.decrement = 0.0, 0.0, 0.0
            for k in range(m):
                self.slope_[k] = self.paid(k, y[k], used[k]) - used[k]
                if not self.still_[k] and (y[k] != 0.0 or self.slope_[k] != 0.0):
                    self.free[n] = k
                    n += 1
                    self.loose += fabs(self.slope_[k] * y[k])
                    self.steepest = max(self.steepest, fabs(self.slope_[k]))
            self.solve(y, used, hessian, size, damping, n)
            for k in range(n):
                if y[self.free[k]] != 0.0 or not self.step_[self.free[k]] * self.slope_[self.free[k]] > 0.0:
                    self.free[kept] = self.free[k]
                    kept += 1
            if kept < n:
                self.solve(y, used, hessian, size, damping, kept)
            for k in range(m):
                self.decrement -= 0.5 * self.slope_[k] * self.step_[k]

    cdef void solve(self, const double[::1] y, const double[::1] used, const double[:, ::1] hessian, double size,
                    double damping, int n) noexcept nogil:
        """Set Newton's step of the n rows in `free`, zero for the others."""
        cdef int i, j, k, one = 1, failed = 0
        cdef double flat, scale
        self.step_[:] = 0.0
        if n == 0:
            return
        for i in range(n):
            k = self.free[i]
            for j in range(n):
                self.system[i * n + j] = hessian[k, self.free[j]]
            scale = fabs(y[k]) + size / (1.0 + fabs(used[k])) * 1e-3
            flat = FLAT * damping * (fabs(used[k]) + fabs(self.slope_[k])) / scale
            self.curvature[i] = hessian[k, k] * (1.0 + RIDGE) + flat + 1e-300
            self.system[i * n + i] = self.curvature[i]
            self.right[i] = -self.slope_[k]
        dposv("L", &n, &one, &self.system[0], &n, &self.right[0], &n, &failed)
        for i in range(n):
            k = self.free[i]
            self.step_[k] = -self.slope_[k] / self.curvature[i] if failed else self.right[i]

    def go(self, const double[::1] y, double share):
        """Set `new` to the prices at a share of the step, without changes of sign; returns the slope there, from y."""
        cdef int k
        cdef double there, falls = 0.0
        for k in range(y.shape[0]):
            there = y[k] + share * self.step_[k]
            if (there > 0.0 and (y[k] < 0.0 or self.upper[k] == INFINITY)
                    or there < 0.0 and (y[k] > 0.0 or self.lower[k] == -INFINITY)):
                there = 0.0
            self.new_[k] = there
            falls += self.slope_[k] * (there - y[k])
        return falls

    def rise(self, const double[::1] y, const double[::1] used):
        """Return the slope at `new`, where the rows are used so much, along the way from y."""
        cdef int k
        cdef double after = 0.0
        for k in range(y.shape[0]):
            if self.new_[k] != y[k]:
                after += ((self.paid(k, self.new_[k] if self.new_[k] != 0.0 else y[k], used[k]) - used[k])
                          * (self.new_[k] - y[k]))
        return after
