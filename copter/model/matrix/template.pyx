"""Usage patterns of slabs' columns; all requests of one shape share a pattern."""

import numpy as np

cimport cython
cimport numpy as cnp
from cpython.buffer cimport PyBUF_C_CONTIGUOUS, PyBUF_FORMAT, PyBuffer_Release, PyObject_GetBuffer
from libc.stdlib cimport calloc, free
from libc.string cimport memcpy

from copter.model.matrix.layout cimport MAX_SEGMENTS


cdef long long last_stamp = 0  # of the usage that was changed last, in any matrix
cdef object NDARRAY = np.ndarray
cdef object INT = np.dtype(np.int32)  # type of row slots and column starts
cdef object FLOAT = np.dtype(np.float64)  # type of coefficients
cdef object ONE_SEGMENT = np.array([0, 1], dtype=np.int32)  # of a single column
ONE_SEGMENT.flags.writeable = False


cdef bint is_plain(object array, int kind):
    """Return whether this is a contiguous numpy.ndarray of this type number, in the machine's byte order."""
    return (
        type(array) is NDARRAY and cnp.PyArray_TYPE(array) == kind and cnp.PyArray_IS_C_CONTIGUOUS(array)
        and cnp.PyArray_ISCARRAY_RO(array)
    )


cdef object contiguous(object array, object dtype):
    """Return the array itself if it has this dtype and is contiguous, else a copy that does."""
    if is_plain(array, cnp.NPY_INT32 if dtype is INT else cnp.NPY_DOUBLE):
        return array
    return np.ascontiguousarray(array, dtype=dtype)


cdef const void* address(object array, Py_ssize_t itemsize, char kind, char other) except? NULL:
    """Return the address of an array that its owner keeps alive; ValueError for another dtype or with gaps."""
    cdef Py_buffer buffer
    cdef const void* found
    cdef bint fits
    PyObject_GetBuffer(array, &buffer, PyBUF_C_CONTIGUOUS | PyBUF_FORMAT)
    found = buffer.buf
    fits = buffer.ndim == 1 and buffer.itemsize == itemsize and buffer.format[0] in (kind, other)
    PyBuffer_Release(&buffer)
    if not fits:
        raise ValueError(f"a vector of {itemsize} bytes an entry is needed, not {array.dtype} of shape {array.shape}")
    return found


cdef const double* double_pointer(object array) except? NULL:
    """Return the address of a float64 array that its owner keeps alive; NULL for None or an empty array."""
    if array is None or len(array) == 0:
        return NULL
    if is_plain(array, cnp.NPY_DOUBLE) and cnp.PyArray_NDIM(array) == 1:
        return <const double*>cnp.PyArray_DATA(array)
    return <const double*>address(array, sizeof(double), b"d", b"d")


cdef const int* int_pointer(object array) except? NULL:
    """Return the address of an int32 array that its owner keeps alive; NULL for None or an empty array."""
    if array is None or len(array) == 0:
        return NULL
    if is_plain(array, cnp.NPY_INT32) and cnp.PyArray_NDIM(array) == 1:
        return <const int*>cnp.PyArray_DATA(array)
    return <const int*>address(array, sizeof(int), b"i", b"l")


cdef object segments_of(const int* column_start, const int* row, int n):
    """Cut n columns into segments, runs that use the same rows; one segment if there were more than MAX_SEGMENTS."""
    cdef int j, e, width, count = 0
    cdef int[MAX_SEGMENTS + 1] starts
    cdef bint same
    if n == 1:
        return ONE_SEGMENT
    for j in range(n):
        width = column_start[j + 1] - column_start[j]
        same = j > 0 and width == column_start[j] - column_start[j - 1]
        if same:
            for e in range(column_start[j], column_start[j + 1]):
                if row[e] != row[e - width]:
                    same = False
                    break
        if not same:
            if count == MAX_SEGMENTS:
                return np.array([0, n], dtype=np.int32)
            starts[count] = j
            count += 1
    starts[count] = n
    found = np.empty(count + 1, dtype=INT)
    memcpy(<void*>int_pointer(found), starts, (count + 1) * sizeof(int))
    return found


cdef object distinct(object rows):
    """Return the distinct row slots, ascending: as they are, else by marking if they are dense, else by sorting."""
    cdef Py_ssize_t e, entries = len(rows)
    cdef const int* row = int_pointer(rows)
    cdef int highest = -1, count = 0, at = 0, slot
    cdef char* mark
    cdef int* view
    cdef int[::1] ordered
    cdef bint ascend = True
    for e in range(entries):
        ascend = ascend and row[e] > highest
        if row[e] > highest:
            highest = row[e]
    if ascend:
        return rows
    if highest > 4 * entries + 1024:
        in_order = np.sort(rows)
        ordered = in_order
        for e in range(entries):
            if e == 0 or ordered[e] != ordered[count - 1]:
                ordered[count] = ordered[e]
                count += 1
        return in_order if count == entries else in_order[:count].copy()
    mark = <char*>calloc(highest + 2, 1)
    if mark == NULL:
        raise MemoryError("no memory for a usage")
    for e in range(entries):
        count += not mark[row[e]]
        mark[row[e]] = 1
    found = np.empty(count, dtype=np.int32)
    view = <int*>int_pointer(found)
    for slot in range(highest + 1):
        if mark[slot]:
            view[at] = slot
            at += 1
    free(mark)
    return found


cdef bint is_pattern(object starts, object rows, Py_ssize_t values, Py_ssize_t n_rows) except -1:
    """Return whether the arrays are column starts and rows of a CSC matrix of this size; n_rows -1: any row."""
    cdef Py_ssize_t i, n = len(starts) - 1
    cdef const int* start = int_pointer(starts)
    cdef const int* row = int_pointer(rows)
    if n < 0 or start[0] != 0 or start[n] != len(rows) or len(rows) != values:
        return False
    for i in range(n):
        if start[i + 1] < start[i]:
            return False
    for i in range(values):
        if row[i] < 0 or (n_rows >= 0 and row[i] >= n_rows):
            return False
    return True


def checked_private(private, n):
    """Return private rows with their arrays in the right dtypes; ValueError unless they fit n columns."""
    own_start, own_row, own_value, lower, upper = private
    start, rows = contiguous(own_start, INT), contiguous(own_row, INT)
    values, low, high = contiguous(own_value, FLOAT), contiguous(lower, FLOAT), contiguous(upper, FLOAT)
    whole = is_pattern(start, rows, len(values), len(low)) and len(start) == n + 1 and low.shape == high.shape
    if not whole or low.ndim != 1:
        raise ValueError(f"private rows are not a sparse matrix of {n} columns with two bounds for every row")
    return start, rows, values, low, high


def own_templates(first, column_start, row, coefficient, private=None):
    """Return a template of its own for each of many requests; its arrays are parts of the given ones.

    Parameters
    ----------
    first : ndarray (requests + 1,)
        First column of each request, and the end of the last.
    column_start, row, coefficient : CSC arrays
    private : list, optional
        Private rows of each request, None for none.
    """
    firsts, starts, rows = contiguous(first, INT), contiguous(column_start, INT), contiguous(row, INT)
    values = contiguous(coefficient, FLOAT)
    cdef Py_ssize_t k, j, a, b, e, f, at = 0, n = len(starts) - 1, count = len(firsts) - 1
    if not is_pattern(starts, rows, len(values), -1):
        raise ValueError("column starts, rows and coefficients are not those of a sparse matrix by columns")
    relative, found = np.empty(n + 1 + count, dtype=np.int32), []
    cdef const int* firsts_at = int_pointer(firsts)
    cdef const int* start = int_pointer(starts)
    cdef const int* row_at = int_pointer(rows)
    cdef const double* value_at = double_pointer(values)
    cdef int* own_start = <int*>int_pointer(relative)
    cdef Template template
    for k in range(count):
        a, b = firsts_at[k], firsts_at[k + 1]
        if not (firsts_at[0] >= 0 and a <= b <= n):
            raise ValueError(f"the columns of request {k} are {a} to {b - 1}, there are {n}")
        e, f = start[a], start[b]
        for j in range(a, b + 1):
            own_start[at + j - a] = start[j] - start[a]
        template = Template.__new__(Template)
        template.serial, template.shared = -1, False
        template.column_start = relative[at:at + b - a + 1]
        template.row, template.coefficient = rows[e:f], values[e:f]
        template.private = None if private is None or private[k] is None else checked_private(private[k], b - a)
        template.refresh(own_start + at, row_at + e, value_at + e)
        found.append(template)
        at += b - a + 1
    return found


@cython.embedsignature(False)  # `help` begins with what it is
cdef class Template:
    """Usage of a request's n columns: CSC arrays over row slots, held read-only.

    Attributes
    ----------
    rows : ndarray int32
        Distinct row slots, ascending.
    serial : int
        Number of the template in its matrix; never used twice.
    shared : bool
        True if declared for many requests, False if it belongs to one.
    private : tuple or None
        Private rows: (own_start, own_row, own_value, lower, upper). Entries by column with ascending rows, and the
        bounds of a request that has none of its own.
    """

    def __init__(self, column_start, row, coefficient, bint shared=True, private=None):
        self.serial = -1
        self.shared = shared
        self.pattern.n_users = 0
        self.hold(column_start, row, coefficient, private)

    def replace(self, column_start, row, coefficient, private=None):
        """Replace the arrays; raises ValueError unless they are CSC matrices with the same number of columns.

        A signal or an error leaves the template as it was.
        """
        self.take(Template(column_start, row, coefficient, self.shared, private))

    cdef void hold(self, column_start, row, coefficient, private) except *:
        """Hold the arrays of a new template."""
        start, rows = contiguous(column_start, INT), contiguous(row, INT)
        values = contiguous(coefficient, FLOAT)
        if not is_pattern(start, rows, len(values), -1):
            raise ValueError("column starts, rows and coefficients are not those of a sparse matrix by columns")
        if private is not None:
            private = checked_private(private, len(start) - 1)
        self.column_start, self.row, self.coefficient, self.private = start, rows, values, private
        self.refresh(int_pointer(start), int_pointer(rows), double_pointer(values))

    cdef void take(self, Template other):
        """Hold what another template holds; runs no instruction of Python's, so that no signal comes in between."""
        cdef int users = self.pattern.n_users
        before = (self.column_start, self.row, self.coefficient, self.private, self.segment_start, self.priced_usage)
        self.column_start, self.row, self.coefficient = other.column_start, other.row, other.coefficient
        self.private, self.rows = other.private, other.rows
        self.segment_start, self.priced_usage = other.segment_start, other.priced_usage
        self.pattern = other.pattern
        self.pattern.n_users = users
        del before  # freed after the kernels' pointers are off them

    def contents(self):
        """Return (column_start, row, coefficient, private), the arguments of :meth:`replace`."""
        return self.column_start, self.row, self.coefficient, self.private

    cdef void refresh(self, const int* column_start, const int* row, const double* coefficient):
        """Point the kernels to the present arrays, which begin at these addresses."""
        global last_stamp
        cdef Py_ssize_t e
        last_stamp += 1
        self.pattern.stamp = last_stamp
        self.pattern.column_start, self.pattern.row, self.pattern.coefficient = column_start, row, coefficient
        self.pattern.n_columns = <int>len(self.column_start) - 1
        self.segment_start = segments_of(self.pattern.column_start, self.pattern.row, self.pattern.n_columns)
        self.rows = distinct(self.row)
        self.pattern.n_segments = <int>len(self.segment_start) - 1
        self.priced_usage = np.zeros(max(self.pattern.n_columns, 1))
        self.pattern.priced_usage = <double*>double_pointer(self.priced_usage)
        self.pattern.grows = self.pattern.single = True
        for e in range(len(self.coefficient)):
            self.pattern.grows &= self.pattern.coefficient[e] >= 0.0
        for e in range(self.pattern.n_columns + 1):
            self.pattern.single &= self.pattern.column_start[e] == e
        self.pattern.segment_start = int_pointer(self.segment_start)
        own_start, own_row, own_value, lower, _ = self.private or (None, None, None, (), ())
        self.pattern.n_private = <int>len(lower)
        self.pattern.own_start = int_pointer(own_start)
        self.pattern.own_row = int_pointer(own_row)
        self.pattern.own_value = double_pointer(own_value)

    def __repr__(self):
        entries = len(self.coefficient)
        return f"<Template of {self.n_columns} columns, {entries} entries of usage, {self.users} requests>"

    @property
    def n_columns(self):
        """Return the number of columns."""
        return self.pattern.n_columns

    @property
    def n_private(self):
        """Return the number of private rows of each slab that uses this template."""
        return self.pattern.n_private

    @property
    def users(self):
        """Return the number of live slabs that use this template."""
        return self.pattern.n_users

    def without_row(self, int slot):
        """Return a new template without the entries of a row, for :meth:`take`."""
        counts = np.diff(self.column_start)
        owner = np.repeat(np.arange(len(counts)), counts)
        kept = self.row != slot
        start = np.concatenate(([0], np.cumsum(np.bincount(owner[kept], minlength=len(counts)))))
        return Template(start, self.row[kept], self.coefficient[kept], self.shared, self.private)
