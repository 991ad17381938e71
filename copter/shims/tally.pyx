"""Sums a plan's use of each row in one pass over its terms."""

import numpy as np

from libc.math cimport fabs, rint

from copter.model.matrix.layout cimport Block, Pattern, may_be_one
from copter.model.matrix.block_matrix cimport BlockMatrix


def tally(const int[::1] row, const double[::1] coefficient, const double[::1] value, Py_ssize_t rows):
    """Return sums of coefficient * value by row, in the order of the terms, and data to bound their rounding.

    Parameters
    ----------
    row : ndarray (k,) int32
        Row numbers, 0 to rows - 1.
    coefficient, value : ndarray (k,) float64
    rows : int

    Returns
    -------
    use, size : ndarray (rows,) float64
        Sums of the products and of their absolute values.
    count : ndarray (rows,) int64
        Number of terms of each row.
    whole : ndarray (rows,) bool
        Whether all of a row's coefficients and values are whole numbers.
    """
    cdef Py_ssize_t k
    cdef int at
    if coefficient.shape[0] != row.shape[0] or value.shape[0] != row.shape[0]:
        raise ValueError(f"{row.shape[0]} rows, {coefficient.shape[0]} coefficients, {value.shape[0]} values")
    use, size, count = np.zeros(rows), np.zeros(rows), np.zeros(rows, dtype=np.int64)
    whole = np.ones(rows, dtype=bool)
    cdef double[::1] use_view = use, size_view = size
    cdef long long[::1] count_view = count
    cdef unsigned char[::1] whole_view = whole.view(np.uint8)
    for k in range(row.shape[0]):
        at = row[k]
        if at < 0 or at >= rows:
            raise IndexError(f"there is no row {at}")
        use_view[at] += coefficient[k] * value[k]
        size_view[at] += fabs(coefficient[k] * value[k])
        count_view[at] += 1
        if coefficient[k] != rint(coefficient[k]) or value[k] != rint(value[k]):
            whole_view[at] = 0
    return use, size, count, whole


def tally_columns(BlockMatrix matrix, const int[::1] column_of_slot):
    """Do :func:`tally` over all rows of the matrix, with each slot's column (negative: none) at value one.

    Parameters
    ----------
    matrix : BlockMatrix
    column_of_slot : ndarray (n_slots,) int32
    """
    if column_of_slot.shape[0] != matrix.n_slots:
        raise ValueError(f"{column_of_slot.shape[0]} columns for {matrix.n_slots} slots")
    return tallied(matrix, column_of_slot, False)


def tally_plain(BlockMatrix matrix, const int[::1] column_of_slot):
    """Do :func:`tally_columns` for a plan that any shim may have made; None unless every slot is plain.

    A plain slot has no bounds on single columns, is not fixed and can take its column at value one. A column of -1 is
    none, which such a slot can take too.
    """
    return tallied(matrix, column_of_slot, True) if column_of_slot.shape[0] == matrix.n_slots else None


cdef tallied(BlockMatrix matrix, const int[::1] column_of_slot, bint plain):
    """Do :func:`tally_columns`; if `plain` is asked for, return None at the first slot that is not."""
    cdef Py_ssize_t slot, rows = matrix.n_rows
    cdef int at, k, j
    cdef const Block* block
    cdef const Pattern* pattern
    cdef double coefficient
    use, size, count = np.zeros(rows), np.zeros(rows), np.zeros(rows, dtype=np.int64)
    whole = np.ones(rows, dtype=bool)
    cdef double[::1] use_view = use, size_view = size
    cdef long long[::1] count_view = count
    cdef unsigned char[::1] whole_view = whole.view(np.uint8)
    for slot in range(matrix.n_slots):
        block, j = &matrix.blocks[slot], column_of_slot[slot]
        if plain:
            if block.n_columns > 0 and (block.fixed >= 0 or block.lower_each != NULL or block.upper_each != NULL):
                return None
            if j < -1 or j >= block.n_columns or (j >= 0 and not may_be_one(block, j)):
                return None
        if j < 0:
            continue
        if j >= block.n_columns:
            raise IndexError(f"slot {slot} has no column {j}")
        pattern = block.pattern
        for k in range(pattern.column_start[j], pattern.column_start[j + 1]):
            at, coefficient = pattern.row[k], pattern.coefficient[k]
            use_view[at] += coefficient
            size_view[at] += fabs(coefficient)
            count_view[at] += 1
            if coefficient != rint(coefficient):
                whole_view[at] = 0
    return use, size, count, whole
