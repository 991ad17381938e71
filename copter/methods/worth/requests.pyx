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

cdef double STALE = 0.5  # smoothings below this share of the one at which requests were closed close more of them
cdef double EDGE = 0.01  # a request between two columns stays there while the shares of both are above this
cdef double FAR_TURN = 4.7  # log((1 - EDGE) / EDGE), rounded up

KINDS = {None: LINEAR, "log": LOG, "power": POWER, "pieces": PIECES, "quadratic": QUADRATIC}


cdef struct Walk:
    # Where the lines q_j + s v_j, and u*, meet (W4): the slope, the line below it, and the line beyond, or -1.
    double s
    int low
    int beyond


cdef class Requests:
    """Requests side by side: request r has count[r] columns from start[r] on; places beyond the n-th wait for new ones.

    A request whose response is one column, or between two, keeps them until prices have moved far enough for another
    column to come near (W14): until then it is closed, and all passes look at these columns alone. What requests
    between two columns use, and bend, is kept too: a response at the same prices, as the first one of a round mostly
    is, looks at requests that are open alone.

    Attributes
    ----------
    slope : ndarray (n,)
        Of each request's worth at the last response or bound.
    x, point : ndarray (columns,)
        The last response; and the point that :meth:`settle` has made of it.
    used, filled : ndarray (rows,)
        What the last response, and the point, use of each resource.
    """

    cdef int n, most
    cdef readonly int opened  # requests that the last response was found for
    cdef const int[::1] start, count, entry, row, piece
    cdef const double[::1] rate, cost, value, limit, size, number, lengths
    cdef const int[::1] kind, n_pieces
    cdef const double[:, ::1] curve
    cdef const char[::1] idle
    cdef readonly object slope, x, point, used, filled
    cdef double[::1] s_, x_, point_, used_, filled_, q, weight
    cdef int[::1] near, hint
    cdef int[::1] only, mate  # of closed requests: their columns; -1 for being idle, and for no second one
    cdef double[::1] until  # way of the prices at which a closed request opens; -INFINITY if it is open
    cdef double[::1] crowd  # slope of the last response between more than two columns, or 0
    cdef double[::1] closed_used, last, unit  # usage of requests closed on one column; last prices; units of way
    cdef double[::1] pairs_used  # of closed requests between two columns, at the last prices ...
    cdef double[:, ::1] pairs_bent  # ... with the smoothing `pairs_mu`, which is -1 if they are not known
    cdef double way, mu, pairs_mu
    cdef bint is_tidy  # whether the point has nothing of closed requests but in their columns
    cdef bint is_apart  # whether the last response was found between one or two lines, with no other near

    def __init__(self, parts, int n_rows, int n):
        self.n = n
        self.start, self.count, self.entry, self.row = (parts[each] for each in ("start", "count", "entry", "row"))
        self.rate, self.cost, self.value = parts["rate"], parts["cost"], parts["value"]
        self.limit, self.size, self.idle = parts["limit"], parts["size"], parts["idle"]
        self.kind, self.curve = parts["kind"], parts["curve"]
        self.piece, self.n_pieces = parts["piece"], parts["n_pieces"]
        self.number, self.lengths = parts["slopes"], parts["lengths"]
        places = len(parts["count"])
        self.slope, self.x, self.used = np.zeros(places), np.zeros(len(parts["rate"])), np.zeros(n_rows)
        self.point = np.zeros(len(parts["rate"]))
        self.filled = np.zeros(n_rows)
        self.s_, self.x_, self.point_, self.used_, self.filled_ = self.slope, self.x, self.point, self.used, self.filled
        self.hint = np.zeros(places, dtype=np.int32)  # of each request, the line at which its last walk has ended
        self.only, self.mate = np.zeros((2, places), dtype=np.int32)
        self.until, self.crowd = np.full(places, -np.inf), np.zeros(places)
        self.closed_used, self.last, self.unit = np.zeros(n_rows), np.zeros(n_rows), np.zeros(n_rows)
        self.pairs_used, self.pairs_bent = np.zeros(n_rows), np.zeros((n_rows, n_rows))
        self.way, self.mu, self.most, self.pairs_mu = 0.0, -1.0, 0, -1.0
        self.is_tidy = True
        self.grow(n)

    def grow(self, int n):
        """Take in new requests in the places up to the n-th, after :meth:`leave` of those that have left."""
        cdef int r, k
        self.n = n
        for k in range(self.closed_used.shape[0]):
            self.closed_used[k] = 0.0
        for r in range(n):
            self.most = max(self.most, self.count[r])
            if self.until[r] > -INFINITY and self.mate[r] < 0:
                self.use_only(r, 1.0)
        if self.near is None or len(self.near) <= self.most:
            self.q, self.weight = np.zeros(self.most + 1), np.zeros(self.most + 1)
            self.near = np.zeros(self.most + 1, dtype=np.int32)

    def leave(self, const long long[::1] places):
        """Open requests that are about to lose their columns."""
        cdef int r, i
        for i in range(places.shape[0]):
            r = places[i]
            if self.until[r] > -INFINITY and self.mate[r] >= 0 and self.pairs_mu > 0.0:
                self.hold_pair(r, self.falls_of(r), -1.0)
            self.until[r] = -INFINITY

    cdef double falls_of(self, int r) noexcept nogil:
        """How fast the best total of a closed request between two columns falls with the slope, at the last prices."""
        cdef int first = self.start[r], low = self.only[r], beyond = first + self.mate[r]
        cdef double q_low = 0.0, flat = 0.0, width, p = self.x_[beyond] / self.limit[r], s, falls
        cdef Curve u = self.curve_of(r)
        if low >= 0:
            q_low, flat = self.priced(first + low, self.last), self.rate[first + low]
        width = self.rate[beyond] - flat
        s = (q_low - self.priced(beyond, self.last)) / width
        s += self.pairs_mu * self.size[r] / (self.limit[r] * width) * log(p / (1.0 - p))
        smooth_total(&u, s, self.pairs_mu, &falls)
        return falls

    cdef inline void hold_pair(self, int r, double falls, double sign) noexcept nogil:
        """Add usage and second derivatives (W9) of a closed request between two columns to those of these.

        The derivatives are a multiple of (1, -1)(1, -1)' for its two columns.
        """
        cdef int k, low = self.only[r], beyond = self.start[r] + self.mate[r]
        cdef double L = self.limit[r], p = self.x_[beyond] / L, width = self.rate[beyond], bent
        if low >= 0:
            low += self.start[r]
            width -= self.rate[low]
        bent = L * L * p * (1.0 - p) / (self.pairs_mu * self.size[r])
        bent *= sign * falls / (bent * width * width + falls)
        for k in range(self.entry[beyond], self.entry[beyond + 1]):
            self.pairs_used[self.row[k]] += sign * self.value[k] * self.x_[beyond]
        self.add_outer(beyond, beyond, bent, self.pairs_bent)
        if low >= 0:
            for k in range(self.entry[low], self.entry[low + 1]):
                self.pairs_used[self.row[k]] += sign * self.value[k] * self.x_[low]
            self.add_outer(low, low, bent, self.pairs_bent)
            self.add_outer(low, beyond, -bent, self.pairs_bent)
            self.add_outer(beyond, low, -bent, self.pairs_bent)

    cdef inline void use(self, int column) noexcept nogil:
        """Add what the response uses by a column."""
        cdef int k
        for k in range(self.entry[column], self.entry[column + 1]):
            self.used_[self.row[k]] += self.value[k] * self.x_[column]

    cdef inline void use_only(self, int r, double sign) noexcept nogil:
        """Add what a closed request uses to the usage of these, or subtract it."""
        cdef int k, j
        if self.only[r] >= 0:
            j = self.start[r] + self.only[r]
            for k in range(self.entry[j], self.entry[j + 1]):
                self.closed_used[self.row[k]] += sign * self.value[k] * self.limit[r]

    cdef inline double moves(self, int j) noexcept nogil:
        """How far a column's price goes for each unit of way."""
        cdef int k
        cdef double total = 0.0
        for k in range(self.entry[j], self.entry[j + 1]):
            total += fabs(self.value[k]) * self.unit[self.row[k]]
        return total

    cdef void close(self, int r, int count) noexcept nogil:
        """Close a priced request whose response is one column or between two, for as long as no other can come near.

        Between two columns the slope is that of their crossing, and at most `turn` off it (W14). The window must be
        wider than all that rounding can do, since bounds look at the request's columns alone.
        """
        cdef int j, low = self.near[0], own
        cdef int first = self.start[r]
        cdef const double* v = &self.rate[first]
        cdef double tau = self.mu * self.size[r] / self.limit[r]
        cdef double window = NEAR * tau, q_own = 0.0, v_own = 0.0, moves = 0.0, gap, s = self.s_[r]
        cdef double least = INFINITY, turn = 0.0, turns = 0.0, width, other, q_low = 0.0, v_low = 0.0
        cdef double sizes, own_sizes = 0.0
        own = low
        if count == 2:
            own = self.near[1]
            if not EDGE <= self.weight[1] <= 1.0 - EDGE:
                return
            if low >= 0:
                q_low, v_low, turns = self.q[low], v[low], self.moves(first + low)
            width = v[own] - v_low
            s = (q_low - self.q[own]) / width
            turn = FAR_TURN * tau / width
        if own >= 0:
            q_own, v_own, moves = self.q[own], v[own], self.moves(first + own)
            own_sizes = self.sizes_of(first + own, s)
        if count == 2:
            turns = (turns + moves) / width
            own_sizes += self.sizes_of(first + low, s) if low >= 0 else 0.0
        for j in range(-1, self.count[r]):
            if j == own or j == low or (j < 0 and not self.idle[r]):
                continue
            if j < 0:
                gap, width, other, sizes = q_own + s * v_own, fabs(v_own), 0.0, 0.0
            else:
                gap, width = q_own - self.q[j] + s * (v_own - v[j]), fabs(v_own - v[j])
                other = self.moves(first + j)
                sizes = self.sizes_of(first + j, s)
            if not window > 256.0 * U * (sizes + own_sizes):
                return
            gap -= window + turn * width
            other += moves + turns * width
            if not gap > 0.0:
                return
            if gap < least * other:
                least = gap / other
        least = self.way + least * (1.0 - 1e-9)
        if not least > self.way:
            return
        self.only[r] = low
        self.mate[r] = own if count == 2 else -1
        self.until[r] = least
        for j in range(first, first + self.count[r]):
            self.point_[j] = 0.0
        if count == 1:
            self.use_only(r, 1.0)

    cdef inline double sizes_of(self, int j, double s) noexcept nogil:
        """The sum of the sizes of a column's terms at the last prices and a slope, times what rounds each."""
        cdef int k, entries = self.entry[j + 1] - self.entry[j]
        cdef double total = fabs(self.cost[j]) + fabs(s * self.rate[j])
        for k in range(self.entry[j], self.entry[j + 1]):
            total += fabs(self.value[k] * self.last[self.row[k]])
        return (entries + 6) * total

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

    cdef inline bint shared(self, int r, const Curve* u, double tau, double flat, double width, double s,
                            double* slope, double* share, double* falls) noexcept nogil:
        """Find the share p of the steeper of two lines that meet at slope s; returns whether p is between 0 and 1.

        p solves z(p) = z*(s(p)), where s(p) is the slope at which the weights of both lines are p and 1 - p (W8). It is
        looked for from `share` on, if that is above zero. `falls` becomes the fall of z* there.
        """
        cdef int _
        cdef double L = self.limit[r], p, change, total, t, spread, each = tau / width
        cdef bint is_positive = u.kind == LOG or u.kind == POWER
        p = share[0] if share[0] > 0.0 else (least_total(u, s) / L - flat) / width
        if not 1e-12 < p < 1.0 - 1e-12:
            return False
        for _ in range(8):
            t = each * log(p / (1.0 - p))
            if is_positive and s + t <= 0.0:
                return False
            total = least_total(u, s + t)
            if u.kind == QUADRATIC:
                falls[0] = 1.0 / u.alpha if total > 0.0 else 0.0
            else:
                falls[0] = (total + u.floor) / (u.alpha * (s + t)) if total > 0.0 else 0.0
            spread = p * (1.0 - p)
            change = (L * (flat + width * p) - total) * spread / (L * width * spread + falls[0] * each)
            if not 1e-12 < p - change < 1.0 - 1e-12:
                return False
            p -= change
            if fabs(change) < 2e-3 * spread:  # what is left is its square, times mu
                slope[0] = s + t - each * change / spread
                share[0] = p
                return True
        return False

    cdef int two(self, int r, const Curve* u, double tau, const Walk* at) noexcept nogil:
        """Set a response between the two lines of a walk, or on its one, if no other line is near; returns 0 if one is.
        """
        cdef int j
        cdef int first = self.start[r]
        cdef const double* v = &self.rate[first]
        cdef double L = self.limit[r], s = at.s, flat, p, top, t, falls
        flat = v[at.low] if at.low >= 0 else 0.0
        if not s > -INFINITY or s == INFINITY:
            return 0
        p = 0.0
        if at.beyond >= 0 and not self.shared(r, u, tau, flat, v[at.beyond] - flat, at.s, &s, &p, &falls):
            return 0
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

    cdef inline double priced(self, int j, const double[::1] y) noexcept nogil:
        """c_j - a_j'y of one column."""
        cdef int k
        cdef double total = self.cost[j]
        for k in range(self.entry[j], self.entry[j + 1]):
            total -= self.value[k] * y[self.row[k]]
        return total

    cdef inline double own_crossing(self, int r, const double[::1] y) noexcept nogil:
        """The slope at which the two lines of a closed request meet at prices y."""
        cdef int low = self.start[r] + self.only[r], own = self.start[r] + self.mate[r]
        if self.only[r] < 0:
            return -self.priced(own, y) / self.rate[own]
        return (self.priced(low, y) - self.priced(own, y)) / (self.rate[own] - self.rate[low])

    cdef inline double crossing(self, int r) noexcept nogil:
        """The slope at which the two lines of a priced closed request meet."""
        cdef int first = self.start[r], low = self.only[r], own = self.mate[r]
        if low < 0:
            return -self.q[own] / self.rate[first + own]
        return (self.q[low] - self.q[own]) / (self.rate[first + own] - self.rate[first + low])

    cdef bint pair(self, int r, const double[::1] y, double mu) noexcept nogil:
        """Respond for a request between the two lines that it keeps, as `respond` and `bend` do for any other one.

        Returns False, with nothing done, unless it is well between them.
        """
        cdef int first = self.start[r], low = self.only[r], beyond = first + self.mate[r]
        cdef double q_low = 0.0, flat = 0.0, L = self.limit[r], width, s, p, falls
        cdef Curve u = self.curve_of(r)
        if low >= 0:
            low += first
            q_low, flat = self.priced(low, y), self.rate[low]
        width = self.rate[beyond] - flat
        s = (q_low - self.priced(beyond, y)) / width
        if (u.kind == LOG or u.kind == POWER) and s <= 0.0:
            return False
        p = self.x_[beyond] / L
        if (not self.shared(r, &u, mu * self.size[r] / L, flat, width, s, &s, &p, &falls)
                or not EDGE <= p <= 1.0 - EDGE):
            return False
        self.s_[r] = s
        if low >= 0:
            self.x_[low] = L * (1.0 - p)
        self.x_[beyond] = L * p
        self.hold_pair(r, falls, 1.0)
        return True

    cdef inline void add_outer(self, int a, int b, double m, double[:, ::1] hessian) noexcept nogil:
        """Add m times the outer product of two columns' usage."""
        cdef int k, e
        for k in range(self.entry[a], self.entry[a + 1]):
            for e in range(self.entry[b], self.entry[b + 1]):
                hessian[self.row[k], self.row[e]] += m * self.value[k] * self.value[e]

    cdef int respond_one(self, int r, const Curve* u, double mu) noexcept nogil:
        """The smoothed response (W7) of a priced request to x; returns how many columns are near, with their weights.

        near and weight hold them; -1 stands for being idle.
        """
        cdef int j, _, count
        cdef int n = self.count[r]
        cdef int first = self.start[r]
        cdef const double* v = &self.rate[first]
        cdef double L = self.limit[r], tau, s, top, t, total, z, zz, spread, rises
        cdef double mean = 0.0, falls = 0.0, excess = 0.0
        cdef double low = -INFINITY, high = INFINITY, before, share
        cdef Walk at
        cdef bint may_idle = self.idle[r]
        tau = mu * self.size[r] / L
        s = 0.0
        self.is_apart = False
        if u.kind == LINEAR:
            low = high = 0.0
        elif self.crowd[r] > 0.0 and u.kind != PIECES:  # more than two columns were near: go on from the last slope
            s = self.crowd[r]
            low = 0.0 if u.kind == LOG or u.kind == POWER else -INFINITY
        else:
            at = self.walk(r, u)
            s = at.s
            if u.kind != PIECES:
                count = self.two(r, u, tau, &at)
                self.is_apart = count > 0
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
                self.is_apart = count == 1
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
        if count == 1 and u.kind != LINEAR and fabs(excess) > 1e-6 * (L * mean + z):
            # one column or the other, as rounding has it: prices are so large that no slope is between them
            at = self.walk(r, u)
            if at.beyond >= 0:
                t = v[at.low] if at.low >= 0 else 0.0
                share = min(max((least_total(u, at.s) / L - t) / (v[at.beyond] - t), 0.0), 1.0)
                s, count, total = at.s, 2, 1.0
                self.near[0], self.weight[0], self.near[1], self.weight[1] = at.low, 1.0 - share, at.beyond, share
        self.s_[r] = s
        self.crowd[r] = s if count > 2 else 0.0
        for j in range(n):
            self.x_[first + j] = 0.0
        for j in range(count):
            self.weight[j] /= total
            if self.near[j] >= 0:
                self.x_[first + self.near[j]] = L * self.weight[j]
        return count

    cdef void bend(self, int r, const Curve* u, double mu, int count, double[:, ::1] hessian) noexcept nogil:
        """Add A M A' of a request's near columns, M the derivative of x by q (W9)."""
        cdef int i, j, a, b
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
                self.add_outer(first + a, first + b, m, hessian)

    def respond(self, const double[::1] y, double mu, double[:, ::1] hessian=None):
        """Set x, used and slopes to the smoothed responses at prices y, and add the second derivatives to `hessian`."""
        cdef int r, j, k, i, count
        cdef int n_rows = self.used_.shape[0]
        cdef double moved = 0.0, mean = 0.0, falls = 0.0
        cdef bint anew, known, bends = hessian is not None
        cdef Curve u
        with nogil:
            for k in range(n_rows):
                self.used_[k] = 0.0
                if y[k] != self.last[k]:
                    moved = max(moved, fabs(y[k] - self.last[k]) / self.unit[k] if self.unit[k] > 0.0 else INFINITY)
                self.last[k] = y[k]
                mean += fabs(y[k]) / n_rows
            self.way += moved * (1.0 + 1e-12)
            anew = mu > self.mu or mu < STALE * self.mu or not self.way < INFINITY or 2 * self.opened > self.n
            if anew:
                # all open: another smoothing, whose window is another one, or units in which prices now move too fast
                for r in range(self.n):
                    self.until[r] = -INFINITY
                for k in range(n_rows):
                    self.closed_used[k] = 0.0
                    self.unit[k] = fabs(y[k]) if fabs(y[k]) > 1e-3 * mean else 1e-3 * mean
                self.way = 0.0
                self.mu = mu
            known = moved == 0.0 and mu == self.pairs_mu and not anew
            self.pairs_mu = mu
            if not known:
                for k in range(n_rows):
                    self.pairs_used[k] = 0.0
                    for i in range(n_rows):
                        self.pairs_bent[k, i] = 0.0
            self.opened = 0
            for r in range(self.n):
                if self.until[r] > -INFINITY:
                    if self.until[r] > self.way and (known or self.mate[r] < 0 or self.pair(r, y, mu)):
                        continue
                    if self.mate[r] < 0:
                        self.use_only(r, -1.0)
                    self.until[r] = -INFINITY
                if self.count[r] == 0:
                    continue
                self.opened += 1
                u = self.curve_of(r)
                self.price(r, y)
                count = self.respond_one(r, &u, mu)
                if count <= 2 and self.is_apart:
                    self.close(r, count)
                    if self.until[r] > -INFINITY:
                        if count == 2:
                            smooth_total(&u, self.s_[r], mu, &falls)
                            self.hold_pair(r, falls, 1.0)
                        continue
                for j in range(count):
                    if self.near[j] >= 0:
                        self.use(self.start[r] + self.near[j])
                if bends and count > 1:
                    self.bend(r, &u, mu, count, hessian)
            if anew:
                self.opened = 0
            for k in range(n_rows):
                self.used_[k] += self.closed_used[k] + self.pairs_used[k]
                if bends:
                    for i in range(n_rows):
                        hessian[k, i] += self.pairs_bent[k, i]

    def take(self, const double[::1] x):
        """Take a point from elsewhere as the response; all requests are open after it."""
        self.x_[:] = x
        self.until[:] = -INFINITY
        self.closed_used[:] = 0.0
        self.mu = self.pairs_mu = -1.0
        self.settle()
        self.used_[:] = self.filled_

    def put(self, const double[::1] point, const double[::1] slope):
        """Put back a point, which an earlier :meth:`settle` made, and slopes of an earlier :meth:`bound`."""
        self.point_[:] = point
        self.s_[:] = slope
        self.is_tidy = False

    cdef inline double shrunk(self, int j, const double[::1] factor) noexcept nogil:
        """A column of the response, multiplied by the least factor of its rows."""
        cdef int k
        cdef double least = INFINITY
        for k in range(self.entry[j], self.entry[j + 1]):
            least = min(least, factor[self.row[k]])
        return self.x_[j] * least if least < INFINITY else self.x_[j]

    def settle(self, const double[::1] factor=None):
        """Set the point to x, with each column multiplied by the least factor of its rows; `filled` follows.

        Where a request's sum would be above its limit, all its columns shrink to it.

        Returns (the objective of the point, the sum of the sizes of its terms).
        """
        cdef int r, j, k, i, first, n
        cdef int own[2]
        cdef double total = 0.0, size = 0.0, z, term, part
        cdef bint mends = factor is not None, is_closed
        cdef Curve u
        with nogil:
            for k in range(self.filled_.shape[0]):
                self.filled_[k] = 0.0
            for r in range(self.n):
                first, n = self.start[r], self.count[r]
                if n == 0:
                    continue
                is_closed = self.until[r] > -INFINITY
                if is_closed:
                    if not self.is_tidy:
                        for j in range(first, first + n):
                            self.point_[j] = 0.0
                    own[0], own[1] = self.only[r], self.mate[r]
                    n = 2
                z = part = 0.0
                for i in range(n):
                    j = own[i] if is_closed else i
                    if j < 0:
                        continue
                    j += first
                    self.point_[j] = self.x_[j]
                    if mends and self.idle[r] and self.x_[j] > 0.0:
                        self.point_[j] = self.shrunk(j, factor)
                    part += self.point_[j]
                part = self.limit[r] / part * (1.0 - 4.0 * U) if part > self.limit[r] and mends else 1.0
                for i in range(n):
                    j = own[i] if is_closed else i
                    if j < 0 or not self.point_[first + j] > 0.0:
                        continue
                    j += first
                    if self.idle[r]:
                        self.point_[j] *= part
                    for k in range(self.entry[j], self.entry[j + 1]):
                        self.filled_[self.row[k]] += self.value[k] * self.point_[j]
                    z += self.rate[j] * self.point_[j]
                    term = self.cost[j] * self.point_[j]
                    total += term
                    size += fabs(term)
                u = self.curve_of(r)
                term = value_at(&u, z) if u.kind != LINEAR else 0.0
                total += term
                size += fabs(term)
            self.is_tidy = True
        return total, size

    def nonzero(self, const long long[::1] place, const int[::1] column):
        """Return (slot << 32 | column, value) of the columns of the point that are not zero, ascending.

        place : (slots,) place of each slot's request, or -1; column : (columns,) number within its request.
        """
        cdef int j, i, n
        cdef int own[2]
        cdef Py_ssize_t slot, count = 0
        cdef long long r
        cdef bint is_closed
        for slot in range(self.n):
            count += 2 if self.is_tidy and self.until[slot] > -INFINITY else self.count[slot]
        key, value = np.empty(count, dtype=np.int64), np.empty(count)
        count = 0
        cdef long long[::1] keys = key
        cdef double[::1] values = value
        with nogil:
            for slot in range(place.shape[0]):
                r = place[slot]
                if r < 0:
                    continue
                is_closed, n = self.is_tidy and self.until[r] > -INFINITY, self.count[r]
                if is_closed:
                    own[0], own[1], n = min(self.only[r], self.mate[r]), max(self.only[r], self.mate[r]), 2
                for i in range(n):
                    j = own[i] if is_closed else i
                    if j < 0:
                        continue
                    j += self.start[r]
                    if self.point_[j] != 0.0:
                        keys[count] = slot << 32 | column[j]
                        values[count] = self.point_[j]
                        count += 1
        return key[:count].copy(), value[:count].copy()

    cdef inline double top_of_own(self, int r, double s, const double[::1] y) noexcept nogil:
        """The largest q_j + s v_j of a closed request, which one of its own columns has, rounded up (W14)."""
        cdef int j, i, k
        cdef double top = 0.0 if self.idle[r] else -INFINITY, t, used
        for i in range(2):
            j = self.mate[r] if i else self.only[r]
            if j < 0:
                continue
            j += self.start[r]
            t = self.cost[j]
            used = fabs(t)
            for k in range(self.entry[j], self.entry[j + 1]):
                t -= self.value[k] * y[self.row[k]]
                used += fabs(self.value[k] * y[self.row[k]])
            t += s * self.rate[j]
            used += fabs(s * self.rate[j])
            t += used * (self.entry[j + 1] - self.entry[j] + 6) * 2.0 * U
            if t > top:
                top = t
        return top

    cdef inline double top_of(self, int r, double s, const double[::1] y) noexcept nogil:
        """The largest q_j + s v_j of a priced request, 0 if it may be idle, rounded up."""
        cdef int j, k
        cdef double top = 0.0 if self.idle[r] else -INFINITY, t, used
        cdef const double* v = &self.rate[self.start[r]]
        for j in range(self.count[r]):
            used = fabs(self.cost[self.start[r] + j]) + fabs(s * v[j])
            for k in range(self.entry[self.start[r] + j], self.entry[self.start[r] + j + 1]):
                used += fabs(self.value[k] * y[self.row[k]])
            t = self.q[j] + s * v[j]
            used *= (self.entry[self.start[r] + j + 1] - self.entry[self.start[r] + j] + 6) * 2.0 * U
            if t + used > top:
                top = t + used
        return top

    def bound(self, const double[::1] y):
        """Return (sum of max_x q'x + u(v'x) over requests, its largest rounding error).

        Sets the slopes that prove it (W4); every slope proves a bound, these the best one.
        """
        cdef int r
        cdef double total = 0.0, size = 0.0, top, s, term, other, half, least, terms = 0.0
        cdef double margin = 0.0
        cdef int k
        cdef bint is_last = True
        cdef Curve u
        cdef Walk at
        with nogil:
            for k in range(self.last.shape[0]):
                is_last = is_last and y[k] == self.last[k]
            for r in range(self.n):
                if self.count[r] == 0:
                    continue
                u = self.curve_of(r)
                if is_last and self.until[r] > self.way:
                    s = self.s_[r] if self.mate[r] < 0 else self.own_crossing(r, y)
                    top = self.top_of_own(r, s, y)
                    term = conjugate(&u, s, &size)
                    self.s_[r] = s
                    total += self.limit[r] * top + term
                    terms += fabs(self.limit[r] * top) + fabs(term)
                    margin += 16.0 * U * size
                    continue
                self.price(r, y)
                s = 0.0
                if self.until[r] > -INFINITY and self.mate[r] < 0:
                    s = self.s_[r]
                elif self.until[r] > -INFINITY:  # if the crossing is not the best slope, it proves a bound all the same
                    s = self.crossing(r)
                elif u.kind != LINEAR:
                    at = self.walk(r, &u)
                    s = at.s
                    if s == -INFINITY:
                        s = slope_after(&u, self.limit[r] * self.rate[self.start[r]])
                    if s <= 0.0 and (u.kind == LOG or u.kind == POWER):
                        s = slope_after(&u, self.limit[r] * self.rate[self.start[r]])
                top = self.top_of(r, s, y)
                term = conjugate(&u, s, &size)
                if self.limit[r] * top > 1e-9 * (1.0 + fabs(term)) and slope_after(&u, 0.0) == INFINITY and s > 0.0:
                    # a crossing at prices so large that rounding is all that is above zero: half of it proves more
                    other = self.top_of(r, 0.5 * s, y)
                    half = conjugate(&u, 0.5 * s, &least)
                    if self.limit[r] * other + half < self.limit[r] * top + term:
                        s, top, term, size = 0.5 * s, other, half, least
                self.s_[r] = s
                total += self.limit[r] * top + term
                terms += fabs(self.limit[r] * top) + fabs(term)
                margin += 16.0 * U * size
        margin += (self.n + 16.0) * 2.0 * U * terms
        return total, margin
