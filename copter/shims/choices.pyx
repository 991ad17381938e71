"""Finds the best choice of one option for each of a few requests by exhaustive search with bounds (M15)."""

import numpy as np


cdef class Choices:
    """A depth-first search over requests that tries each request's options in order of loss.

    Parameters
    ----------
    start : (n + 1,) int32
        Options of request i are those from start[i] to start[i + 1], the smallest loss first.
    loss : (options,) float64
    entry_start, row, coefficient
        CSC arrays: rows and units that each option uses.
    price, left, room : (m,) float64
        Price of one unit, units left for all requests, and units by which use may exceed these.
    margin : float
        How far below zero rounding may leave the units left of a row, as a share of its units and of all use.
    """

    cdef const int[::1] start, entry_start, row
    cdef const double[::1] loss, coefficient, price, room
    cdef double[:, ::1] most, give
    cdef double[::1] left, slack
    cdef int[::1] chosen, best
    cdef readonly double worth
    cdef readonly long long nodes
    cdef long long most_nodes
    cdef readonly bint found
    cdef bint gives  # whether some option gives units back

    def __init__(self, const int[::1] start, const double[::1] loss, tuple entries, tuple rows, double margin):
        cdef const int[::1] entry_start, row
        cdef const double[::1] coefficient, price, left, room
        entry_start, row, coefficient = entries
        price, left, room = rows
        cdef Py_ssize_t n = start.shape[0] - 1, m = price.shape[0]
        if left.shape[0] != m or room.shape[0] != m:
            raise ValueError("price, left and room disagree on the number of rows")
        if loss.shape[0] != start[n] or entry_start.shape[0] != loss.shape[0] + 1:
            raise ValueError("start, loss and entry_start disagree on the number of options")
        if row.shape[0] != entry_start[loss.shape[0]] or coefficient.shape[0] != row.shape[0]:
            raise ValueError("entry_start, row and coefficient disagree on the number of entries")
        if row.shape[0] and (np.min(row) < 0 or np.max(row) >= m):
            raise IndexError("a row that there is not")
        self.start, self.loss, self.entry_start, self.row, self.coefficient = start, loss, entry_start, row, coefficient
        self.price, self.room = price, room
        self.gives = row.shape[0] > 0 and np.min(coefficient) < 0.0
        self.left = np.array(left)
        self.chosen, self.best = np.zeros(n, dtype=np.int32), np.zeros(n, dtype=np.int32)
        self.most, self.give = np.zeros((2, n + 1, m))
        self.sum_up()
        self.slack = margin * (np.abs(left) + self.most[0] + self.give[0])

    cdef void sum_up(self):
        """Find the most that requests from i on can use of each row, and can give back to it (negative usage)."""
        cdef Py_ssize_t i, k, e, option, m = self.price.shape[0]
        cdef double[::1] use = np.zeros(m)
        cdef double high, low
        cdef bint first
        cdef double[:, ::1] range_of = np.zeros((2, m))
        for i in range(self.start.shape[0] - 2, -1, -1):
            for option in range(self.start[i], self.start[i + 1]):
                for e in range(self.entry_start[option], self.entry_start[option + 1]):
                    use[self.row[e]] += self.coefficient[e]
                for k in range(m):
                    high, low = range_of[0, k], range_of[1, k]
                    first = option == self.start[i]
                    range_of[0, k] = use[k] if first or use[k] > high else high
                    range_of[1, k] = use[k] if first or use[k] < low else low
                    use[k] = 0.0
            for k in range(m):
                self.most[i, k] = self.most[i + 1, k] + range_of[0, k]
                self.give[i, k] = self.give[i + 1, k] + (-range_of[1, k] if range_of[1, k] < 0.0 else 0.0)

    def search(self, double budget, long long most_nodes):
        """Search all choices with a loss below `budget`; return whether `most_nodes` nodes sufficed.

        The loss of a choice is the sum of its options' losses and of the prices of the units that it leaves unused. If
        `found`, :meth:`choice` returns the best choice and `worth` is its loss.
        """
        self.worth, self.nodes, self.most_nodes, self.found = budget, 0, most_nodes, False
        with nogil:
            self.visit(0, 0.0)
        return self.nodes <= most_nodes

    def choice(self):
        """Return the option of each request in the best choice, (n,) int32."""
        return np.array(self.best)

    cdef void visit(self, Py_ssize_t i, double spent) noexcept nogil:
        cdef Py_ssize_t k, option, e
        cdef double idle = spent, unused
        cdef bint fits
        cdef const double* most = &self.most[i, 0]
        cdef const double* price = &self.price[0]
        cdef double* left = &self.left[0]
        self.nodes += 1
        if self.nodes > self.most_nodes:
            return
        for k in range(self.price.shape[0] if self.gives else 0):
            if left[k] + self.give[i, k] + self.room[k] + self.slack[k] < 0.0:
                return  # the remaining requests cannot give back the missing units
        for k in range(self.price.shape[0]):
            unused = left[k] - most[k]
            idle += price[k] * unused if unused > 0.0 else 0.0
        if not idle < self.worth:
            return
        if i == self.start.shape[0] - 1:
            self.worth, self.found = idle, True
            self.best[:] = self.chosen
            return
        for option in range(self.start[i], self.start[i + 1]):
            if not spent + self.loss[option] < self.worth:
                return  # all later options lose more
            fits = True
            for e in range(self.entry_start[option], self.entry_start[option + 1]):
                k = self.row[e]
                if not self.coefficient[e] <= left[k] + self.give[i + 1, k] + self.room[k]:
                    fits = False
            if not fits:
                continue
            for e in range(self.entry_start[option], self.entry_start[option + 1]):
                left[self.row[e]] -= self.coefficient[e]
            self.chosen[i] = <int> option
            self.visit(i + 1, spent + self.loss[option])
            for e in range(self.entry_start[option], self.entry_start[option + 1]):
                left[self.row[e]] += self.coefficient[e]
            if self.nodes > self.most_nodes:
                return
