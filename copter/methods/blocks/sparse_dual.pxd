from copter.methods.blocks.block_basis cimport BlockBasis
from copter.methods.blocks.breakpoints cimport Breakpoints
from copter.methods.simplex.middle_factor cimport MiddleFactor


cdef class SparseDual(BlockBasis):
    cdef readonly MiddleFactor factor
    cdef readonly Breakpoints ahead
    cdef readonly int pivots, flips, factorisations
    cdef readonly bint stale  # whether factors, prices and values do not fit the basis
    cdef bint listed  # whether the entries by row are those of the program
    cdef bint swapped  # whether the leaving variable was a key, so that its row's length is not known
    cdef double passes  # operations outside the factors
    cdef double[::1] norm, now, slope, tau, base_value, kept_norm, row_value, half_row, half_column
    cdef int[::1] base_start, base_index, fresh_head, row_start, row_column, kicked
    cdef int[::1] touched, touched_blocks, stamp, spots, rho_spots
    cdef int[::1] unit_row, old_row  # row of the unit column of an artificial variable; -1 for none
    cdef bint unmeasured  # whether the rows' lengths are to be computed with the next factors
    cdef unsigned char[::1] stuck  # how many directions of an artificial variable have met no breakpoint
    cdef int n_touched, n_touched_blocks, n_rho, visits
    cdef bint everywhere  # whether all columns count as touched
    cdef int basic_columns(self, int g, const double[::1] x, int count) noexcept nogil
    cdef void list_rows(self) noexcept nogil
    cdef int factorise(self) noexcept nogil
    cdef void price(self) noexcept nogil
    cdef void fill(self) noexcept nogil
    cdef bint restore(self) noexcept nogil
    cdef void straighten(self) noexcept nogil
    cdef void orient(self) noexcept nogil
    cdef int release(self) noexcept nogil
    cdef int resettle(self) noexcept nogil
    cdef bint is_settled(self, int g) noexcept nogil
    cdef int column_of(self, int v, int at) noexcept nogil
    cdef int loop(self, int last) noexcept nogil
    cdef int choose_row(self, double* excess) noexcept nogil
    cdef int choose_artificial(self, double* excess) noexcept nogil
    cdef bint row_of(self, int p) noexcept nogil
    cdef void spread(self) noexcept nogil
    cdef void forget(self) noexcept nogil
    cdef int choose_column(self, double excess, double* step) noexcept nogil
    cdef void entries_of(self, int v, double* cost, double* entry) noexcept nogil
    cdef void consider(self, int v, double side, double* end) noexcept nogil
    cdef void scan(self, int g, double side, double end) noexcept nogil
    cdef int largest_of(self, int v, double here, double* step) noexcept nogil
    cdef int pivot(self, int p, int q, bint to_upper, double step) noexcept nogil
    cdef void move(self, const double* alpha, double theta) noexcept nogil
    cdef void expel(self, int p) noexcept nogil
    cdef void load(self) noexcept nogil
    cdef bint exchange(self, int p) noexcept nogil
    cdef void shift_block(self, int g, double sign) noexcept nogil
