"""The groups that prices have opened, as the kernel of the proximal steps solves over them."""

from copter.methods.proximal.groups cimport Groups
from copter.methods.proximal.project cimport Dual, Slacks

cdef enum:
    BUCKETS = 32


cdef class OpenGroups(Dual):
    cdef Groups whole, part
    cdef double[::1] point, base, weight  # the whole program's point, and the base prices with their unit
    cdef double[:, ::1] rest  # by bucket: what its groups and those of later ones use, and cost in the last column
    cdef unsigned char[::1] bucket
    cdef int[::1] order  # groups by bucket
    cdef Py_ssize_t[BUCKETS + 1] first, before  # by bucket: groups and columns in those before it
    cdef double first_move  # the farthest that a line search first moves prices, in units of their size
    cdef int opened, now, least  # buckets copied, those that the last prices opened, and the fewest to project
    cdef Py_ssize_t m, n_groups, n_columns, n_entries, threaded, pieces
    cdef int[::1] place, start, entry_start, row  # of the open groups
    cdef double[::1] x, found, limit, cost, lower, upper, coefficient, multiplier
    cdef unsigned char[::1] free, kind
    cdef int reserve(self, Groups columns, Py_ssize_t m, Py_ssize_t pieces) except -1
    cpdef int begin_at(self, Groups columns, double[::1] point, Slacks slacks, const double[::1] prices,
                       double sigma, double idle, Py_ssize_t pieces, bint all_open) except -1
    cdef void open_all(self) noexcept nogil
    cdef double distance(self, const double* y) noexcept nogil
    cdef void open_for(self, const double* y) noexcept nogil
    cdef void open_bucket(self) noexcept nogil
    cdef void show(self, int buckets) noexcept nogil
    cdef double minimum(self, const double* y) noexcept nogil
    cdef double accept(self, double* longest, double* length) noexcept nogil
    cdef void write_back(self) noexcept nogil
