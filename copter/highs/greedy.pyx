"""Points by moves of single columns: until broken rows hold, then to where they cost less (M17)."""

import numpy as np

from libc.math cimport INFINITY, ceil, fabs, floor, isfinite
from posix.time cimport CLOCK_MONOTONIC, clock_gettime, timespec

cdef double EXACT = 1e-9  # rows are kept to this, in units of 1 + |side|: far inside of what a search accepts
cdef int PASSES = 3  # times that broken rows are gone through


cdef inline bint over(double until) noexcept nogil:
    """Whether the time of ``time.perf_counter()`` has come."""
    cdef timespec moment
    clock_gettime(CLOCK_MONOTONIC, &moment)
    return moment.tv_sec + 1e-9 * moment.tv_nsec > until


cdef arrays_of(matrix):
    """Return a sparse matrix's starts, indices and entries."""
    return matrix.indptr.astype(np.int32, copy=False), matrix.indices.astype(np.int32, copy=False), matrix.data


cdef class Greedy:
    """Moves of single columns that break no row.

    Parameters
    ----------
    matrix : csc_array (m, n)
    row_lower, row_upper : ndarray (m,)
    lower, upper : ndarray (n,)
        Bounds; those of integer columns are whole.
    is_integer : ndarray of bool (n,)
    cost : ndarray (n,)
        Of the minimisation.
    """

    cdef object matrix, rows, is_integer
    cdef const int[::1] start, index, row_start, row_index
    cdef const double[::1] entry, row_entry, row_lower, row_upper, lower, upper, cost
    cdef const unsigned char[::1] whole
    cdef double[::1] x, activity

    def __init__(self, matrix, row_lower, row_upper, lower, upper, is_integer, cost):
        self.matrix, self.is_integer = matrix.astype(np.float64, copy=False), np.ascontiguousarray(is_integer)
        self.rows = self.matrix.tocsr()
        self.start, self.index, self.entry = arrays_of(self.matrix)
        self.row_start, self.row_index, self.row_entry = arrays_of(self.rows)
        self.row_lower, self.row_upper, self.lower, self.upper, self.cost = (
            np.ascontiguousarray(each, dtype=np.float64) for each in (row_lower, row_upper, lower, upper, cost)
        )
        self.whole = self.is_integer.view(np.uint8)
        self.x = self.activity = None

    def free_point(self):
        """Return the point in which each column is at a bound at which it breaks no row, or at the one nearest to 0."""
        lower, upper, index, data = map(np.asarray, (self.lower, self.upper, self.index, self.entry))
        owner = np.repeat(np.arange(len(lower)), np.diff(self.start))
        rises = data > 0.0
        above, below = np.isfinite(self.row_upper)[index], np.isfinite(self.row_lower)[index]
        up = np.bincount(owner, (rises & above) | (~rises & below), minlength=len(lower)) > 0.0
        down = np.bincount(owner, (rises & below) | (~rises & above), minlength=len(lower)) > 0.0
        x = np.clip(np.zeros(len(lower)), lower, upper)
        return np.where(~up & down & np.isfinite(upper) & self.is_integer, upper, x)

    def near(self, x):
        """Return a point rounded down, but for columns that no row keeps from rising."""
        free, lower = self.free_point(), np.asarray(self.lower)
        found = np.where(self.is_integer, np.where(free > lower, np.ceil(x - EXACT), np.floor(x + EXACT)), x)
        return np.clip(found, lower, np.asarray(self.upper))

    def point(self, x, reduced, double until):
        """Return a point near `x` in which all rows hold and no single column can move to where it costs less.

        Parameters
        ----------
        x : ndarray (n,)
            Within its bounds, integer columns whole.
        reduced : ndarray (n,) or None
            Reduced costs of the LP: they order the moves.
        until : float
            Time of `time.perf_counter` at which it gives up, without a point if a row is broken then.
        """
        found = np.array(x, dtype=np.float64)
        self.x, self.activity = found, np.ascontiguousarray(self.matrix @ x)
        price = np.asarray(self.cost if reduced is None else reduced, dtype=np.float64)
        if not self._covered(price, reduced is not None, until):
            return None
        self._improved(price, reduced is not None, until)
        return found

    cdef double _short(self, int row) noexcept nogil:
        """Return what a row lacks to its lower side (above zero), or exceeds its upper side by (below zero)."""
        cdef double value = self.activity[row], low = self.row_lower[row], high = self.row_upper[row]
        if value < low - EXACT * (1.0 + fabs(low)):
            return low - value
        if value > high + EXACT * (1.0 + fabs(high)):
            return high - value
        return 0.0

    cdef double _room(self, int column, double sign) noexcept nogil:
        """Return how far a column may move up (1.0) or down (-1.0) before a bound or a row stops it."""
        cdef double found = self.upper[column] - self.x[column] if sign > 0.0 else self.x[column] - self.lower[column]
        cdef double change, left
        cdef int at, row
        for at in range(self.start[column], self.start[column + 1]):
            if found <= 0.0:
                return 0.0
            row, change = self.index[at], self.entry[at] * sign
            if change > 0.0:
                left = (self.row_upper[row] - self.activity[row]) / change
            elif change < 0.0:
                left = (self.row_lower[row] - self.activity[row]) / change
            else:
                continue
            found = min(found, left)
        return floor(found + EXACT) if self.whole[column] and isfinite(found) else max(found, 0.0)

    cdef void _move(self, int column, double step) noexcept nogil:
        cdef int at
        self.x[column] += step
        for at in range(self.start[column], self.start[column + 1]):
            self.activity[self.index[at]] += self.entry[at] * step

    def _covered(self, const double[::1] price, bint largest_first, double until):
        """Move columns until all rows hold: for each broken row those that cost least for what they mend."""
        cdef bint moved
        cdef Py_ssize_t i
        cdef const long long[::1] order
        counts = np.diff(self.row_start)
        weight = self._weights(counts) if largest_first else np.zeros(len(counts))
        for _ in range(PASSES):
            broken = self._broken()
            if not len(broken):
                return True
            moved = False
            order = broken[np.lexsort((-weight[broken], counts[broken]))]
            with nogil:
                for i in range(order.shape[0]):
                    if over(until):
                        with gil:
                            return False
                    if self._mend(<int>order[i], price):
                        moved = True
            if not moved:
                return False
        return not len(self._broken())

    def _broken(self):
        """Return the rows that do not hold."""
        cdef int row
        found = np.zeros(self.row_lower.shape[0], dtype=bool)
        cdef unsigned char[::1] marks = found.view(np.uint8)
        for row in range(self.row_lower.shape[0]):
            marks[row] = self._short(row) != 0.0
        return np.flatnonzero(found)

    def _weights(self, counts):
        """Return how much a row's columns use of all rows: of bins' items, the heaviest are the hardest to place."""
        n, m = self.cost.shape[0], len(counts)
        use = np.bincount(np.repeat(np.arange(n), np.diff(self.start)), np.abs(self.entry), n)
        return np.bincount(np.repeat(np.arange(m), counts), use[self.rows.indices], m).astype(np.float64)

    cdef bint _mend(self, int row, const double[::1] price) noexcept nogil:
        """Move columns until a row holds, or none can; returns whether one was moved."""
        cdef int first = self.row_start[row], end = self.row_start[row + 1], at, column, choice, _turn
        cdef double short, best, sign, room, step, rate, chosen
        cdef bint moved = False
        for _turn in range(end - first):
            short = self._short(row)
            if short == 0.0:
                break
            best, choice, chosen = INFINITY, 0, 0.0
            for at in range(first, end):
                column = self.row_index[at]
                sign = 1.0 if self.row_entry[at] * short > 0.0 else -1.0
                room = self._room(column, sign)
                if room <= 0.0 or self.row_entry[at] == 0.0:
                    continue
                step = fabs(short / self.row_entry[at])
                if self.whole[column]:
                    step = ceil(step - EXACT)  # no fewer than one
                step = sign * min(room, step)
                rate = (price[column] * step + 1e-9 * fabs(step)) / self._gain(column, step)
                if rate < best:
                    best, choice, chosen = rate, column, step
            if chosen == 0.0:
                break
            self._move(choice, chosen)
            moved = True
        return moved

    cdef double _gain(self, int column, double step) noexcept nogil:
        """Return how much a move mends of all broken rows, each in shares of its side."""
        cdef double found = 0.0, short, change
        cdef int at
        for at in range(self.start[column], self.start[column + 1]):
            short, change = self._short(self.index[at]), self.entry[at] * step
            if short * change > 0.0:
                found += min(fabs(change), fabs(short)) / (1.0 + fabs(self.activity[self.index[at]] + short))
        return max(found, 1e-12)

    def _improved(self, price, bint by_price, double until):
        """Move each column once as far as it costs less, those first that gain most for what they use."""
        cdef int column
        cdef Py_ssize_t at
        cdef double sign, room
        cost, data, index = np.asarray(self.cost), np.asarray(self.entry), np.asarray(self.index)
        owner = np.repeat(np.arange(len(cost)), np.diff(self.start))
        if by_price:
            score = -np.sign(cost) * price
        else:
            side = np.where(cost < 0.0, 1.0, -1.0)[owner]
            low, high = np.abs(self.row_lower), np.abs(self.row_upper)
            scarce = np.where(data * side > 0.0, high[index], low[index])
            use = np.abs(data) / np.maximum(scarce, 1.0)
            score = -np.abs(cost) / (np.bincount(owner, use, len(cost)) + 1e-9)
        order = np.argsort(score, kind="stable")
        cdef const long long[::1] columns = order[cost[order] != 0.0].astype(np.int64)
        with nogil:
            for at in range(columns.shape[0]):
                if over(until):
                    break
                column = <int>columns[at]
                sign = -1.0 if self.cost[column] > 0.0 else 1.0
                room = self._room(column, sign)
                if room > 0.0 and isfinite(room):
                    self._move(column, sign * room)
