"""The proximal subproblem, block by block, on flat arrays of working columns (docs/method/algorithm.md)."""

import numpy as np

from cython.parallel cimport prange
from libc.float cimport DBL_EPSILON as EPSILON
from libc.math cimport INFINITY, fabs
from libc.string cimport memset

from copter.methods.proximal.groups cimport Groups


cdef inline double clip(double value, double lower, double upper) noexcept nogil:
    if value < lower:
        return lower
    return upper if value > upper else value


cdef double sum_at(const double* target, const double* lower, const double* upper, int n, double multiplier,
                   int* n_free) noexcept nogil:
    """Return the sum of clip(target - multiplier), and write the number of columns strictly between their bounds."""
    cdef int j, count = 0
    cdef double total = 0.0, value
    for j in range(n):
        value = target[j] - multiplier
        if value <= lower[j]:
            total += lower[j]
        elif value >= upper[j]:
            total += upper[j]
        else:
            total += value
            count += 1
    n_free[0] = count
    return total


cdef double limit_multiplier(const double* target, const double* lower, const double* upper, int n,
                             double limit, double guess) noexcept nogil:
    """Return the mu >= 0 with sum clip(target - mu) = limit, or 0 if the sum is below the limit at mu = 0.

    Safeguarded Newton iteration. It starts from a guess, the multiplier of the last projection, which is nearly right
    one pass later. It ends when the error of the sum is no more than its rounding.
    """
    cdef int n_free, _step, j
    cdef double mu, low = 0.0, high = 0.0, excess, enough
    excess = sum_at(target, lower, upper, n, 0.0, &n_free) - limit
    if excess <= 0.0:
        return 0.0
    for j in range(n):
        if target[j] - lower[j] > high:
            high = target[j] - lower[j]
    enough = EPSILON * (4.0 * (1.0 + fabs(limit)) + n * high)
    mu = 0.0
    if 0.0 < guess < high:
        mu = guess
        excess = sum_at(target, lower, upper, n, mu, &n_free) - limit
    for _step in range(200):
        if fabs(excess) <= enough:
            break
        if excess > 0.0:
            low = mu
        else:
            high = mu
        if high - low <= 1e-16 * (1.0 + high):
            break
        if n_free > 0 and low < mu + excess / n_free < high:
            mu += excess / n_free
        else:
            mu = 0.5 * (low + high)
        excess = sum_at(target, lower, upper, n, mu, &n_free) - limit
    return mu


cdef class Projection:
    """Where a projection writes.

    Parameters
    ----------
    x, free : ndarray (n,)
        Columns, and 1 for those strictly between bounds, else 0 (uint8).
    multiplier : ndarray (g,)
        Of each group's limit, in units of sigma times cost; its old value is the first guess.
    activity : ndarray (pieces, m)
        Each piece's share of A x.
    value : ndarray (pieces,)
        Each piece's share of min_x (c - A'y)'x + |x - center|^2 / (2 sigma).
    """

    cdef double[::1] x, multiplier, value
    cdef unsigned char[::1] free
    cdef double[:, ::1] activity

    def __init__(self, x, free, multiplier, activity, value):
        self.x, self.free, self.multiplier, self.activity, self.value = x, free, multiplier, activity, value


cdef void targets(Groups columns, Py_ssize_t begin, Py_ssize_t end, const double* center, double sigma,
                  const double* y, double* x) noexcept nogil:
    """Write the columns' targets, center - sigma (c - A'y), to x; has a fast loop for columns of one entry each."""
    cdef const double* cost = columns.cost
    cdef const double* coefficient = columns.coefficient
    cdef const int* entry_start = columns.entry_start
    cdef const int* row = columns.row
    cdef Py_ssize_t j, k, shift = entry_start[begin] - begin
    cdef double reduced
    cdef int other = 0
    for j in range(begin, end + 1):
        other |= entry_start[j] - <int>(j + shift)
    if not other:
        for j in range(begin, end):
            x[j] = center[j] - sigma * (cost[j] - coefficient[j + shift] * y[row[j + shift]])
        return
    for j in range(begin, end):
        reduced = cost[j]
        for k in range(entry_start[j], entry_start[j + 1]):
            reduced -= coefficient[k] * y[row[k]]
        x[j] = center[j] - sigma * reduced


cdef double project_groups(Groups columns, Py_ssize_t begin, Py_ssize_t end, const double* center, double sigma,
                           const double* y, Projection out, double* activity) noexcept nogil:
    """Project the groups begin .. end - 1 onto their bounds and limits; adds their usage to `activity`."""
    cdef const double* lower = columns.lower
    cdef const double* upper = columns.upper
    cdef const double* coefficient = columns.coefficient
    cdef const int* start = columns.start
    cdef const int* entry_start = columns.entry_start
    cdef const int* row = columns.row
    cdef double* x = &out.x[0]
    cdef unsigned char* free = &out.free[0]
    cdef Py_ssize_t g, j, k, s, n
    cdef double linear = 0.0, squares = 0.0, mu, step
    targets(columns, start[begin], start[end], center, sigma, y, x)
    for g in range(begin, end):
        s = start[g]
        n = start[g + 1] - s
        mu = 0.0
        if columns.limit[g] < INFINITY:
            mu = limit_multiplier(x + s, lower + s, upper + s, <int>n, columns.limit[g], out.multiplier[g])
        out.multiplier[g] = mu
        for j in range(s, s + n):
            step = clip(x[j] - mu, lower[j], upper[j])
            free[j] = lower[j] < x[j] - mu < upper[j]
            linear += (center[j] - x[j]) * step
            squares += (step - center[j]) * (step - center[j])
            x[j] = step
            if step != 0.0:
                for k in range(entry_start[j], entry_start[j + 1]):
                    activity[row[k]] += coefficient[k] * step
    return (linear + 0.5 * squares) / sigma


def project(Groups columns, const double[::1] center, double sigma, const double[::1] y, Projection out,
            int n_threads=0):
    """Minimise the proximal Lagrangian over each block at prices y (equation A4), in place.

    The groups are split into as many pieces of consecutive groups as `out.value` has entries. Each thread works on one
    piece at a time, with at most `n_threads` threads (0: one a piece); results do not depend on `n_threads`, to the
    bit.
    """
    cdef Py_ssize_t piece, pieces = out.value.shape[0], groups = columns.count, m = out.activity.shape[1]
    cdef int threads = n_threads if n_threads > 0 else <int>pieces
    if groups == 0 or columns.n_columns == 0:
        out.activity[:, :] = 0.0
        out.value[:] = 0.0
        return
    for piece in prange(pieces, nogil=True, num_threads=threads, schedule="static", chunksize=1):
        memset(&out.activity[0, 0] + piece * m, 0, m * sizeof(double))
        out.value[piece] = project_groups(columns, groups * piece // pieces, groups * (piece + 1) // pieces,
                                          &center[0], sigma, &y[0], out, &out.activity[0, 0] + piece * m)


def slack_part(const double[::1] center, const double[::1] sigma, const double[::1] lower, const double[::1] upper,
               const double[::1] y, Projection out):
    """Do the slacks' part of equation A4 at prices y, after :func:`project`.

    Parameters
    ----------
    center, sigma, lower, upper, y : ndarray (m,)
        Of the rows' slacks; sigma is the rows' own.
    out : Projection

    Returns
    -------
    value : float
        The dual's value at y (equation A5), the blocks' part included.
    slack, residual : ndarray (m,)
        slack - A x is the dual's slope.
    """
    cdef Py_ssize_t r, piece, m = y.shape[0]
    cdef double value = 0.0, at, step, used
    slacks, residuals = np.empty(m), np.empty(m)
    cdef double[::1] slack = slacks, residual = residuals
    with nogil:
        for r in range(m):
            at = clip(center[r] - sigma[r] * y[r], lower[r], upper[r])
            step = at - center[r]
            value += y[r] * at + 0.5 * step * step / sigma[r]
            used = 0.0
            for piece in range(out.value.shape[0]):
                used += out.activity[piece, r]
            slack[r], residual[r] = at, at - used
        for piece in range(out.value.shape[0]):
            value += out.value[piece]
    return value, slacks, residuals


def newton_matrix(Groups columns, const unsigned char[::1] free, const double[::1] multiplier, double sigma,
                  double[:, ::1] matrix):
    """Add sigma * A J A' of equation (A6) to a dense matrix (m, m).

    J is the Jacobian of each block's projection: the identity on the free columns, less the mean over them in a group
    whose limit binds. The mean's part is the outer product of the columns' sum with itself: the work grows with the
    number of a group's entries, not with its pairs of columns.
    """
    cdef const int* start = columns.start
    cdef const int* entry_start = columns.entry_start
    cdef const int* row = columns.row
    cdef const double* coefficient = columns.coefficient
    cdef Py_ssize_t g, i, k, h
    cdef int n_free, r, n_touched
    cdef double share, entry
    cdef double[::1] total = np.zeros(max(matrix.shape[0], 1))
    cdef int[::1] touched = np.empty(max(matrix.shape[0], 1), dtype=np.int32)
    cdef unsigned char[::1] is_touched = np.zeros(max(matrix.shape[0], 1), dtype=np.uint8)
    with nogil:
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
                        matrix[r, row[h]] += entry * coefficient[h]
                    if share > 0.0:
                        if not is_touched[r]:
                            is_touched[r], touched[n_touched], total[r] = 1, r, 0.0
                            n_touched += 1
                        total[r] += coefficient[k]
            for k in range(n_touched):
                entry = share * total[touched[k]]
                for h in range(n_touched):
                    matrix[touched[k], touched[h]] -= entry * total[touched[h]]
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


def block_minimum(const int[::1] start, const double[::1] limit, const double[::1] reduced, const double[::1] lower,
                  const double[::1] upper, const long[::1] order, double[::1] least):
    """Write least[g] = min of reduced'x over block g, by filling the most negative columns first (equation A3).

    order: columns sorted by reduced cost within each group. -inf where the block is unbounded below.
    """
    cdef Py_ssize_t g, e, j
    cdef double room, value, step
    with nogil:
        for g in range(start.shape[0] - 1):
            value = 0.0
            room = limit[g]
            for j in range(start[g], start[g + 1]):
                if reduced[j] != 0.0:
                    if lower[j] == -INFINITY:
                        # Without a lower bound: at the upper one if that is cheap, unbounded otherwise.
                        if reduced[j] > 0.0 or upper[j] == INFINITY:
                            value = -INFINITY
                            break
                        value += reduced[j] * upper[j]
                        continue
                    value += reduced[j] * lower[j]
                if lower[j] > -INFINITY:
                    room -= lower[j]
            if value == -INFINITY:
                least[g] = value
                continue
            for e in range(start[g], start[g + 1]):
                j = order[e]
                if reduced[j] >= 0.0 or room <= 0.0:
                    break
                if lower[j] == -INFINITY:
                    continue
                step = upper[j] - lower[j]
                if step > room:
                    step = room
                room -= step
                value += reduced[j] * step
            least[g] = value
