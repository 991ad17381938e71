from copter.kernels.block_basis cimport BlockBasis
from copter.kernels.breakpoints cimport Breakpoints
from copter.kernels.reduced_costs cimport ReducedCosts


cdef class BlockDual(BlockBasis):
    cdef readonly int pivots, flips, passes
    cdef int n_near, n_fresh, visits, since
    cdef readonly bint by_rows
    cdef public double work_by_rows, work_by_radii
    cdef bint looked
    cdef long scanned
    cdef ReducedCosts costs
    cdef readonly object radii
    cdef readonly Breakpoints ahead
    cdef double[::1] radius, known_prices, length
    cdef unsigned char[::1] is_fresh
    cdef int[::1] stamp, order, fresh
    cdef int loop(self, int last) noexcept nogil
    cdef int choose_row(self, double* excess) noexcept nogil
    cdef bint pivot(self, int p, int q, bint to_upper, double step) noexcept nogil
    cdef void move(self, const double* alpha, double theta) noexcept nogil
    cdef int choose_column(self, double excess, double* step) noexcept nogil
    cdef void scan_touched(self, double side, double end) noexcept nogil
    cdef double steps_within(self, double side, double radius) noexcept nogil
    cdef int last_breakpoint(self, double* left, double side, double end, double known, double* step) noexcept nogil
    cdef int first_by_rows(self, int g, double side, double end, double* step) noexcept nogil
    cdef void hard_breakpoints(self, double side, double* end) noexcept nogil
    cdef void hard_of(self, int g, double side, double* end) noexcept nogil
    cdef void both(self, int j, double* cost, double* entry) noexcept nogil
    cdef void consider(self, int v, double cost, double entry, double side, double* end) noexcept nogil
    cdef bint step_of(self, int v, double cost, double entry, double side, double* step) noexcept nogil
    cdef void scan(self, int g, double side, double end) noexcept nogil
    cdef int first_of(self, int g, double side, double end, double* step) noexcept nogil
    cdef double rate_of(self, int v) noexcept nogil
    cdef int largest_of(self, int v, double here, double* step) noexcept nogil
    cdef double range_of(self, int v) noexcept nogil
    cdef void flip(self, int v) noexcept nogil
    cdef double radius_of(self, int g) noexcept nogil
    cdef void note(self, int g) noexcept nogil
    cdef int resettle(self) noexcept nogil
