"""How a block (a request's columns) lies in memory; shared by the matrix and the kernels."""


from libc.math cimport INFINITY


cdef struct Pattern:
    # Usage of the columns of a template, by column: rows and coefficients of column j are those between
    # column_start[j] and column_start[j + 1]. Segments are runs of columns priced together (at most MAX_SEGMENTS).
    int n_columns
    int n_segments
    int n_users              # live blocks that use the pattern
    const int* column_start
    const int* row
    const double* coefficient
    const int* segment_start
    double* priced_usage     # sum_k a_kj y_k of every column at the prices of the running pass
    int n_private            # private rows of every block that uses the pattern, and their entries by column
    const int* own_start
    const int* own_row
    const double* own_value
    double priced_size       # largest (entries + 4) * sum_k |a_kj y_k| of a column: rounding, in half ulps
    long long stamp          # a number that no other usage has had
    bint grows               # whether no coefficient is negative
    bint single              # whether every column has one entry


cdef struct Block:
    # cost of column j = min(scale * cost[j] + offset, most), except for exceptions, whose cost is stored as it is.
    # Blocks whose requests share a cost array point to the same array.
    int n_columns            # 0: no request lives in this slot
    int fixed                # column held at its upper bound (all others at their lower), or -1
    int n_exceptions
    int single_column        # the only exception's column, if there is exactly one
    char resident            # 1: every column is in the working set, so pricing skips the block
    char single_precision    # 1: cost is float32, otherwise float64
    char integer             # 1: the columns must be whole in an integer plan; 2: some of them
    double scale
    double offset
    double most              # upper limit on the columns' costs; inf for none
    double single_cost
    double limit             # sum of the block's columns <= limit
    double least             # sum of the block's columns >= least; -inf for none
    double upper             # upper bound of every column, unless upper_each is given
    Pattern* pattern
    const void* cost
    const int* exception_column   # columns of the exceptions, if there are several
    const double* exception_cost
    const double* lower_each  # NULL: zero
    const double* upper_each  # NULL: upper
    double* private_lower    # bounds of the private rows, as many as the pattern says; NULL for none
    double* private_upper
    long long stamp           # a number that no other costs of the matrix have had
    # Of all columns but `best`, the least reduced cost at a share of the prices of a pass, and how much more it is for
    # each share above that one (screen.pyx), as scale and offset have changed since; prices is the pass's number, 0 for
    # no such bound.
    int best, prices
    double share, rest, slope, factor  # factor: the present scale over that of the pass
    long long usage           # stamp of the pattern at that time


cdef struct Near:
    # The columns of a block that are nearly its best, and the least reduced cost of all others at low prices
    # (screen.pyx). The stored costs of the near columns, and the columns, follow in memory.
    int count
    int prices               # number of the pass whose prices they were found at
    long long costs, usage   # stamps of the block's costs and of its pattern at the time
    double rest
    double size              # of what was added up, for its rounding
    double scale, offset     # of the block at the time


cdef enum:
    MAX_SEGMENTS = 8  # most segments (runs of columns over the same rows) of a pattern


cdef inline double base_cost(const Block* block, int column) noexcept nogil:
    """Stored cost of a column, before scale and offset."""
    return (<const float*>block.cost)[column] if block.single_precision else (<const double*>block.cost)[column]


cdef inline double cost_of(const Block* block, int column) noexcept nogil:
    """Cost of a column that is no exception."""
    cdef double cost = block.scale * base_cost(block, column) + block.offset
    return cost if cost < block.most else block.most


cdef inline bint has_rows(const Block* block) noexcept nogil:
    """Whether a block has rows of its own other than a plain limit: private rows, or a least sum."""
    return block.n_columns > 0 and (block.least > -INFINITY or block.pattern.n_private > 0)


cdef inline bint is_summed(const Block* block) noexcept nogil:
    """Whether the sum of a block's columns is a row: it has a limit or a least."""
    return block.limit < INFINITY or block.least > -INFINITY


cdef inline bint may_be_one(const Block* block, int j) noexcept nogil:
    """Whether a column's bounds and its request's limit allow the value one."""
    cdef double upper = block.upper_each[j] if block.upper_each != NULL else block.upper
    cdef double lower = block.lower_each[j] if block.lower_each != NULL else 0.0
    return lower <= 1.0 <= upper and block.limit >= 1.0


cdef inline int exception_at(const Block* block, int e) noexcept nogil:
    return block.single_column if block.n_exceptions == 1 else block.exception_column[e]


cdef inline double exception_cost_at(const Block* block, int e) noexcept nogil:
    return block.single_cost if block.n_exceptions == 1 else block.exception_cost[e]
