"""Cholesky factorisation of a dense matrix, tile by tile (docs/method/blocks.md, K3).

BLAS is called on single tiles only: on larger matrices it starts threads of its own, which wait for each other busily.
"""

import numpy as np

from cython.parallel cimport prange
from libc.math cimport sqrt
from libc.string cimport memset
from scipy.linalg.cython_blas cimport ddot, dgemm

cdef double ROUNDING = 1e-13  # share of an entry of which rounding may be the whole


cdef void update_tile(double* matrix, int m, int k, int i, int j) noexcept nogil:
    """Subtract the tiles' product L_ik L_jk' from A_ij (row-major; the whole matrix has m columns)."""
    cdef int rows = min(TILE, m - i * TILE), columns = min(TILE, m - j * TILE), depth = TILE
    cdef double minus = -1.0, one = 1.0
    # Row-major C (rows x columns) is column-major C' (columns x rows): C' -= L_jk L_ik', both stored transposed.
    dgemm("T", "N", &columns, &rows, &depth, &minus, &matrix[<size_t>(j * TILE) * m + k * TILE], &m,
          &matrix[<size_t>(i * TILE) * m + k * TILE], &m, &one, &matrix[<size_t>(i * TILE) * m + j * TILE], &m)


cdef void scale_tile(double* matrix, int m, int k, int i, const double* inverse, double* work) noexcept nogil:
    """Overwrite the tile A_ik with L_ik = A_ik inv(L_kk)'."""
    cdef int rows = min(TILE, m - i * TILE), columns = min(TILE, m - k * TILE), r, c, size = TILE
    cdef double* tile = &matrix[<size_t>(i * TILE) * m + k * TILE]
    cdef double one = 1.0, zero = 0.0
    for r in range(rows):
        for c in range(columns):
            work[r * TILE + c] = tile[<size_t>r * m + c]
    # Row-major result R = W I' with I lower row-major; column-major: R' = I W' with I stored as I' (transposed).
    dgemm("T", "N", &columns, &rows, &columns, &one, <double*>inverse, &size, work, &size, &zero, tile, &m)


cdef void invert_tile(const double* matrix, int m, int k, double* inverse) noexcept nogil:
    """Write the inverse of the lower triangular tile L_kk, row-major with zeros above the diagonal."""
    cdef int n = min(TILE, m - k * TILE), i, j, h
    cdef const double* tile = &matrix[<size_t>(k * TILE) * m + k * TILE]
    cdef double total
    memset(inverse, 0, TILE * TILE * sizeof(double))
    for j in range(n):
        inverse[j * TILE + j] = 1.0 / tile[<size_t>j * m + j]
        for i in range(j + 1, n):
            total = 0.0
            for h in range(j, i):
                total = total + tile[<size_t>i * m + h] * inverse[h * TILE + j]
            inverse[i * TILE + j] = -total / tile[<size_t>i * m + i]


cdef void factor_square(double* square, int n, int stride, const double* least) noexcept nogil:
    """Factorise a small square in place (row-major, lower triangle); a pivot of at most its `least` becomes huge.

    The solution of its row is then zero. Without `least`, a pivot is zero if it is only the rounding of its entry.
    """
    cdef int i, j, h
    cdef double pivot, lowest
    for j in range(n):
        pivot = square[<size_t>j * stride + j]
        lowest = least[j] if least != NULL else ROUNDING * pivot
        for h in range(j):
            pivot -= square[<size_t>j * stride + h] * square[<size_t>j * stride + h]
        if not pivot > lowest:
            pivot = 1e128
        pivot = sqrt(pivot)
        square[<size_t>j * stride + j] = pivot
        for i in range(j + 1, n):
            for h in range(j):
                square[<size_t>i * stride + j] -= square[<size_t>i * stride + h] * square[<size_t>j * stride + h]
            square[<size_t>i * stride + j] /= pivot


def dense_cholesky(double[:, ::1] matrix, const double[::1] least, int n_threads, must_stop=None):
    """Factorise a dense matrix (lower triangle, row-major) in place.

    The solution is zero in each row whose pivot is at most its `least`. `must_stop` is asked after each column of
    tiles; returns False if it has ended the work.
    """
    cdef int m = <int>matrix.shape[0], tiles = (m + TILE - 1) // TILE, k, i, t, rest, row, column
    inverse, works = np.empty(TILE * TILE), np.empty((max(tiles, 1), TILE * TILE))
    cdef double[::1] inverse_view = inverse
    cdef double[:, ::1] work = works
    if m == 0:
        return True
    cdef double* start = &matrix[0, 0]
    cdef const double* smallest = &least[0]
    for k in range(tiles):
        with nogil:
            factor_square(start + <size_t>(k * TILE) * m + k * TILE, min(TILE, m - k * TILE), m, smallest + k * TILE)
            invert_tile(start, m, k, &inverse_view[0])
        rest = tiles - k - 1
        if rest == 0:
            break
        for i in prange(k + 1, tiles, nogil=True, num_threads=n_threads if rest > 3 else 1, schedule="static"):
            scale_tile(start, m, k, i, &inverse_view[0], &work[i, 0])
        for t in prange(rest * (rest + 1) // 2, nogil=True, num_threads=n_threads if rest > 2 else 1,
                        schedule="dynamic", chunksize=4):
            row = <int>((sqrt(8.0 * t + 1.0) - 1.0) / 2.0)
            if (row + 1) * (row + 2) // 2 <= t:
                row = row + 1
            elif row * (row + 1) // 2 > t:
                row = row - 1
            column = t - row * (row + 1) // 2
            update_tile(start, m, k, k + 1 + row, k + 1 + column)
        if must_stop is not None and must_stop():
            return False
    return True


def dense_solve(const double[:, ::1] factor, double[::1] right):
    """Overwrite `right` with the solution, using the factor of :func:`dense_cholesky`."""
    cdef int m = <int>factor.shape[0], i, j, one = 1
    cdef double* x
    cdef const double* row
    if m == 0:
        return
    x = &right[0]
    with nogil:
        for i in range(m):
            row = &factor[i, 0]
            x[i] = (x[i] - ddot(&i, <double*>row, &one, x, &one)) / row[i]
        for i in range(m - 1, -1, -1):
            row = &factor[i, 0]
            x[i] = x[i] / row[i]
            for j in range(i):
                x[j] -= row[j] * x[i]
