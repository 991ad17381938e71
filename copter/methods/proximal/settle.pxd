"""The radius within which a group is settled, as the kernel of the steps reads it."""

from copter.methods.proximal.groups cimport Groups


cdef double radius_of(Groups columns, Py_ssize_t g, const double* x, const double* reduced,
                      const double* weight) noexcept nogil
