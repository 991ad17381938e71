from copter.kernels.working_inverse cimport WorkingInverse


cdef class BlockDual:
    cdef readonly int n_rows, n_blocks, n_columns, pivots, flips, visits, passes
    cdef int n_moved, since, next_look
    cdef bint everything
    cdef readonly object bounds, values, heads, prices, radii, keys, at_uppers, counts
    cdef readonly WorkingInverse inverse
    cdef public double tolerance
    cdef const int[::1] column_start, start, row
    cdef const double[::1] value
    cdef double[::1] cost
    cdef double[::1] low, high, x, y, artificial, rho, alpha, shift, heap_step, factors, radius, known_prices, length
    cdef unsigned char[::1] at_upper, is_moved
    cdef int[::1] place, block_of, key, count, head, heap_of, listed, others, stamp, moved, flipped
    cdef bint settle(self, int g) noexcept nogil
    cdef void refresh(self) noexcept nogil
    cdef double dot(self, int j, const double* y) noexcept nogil
    cdef int block(self, int v) noexcept nogil
    cdef double sign(self, int v) noexcept nogil
    cdef double key_share(self, int v) noexcept nogil
    cdef void move_key(self, int v, double amount) noexcept nogil
    cdef void put(self, int p, double amount) noexcept nogil
    cdef double excess(self, int v) noexcept nogil
    cdef void reduced(self, int v, double* cost, double* entry) noexcept nogil
    cdef void effective(self, int v, double amount, double* out) noexcept nogil
    cdef int loop(self, int most) noexcept nogil
    cdef int choose_row(self, double* excess) noexcept nogil
    cdef void swap(self, int p) noexcept nogil
    cdef bint step_of(self, int v, double cost, double entry, double side, double* step) noexcept nogil
    cdef int first_of(self, int g, double side, double end, double* step) noexcept nogil
    cdef int choose_column(self, double excess, double* step) noexcept nogil
    cdef int consider(self, int v, double cost, double entry, double side, int n, double* end) noexcept nogil
    cdef int hard_of(self, int g, double side, int n, double* end) noexcept nogil
    cdef int hard_column(self, int j, double key_cost, double key_entry, double side, int n, double* end) noexcept nogil
    cdef void both(self, int j, double* cost, double* entry) noexcept nogil
    cdef double range_of(self, int v) noexcept nogil
    cdef void flip(self, int v) noexcept nogil
    cdef void sink(self, int at, int n) noexcept nogil
    cdef void rise(self, int at) noexcept nogil
    cdef bint pivot(self, int p, int q, bint to_upper, double step) noexcept nogil
    cdef void move(self, const double* alpha, double theta) noexcept nogil
    cdef double radius_of(self, int g) noexcept nogil
    cdef void take_back(self, int flipped) noexcept nogil
    cdef void note(self, int g) noexcept nogil
    cdef void heat(self, int g) noexcept nogil
    cdef double reach(self, double side, double step) noexcept nogil
    cdef int resettle(self) noexcept nogil
    cdef bint is_settled(self, int g) noexcept nogil
    cdef int hard_breakpoints(self, double side, double* end) noexcept nogil
    cdef int scan(self, int g, double side, int n, double end) noexcept nogil
    cdef int drop(self, int n) noexcept nogil
    cdef double rate_of(self, int v) noexcept nogil
    cdef int largest_of(self, int v, double here, int n, double* step) noexcept nogil
    cdef void drop_twins(self, int g) noexcept nogil
    cdef bint rest(self, int v) noexcept nogil
