"""The dense inverse of the working basis, a square matrix of one row a coupling row (docs/method/blocks.md, K9)."""

import numpy as np

from libc.string cimport memset


cdef class WorkingInverse:
    """The inverse M of the working basis, kept by columns: `entry[i, p]` is M[p, i] for position p and row i.

    The column of a row whose activity is basic (a loose row) has one entry, -1 at that activity's position. Methods get
    these positions as `loose`, -1 for the other rows, and read the columns of those rows only.

    Attributes
    ----------
    entry : ndarray (rows, rows)
    norm : ndarray (rows,)
        Squared Euclidean norm of each row of M: the weights of dual steepest edge pricing.
    """

    def __init__(self, int n_rows):
        self.n_rows = n_rows
        self.entries = np.zeros((n_rows, n_rows))
        self.norms = np.ones(n_rows)
        self.entry, self.norm = self.entries, self.norms

    def reset(self):
        """Set M = -I: each position holds the activity of its row."""
        self.entries = np.zeros((self.n_rows, self.n_rows))  # pages of zeros that are never read take no time
        self.entry = self.entries
        np.fill_diagonal(self.entries, -1.0)
        self.norms[:] = 1.0

    cdef void row(self, int p, const int* loose, double* out) noexcept nogil:
        """Write row p of M to out (rows,)."""
        cdef int i
        for i in range(self.n_rows):
            if loose[i] < 0:
                out[i] = self.entry[i, p]
            else:
                out[i] = -1.0 if loose[i] == p else 0.0

    cdef void apply(self, const double* x, const int* loose, double* out) noexcept nogil:
        """Write M x to out (positions,)."""
        cdef int i, p
        cdef const double* column
        memset(out, 0, self.n_rows * sizeof(double))
        for i in range(self.n_rows):
            if x[i] == 0.0:
                continue
            if loose[i] >= 0:
                out[loose[i]] -= x[i]
                continue
            column = &self.entry[i, 0]
            for p in range(self.n_rows):
                out[p] += x[i] * column[p]

    cdef void pivot(self, int p, const double* alpha, const double* rho) noexcept nogil:
        """Replace the basic variable at position p; alpha is the tableau column of the new one, rho is row p of M."""
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

    cdef void measure(self, const int* loose) noexcept nogil:
        """Compute the squared norms of the rows anew."""
        cdef int i, q
        memset(&self.norm[0], 0, self.n_rows * sizeof(double))
        for i in range(self.n_rows):
            if loose[i] >= 0:
                self.norm[loose[i]] += 1.0
                continue
            for q in range(self.n_rows):
                self.norm[q] += self.entry[i, q] * self.entry[i, q]

    cdef void combine(self, int p, double scale, int count, const int* others, const double* factors) noexcept nogil:
        """Replace row p of M by scale * (row p + sum of factors[k] * row others[k])."""
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
