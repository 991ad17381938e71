"""Converts usage to columns over row slots: from one vector a resource, or from the arrays of a sparse matrix."""

import numpy as np

from libc.math cimport fabs, isfinite
from libc.stdlib cimport free, malloc

cdef enum:
    SHORT = 32  # columns of at most this many entries are sorted by insertion, longer ones by NumPy


def from_vectors(list vectors, const int[::1] rows):
    """Return (column starts, row slots, coefficients) of usage given row by row; zeros are dropped.

    vectors: one float64 array (n,) for each row slot in `rows`, which ascend.
    """
    cdef Py_ssize_t count = len(vectors), i
    cdef int j, n = 0, entries = 0
    cdef const double[::1] vector
    cdef const double** values
    if count:
        n = <int>len(vectors[0])
    start = np.empty(n + 1, dtype=np.int32)
    cdef int[::1] start_view = start
    values = <const double**>malloc((count + 1) * sizeof(double*))
    if values == NULL:
        raise MemoryError("no memory for a usage")
    try:
        for i in range(count):
            vector = vectors[i]
            if vector.shape[0] != n:
                raise ValueError(f"vectors of {n} and {vector.shape[0]} columns")
            values[i] = &vector[0] if n else NULL
        start_view[0] = 0
        for j in range(n):
            for i in range(count):
                entries += values[i][j] != 0.0
            start_view[j + 1] = entries
        row, coefficient = np.empty(entries, dtype=np.int32), np.empty(entries)
        if entries:
            fill(values, count, rows, start_view, row, coefficient)
    finally:
        free(values)
    return start, row, coefficient


cdef void fill(const double** values, Py_ssize_t count, const int[::1] rows, const int[::1] start, int[::1] row,
               double[::1] coefficient) noexcept:
    """Write the entries of the vectors column by column."""
    cdef Py_ssize_t i
    cdef int j, at = 0
    for j in range(<int>start.shape[0] - 1):
        for i in range(count):
            if values[i][j] != 0.0:
                row[at], coefficient[at] = rows[i], values[i][j]
                at += 1


def from_entries(const int[::1] major, const int[::1] minor, const double[::1] data, const int[::1] rows, int n,
                 str layout):
    """Return (column starts, row slots ascending in a column, coefficients) of a sparse matrix; sums duplicates.

    layout "csc": major are column starts, minor rows; "csr": row starts and columns; "coo": columns and rows.
    rows: row slot of each of the matrix's rows. Raises ValueError if an index is outside the matrix.
    """
    cdef Py_ssize_t entries = data.shape[0], e
    cdef int i, j, height = <int>rows.shape[0]
    cdef bint by_row = layout == "csr", listed = layout == "coo", sorted_already = True
    if minor.shape[0] != entries or (listed and major.shape[0] != entries):
        raise ValueError("indices and data differ in length")
    if not listed:
        require_starts(major, height if by_row else n, entries)
    start, row, coefficient = np.zeros(n + 1, dtype=np.int32), np.empty(entries, dtype=np.int32), np.empty(entries)
    cdef int[::1] start_view = start, row_view = row
    cdef double[::1] value_view = coefficient
    for e in range(entries):
        i, j = 0, minor[e]
        if not by_row:
            i, j = minor[e], major[e] if listed else 0
        if i < 0 or i >= height or j < 0 or j >= n:
            raise ValueError(f"an entry is outside the {height} by {n} matrix")
        if by_row or listed:
            start_view[j + 1] += 1
    if by_row or listed:
        for j in range(n):
            start_view[j + 1] += start_view[j]
        place = start.copy()
        scatter(major, minor, data, rows, listed, place, row_view, value_view)
    else:
        start_view[:] = major
        for e in range(entries):
            row_view[e], value_view[e] = rows[minor[e]], data[e]
    for j in range(n):
        sorted_already &= ascending(start_view, row_view, value_view, j)
    if not sorted_already:
        column = np.repeat(np.arange(n), np.diff(start))
        order = np.lexsort((row, column))
        row, coefficient = row[order], coefficient[order]
    return merged(start, row, coefficient)


cdef void scatter(const int[::1] major, const int[::1] minor, const double[::1] data, const int[::1] rows, bint listed,
                  int[::1] place, int[::1] row, double[::1] coefficient) noexcept:
    """Write each entry to the next place of its column."""
    cdef Py_ssize_t e, i = 0
    cdef int j
    for e in range(data.shape[0]):
        while not listed and e >= major[i + 1]:  # ends: i grows to the last major index
            i += 1
        j = major[e] if listed else minor[e]
        row[place[j]] = rows[minor[e]] if listed else rows[i]
        coefficient[place[j]] = data[e]
        place[j] += 1


cdef void require_starts(const int[::1] start, Py_ssize_t count, Py_ssize_t entries) except *:
    """Raise ValueError unless `start` holds the starts of `count` consecutive runs over all entries."""
    cdef Py_ssize_t i
    cdef bint right = start.shape[0] == count + 1 and start[0] == 0 and start[count] == entries
    for i in range(count if right else 0):
        right &= start[i] <= start[i + 1]
    if not right:
        raise ValueError("the index pointers are not those of a sparse matrix")


cdef bint ascending(const int[::1] start, int[::1] row, double[::1] coefficient, int j) noexcept:
    """Sort a short column by row, equal rows in order; return False for a long column that is not sorted."""
    cdef int e, f, here
    cdef double value
    for e in range(start[j] + 1, start[j + 1]):
        if row[e] >= row[e - 1]:
            continue
        if start[j + 1] - start[j] > SHORT:
            return False
        here, value, f = row[e], coefficient[e], e
        while f > start[j] and row[f - 1] > here:  # ends: f falls to the start of the column
            row[f], coefficient[f] = row[f - 1], coefficient[f - 1]
            f -= 1
        row[f], coefficient[f] = here, value
    return True


def merged(start, row, coefficient):
    """Return the columns with entries of equal rows added up."""
    cdef int[::1] start_view = start, row_view = row
    cdef double[::1] value_view = coefficient
    cdef int j, e, begin = 0, end, at = 0
    for j in range(<int>len(start) - 1):
        end = start_view[j + 1]
        for e in range(begin, end):
            if e > begin and row_view[e] == row_view[at - 1]:
                value_view[at - 1] += value_view[e]
            else:
                row_view[at], value_view[at] = row_view[e], value_view[e]
                at += 1
        begin = end
        start_view[j + 1] = at
    return start, row[:at], coefficient[:at]


def all_finite(const double[::1] values):
    """Return whether no value is NaN or infinite."""
    cdef Py_ssize_t i
    for i in range(values.shape[0]):
        if not isfinite(values[i]):
            return False
    return True


def all_within(const double[::1] values, double most):
    """Return whether each value is a number of size at most `most`."""
    cdef Py_ssize_t i
    for i in range(values.shape[0]):
        if not fabs(values[i]) <= most:
            return False
    return True
