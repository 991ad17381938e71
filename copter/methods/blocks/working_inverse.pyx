"""The inverse of a working basis, dense: one row and one column for every coupling row (docs/method/blocks.md, K11)."""

import numpy as np

from libc.string cimport memset


cdef class WorkingInverse:
    """The inverse M of the working basis, kept by columns: `entry[i, p]` is M[p, i] for position p and row i.

    A column of a loose row has one entry, so that updates only walk over the rows that are `tight`.

    Attributes
    ----------
    entry : ndarray (rows, rows)
    norm : ndarray (rows,)
        Squared length of each row of M: the weights of dual steepest edge pricing.
    """

    def __init__(self, int n_rows):
        self.n_rows = n_rows
        self.entries = np.zeros((n_rows, n_rows))
        self.norms = np.ones(n_rows)
        self.entry, self.norm = self.entries, self.norms

    def reset(self):
        """M = -I: every position holds the activity of its row."""
        self.entries[:] = 0.0
        np.fill_diagonal(self.entries, -1.0)
        self.norms[:] = 1.0

    cdef void row(self, int p, double* out) noexcept nogil:
        """out = row p of M, (rows,)."""
        cdef int i
        for i in range(self.n_rows):
            out[i] = self.entry[i, p]

    cdef void add_column(self, int i, double factor, double* out) noexcept nogil:
        """out += factor times column i of M, (positions,)."""
        cdef int p
        cdef const double* column = &self.entry[i, 0]
        for p in range(self.n_rows):
            out[p] += factor * column[p]

    cdef void pivot(self, int p, const double* alpha, const double* rho) noexcept nogil:
        """Replace the basis column at position p by one whose column of the tableau is alpha; rho is row p of M."""
        cdef int i, q, m = self.n_rows
        cdef double factor, inverse = 1.0 / alpha[p], before, after
        cdef double* column
        cdef double* norm = &self.norm[0]
        for i in range(m):
            if rho[i] == 0.0:
                continue
            column = &self.entry[i, 0]
            factor = rho[i] * inverse
            before = column[p]
            norm[p] -= before * before
            column[p] = 0.0
            for q in range(m):
                before = column[q]
                after = before - factor * alpha[q]
                column[q] = after
                norm[q] += (after - before) * (after + before)
            after = column[p]
            norm[p] += factor * factor - after * after
            column[p] = factor

    cdef void measure(self) noexcept nogil:
        """The lengths of the rows again, from the entries."""
        cdef int i, q
        memset(&self.norm[0], 0, self.n_rows * sizeof(double))
        for i in range(self.n_rows):
            for q in range(self.n_rows):
                self.norm[q] += self.entry[i, q] * self.entry[i, q]

    cdef void combine(self, int p, double scale, int count, const int* others, const double* factors) noexcept nogil:
        """Row p of M becomes (row p + sum of factors times other rows) * scale."""
        cdef int i, k
        cdef double total, norm = 0.0
        for i in range(self.n_rows):
            total = self.entry[i, p]
            for k in range(count):
                total += factors[k] * self.entry[i, others[k]]
            total *= scale
            self.entry[i, p] = total
            norm += total * total
        self.norm[p] = norm
