"""The proximal subproblem and its dual, as the kernels above them read them."""

from copter.methods.proximal.groups cimport Groups


cdef class Projection:
    cdef double[::1] x, multiplier, value
    cdef unsigned char[::1] free
    cdef double[:, ::1] activity
    cdef Py_ssize_t pieces  # of the groups, each projected by one thread


cdef class Slacks:
    cdef const double[::1] center, sigma, lower, upper, scale
    cdef Py_ssize_t count


cdef class Dual:
    cdef Groups columns
    cdef Slacks slacks
    cdef Projection out
    cdef const double[::1] center
    cdef double sigma, cost_size
    cdef int threads
    cdef double[:, ::1] trial  # y, slack and residual of the point that a line search tries
    cdef double at(self, const double* y, double* slack, double* residual) noexcept nogil
    cdef double with_slacks(self, const double* y, const double* elsewhere, double* slack,
                            double* residual) noexcept nogil
    cdef double first_length(self, const double* start, const double* direction) noexcept nogil
    cdef double searched(self, const double* start, double value, const double* direction, double slope,
                         double* found, bint* is_last) noexcept nogil


cdef double projected(Groups columns, const double* center, double sigma, const double* y, Projection out,
                      int threads) noexcept nogil
