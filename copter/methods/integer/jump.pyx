"""Weighted local search for a point that satisfies every row (docs/method/integer.md, M6)."""

import numpy as np

from libc.math cimport ceil, floor

cdef int CANDIDATES = 40  # most columns of a violated row that one step examines
cdef int TENURE = 10  # a column that has moved stays for this many steps, plus up to as many random ones


cdef inline unsigned long long random(unsigned long long* state) noexcept nogil:
    """Return the next number of a xorshift generator."""
    state[0] ^= state[0] << 13
    state[0] ^= state[0] >> 7
    state[0] ^= state[0] << 17
    return state[0]


cdef inline double violation(double activity, double lower, double upper) noexcept nogil:
    if activity > upper:
        return activity - upper
    return lower - activity if activity < lower else 0.0


cdef class Jumps:
    """Local search over the columns of violated rows; its weights and the moves it holds back last from call to call.

    Parameters
    ----------
    rows, columns : (start, index, value)
        The matrix by rows and by columns.
    row_lower, row_upper, tolerance : ndarray (m,)
    lower, upper, integer : ndarray (n,)
    """

    cdef const int[::1] row_start, row_column, column_start, column_row
    cdef const double[::1] row_value, column_value, row_lower, row_upper, tolerance, lower, upper
    cdef const unsigned char[::1] integer
    cdef double[::1] x, activity, weight
    cdef long long[::1] held_until
    cdef int[::1] violated, place
    cdef long long steps

    def __init__(self, tuple rows, tuple columns, row_lower, row_upper, tolerance, lower, upper, integer):
        self.row_start, self.row_column, self.row_value = rows
        self.column_start, self.column_row, self.column_value = columns
        self.row_lower, self.row_upper, self.tolerance = row_lower, row_upper, tolerance
        self.lower, self.upper, self.integer = lower, upper, integer
        m, n = len(row_lower), len(lower)
        self.weight, self.held_until = np.ones(m), np.zeros(n, dtype=np.int64)
        self.violated, self.place = np.empty(m, dtype=np.int32), np.empty(m, dtype=np.int32)
        self.steps = 0

    def search(self, double[::1] x, double[::1] activity, unsigned long long seed, long long steps):
        """Move columns of violated rows, one by one, to where the weighted violation falls most; x changes in place.

        If no move lowers the weighted violation, the weights of violated rows rise. `activity` is A x, and follows x.
        Returns (number of violated rows, steps made); ends early when no row is violated.
        """
        self.x, self.activity = x, activity
        cdef int m = self.row_lower.shape[0], n_violated = 0, i, j, k, q, p, length, _tried, best_column, at, last
        cdef long long step = self.steps, until = step + steps
        cdef unsigned long long state = seed | 1
        cdef double excess, a, target, delta, score, best_score, best_target, moved, before, after
        with nogil:
            for i in range(m):
                self.place[i] = -1
                if violation(self.activity[i], self.row_lower[i], self.row_upper[i]) > self.tolerance[i]:
                    self.place[i] = n_violated
                    self.violated[n_violated] = i
                    n_violated += 1
            while n_violated > 0 and step < until:  # ends: step grows to `until`
                step += 1
                i = self.violated[random(&state) % n_violated]
                length = self.row_start[i + 1] - self.row_start[i]
                if length == 0:
                    continue
                excess = self.activity[i] - (
                    self.row_upper[i] if self.activity[i] > self.row_upper[i] else self.row_lower[i]
                )
                best_column, best_score, best_target = -1, 1e300, 0.0
                p = random(&state) % length
                for _tried in range(length if length < CANDIDATES else CANDIDATES):
                    p = p + 1 if p + 1 < length else 0
                    a, j = self.row_value[self.row_start[i] + p], self.row_column[self.row_start[i] + p]
                    if self.lower[j] == self.upper[j] or self.held_until[j] > step:
                        continue
                    target = self.x[j] - excess / a
                    if self.integer[j]:  # far enough for the row to hold
                        target = floor(target + 1e-9) if target < self.x[j] else ceil(target - 1e-9)
                    if target < self.lower[j]:
                        target = self.lower[j]
                    elif target > self.upper[j]:
                        target = self.upper[j]
                    delta = target - self.x[j]
                    if delta == 0.0:
                        continue
                    score = 0.0
                    for q in range(self.column_start[j], self.column_start[j + 1]):
                        k = self.column_row[q]
                        before = violation(self.activity[k], self.row_lower[k], self.row_upper[k])
                        moved = self.activity[k] + self.column_value[q] * delta
                        after = violation(moved, self.row_lower[k], self.row_upper[k])
                        score += self.weight[k] * (after - before)
                        # A row that becomes satisfied or violated counts beyond the change of its violation.
                        score += self.weight[k] * ((after > self.tolerance[k]) - <int>(before > self.tolerance[k]))
                    if score < best_score:
                        best_column, best_score, best_target = j, score, target
                if best_column < 0:
                    continue
                if best_score >= 0.0:
                    for q in range(n_violated):
                        self.weight[self.violated[q]] += 1.0
                j, delta = best_column, best_target - self.x[best_column]
                self.x[j] = best_target
                self.held_until[j] = step + TENURE // 2 + <long long>(random(&state) % TENURE)
                for q in range(self.column_start[j], self.column_start[j + 1]):
                    k = self.column_row[q]
                    self.activity[k] += self.column_value[q] * delta
                    if violation(self.activity[k], self.row_lower[k], self.row_upper[k]) > self.tolerance[k]:
                        if self.place[k] < 0:
                            self.place[k] = n_violated
                            self.violated[n_violated] = k
                            n_violated += 1
                    elif self.place[k] >= 0:
                        at, last = self.place[k], self.violated[n_violated - 1]
                        self.violated[at] = last
                        self.place[last] = at
                        self.place[k] = -1
                        n_violated -= 1
        steps, self.steps = step - self.steps, step
        return n_violated, steps
