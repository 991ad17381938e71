from copter.methods.blocks.block_basis cimport BlockBasis
from copter.methods.blocks.column_classes cimport ColumnClasses


cdef class BlockItems(BlockBasis):
    cdef readonly ColumnClasses classes
    cdef readonly long long work  # operations of all passes over items
    cdef int n_items, n_pairs, n_changed, n_late_blocks, n_loose, visits
    cdef double[::1] now, base, least
    cdef int[::1] plus, minus, changed, late_blocks, loose, stamp, table, pair_of, plus_of, minus_of, pair_start, item
    cdef unsigned char[::1] is_changed, is_late, is_loose
    cdef void fill(self) noexcept nogil
    cdef void lay(self) noexcept nogil
    cdef void restart(self) noexcept nogil
    cdef void lay_block(self, int g) noexcept nogil
    cdef void pair(self) noexcept nogil
    cdef int find_pair(self, int v, int mask) noexcept nogil
    cdef void relay(self) noexcept nogil
    cdef void spread(self) noexcept nogil
    cdef void advance(self, double step) noexcept nogil
    cdef int first_within(self, int first, int last, double side, double* end) noexcept nogil
