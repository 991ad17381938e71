"""The usage pattern of a slab's columns, shared by all requests of one shape."""

import numpy as np

from copter.kernels.layout cimport MAX_SEGMENTS


cdef const double* double_pointer(object array) except? NULL:
    """Address of a float64 array that its owner keeps alive; NULL for None or an empty one."""
    cdef const double[::1] view
    if array is None or len(array) == 0:
        return NULL
    view = array
    return &view[0]


cdef const int* int_pointer(object array) except? NULL:
    """Address of an int32 array that its owner keeps alive; NULL for None or an empty one."""
    cdef const int[::1] view
    if array is None or len(array) == 0:
        return NULL
    view = array
    return &view[0]


def segments_of(column_start, row):
    """Cut columns into runs that use the same rows; one run if there would be more than MAX_SEGMENTS."""
    n = len(column_start) - 1
    if n == 0:
        return np.zeros(1, dtype=np.int32)
    counts = np.diff(column_start)
    same = counts[1:] == counts[:n - 1]
    if same.any():
        width = counts.max(initial=0)
        if width == 1 and len(row) == n:
            same &= row[1:] == row[:n - 1]
        else:
            padded = np.full((n, width + 1), -1, dtype=np.int64)
            inside = np.arange(width + 1) < counts[:, None]
            padded[inside] = row
            same &= (padded[1:] == padded[:n - 1]).all(axis=1)
    starts = np.concatenate(([0], np.flatnonzero(~same) + 1, [n])).astype(np.int32)
    if len(starts) - 1 > MAX_SEGMENTS:
        starts = np.array([0, n], dtype=np.int32)
    return starts


def distinct(row):
    """Distinct row slots, ascending; by counting where they are dense."""
    if len(row) and row.max() < 4 * len(row):
        return np.flatnonzero(np.bincount(row)).astype(np.int32)
    return np.unique(row)


cdef class Template:
    """Usage of a request's columns (n of them), by column: CSC arrays over row slots, held read-only.

    rows: the distinct row slots, ascending. serial: number of the template in its matrix, never given twice.
    shared: whether it was declared for many requests, or belongs to one.
    """

    def __init__(self, column_start, row, coefficient, bint shared=True):
        self.serial = -1
        self.shared = shared
        self.pattern.n_users = 0
        self.replace(column_start, row, coefficient)

    def replace(self, column_start, row, coefficient):
        """Take other arrays; ValueError unless they are a CSC matrix."""
        start = np.ascontiguousarray(column_start, dtype=np.int32)
        rows = np.ascontiguousarray(row, dtype=np.int32)
        values = np.ascontiguousarray(coefficient, dtype=np.float64)
        n = len(start) - 1
        if n < 0 or start[0] != 0 or start[n] != len(rows) or len(rows) != len(values) \
                or (start[1:] < start[:n]).any() or (len(rows) and rows.min() < 0):
            raise ValueError("column starts, rows and coefficients are not those of a sparse matrix by columns")
        self.column_start, self.row, self.coefficient = start, rows, values
        self.refresh()

    def contents(self):
        """(column_start, row, coefficient), as they are: what :meth:`replace` takes."""
        return self.column_start, self.row, self.coefficient

    cdef void refresh(self):
        """Point the kernels at the arrays as they now are."""
        cdef double[::1] usage
        self.segment_start = segments_of(self.column_start, self.row)
        self.rows = distinct(self.row)
        self.pattern.n_columns = <int>len(self.column_start) - 1
        self.pattern.n_segments = <int>len(self.segment_start) - 1
        self.priced_usage = np.zeros(max(self.pattern.n_columns, 1))
        usage = self.priced_usage
        self.pattern.priced_usage = &usage[0]
        self.pattern.column_start = int_pointer(self.column_start)
        self.pattern.row = int_pointer(self.row)
        self.pattern.coefficient = double_pointer(self.coefficient)
        self.pattern.segment_start = int_pointer(self.segment_start)

    @property
    def n_columns(self):
        """Number of columns."""
        return self.pattern.n_columns

    @property
    def users(self):
        """Number of live slabs that use this template."""
        return self.pattern.n_users

    def drop_row(self, int slot):
        """Take a row's entries out."""
        counts = np.diff(self.column_start)
        owner = np.repeat(np.arange(len(counts)), counts)
        kept = self.row != slot
        start = np.concatenate(([0], np.cumsum(np.bincount(owner[kept], minlength=len(counts)))))
        self.replace(start, self.row[kept], self.coefficient[kept])
