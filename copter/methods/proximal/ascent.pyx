"""Semismooth Newton ascent of a proximal subproblem's dual: its matrix (equation A6) and its steps."""

import numpy as np

from libc.math cimport INFINITY, fabs
from libc.string cimport memcpy, memset

from copter.methods.proximal.groups cimport Groups
from copter.methods.proximal.project cimport Dual

cdef enum:
    MOST_ATTEMPTS = 8  # factorisations of one Newton matrix, each with more regularisation than the last

cdef double REGULARISATION = 1e-12  # added to the matrix's diagonal, relative to the largest possible diagonal entry


def newton_matrix(Groups columns, const unsigned char[::1] free, const double[::1] multiplier, double sigma,
                  double[:, ::1] matrix):
    """Add sigma * A J A' of equation (A6) to a dense matrix (m, m).

    J is the Jacobian of each block's projection: the identity on the free columns, less the mean over them in a group
    whose limit binds. The mean's part is the outer product of the columns' sum with itself: the work grows with the
    number of a group's entries, not with its pairs of columns.
    """
    cdef double[::1] total = np.empty(max(matrix.shape[0], 1))
    cdef int[::1] touched = np.zeros(2 * max(matrix.shape[0], 1), dtype=np.int32)
    with nogil:
        if columns.n_columns > 0:
            add_newton_matrix(columns, &free[0], &multiplier[0], sigma, &matrix[0, 0], matrix.shape[0], &total[0],
                              &touched[0])


cdef void add_newton_matrix(Groups columns, const unsigned char* free, const double* multiplier, double sigma,
                            double* matrix, Py_ssize_t m, double* total, int* touched) noexcept nogil:
    """Do :func:`newton_matrix`; `total` (m,) and `touched` (2 m,) are scratch, the latter zero before and after."""
    cdef const int* start = columns.start
    cdef const int* entry_start = columns.entry_start
    cdef const int* row = columns.row
    cdef const double* coefficient = columns.coefficient
    cdef int* is_touched = touched + m
    cdef Py_ssize_t g, i, k, h
    cdef int n_free, r, n_touched
    cdef double share, entry
    for g in range(columns.count):
        n_free = n_touched = 0
        for i in range(start[g], start[g + 1]):
            n_free += free[i]
        if n_free == 0 or (multiplier[g] > 0.0 and n_free == 1):
            continue
        share = sigma / n_free if multiplier[g] > 0.0 else 0.0
        for i in range(start[g], start[g + 1]):
            if not free[i]:
                continue
            for k in range(entry_start[i], entry_start[i + 1]):
                r = row[k]
                entry = sigma * coefficient[k]
                for h in range(entry_start[i], entry_start[i + 1]):
                    matrix[r * m + row[h]] += entry * coefficient[h]
                if share > 0.0:
                    if not is_touched[r]:
                        is_touched[r], touched[n_touched], total[r] = 1, r, 0.0
                        n_touched += 1
                    total[r] += coefficient[k]
        for k in range(n_touched):
            entry = share * total[touched[k]]
            for h in range(n_touched):
                matrix[touched[k] * m + touched[h]] -= entry * total[touched[h]]
            is_touched[touched[k]] = 0


def jacobian_product(Groups columns, const unsigned char[::1] free, const double[::1] multiplier, double sigma,
                     const double[::1] direction, double[::1] product):
    """Add sigma * A J A' direction to `product`, without forming the Newton matrix."""
    cdef const int* start = columns.start
    cdef const int* entry_start = columns.entry_start
    cdef const int* row = columns.row
    cdef const double* coefficient = columns.coefficient
    cdef Py_ssize_t g, j, k
    cdef int n_free
    cdef double mean, value
    with nogil:
        for g in range(columns.count):
            n_free = 0
            mean = 0.0
            if multiplier[g] > 0.0:
                for j in range(start[g], start[g + 1]):
                    if free[j]:
                        n_free += 1
                        for k in range(entry_start[j], entry_start[j + 1]):
                            mean += coefficient[k] * direction[row[k]]
                mean = mean / n_free if n_free else 0.0
            for j in range(start[g], start[g + 1]):
                if free[j]:
                    value = -mean
                    for k in range(entry_start[j], entry_start[j + 1]):
                        value += coefficient[k] * direction[row[k]]
                    value *= sigma
                    for k in range(entry_start[j], entry_start[j + 1]):
                        product[row[k]] += coefficient[k] * value


cdef bint factorised(double* matrix, Py_ssize_t m) noexcept nogil:
    """Replace the lower triangle of a positive definite matrix by its Cholesky factor; False if it is not definite."""
    cdef Py_ssize_t i, j, k
    cdef double total
    for j in range(m):
        for i in range(j, m):
            total = matrix[i * m + j]
            for k in range(j):
                total -= matrix[i * m + k] * matrix[j * m + k]
            if i > j:
                matrix[i * m + j] = total / matrix[j * m + j]
            elif total > 0.0:
                matrix[j * m + j] = total ** 0.5
            else:
                return False
    return True


cdef void solve_factorised(const double* factor, Py_ssize_t m, double* x) noexcept nogil:
    """Solve with a Cholesky factor, in place."""
    cdef Py_ssize_t i, k
    for i in range(m):
        for k in range(i):
            x[i] -= factor[i * m + k] * x[k]
        x[i] /= factor[i * m + i]
    for i in range(m - 1, -1, -1):
        for k in range(i + 1, m):
            x[i] -= factor[k * m + i] * x[k]
        x[i] /= factor[i * m + i]


cdef class Ascent:
    """The Newton steps of one subproblem.

    Parameters
    ----------
    dual : Dual
    tolerance : ndarray (m,)
        Largest residual of each row at the end.
    base, weight : ndarray (m,)
    radius : float
        The ascent ends where a price is farther than radius * weight from its base.
    """

    def __init__(self, Dual dual, const double[::1] tolerance, const double[::1] base, const double[::1] weight,
                 double radius):
        cdef Py_ssize_t size = max(tolerance.shape[0], 1)
        self.dual, self.tolerance, self.base, self.weight, self.radius = dual, tolerance, base, weight, radius
        self.m, self.factorises = tolerance.shape[0], False
        self.points = np.empty((3, size))
        self.here, self.found = self.points, np.empty((3, size))
        self.direction, self.total, self.touched = np.empty(size), np.empty(size), np.zeros(2 * size, dtype=np.int32)

    cdef bint has_ended(self) noexcept nogil:
        """Return whether all residuals are within their tolerances, or a price is outside the radius."""
        cdef Py_ssize_t i
        cdef bint feasible = True, inside = True
        for i in range(self.m):
            feasible = feasible and fabs(self.here[2, i]) <= self.tolerance[i]
            inside = inside and not fabs(self.here[0, i] - self.base[i]) > self.radius * self.weight[i]
        return feasible or not inside

    cdef double slack_curvature(self, Py_ssize_t i) noexcept nogil:
        """Return a slack's part of the matrix's diagonal (delta of equation A6), a little above zero."""
        cdef double sigma = self.dual.slacks.sigma[i]
        cdef double target = self.dual.slacks.center[i] - sigma * self.here[0, i]
        cdef bint inside = self.dual.slacks.lower[i] < target < self.dual.slacks.upper[i]
        return (sigma if inside else 0.0) + REGULARISATION * sigma

    cdef void newton_direction(self) noexcept nogil:
        """Solve (sigma A J A' + slack part) d = residual; with more regularisation where that breaks down."""
        cdef Py_ssize_t i, m = self.m
        cdef double extra = 0.0
        cdef double* matrix = &self.matrix[0, 0]
        cdef int _attempt
        memset(matrix, 0, m * m * sizeof(double))
        for i in range(m):
            matrix[i * m + i] = self.slack_curvature(i)
        if self.dual.columns.n_columns > 0:
            add_newton_matrix(self.dual.columns, &self.dual.out.free[0], &self.dual.out.multiplier[0], self.dual.sigma,
                              matrix, m, &self.total[0], &self.touched[0])
        for _attempt in range(MOST_ATTEMPTS):
            memcpy(&self.factor[0, 0], matrix, m * m * sizeof(double))
            for i in range(m):
                self.factor[i, i] += extra * matrix[i * m + i]
            if factorised(&self.factor[0, 0], m):
                memcpy(&self.direction[0], &self.here[2, 0], m * sizeof(double))
                solve_factorised(&self.factor[0, 0], m, &self.direction[0])
                return
            extra = max(10.0 * extra, 1e-10)
        for i in range(m):
            self.direction[i] = self.here[2, i] / max(matrix[i * m + i], 1e-300)

    def run(self, const double[::1] y, stop, int most, direction_at=None):
        """Maximise from prices y; `Projection.x` then holds the blocks' projections at the last point.

        The ascent also ends if `stop` returns True, the line search finds no better point, or `most` steps are taken.

        Parameters
        ----------
        y : ndarray (m,)
        stop : callable
            Asked before every step.
        most : int
        direction_at : callable, optional
            Returns the direction at (prices, residuals) in place of Newton's.

        Returns
        -------
        steps : int
        y, slack, residual : ndarray (m,)
            Of the last point.
        """
        cdef int steps
        if self.m == 0:
            self.dual.at(&self.here[0, 0], &self.here[1, 0], &self.here[2, 0])
            return 0, np.empty(0), np.empty(0), np.empty(0)
        steps = self.climb(&y[0], stop, most, direction_at)
        return steps, *self.points.copy()

    cdef int climb(self, const double* y, stop, int most, direction_at) except -1:
        """Do :meth:`run` where there are rows; the last point is in `here`."""
        cdef Py_ssize_t i, m = self.m
        cdef int step = 0
        cdef double value, found, slope
        cdef bint last = True
        if direction_at is None and not self.factorises:
            self.factorises = True
            self.matrix, self.factor = np.empty((m, m)), np.empty((m, m))
        memcpy(&self.here[0, 0], y, m * sizeof(double))
        value = self.dual.at(&self.here[0, 0], &self.here[1, 0], &self.here[2, 0])
        while step < most and not self.has_ended() and not stop():  # ends: steps are counted
            if direction_at is None:
                with nogil:
                    self.newton_direction()
            else:
                self.direction = direction_at(np.array(self.here[0]), np.array(self.here[2]))
            with nogil:
                slope = 0.0
                for i in range(m):
                    slope += self.direction[i] * self.here[2, i]
                if not slope > 0.0:
                    slope = 0.0
                    for i in range(m):
                        self.direction[i] = self.here[2, i] / self.dual.slacks.sigma[i]
                        slope += self.direction[i] * self.here[2, i]
                found = self.dual.searched(&self.here[0, 0], value, &self.direction[0], slope, &self.found[0, 0], &last)
                if found > -INFINITY:
                    memcpy(&self.here[0, 0], &self.found[0, 0], 3 * m * sizeof(double))
            if not found > -INFINITY:
                last = False
                break
            value = found
            step += 1
        if not last:
            self.dual.at(&self.here[0, 0], &self.here[1, 0], &self.here[2, 0])
        return step
