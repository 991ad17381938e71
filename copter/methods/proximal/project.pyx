"""The proximal subproblem, block by block, on flat arrays of working columns (docs/method/algorithm.md)."""

import numpy as np

from cython.parallel cimport prange
from libc.float cimport DBL_EPSILON as EPSILON
from libc.math cimport INFINITY, fabs
from libc.string cimport memcpy, memset

from copter.methods.proximal.groups cimport PLAIN, Groups

cdef int MAX_TRIALS = 40  # most evaluations in one line search
cdef double SUFFICIENT = 0.9  # a step is long enough once the slope along it is below this share of that at its start
cdef double RADIUS = 10.0  # the first trial step moves prices by at most this many times their size
cdef double GROWTH = 4.0  # factor by which a step grows while the slope along it stays too large


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


cdef inline double few_multiplier(const double* target, Py_ssize_t n, double limit) noexcept nogil:
    """Do :func:`plain_multiplier` for one to three columns, without branches that depend on the targets.

    mu is the largest of zero and, for each number of columns, the excess of the largest so many over the limit, shared
    among them: which columns stay above mu is the first thing that a processor would guess wrong.
    """
    cdef double first = target[0], second, third
    if n == 1:
        return max(0.0, first - limit)
    second = target[1]
    if n == 2:
        return max(max(0.0, max(first, second) - limit), (first + second - limit) / 2.0)
    third = target[2]
    return max(max(max(0.0, max(max(first, second), third) - limit),
                   (max(max(first + second, first + third), second + third) - limit) / 2.0),
               (first + second + third - limit) / 3.0)


cdef inline double plain_multiplier(const double* target, Py_ssize_t n, double limit, double guess) noexcept nogil:
    """Do :func:`limit_multiplier` for columns with lower bounds of zero and upper bounds no smaller than the limit.

    Newton's iteration on the sum of max(target - mu, 0), which is convex: after a first step to the left of the root it
    only goes right. It is exact once a step leaves the set of columns above mu as it was.
    """
    cdef Py_ssize_t j, count, before = -1
    cdef double mu = guess if guess > 0.0 else 0.0, total
    cdef int _step
    if 0 < n <= 3:
        return few_multiplier(target, n, limit)
    for _step in range(200):
        total, count = 0.0, 0
        for j in range(n):
            if target[j] > mu:
                total += target[j]
                count += 1
        if count == before:
            break
        if count == 0 or total <= limit:
            if mu == 0.0 or before >= 0:  # after a step only rounding, or a limit of zero, leads here
                break
            mu = 0.0
            continue
        before = count
        mu = (total - limit) / count
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

    def __init__(self, x, free, multiplier, activity, value):
        self.x, self.free, self.multiplier, self.activity, self.value = x, free, multiplier, activity, value
        self.pieces = self.value.shape[0]


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
        if columns.kind[g] == PLAIN:
            mu = plain_multiplier(x + s, n, columns.limit[g], out.multiplier[g])
            out.multiplier[g] = mu
            for j in range(s, s + n):
                step = min(max(x[j] - mu, 0.0), upper[j])
                free[j] = (step > 0.0) & (step < upper[j])
                linear += (center[j] - x[j]) * step
                squares += (step - center[j]) * (step - center[j])
                x[j] = step
                for k in range(entry_start[j], entry_start[j + 1]):
                    activity[row[k]] += coefficient[k] * step
            continue
        elif columns.limit[g] < INFINITY:
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


cdef double projected(Groups columns, const double* center, double sigma, const double* y, Projection out,
                      int threads) noexcept nogil:
    """Do :func:`project`; return the sum of `out.value`."""
    cdef Py_ssize_t piece, pieces = out.pieces, groups = columns.count, m = out.activity.shape[1]
    cdef double total = 0.0
    if m > 0:
        memset(&out.activity[0, 0], 0, pieces * m * sizeof(double))
    if groups == 0 or columns.n_columns == 0:
        memset(&out.value[0], 0, pieces * sizeof(double))
    elif pieces == 1:
        out.value[0] = project_groups(columns, 0, groups, center, sigma, y, out, &out.activity[0, 0])
    else:
        for piece in prange(pieces, num_threads=threads, schedule="static", chunksize=1):
            out.value[piece] = project_groups(columns, groups * piece // pieces, groups * (piece + 1) // pieces,
                                              center, sigma, y, out, &out.activity[0, 0] + piece * m)
    for piece in range(pieces):
        total += out.value[piece]
    return total


def project(Groups columns, const double[::1] center, double sigma, const double[::1] y, Projection out,
            int n_threads=0):
    """Minimise the proximal Lagrangian over each block at prices y (equation A4), in place.

    The groups are split into as many pieces of consecutive groups as `out.value` has entries. Each thread works on one
    piece at a time, with at most `n_threads` threads (0: one a piece); results do not depend on `n_threads`, to the
    bit.
    """
    cdef int threads = n_threads if n_threads > 0 else <int>out.value.shape[0]
    with nogil:
        projected(columns, &center[0], sigma, &y[0], out, threads)


cdef class Slacks:
    """Slacks of the coupling rows in a proximal subproblem, (m,) each.

    Parameters
    ----------
    center, sigma : ndarray
        Their centers, and the proximal parameter times the square of the rows' scale.
    lower, upper, scale : ndarray
        Bounds of the rows, and the size of their coefficients.
    """

    def __init__(self, const double[::1] center, const double[::1] sigma, const double[::1] lower,
                 const double[::1] upper, const double[::1] scale):
        self.center, self.sigma, self.lower, self.upper, self.scale = center, sigma, lower, upper, scale
        self.count = center.shape[0]


cdef class Dual:
    """The concave dual of a proximal subproblem as a function of prices (equations A4 and A5).

    Parameters
    ----------
    columns, slacks : Groups, Slacks
    center, sigma : ndarray (n,), float
        The columns' centers, and the proximal parameter.
    out : Projection
        Written by every evaluation.
    threads : int
    """

    def __init__(self, Groups columns, Slacks slacks, const double[::1] center, double sigma, Projection out,
                 int threads):
        cdef Py_ssize_t i
        self.begin(slacks, center, sigma)
        self.columns, self.out, self.threads, self.cost_size = columns, out, threads, 0.0
        for i in range(columns.n_columns):
            self.cost_size = max(self.cost_size, fabs(columns.cost[i]))
        self.trial = np.empty((3, max(slacks.count, 1)))

    def begin(self, Slacks slacks, const double[::1] center, double sigma):
        """Begin another subproblem of the same columns."""
        self.slacks, self.center, self.sigma = slacks, center, sigma

    cdef double at(self, const double* y, double* slack, double* residual) noexcept nogil:
        """Project every block at prices y; write slacks and residuals (slack - A x), and return the value."""
        return (projected(self.columns, &self.center[0], self.sigma, y, self.out, self.threads)
                + self.with_slacks(y, NULL, slack, residual))

    cdef double with_slacks(self, const double* y, const double* elsewhere, double* slack,
                            double* residual) noexcept nogil:
        """Write slacks and residuals after a projection, and return the slacks' part of the value.

        `elsewhere` (m,), if any, is what groups use that were not projected.
        """
        cdef Py_ssize_t i, piece
        cdef double step, used, value = 0.0
        for i in range(self.slacks.count):
            slack[i] = clip(self.slacks.center[i] - self.slacks.sigma[i] * y[i], self.slacks.lower[i],
                            self.slacks.upper[i])
            step = slack[i] - self.slacks.center[i]
            value += y[i] * slack[i]
            if step != 0.0:
                value += 0.5 * step / self.slacks.sigma[i] * step
            used = elsewhere[i] if elsewhere else 0.0
            for piece in range(self.out.pieces):
                used += self.out.activity[piece, i]
            residual[i] = slack[i] - used
        return value

    def evaluate(self, const double[::1] y, double[::1] slack, double[::1] residual):
        """Write slacks and residuals (slack - A x) at prices y; returns the dual value."""
        cdef double value
        with nogil:
            value = self.at(&y[0], &slack[0], &residual[0])
        return value

    def search(self, const double[::1] start, double value, const double[::1] direction, double slope,
               double[:, ::1] found):
        """Line search from prices `start` of this value along a direction of this slope there.

        The slope is piecewise linear and decreasing: the step grows while the slope stays steep; then secant steps,
        kept away from the ends of the bracket, approach the slope's zero.

        Parameters
        ----------
        found : ndarray (3, m)
            Written: prices, slacks and residuals of the point found.

        Returns
        -------
        value : float
            Dual value of the point found; -inf if there is no better one than the start.
        is_last : bool
            Whether that point was evaluated last, so that the projection is that point's.
        """
        cdef bint last = False
        cdef double best
        with nogil:
            best = self.searched(&start[0], value, &direction[0], slope, &found[0, 0], &last)
        return best, last

    cdef double first_length(self, const double* start, const double* direction) noexcept nogil:
        """Return the length of a line search's first trial step, at most 1."""
        cdef Py_ssize_t i
        cdef double size = 0.0, reach = 0.0
        for i in range(self.slacks.count):
            size = max(size, fabs(direction[i] * self.slacks.scale[i]))
            reach = max(reach, fabs(start[i] * self.slacks.scale[i]))
        reach = RADIUS * (self.cost_size + reach)
        return reach / size if reach > 0.0 and size > reach else 1.0

    cdef double searched(self, const double* start, double value, const double* direction, double slope,
                         double* found, bint* is_last) noexcept nogil:
        """Do :meth:`search`; `found` has three rows, one after another."""
        cdef Py_ssize_t i, m = self.slacks.count
        cdef double* y = &self.trial[0, 0]
        cdef double* slack = &self.trial[1, 0]
        cdef double* residual = &self.trial[2, 0]
        cdef double length = self.first_length(start, direction), here, here_value, best = -INFINITY, margin, secant
        cdef double low = 0.0, low_slope = slope, high = INFINITY, high_slope = 0.0
        cdef int trial
        cdef bint last = False, ends = False
        for trial in range(MAX_TRIALS):
            for i in range(m):
                y[i] = start[i] + length * direction[i]
            here_value = self.at(y, slack, residual)
            here = 0.0
            for i in range(m):
                here += direction[i] * residual[i]
            if here >= 0.0:
                low, low_slope, last = length, here, True
                ends = here <= SUFFICIENT * slope or (length >= 1.0 and high == INFINITY)
            else:
                high, high_slope, last = length, here, False
                ends = here_value > value and -here <= SUFFICIENT * slope
            if here >= 0.0 or ends:
                best, last = here_value, True
                memcpy(found, y, m * sizeof(double))
                memcpy(found + m, slack, m * sizeof(double))
                memcpy(found + 2 * m, residual, m * sizeof(double))
            if ends:
                break
            if high == INFINITY:
                length = min(GROWTH * length, 1.0)
            else:
                secant = low + (high - low) * low_slope / (low_slope - high_slope)
                margin = (0.1 if trial % 2 else 0.01) * (high - low)
                length = min(max(secant, low + margin), high - margin)
            if not low < length:
                break
        is_last[0] = last
        return best


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
