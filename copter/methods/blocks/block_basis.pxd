from copter.methods.blocks.working_inverse cimport WorkingInverse

cdef enum:
    ARTIFICIAL = -1  # number of an artificial variable at a position of the working basis
    NEW = 2  # marks of a block: from this one on, it has other costs or entries
    REWRITTEN = 3  # it has other entries

cdef double RATE
cdef double TIE
cdef double PIVOT
cdef double DRIFT
cdef int FLIPS


cdef inline double beyond(double x, double low, double high) noexcept nogil:
    """Return how far a value is above its upper bound, or below its lower one (negative)."""
    if x < low:
        return x - low
    return x - high if x > high else 0.0


cdef inline bint limits(
    double low, double high, bint at_upper, double cost, double entry, double side, double least, double *step
) noexcept nogil:
    """Return whether a variable's reduced cost comes to zero along a row, by a rate above `least`; write when."""
    cdef double rate = -side * entry
    if low == high:
        return False
    if at_upper:
        rate, cost = -rate, -cost
    if rate <= least:
        return False
    step[0] = (cost if cost > 0.0 else 0.0) / rate
    return True


cdef class BlockBasis:
    cdef readonly int n_rows, n_blocks, n_columns, n_entries
    cdef readonly object bounds, values, heads, prices, keys, at_uppers, counts
    cdef readonly WorkingInverse inverse
    cdef public double tolerance
    cdef const int[::1] column_start, start, row
    cdef double[::1] value, cost
    cdef double[::1] low, high, x, y, artificial, rho, alpha, shift, factors
    cdef unsigned char[::1] at_upper, alike
    cdef int[::1] place, block_of, key, count, head, others, bucket
    cdef void set_tolerance(self) noexcept nogil
    cdef bint rest(self, int v) noexcept nogil
    cdef bint rest_row(self, int r) noexcept nogil
    cdef bint rest_block(self, int g) noexcept nogil
    cdef bint settle(self, int g) noexcept nogil
    cdef unsigned int empty_buckets(self, int n) noexcept nogil
    cdef bint has_twins(self, int g) noexcept nogil
    cdef void drop_twins(self, int g) noexcept nogil
    cdef unsigned int hash_of(self, int j) noexcept nogil
    cdef bint same_entries(self, int i, int j) noexcept nogil
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
    cdef void swap(self, int p) noexcept nogil
    cdef bint step_of(self, int v, double cost, double entry, double side, double* step) noexcept nogil
    cdef double range_of(self, int v) noexcept nogil
    cdef void flip(self, int v) noexcept nogil
    cdef void change(self, int g) noexcept nogil
