cdef class ReducedCosts:
    cdef readonly int n_rows, n_columns, n_touched
    cdef readonly long long work  # multiplications, so far
    cdef bint is_dense
    cdef const int[::1] start, row, row_start, column
    cdef const double[::1] value, by_row
    cdef double[::1] cost, slope
    cdef int[::1] touched
    cdef unsigned char[::1] is_touched
    cdef void fill(self, const double* cost, const double* y) noexcept nogil
    cdef void spread(self, const double* rho) noexcept nogil
    cdef void move(self, double step) noexcept nogil
