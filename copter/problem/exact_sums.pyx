"""Sums of doubles without rounding, as numbers that do not overlap (Shewchuk 1997)."""

import numpy as np

from libc.math cimport INFINITY, NAN, isfinite, nextafter

cdef enum:
    MOST_PARTS = 64  # doubles that do not overlap are fewer: 2,098 bits in pieces of 53


cdef int added(double* part, int count, double value) noexcept nogil:
    """Add a number to parts that do not overlap; returns their new number, -1 if a sum is beyond the largest double."""
    cdef double high, low, other
    cdef int i, kept = 0
    for i in range(count):
        other = part[i]
        high = value + other
        low = high - value
        low = (value - (high - low)) + (other - low)
        if low != 0.0:
            part[kept] = low
            kept += 1
        value = high
    if not isfinite(value) or kept == MOST_PARTS:
        return -1
    part[kept] = value
    return kept + 1


def exact_parts(const double[::1] values):
    """Return numbers that do not overlap and have the same exact sum as the values, a list; [nan] on overflow."""
    cdef double[MOST_PARTS] part
    cdef Py_ssize_t k
    cdef int count = 0, i
    with nogil:
        for k in range(values.shape[0]):
            if values[k] != 0.0:  # most terms of a bound are zero
                count = added(part, count, values[k])
            if count < 0:
                break
    return [NAN] if count < 0 else [part[i] for i in range(count)]


def enclosed_sums(
    const double[::1] first, const long long[::1] start, const double[::1] one, const double[::1] other
):
    """Return the doubles next below and above each exact sum; the same one twice if it is a double itself.

    Parameters
    ----------
    first : ndarray (k,)
    start : ndarray (k + 1,) int64
        Sum i adds `first[i]` and both arrays' entries from start[i] to start[i + 1].
    one, other : ndarray

    Returns
    -------
    low, high : ndarray (k,)
        NaN if a number is not finite, or a sum is beyond the largest double on the way.
    """
    cdef Py_ssize_t k = first.shape[0], i, e
    cdef int count, at
    cdef double[MOST_PARTS] part
    cdef double total, sum_, rest
    if start.shape[0] != k + 1 or one.shape[0] != other.shape[0]:
        raise ValueError("first, start and both arrays disagree")
    if k and (start[0] < 0 or start[k] > one.shape[0] or (np.diff(start) < 0).any()):
        raise IndexError("an entry that there is not")
    low, high = np.empty(k), np.empty(k)
    cdef double[::1] low_view = low, high_view = high
    with nogil:
        for i in range(k):
            count = added(part, 0, first[i])
            for e in range(start[i], start[i + 1]):
                if count >= 0:
                    count = added(part, count, one[e])
                if count >= 0:
                    count = added(part, count, other[e])
            if count < 0:
                low_view[i] = high_view[i] = NAN
                continue
            # the largest parts first: once a sum is rounded, the rest is less than the distance to the next double
            total, rest = part[count - 1], 0.0
            for at in range(count - 2, -1, -1):
                sum_ = total + part[at]
                rest = part[at] - (sum_ - total)
                total = sum_
                if rest != 0.0:
                    break
            low_view[i] = nextafter(total, -INFINITY) if rest != 0.0 else total
            high_view[i] = nextafter(total, INFINITY) if rest != 0.0 else total
    return low, high
