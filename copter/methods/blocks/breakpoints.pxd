cdef class Breakpoints:
    cdef readonly int size, most  # most: largest size since it was reset
    cdef double[::1] step
    cdef int[::1] variable
    cdef void add(self, int variable, double step) noexcept nogil
    cdef int take(self) noexcept nogil
