"""Coordinate ascent on a concave quadratic function of prices, with Anderson extrapolation (equations A12 to A14)."""

import numpy as np

from libc.math cimport fabs

cdef enum:
    KEPT = 7  # sweeps between two extrapolations
cdef double REST = 1e-14  # regularisation of the extrapolation's system, as a share of its trace


cdef bint weights(double[KEPT][KEPT] product, double* weight) noexcept nogil:
    """Solve product @ weight = 1 by elimination, in place, and scale to the sum 1; False for a singular system."""
    cdef int i, j, h
    cdef double factor, total = 0.0
    for i in range(KEPT):
        total += product[i][i]
    for i in range(KEPT):
        product[i][i] += REST * total
        weight[i] = 1.0
    for i in range(KEPT):
        if not product[i][i] > 0.0:
            return False
        for j in range(i + 1, KEPT):
            factor = product[j][i] / product[i][i]
            for h in range(i, KEPT):
                product[j][h] -= factor * product[i][h]
            weight[j] -= factor * weight[i]
    total = 0.0
    for i in range(KEPT - 1, -1, -1):
        for j in range(i + 1, KEPT):
            weight[i] -= product[i][j] * weight[j]
        weight[i] /= product[i][i]
        total += weight[i]
    if total == 0.0:
        return False
    for i in range(KEPT):
        weight[i] /= total
    return True


cdef class PriceModel:
    """The function slope'd - d'Hd / 2 of a move d of the prices.

    Parameters
    ----------
    first, place, entry : ndarray
        Rows of the symmetric matrix H: entries first[k] to first[k + 1] - 1 of row k, and their columns.
    diagonal : ndarray (m,)
        Diagonal of H, positive.
    """

    cdef const int[::1] first
    cdef const int[::1] place
    cdef const double[::1] entry
    cdef const double[::1] diagonal

    def __init__(self, const int[::1] first, const int[::1] place, const double[::1] entry,
                 const double[::1] diagonal):
        self.first, self.place, self.entry, self.diagonal = first, place, entry, diagonal

    cdef void _step(self, Py_ssize_t k, double* slope, double* move) noexcept nogil:
        """Move price k to its best value, the others fixed, and update every price's slope."""
        cdef double length = slope[k] / self.diagonal[k]
        cdef Py_ssize_t e
        move[k] += length
        for e in range(self.first[k], self.first[k + 1]):
            slope[self.place[e]] -= self.entry[e] * length

    def ascend(self, const long[::1] order, const double[::1] start, double[::1] move, double share, int most):
        """Maximise from d = 0 by sweeps over the coordinates; returns the number of sweeps.

        A sweep takes the coordinates in `order` and then backwards. Every seven sweeps, the combination of their points
        whose last changes nearly cancel replaces the last point if it has a larger value.

        Parameters
        ----------
        order : ndarray (m,) of int64
        start : ndarray (m,)
            Slope at d = 0.
        move : ndarray (m,)
            Written: the point d.
        share : float
            The sweeps end when no slope exceeds this share of the largest one at the start.
        most : int
            Most extrapolations.
        """
        cdef Py_ssize_t m = start.shape[0], i, e
        cdef int done = 0, _sweep, h, other
        cdef double largest = 0.0, now = 0.0, gain, value
        cdef double[KEPT][KEPT] product
        cdef double[KEPT] weight
        cdef double[::1] slope = np.array(start), farther = np.empty(m), beyond = np.empty(m)
        cdef double[:, ::1] change = np.empty((KEPT, m))
        if m == 0:
            return 0
        with nogil:
            for i in range(m):
                move[i] = 0.0
                largest = max(largest, fabs(slope[i]))
            for _sweep in range(most):
                for h in range(KEPT):
                    for i in range(m):
                        change[h, i] = -move[i]
                    for i in range(m):
                        self._step(order[i], &slope[0], &move[0])
                    for i in range(m - 1, -1, -1):
                        self._step(order[i], &slope[0], &move[0])
                    done += 1
                    now = 0.0
                    for i in range(m):
                        change[h, i] += move[i]
                        now = max(now, fabs(slope[i]))
                    if now <= share * largest:
                        break
                if now <= share * largest:
                    break
                for h in range(KEPT):
                    for other in range(h + 1):
                        value = 0.0
                        for i in range(m):
                            value += change[h, i] * change[other, i]
                        product[h][other] = product[other][h] = value
                if not weights(product, weight):
                    break
                for i in range(m):  # the points are the last one less the changes after them
                    farther[i] = move[i]
                    value = 0.0
                    for h in range(KEPT - 1):
                        value += weight[h]
                        farther[i] -= value * change[h + 1, i]
                gain = value = 0.0
                for i in range(m):
                    beyond[i] = start[i]
                    for e in range(self.first[i], self.first[i + 1]):
                        beyond[i] -= self.entry[e] * farther[self.place[e]]
                    gain += (start[i] + beyond[i]) * farther[i]
                    value += (start[i] + slope[i]) * move[i]
                if gain > value:
                    for i in range(m):
                        move[i] = farther[i]
                        slope[i] = beyond[i]
        return done
