"""Finds each block's point on the central path for given prices of the coupling rows (docs/method/blocks.md, K10)."""

from cython.parallel cimport prange
from libc.math cimport INFINITY, fabs, sqrt

cdef enum:
    STEPS = 60  # most steps of the search for one private row's price

cdef double CLOSED = 1e-9  # a private row holds if its residual is below this share of the size of its terms
cdef double LEAST = 1e-12  # least reduced cost used where one must be positive: values stay finite


cdef inline double place(double reduced, double low, double high, double mu) noexcept nogil:
    """Return a variable's value on the central path at a reduced cost; it lies strictly between its bounds."""
    cdef double width, size, step
    if low == high:
        return low
    if low > -INFINITY and high < INFINITY:
        width, size = high - low, fabs(reduced) * (high - low)
        step = 2.0 * mu * width / (size + 2.0 * mu + sqrt(size * size + 4.0 * mu * mu))
        return low + step if reduced >= 0.0 else high - step
    if low > -INFINITY:
        return low + mu / max(reduced, LEAST)
    if high < INFINITY:
        return high + mu / min(reduced, -LEAST)
    return 0.0


cdef inline double slope(double x, double low, double high, double mu) noexcept nogil:
    """Return how fast a variable's central value falls as its reduced cost rises."""
    cdef double total = 0.0
    if low == high:
        return 0.0
    if low > -INFINITY:
        total += 1.0 / ((x - low) * (x - low))
    if high < INFINITY:
        total += 1.0 / ((high - x) * (high - x))
    return 1.0 / (mu * total) if total > 0.0 else 0.0


cdef inline double inside(double x, double low, double high) noexcept nogil:
    """Return x, moved strictly between the bounds if rounding has put it on a bound or beyond it."""
    cdef double least
    if low == high:
        return low
    if x <= low:
        least = 1e-15 * fabs(low) + 1e-30
        x = low + least if high == INFINITY else low + min(least, 0.25 * (high - low))
    if x >= high:
        least = 1e-15 * fabs(high) + 1e-30
        x = high - least if low == -INFINITY else high - min(least, 0.25 * (high - low))
    return x


cdef inline void bound_of(double at, bint falling, double* low, double* high) noexcept nogil:
    """Narrow the interval [low, high] of a row's price by a limit: from below if `falling`, else from above."""
    if falling:
        low[0] = max(low[0], at)
    else:
        high[0] = min(high[0], at)


cdef class Centre:
    """Blocks, each with at most one private row, that :meth:`put` moves to their centres.

    Parameters
    ----------
    n_rows : int
        Coupling rows.
    column_start, private_start, start, row, value, own_start, own_row, own_value
        As for :class:`copter.methods.blocks.eliminate.Elimination`.
    cost : ndarray (columns,)
    lower, upper : ndarray (columns + rows,)
        Bounds of columns, coupling rows, private rows.
    """

    cdef int n_rows, n_columns, n_blocks
    cdef const int[::1] column_start, private_start, start, row, own_start, own_row
    cdef const double[::1] value, own_value, cost, lower, upper
    cdef double[::1] reduced, x, y
    cdef double mu

    def __init__(self, int n_rows, column_start, private_start, start, row, value, own_start, own_row, own_value,
                 cost, lower, upper):
        self.n_rows, self.n_columns, self.n_blocks = n_rows, len(cost), len(column_start) - 1
        self.column_start, self.private_start, self.start, self.row = column_start, private_start, start, row
        self.value, self.own_start, self.own_row, self.own_value = value, own_start, own_row, own_value
        self.cost, self.lower, self.upper = cost, lower, upper

    def put(self, double mu, double[::1] y, double[::1] reduced, double[::1] x, double[::1] z, double[::1] v,
            int n_threads):
        """Compute x, z, v, the reduced costs and the private rows' prices from the coupling rows' prices.

        Parameters
        ----------
        mu : float
            Parameter of the central path.
        y : ndarray (rows,)
            Prices: read for coupling rows, written for private rows.
        reduced, x, z, v : ndarray (columns + rows,)
            Written: reduced costs, values, and multipliers of lower and upper bounds.
        n_threads : int
        """
        cdef int g, j, n = self.n_columns
        self.mu, self.y, self.reduced, self.x = mu, y, reduced, x
        for g in prange(self.n_blocks + 1, nogil=True, num_threads=n_threads, schedule="dynamic", chunksize=64):
            self.block(g)
        for j in range(self.n_rows):
            reduced[n + j] = y[j]
            x[n + j] = inside(place(y[j], self.lower[n + j], self.upper[n + j], mu), self.lower[n + j],
                              self.upper[n + j])
        with nogil:
            for j in range(len(x)):
                z[j] = v[j] = 0.0
                if self.lower[j] == self.upper[j]:
                    continue
                if self.lower[j] > -INFINITY:
                    z[j] = mu / (x[j] - self.lower[j])
                if self.upper[j] < INFINITY:
                    v[j] = mu / (self.upper[j] - x[j])

    cdef void block(self, int g) noexcept nogil:
        cdef int j, e, n = self.n_columns, first = self.column_start[g], slack = -1
        cdef int last = n if g == self.n_blocks else self.column_start[g + 1]
        cdef double total
        if g < self.n_blocks and self.private_start[g + 1] > self.private_start[g]:
            slack = n + self.n_rows + self.private_start[g]
        for j in range(first, last):
            total = self.cost[j]
            for e in range(self.start[j], self.start[j + 1]):
                total -= self.value[e] * self.y[self.row[e]]
            if self.own_start[j] == self.own_start[j + 1] and self.upper[j] == INFINITY:
                total = max(total, self.mu)  # no private row's price can make it positive
            self.reduced[j] = total
        if slack >= 0:
            total = self.balance(first, last, slack)
            self.y[slack - n] = self.reduced[slack] = total
            for j in range(first, last):
                for e in range(self.own_start[j], self.own_start[j + 1]):
                    self.reduced[j] -= self.own_value[e] * total
            self.put_one(slack)
        for j in range(first, last):
            self.put_one(j)

    cdef void put_one(self, int j) noexcept nogil:
        self.x[j] = inside(place(self.reduced[j], self.lower[j], self.upper[j], self.mu), self.lower[j], self.upper[j])

    cdef double balance(self, int first, int last, int slack) noexcept nogil:
        """Return the private row's price at which its columns' sum equals its slack; the search starts at zero."""
        cdef int j, e, _step
        cdef double low = -INFINITY, high = INFINITY, at, left, rate, size, price = 0.0, reach = 1.0, moved
        if self.lower[slack] == -INFINITY and self.upper[slack] == INFINITY:
            return 0.0
        if self.upper[slack] == INFINITY:
            low = 0.0
        elif self.lower[slack] == -INFINITY:
            high = 0.0
        for j in range(first, last):
            for e in range(self.own_start[j], self.own_start[j + 1]):
                if self.own_value[e] != 0.0 and self.lower[j] < self.upper[j]:
                    at = self.reduced[j] / self.own_value[e]
                    if self.upper[j] == INFINITY and self.lower[j] > -INFINITY:
                        bound_of(at, self.own_value[e] < 0.0, &low, &high)
                    elif self.lower[j] == -INFINITY and self.upper[j] < INFINITY:
                        bound_of(at, self.own_value[e] > 0.0, &low, &high)
        if low >= high:
            return 0.0
        if not low < 0.0 < high:
            price = 0.5 * (low + high)
            if low == -INFINITY or high == INFINITY:
                price = low + reach if low > -INFINITY else high - reach
        for _step in range(STEPS):
            self.imbalance(first, last, slack, price, &left, &rate, &size)
            if fabs(left) <= CLOSED * size:
                break
            if left > 0.0:
                high = price
            else:
                low = price
            moved = price - left / rate if rate > 0.0 else INFINITY
            if not low < moved < high:
                moved = 0.5 * (low + high)
                if low == -INFINITY or high == INFINITY:
                    reach *= 4.0
                    moved = low + reach if low > -INFINITY else high - reach
            if moved == price:
                break
            price = moved
        return price

    cdef void imbalance(self, int first, int last, int slack, double price, double* left, double* rate,
                        double* size) noexcept nogil:
        """Write the row's sum of columns less its slack at a price, its derivative, and the size of its terms."""
        cdef int j, e
        cdef double x = place(price, self.lower[slack], self.upper[slack], self.mu), b
        left[0], size[0] = -x, fabs(x) + 1e-12
        rate[0] = slope(x, self.lower[slack], self.upper[slack], self.mu)
        for j in range(first, last):
            for e in range(self.own_start[j], self.own_start[j + 1]):
                b = self.own_value[e]
                x = place(self.reduced[j] - b * price, self.lower[j], self.upper[j], self.mu)
                left[0] += b * x
                size[0] += fabs(b * x)
                rate[0] += b * b * slope(x, self.lower[j], self.upper[j], self.mu)
