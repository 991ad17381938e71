cdef class WorkingInverse:
    cdef readonly int n_rows
    cdef readonly object entries, norms
    cdef double[:, ::1] entry
    cdef double[::1] norm
    cdef void row(self, int p, const int* loose, double* out) noexcept nogil
    cdef void apply(self, const double* x, const int* loose, double* out) noexcept nogil
    cdef void pivot(self, int p, const double* alpha, const double* rho) noexcept nogil
    cdef void combine(self, int p, double scale, int count, const int* others, const double* factors) noexcept nogil
    cdef void measure(self, const int* loose) noexcept nogil
