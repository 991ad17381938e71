from copter.methods.blocks.block_basis cimport BlockBasis
from copter.methods.blocks.breakpoints cimport Breakpoints
from copter.methods.simplex.middle_factor cimport MiddleFactor


cdef class SparseDual(BlockBasis):
    cdef readonly MiddleFactor factor
    cdef readonly Breakpoints ahead
    cdef readonly int pivots, flips, factorisations
    cdef readonly bint stale  # whether factors, prices and values do not fit the basis
    cdef bint swapped  # whether the leaving variable was a key, so that its row's length is not known
    cdef double passes  # operations outside the factors
    cdef double[::1] norm, now, slope, tau, base_value, kept_norm, half_row, half_column, over
    cdef double[::1] until  # how far prices may have moved in all (`moved`) when a block has to be looked at again
    cdef double[::1] girth  # by how much two reduced costs of a block may approach if prices move by one
    cdef double moved  # sum over all moves of prices of the largest move of one
    cdef double reach  # how far a ratio test looks first
    cdef double longest, rest_size  # largest |entry| of the row, and of its rows that are not read by themselves
    cdef bint listed  # whether the blocks by row are those of the program
    cdef int[::1] row_start, row_end, row_block
    cdef double[::1] row_size  # how far a price's move of one may bring two reduced costs together
    cdef double[::1] charge  # how far a step of one moves prices at most, as a block that meets a large entry sees it
    cdef double[::1] nearest  # at most the least of `until` of CHUNK blocks
    cdef int[::1] near  # blocks that meet a large entry of the row
    cdef int[::1] base_start, base_index, fresh_head, kicked
    cdef int[::1] stamp, spots, rho_spots
    cdef int[::1] unit_row, old_row  # row of the unit column of an artificial variable; -1 for none
    cdef bint unmeasured  # whether the rows' lengths are to be computed with the next factors
    cdef int measured  # rows whose lengths are computed already, while that is under way
    cdef bint paused  # whether the last restoration has ended before it was done, to look at the clock
    cdef unsigned char[::1] stuck  # how many directions of an artificial variable have met no breakpoint
    cdef int n_rho, n_near, visits
    cdef int basic_columns(self, int g, const double[::1] x, int count) noexcept nogil
    cdef void measure_blocks(self) noexcept nogil
    cdef void note(self, int g, double until) noexcept nogil
    cdef void measure_block(self, int g) noexcept nogil
    cdef void forget_distances(self) noexcept nogil
    cdef void look(self, int g) noexcept nogil
    cdef int factorise(self) noexcept nogil
    cdef void price(self) noexcept nogil
    cdef bint restore(self) noexcept nogil
    cdef void straighten(self) noexcept nogil
    cdef void orient(self) noexcept nogil
    cdef int release(self) noexcept nogil
    cdef int resettle(self) noexcept nogil
    cdef bint is_settled(self, int g) noexcept nogil
    cdef int column_of(self, int v, int at) noexcept nogil
    cdef int loop(self, int last) noexcept nogil
    cdef void assess(self, int p) noexcept nogil
    cdef void assess_block(self, int g) noexcept nogil
    cdef int choose_row(self, double* excess) noexcept nogil
    cdef int choose_artificial(self, double* excess) noexcept nogil
    cdef bint row_of(self, int p) noexcept nogil
    cdef void list_rows(self) noexcept nogil
    cdef void divide(self) noexcept nogil
    cdef bint gather(self, double side, double end, double reach) noexcept nogil
    cdef bint read(self, int g, double last, double side, double end) noexcept nogil
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
