"""Passes over requests with concave worths: responses to prices, their derivatives, the bound (W2 to W10)."""

import numpy as np

from libc.math cimport INFINITY, exp, fabs, log

from copter.methods.worth.curves cimport (
    LINEAR, LOG, PIECES, POWER, QUADRATIC, Curve, conjugate, least_total, slope_after, smooth_total, value_at,
)

cdef enum:
    MOST_STEPS = 100  # of a search for a slope: halving alone takes 60

cdef double FAR = 45.0  # exponents below this, under the largest, do not change a sum in floating point
cdef double NEAR = 25.0  # exponents below this, under the largest, take 1e-11 of a request: it has two options
cdef double U = 1.1102230246251565e-16  # largest relative error of a rounded operation

KINDS = {None: LINEAR, "log": LOG, "power": POWER, "pieces": PIECES, "quadratic": QUADRATIC}


cdef struct Walk:
    # Where the lines q_j + s v_j, and u*, meet (W4): the slope, the line below it, and the line beyond, or -1.
    double s
    int low
    int beyond


cdef class Requests:
    """Requests side by side: request r has count[r] columns from start[r] on.

    Attributes
    ----------
    slope : ndarray (n,)
        Of each request's worth at the last response or bound.
    x : ndarray (columns,)
        The last response.
    used : ndarray (rows,)
        What it uses of each resource.
    """

    cdef int n, most
    cdef const int[::1] start, count, entry, row, piece
    cdef const double[::1] rate, cost, value, limit, size, number, lengths
    cdef const int[::1] kind, n_pieces
    cdef const double[:, ::1] curve
    cdef const char[::1] idle
    cdef readonly object slope, x, used
    cdef double[::1] s_, x_, used_, q, weight
    cdef int[::1] near, hint

    def __init__(self, parts, int n_rows):
        self.n = len(parts["count"])
        self.start, self.count, self.entry, self.row = (parts[each] for each in ("start", "count", "entry", "row"))
        self.rate, self.cost, self.value = parts["rate"], parts["cost"], parts["value"]
        self.limit, self.size, self.idle = parts["limit"], parts["size"], parts["idle"]
        self.kind, self.curve = parts["kind"], parts["curve"]
        self.piece, self.n_pieces = parts["piece"], parts["n_pieces"]
        self.number, self.lengths = parts["slopes"], parts["lengths"]
        self.most = max(int(parts["count"].max(initial=0)), 1)
        self.slope, self.x, self.used = np.zeros(self.n), np.zeros(len(parts["rate"])), np.zeros(n_rows)
        self.s_, self.x_, self.used_ = self.slope, self.x, self.used
        self.q, self.weight = np.zeros(self.most), np.zeros(self.most + 1)
        self.near = np.zeros(self.most + 1, dtype=np.int32)
        self.hint = np.zeros(self.n, dtype=np.int32)  # of each request, the line at which its last walk has ended

    cdef inline Curve curve_of(self, int r) noexcept nogil:
        cdef Curve u
        u.kind = self.kind[r]
        u.a, u.floor, u.alpha = self.curve[r, 0], self.curve[r, 1], self.curve[r, 2]
        u.n_pieces = self.n_pieces[r]
        u.slope = &self.number[self.piece[r]]
        u.length = &self.lengths[self.piece[r]]
        return u

    cdef inline void price(self, int r, const double[::1] y) noexcept nogil:
        """q_j = c_j - a_j'y of a request's columns."""
        cdef int j, k
        cdef int first = self.start[r]
        cdef double total
        for j in range(self.count[r]):
            total = self.cost[first + j]
            for k in range(self.entry[first + j], self.entry[first + j + 1]):
                total -= self.value[k] * y[self.row[k]]
            self.q[j] = total

    cdef Walk walk(self, int r, const Curve* u) noexcept nogil:
        """The slope of least L max_j (q_j + s v_j) + u*(s), along the upper envelope of the lines (W4)."""
        cdef Walk found
        cdef int j, low = -1, after
        cdef int n = self.count[r]
        cdef const double* v = &self.rate[self.start[r]]
        cdef double L = self.limit[r], least, v_low = 0.0, q_low = 0.0, crossing, root
        least = 0.0 if u.kind == LOG or u.kind == POWER else -INFINITY
        if not self.idle[r]:
            q_low = -INFINITY
            v_low = -1.0
        if least == 0.0:  # the line that is highest at a slope of zero
            for j in range(n):
                if self.q[j] > q_low or (self.q[j] == q_low and v[j] > v_low):
                    low, q_low, v_low = j, self.q[j], v[j]
        else:  # the flattest line
            if not self.idle[r]:
                v_low = INFINITY
            for j in range(n):
                if v[j] < v_low or (v[j] == v_low and self.q[j] > q_low):
                    low, q_low, v_low = j, self.q[j], v[j]
        found.s = least
        while True:  # ends: every turn goes to a line of larger v
            crossing, after = INFINITY, -1
            j = self.hint[r]
            if v[j] > v_low:
                crossing, after = (q_low - self.q[j]) / (v[j] - v_low), j
            for j in range(n):
                if v[j] > v_low and (after < 0 or q_low - self.q[j] < crossing * (v[j] - v_low)):
                    crossing, after = (q_low - self.q[j]) / (v[j] - v_low), j
            if crossing < found.s:
                crossing = found.s
            root = slope_after(u, L * v_low)
            if root <= crossing:
                if root > found.s:
                    found.s = root
                found.low, found.beyond = low, -1
                return found
            found.s = crossing
            if least_total(u, crossing) <= L * v[after]:
                found.low, found.beyond = low, after
                self.hint[r] = after
                return found
            low, q_low, v_low = after, self.q[after], v[after]

    cdef int two(self, int r, const Curve* u, double tau, const Walk* at) noexcept nogil:
        """Set a response between the two lines of a walk, or on its one, if no other line is near; returns 0 if one is.

        The share p of the steeper line solves z(p) = z*(s(p)), where s(p) is the slope at which the weights of both
        lines are p and 1 - p.
        """
        cdef int j, _
        cdef int first = self.start[r]
        cdef const double* v = &self.rate[first]
        cdef double L = self.limit[r], s = at.s, flat, width, p, change, total, falls, top, t = 0.0
        flat = v[at.low] if at.low >= 0 else 0.0
        if not s > -INFINITY or s == INFINITY:
            return 0
        width = v[at.beyond] - flat if at.beyond >= 0 else 0.0
        p = 0.0
        if at.beyond >= 0:
            p = (least_total(u, s) / L - flat) / width
            if not 1e-12 < p < 1.0 - 1e-12:
                return 0
            for _ in range(8):
                t = tau * log(p / (1.0 - p)) / width
                if (u.kind == LOG or u.kind == POWER) and s + t <= 0.0:
                    return 0
                total = least_total(u, s + t)
                if u.kind == QUADRATIC:
                    falls = 1.0 / u.alpha if total > 0.0 else 0.0
                else:
                    falls = (total + u.floor) / (u.alpha * (s + t)) if total > 0.0 else 0.0
                change = (L * (flat + width * p) - total) / (L * width + falls * tau / (width * p * (1.0 - p)))
                if not 1e-12 < p - change < 1.0 - 1e-12:
                    return 0
                if fabs(change) < 2e-3 * p * (1.0 - p):  # what is left is its square, times mu
                    t -= tau * change / (width * p * (1.0 - p))
                    p -= change
                    break
                p -= change
            else:
                return 0
            s += t
        top = self.q[at.low] + s * flat if at.low >= 0 else 0.0
        if at.beyond >= 0:
            top = max(top, self.q[at.beyond] + s * v[at.beyond])
        t = top - NEAR * tau
        if self.idle[r] and at.low >= 0 and 0.0 > t:
            return 0
        for j in range(self.count[r]):
            if self.q[j] + s * v[j] > t and j != at.low and j != at.beyond:
                return 0
            self.x_[first + j] = 0.0
        self.s_[r] = s
        self.near[0], self.weight[0] = at.low, 1.0 - p
        if at.low >= 0:
            self.x_[first + at.low] = L * (1.0 - p)
        if at.beyond < 0:
            return 1
        self.near[1], self.weight[1] = at.beyond, p
        self.x_[first + at.beyond] = L * p
        return 2

    cdef int respond_one(self, int r, const Curve* u, double mu) noexcept nogil:
        """The smoothed response (W7) of a priced request to x; returns how many columns are near, with their weights.

        near and weight hold them; -1 stands for being idle.
        """
        cdef int j, _, count
        cdef int n = self.count[r]
        cdef int first = self.start[r]
        cdef const double* v = &self.rate[first]
        cdef double L = self.limit[r], tau, s, top, t, total, z, zz, mean, spread, falls = 0.0, excess, rises
        cdef double low = -INFINITY, high = INFINITY, before, share
        cdef Walk at
        cdef bint may_idle = self.idle[r]
        tau = mu * self.size[r] / L
        s = 0.0
        if u.kind == LINEAR:
            low = high = 0.0
        else:
            at = self.walk(r, u)
            s = at.s
            if u.kind != PIECES:
                count = self.two(r, u, tau, &at)
                if count:
                    return count
            if at.beyond >= 0:
                t = v[at.low] if at.low >= 0 else 0.0
                share = (least_total(u, s) / L - t) / (v[at.beyond] - t)
                share = min(max(share, 1e-13), 1.0 - 1e-13)
                s += tau * log(share / (1.0 - share)) / (v[at.beyond] - t)
            if u.kind == LOG or u.kind == POWER:
                low = 0.0
                if s <= 0.0:
                    s = at.s if at.s > 0.0 else 1e-300
            elif s == -INFINITY:
                s = slope_after(u, L * v[0])
        for _ in range(MOST_STEPS):
            top = 0.0 if may_idle else -INFINITY
            for j in range(n):
                t = self.q[j] + s * v[j]
                if t > top:
                    top = t
            count, total, z, zz = 0, 0.0, 0.0, 0.0
            if may_idle and -top / tau > -FAR:
                self.near[0], self.weight[0] = -1, exp(-top / tau)
                total, count = self.weight[0], 1
            for j in range(n):
                t = (self.q[j] + s * v[j] - top) / tau
                if t > -FAR:
                    t = exp(t) if t < 0.0 else 1.0
                    self.near[count], self.weight[count] = j, t
                    total += t
                    z += t * v[j]
                    zz += t * v[j] * v[j]
                    count += 1
            if u.kind == LINEAR:
                break
            mean = z / total
            spread = zz / total - mean * mean
            if spread < 0.0 or count == 1:
                spread = 0.0
            z = smooth_total(u, s, mu, &falls)
            excess = L * mean - z
            if fabs(excess) <= 1e-12 * (L * mean + z):
                break
            rises = L * spread / tau + falls
            if excess > 0.0:
                high = s
            else:
                low = s
            before = s
            s = s - excess / rises if rises > 0.0 else INFINITY
            if not (low < s < high):
                if low == -INFINITY:
                    s = high - 2.0 * fabs(high) - tau
                elif high == INFINITY:
                    s = low + 2.0 * fabs(low) + tau
                else:
                    s = 0.5 * (low + high)
            if s == before or (low > -INFINITY and high < INFINITY and fabs(high - low) <= 4 * U * fabs(s)):
                break
        self.s_[r] = s
        for j in range(n):
            self.x_[first + j] = 0.0
        for j in range(count):
            self.weight[j] /= total
            if self.near[j] >= 0:
                self.x_[first + self.near[j]] = L * self.weight[j]
        return count

    cdef void bend(self, int r, const Curve* u, double mu, int count, double[:, ::1] hessian) noexcept nogil:
        """Add A M A' of a request's near columns, M the derivative of x by q (W9)."""
        cdef int i, j, k, e, a, b
        cdef int first = self.start[r]
        cdef double L = self.limit[r], factor, mean = 0.0, spread = 0.0, falls = 0.0, below, m
        factor = L * L / (mu * self.size[r])
        if u.kind != LINEAR:
            for i in range(count):
                if self.near[i] >= 0:
                    mean += self.weight[i] * self.rate[first + self.near[i]]
            for i in range(count):
                m = (self.rate[first + self.near[i]] if self.near[i] >= 0 else 0.0) - mean
                spread += self.weight[i] * m * m
            smooth_total(u, self.s_[r], mu, &falls)
        below = factor * spread + falls
        for i in range(count):
            a = self.near[i]
            if a < 0:
                continue
            for j in range(count):
                b = self.near[j]
                if b < 0:
                    continue
                m = factor * self.weight[i] * ((1.0 if i == j else 0.0) - self.weight[j])
                if u.kind != LINEAR and below > 0.0:
                    m -= (factor * self.weight[i] * (self.rate[first + a] - mean)
                          * (factor * self.weight[j] * (self.rate[first + b] - mean)) / below)
                for k in range(self.entry[first + a], self.entry[first + a + 1]):
                    for e in range(self.entry[first + b], self.entry[first + b + 1]):
                        hessian[self.row[k], self.row[e]] += m * self.value[k] * self.value[e]

    def respond(self, const double[::1] y, double mu, double[:, ::1] hessian=None):
        """Set x, used and slopes to the smoothed responses at prices y, and add the second derivatives to `hessian`."""
        cdef int r, j, k, count
        cdef int n_rows = self.used_.shape[0]
        cdef Curve u
        with nogil:
            for k in range(n_rows):
                self.used_[k] = 0.0
            for r in range(self.n):
                if self.count[r] == 0:
                    continue
                u = self.curve_of(r)
                self.price(r, y)
                count = self.respond_one(r, &u, mu)
                for j in range(self.start[r], self.start[r] + self.count[r]):
                    if self.x_[j] > 0.0:
                        for k in range(self.entry[j], self.entry[j + 1]):
                            self.used_[self.row[k]] += self.value[k] * self.x_[j]
                if hessian is not None and count > 1:
                    self.bend(r, &u, mu, count, hessian)

    def shrink(self, const double[::1] factor):
        """Multiply each column of x by the least factor of its rows; `used` follows."""
        cdef int r, j, k
        cdef double least
        with nogil:
            for k in range(self.used_.shape[0]):
                self.used_[k] = 0.0
            for r in range(self.n):
                for j in range(self.start[r], self.start[r] + self.count[r]):
                    if self.x_[j] > 0.0:
                        least = 1.0
                        if self.idle[r]:
                            for k in range(self.entry[j], self.entry[j + 1]):
                                least = min(least, factor[self.row[k]])
                        self.x_[j] *= least
                        for k in range(self.entry[j], self.entry[j + 1]):
                            self.used_[self.row[k]] += self.value[k] * self.x_[j]

    def worth(self):
        """Return (the objective of x, the sum of the sizes of its terms)."""
        cdef int r, j
        cdef double total = 0.0, size = 0.0, z, term
        cdef Curve u
        with nogil:
            for r in range(self.n):
                if self.count[r] == 0:
                    continue
                z = 0.0
                for j in range(self.start[r], self.start[r] + self.count[r]):
                    if self.x_[j] > 0.0:
                        z += self.rate[j] * self.x_[j]
                        total += self.cost[j] * self.x_[j]
                        size += fabs(self.cost[j] * self.x_[j])
                u = self.curve_of(r)
                term = value_at(&u, z) if u.kind != LINEAR else 0.0
                total += term
                size += fabs(term)
        return total, size

    def bound(self, const double[::1] y):
        """Return (sum of max_x q'x + u(v'x) over requests, its largest rounding error).

        Sets the slopes that prove it (W4); every slope proves a bound, these the best one.
        """
        cdef int r, j, k
        cdef double total = 0.0, size = 0.0, top, t, s, used, term, terms = 0.0
        cdef double margin = 0.0
        cdef const double* v
        cdef Curve u
        cdef Walk at
        with nogil:
            for r in range(self.n):
                if self.count[r] == 0:
                    continue
                u = self.curve_of(r)
                self.price(r, y)
                s = 0.0
                if u.kind != LINEAR:
                    at = self.walk(r, &u)
                    s = at.s
                    if s == -INFINITY:
                        s = slope_after(&u, self.limit[r] * self.rate[self.start[r]])
                    if s <= 0.0 and (u.kind == LOG or u.kind == POWER):
                        s = slope_after(&u, self.limit[r] * self.rate[self.start[r]])
                self.s_[r] = s
                v = &self.rate[self.start[r]]
                top = 0.0 if self.idle[r] else -INFINITY
                for j in range(self.count[r]):
                    used = fabs(self.cost[self.start[r] + j]) + fabs(s * v[j])
                    for k in range(self.entry[self.start[r] + j], self.entry[self.start[r] + j + 1]):
                        used += fabs(self.value[k] * y[self.row[k]])
                    t = self.q[j] + s * v[j]
                    used *= (self.entry[self.start[r] + j + 1] - self.entry[self.start[r] + j] + 6) * 2.0 * U
                    if t + used > top:
                        top = t + used
                term = conjugate(&u, s, &size)
                total += self.limit[r] * top + term
                terms += fabs(self.limit[r] * top) + fabs(term)
                margin += 16.0 * U * size
        margin += (self.n + 16.0) * 2.0 * U * terms
        return total, margin
