"""The flat arrays of a working set, as its kernels read them."""


cdef enum:
    GENERAL = 0
    PLAIN = 1  # with a limit, and columns with lower bounds of zero and upper bounds no smaller than it
    HELD = 2  # every column has equal bounds


cdef class Groups:
    cdef Py_ssize_t count, n_columns
    cdef readonly bint all_easy
    cdef const int* start
    cdef const double* limit
    cdef const double* cost
    cdef const double* lower
    cdef const double* upper
    cdef const int* entry_start
    cdef const int* row
    cdef const double* coefficient
    cdef const unsigned char* kind
    cdef unsigned char[::1] _kind
    cdef const int[::1] _start, _entry_start, _row
    cdef const double[::1] _limit, _cost, _lower, _upper, _coefficient


cdef inline double reduced_cost(Groups columns, Py_ssize_t j, const double* y) noexcept nogil:
    """Return cost - a'y of one column."""
    cdef Py_ssize_t k
    cdef double total = columns.cost[j]
    for k in range(columns.entry_start[j], columns.entry_start[j + 1]):
        total -= columns.coefficient[k] * y[columns.row[k]]
    return total
