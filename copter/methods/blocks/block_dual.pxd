from copter.methods.blocks.block_items cimport BlockItems
from copter.methods.blocks.breakpoints cimport Breakpoints


cdef class BlockDual(BlockItems):
    cdef readonly int pivots, flips, passes
    cdef int since, unchecked
    cdef double reach  # breakpoints are first searched up to this step, in units of the row's length
    cdef bint looked  # whether the stored distances are those of the present program
    cdef bint classed  # whether all columns have their classes
    cdef bint astray  # whether the last ratio test gave up
    cdef readonly Breakpoints ahead
    cdef void reclassify(self, int g) noexcept nogil
    cdef int loop(self, int last) noexcept nogil
    cdef int choose_row(self, double* excess) noexcept nogil
    cdef bint pivot(self, int p, int q, bint to_upper, double step) noexcept nogil
    cdef void move(self, const double* alpha, double theta) noexcept nogil
    cdef int choose_column(self, double excess, double length, double* step) noexcept nogil
    cdef int passed(self, double end, double side, double* left, double* step) noexcept nogil
    cdef void scan_all(self, double side, double end) noexcept nogil
    cdef void scan_once(self, int g, double side, double end) noexcept nogil
    cdef void scan_exactly(self, int g, double side, double end) noexcept nogil
    cdef void hard_breakpoints(self, double side, double* end) noexcept nogil
    cdef void hard_item(self, int v, double side, double* end) noexcept nogil
    cdef void hard_exactly(self, int g, double side, double* end) noexcept nogil
    cdef void hard_of(self, int g, double side, double* end) noexcept nogil
    cdef void consider(self, int v, double cost, double entry, double side, double* end) noexcept nogil
    cdef void scan(self, int g, double side, double end) noexcept nogil
    cdef double rate_of(self, int v) noexcept nogil
    cdef int largest_of(self, int v, double here, double* step) noexcept nogil
    cdef void look(self) noexcept nogil
    cdef bint look_again(self) noexcept nogil
    cdef int resettle(self) noexcept nogil
    cdef bint is_settled(self, int g) noexcept nogil
