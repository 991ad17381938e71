"""Solves K x = b for blocks whose matrix K is an arrow: diagonal except for a few dense rows, the border (K2).

K is an arrow if the block's private rows have disjoint columns, apart from a few border rows that may share columns
with any row. Hare's jobs are such blocks: one row for each interval, and two border rows over all columns. For p
private rows of which b are border rows, the factor takes p * p numbers. It holds the inverse of the diagonal (p, zero
at border rows), the border's rows (b, p, zero in the border's own columns), and the Cholesky factor (b, b) of the
Schur complement of the border.
"""

import numpy as np

from libc.math cimport sqrt

cdef int LEAST_ROWS = 4  # private rows; smaller blocks are factorised as dense ones
cdef int PART = 2  # border rows are at most 1 / PART of a block's private rows
cdef double REST = 1e128  # value of a pivot that is only rounding error: the solution in its row becomes zero
cdef double USED_UP = 1e-13  # a pivot below this share of its diagonal entry is only rounding error


def arrows(const int[::1] column_start, const int[::1] private_start, const int[::1] own_start,
           const int[::1] own_row):
    """Find the blocks that are arrows: (border_start, border_row, place, group_start, group_column), all int32.

    border_start : ndarray (blocks + 1,)
        The border of block g is border_row[border_start[g] .. border_start[g + 1] - 1]: row numbers within the block,
        ascending. One entry of -1 stands for an arrow without a border; no entry means that the block is no arrow.
    place : ndarray (private rows,)
        Position of each row in its block's border; -1 for rows outside the border.
    group_start : ndarray (private rows + 1,)
        The columns of a row i outside the border are group_column[group_start[i] .. group_start[i + 1] - 1]. Columns
        that have entries in border rows only are in no group.
    """
    cdef int blocks = <int>column_start.shape[0] - 1, g, p, b, j, e, base, at = 0, most, k
    cdef int rows = private_start[blocks], last = column_start[blocks]
    border_start, group_start = np.zeros(blocks + 1, dtype=np.int32), np.zeros(rows + 2, dtype=np.int32)
    border_row, owner = np.zeros(rows + blocks + 1, dtype=np.int32), np.full(max(last, 1), -1, dtype=np.int32)
    count, places = np.zeros(max(rows, 1), dtype=np.int32), np.full(max(rows, 1), -1, dtype=np.int32)
    cdef int[::1] first = border_start, border = border_row, sizes = count, place = places
    cdef int[::1] row_of = owner, group = group_start
    for g in range(blocks):
        base, p, b = private_start[g], private_start[g + 1] - private_start[g], 0
        first[g + 1] = at
        if p < LEAST_ROWS:
            continue
        for e in range(own_start[column_start[g]], own_start[column_start[g + 1]]):
            sizes[base + own_row[e]] += 1
        most = min(p // PART, MOST_BORDER)
        # ends: b grows to the number of bases
        while b <= most and shared(column_start[g], column_start[g + 1], base, own_start, own_row, place, row_of):
            k = base
            for e in range(base, base + p):
                if place[e] < 0 and (place[k] >= 0 or sizes[e] > sizes[k]):
                    k = e
            place[k] = 0
            b += 1
        if b > most:
            for j in range(column_start[g], column_start[g + 1]):
                row_of[j] = -1
            for e in range(base, base + p):
                place[e] = -1
            continue
        k = 0
        for e in range(p):
            if place[base + e] >= 0:
                border[at], place[base + e] = e, k
                at += 1
                k += 1
        if b == 0:
            border[at] = -1
            at += 1
        first[g + 1] = at
        for j in range(column_start[g], column_start[g + 1]):
            if row_of[j] >= 0:
                group[row_of[j] + 2] += 1
    for e in range(rows):
        group[e + 2] += group[e + 1]
    columns = np.zeros(max(group[rows + 1], 1), dtype=np.int32)
    cdef int[::1] column = columns
    for j in range(last):
        if row_of[j] >= 0:
            column[group[row_of[j] + 1]] = j
            group[row_of[j] + 1] += 1
    return border_start, border_row, places, group_start[:rows + 1], columns


cdef bint shared(int low, int high, int base, const int[::1] own_start, const int[::1] own_row,
                 const int[::1] place, int[::1] row_of) noexcept nogil:
    """Return whether some column has entries in two rows outside the border; write each column's row to `row_of`."""
    cdef int j, e
    for j in range(low, high):
        row_of[j] = -1
        for e in range(own_start[j], own_start[j + 1]):
            if place[base + own_row[e]] < 0:
                if row_of[j] >= 0:
                    return True
                row_of[j] = base + own_row[e]
    return False


cdef void factorise(double* factor, const double* before, int p, const int* border, int b) noexcept nogil:
    """Factorise an arrow in place from its diagonal, its border rows and the border's own square.

    `before` (b,) holds the diagonal of the border's square before elimination. A pivot that is only rounding error is
    replaced by a huge number, so that the solution is zero in its row.
    """
    cdef double* rows = factor + p
    cdef double* square = rows + b * p
    cdef double scaled, pivot
    cdef int i, j, k
    for i in range(p):
        factor[i] = 1.0 / factor[i]
    for k in range(b):
        factor[border[k]] = 0.0
    for k in range(b):
        for j in range(k + 1):
            scaled = 0.0
            for i in range(p):
                scaled = scaled + rows[k * p + i] * factor[i] * rows[j * p + i]
            square[k * b + j] -= scaled
    for j in range(b):
        pivot = square[j * b + j]
        for k in range(j):
            pivot -= square[j * b + k] * square[j * b + k]
        pivot = sqrt(pivot) if pivot > USED_UP * before[j] else REST
        square[j * b + j] = pivot
        for i in range(j + 1, b):
            scaled = square[i * b + j]
            for k in range(j):
                scaled = scaled - square[i * b + k] * square[j * b + k]
            square[i * b + j] = scaled / pivot


cdef void solve(const double* factor, int p, const int* border, int b, const double* right,
                double* solution) noexcept nogil:
    """Write K^-1 right to `solution`; both may be the same array."""
    cdef const double* rows = factor + p
    cdef const double* square = rows + b * p
    cdef double[MOST_BORDER] own
    cdef double total
    cdef int i, k
    for k in range(b):
        own[k] = right[border[k]]
    for i in range(p):
        solution[i] = factor[i] * right[i]
    for k in range(b):
        total = own[k]
        for i in range(p):
            total = total - rows[k * p + i] * solution[i]
        for i in range(k):
            total = total - square[k * b + i] * own[i]
        own[k] = total / square[k * b + k]
    for k in range(b - 1, -1, -1):
        total = own[k]
        for i in range(k + 1, b):
            total = total - square[i * b + k] * own[i]
        own[k] = total / square[k * b + k]
    for k in range(b):
        for i in range(p):
            solution[i] -= factor[i] * rows[k * p + i] * own[k]
    for k in range(b):
        solution[border[k]] = own[k]
