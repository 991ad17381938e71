"""Sums over the coupling rows, each in one pass: prices of the right sign, dual terms, tolerances."""

import numpy as np

from libc.math cimport fabs, isfinite


cdef inline double largest_bound(double lower, double upper) noexcept nogil:
    """Return the larger |bound| of a row, of its finite ones; zero without one."""
    cdef double low = fabs(lower) if isfinite(lower) else 0.0, high = fabs(upper) if isfinite(upper) else 0.0
    return max(low, high)


def signed(const double[::1] y, const double[::1] lower, const double[::1] upper):
    """Return prices with wrong signs for one-sided rows set to zero, (m,)."""
    cdef Py_ssize_t i
    prices = np.empty(y.shape[0])
    cdef double[::1] price = prices
    with nogil:
        for i in range(y.shape[0]):
            price[i] = y[i]
            if not isfinite(lower[i]) and price[i] > 0.0 or not isfinite(upper[i]) and price[i] < 0.0:
                price[i] = 0.0
    return prices


def dual_terms(const double[::1] y, const double[::1] lower, const double[::1] upper):
    """Return the sum of min over lower <= s <= upper of y's, for prices of the right sign, and of the terms' sizes."""
    cdef Py_ssize_t i
    cdef double value = 0.0, size = 0.0, term
    with nogil:
        for i in range(y.shape[0]):
            if y[i] != 0.0:
                term = y[i] * (lower[i] if y[i] > 0.0 else upper[i])
                value += term
                size += fabs(term)
    return value, size


def row_tolerances(const double[::1] lower, const double[::1] upper, double share, double most):
    """Return share * (1 + the larger finite bound) of each row, at most `most`, (m,)."""
    cdef Py_ssize_t i
    tolerances = np.empty(lower.shape[0])
    cdef double[::1] tolerance = tolerances
    with nogil:
        for i in range(lower.shape[0]):
            tolerance[i] = min(share * (1.0 + largest_bound(lower[i], upper[i])), most)
    return tolerances


def is_within(const double[::1] value, const double[::1] base, const double[::1] most, double times=1.0):
    """Return whether no value is farther than times * most from its base; False where one is no number."""
    cdef Py_ssize_t i
    for i in range(value.shape[0]):
        if not fabs(value[i] - base[i]) <= times * most[i]:
            return False
    return True


def farthest(const double[::1] value, const double[::1] base, const double[::1] unit):
    """Return the largest |value - base| in units of its row; 0 without rows."""
    cdef Py_ssize_t i
    cdef double largest = 0.0, here
    for i in range(value.shape[0]):
        here = fabs(value[i] - base[i]) / unit[i]
        if here > largest:
            largest = here
    return largest
