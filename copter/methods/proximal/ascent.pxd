"""The Newton steps of a subproblem, as the kernel of the proximal steps takes them."""

from copter.methods.proximal.project cimport Dual


cdef class Ascent:
    cdef Dual dual
    cdef const double[::1] tolerance, base, weight
    cdef double radius
    cdef Py_ssize_t m
    cdef double[:, ::1] here, found, matrix, factor  # points: rows of prices, slacks and residuals
    cdef object points  # the array of `here`
    cdef double[::1] direction, total
    cdef bint factorises
    cdef int[::1] touched
    cdef bint has_ended(self) noexcept nogil
    cdef double slack_curvature(self, Py_ssize_t i) noexcept nogil
    cdef void newton_direction(self) noexcept nogil
    cdef int climb(self, const double* y, stop, int most, direction_at) except -1
