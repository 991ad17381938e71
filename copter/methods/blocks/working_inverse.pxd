cdef class WorkingInverse:
    cdef readonly int n_rows
    cdef readonly object entries, norms
    cdef double[:, ::1] entry
    cdef double[::1] norm
    cdef void row(self, int p, double* out) noexcept nogil
    cdef void add_column(self, int i, double factor, double* out) noexcept nogil
    cdef void pivot(self, int p, const double* alpha, const double* rho) noexcept nogil
    cdef void combine(self, int p, double scale, int count, const int* others, const double* factors) noexcept nogil
    cdef void measure(self) noexcept nogil
