from copter.methods.simplex.basis_factor cimport BasisFactor
from copter.methods.simplex.entries cimport Entries


cdef class MiddleFactor(BasisFactor):
    cdef Entries left, right
    cdef int *left_start
    cdef int *right_start
    cdef double *scale
    cdef double *whole  # zeros, of twice the number of rows
    cdef void half_ftran(self, double *x) noexcept nogil
    cdef int replace(self, const double *half, const double *row, int position) noexcept nogil
    cdef void half_btran(self, double *y) noexcept nogil
    cdef int combine(self, int position, double own, int other, double share) noexcept nogil
