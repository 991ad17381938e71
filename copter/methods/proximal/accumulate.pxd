"""Sums over flat columns that other kernels need too."""

from copter.methods.proximal.groups cimport Groups


cdef double easy_total(Groups columns, const double* y) noexcept nogil
