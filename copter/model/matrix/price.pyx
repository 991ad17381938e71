"""Pricing kernels: reduced costs d = c - A'y of a block's columns, the smallest one, and columns below a threshold."""

from libc.math cimport INFINITY, fabs
from libc.stddef cimport ptrdiff_t

from copter.model.matrix.layout cimport Block, Pattern, cost_of, exception_at, exception_cost_at


cdef extern from "reduce.h" nogil:
    double copter_smallest(const double* cost, const double* priced_usage, double scale, double offset,
                           double most, int begin, int end)
    double copter_smallest_single(const float* cost, const double* priced_usage, double scale, double offset,
                                  double most, int begin, int end)
    double copter_priced(const double* coefficient, const int* row, const double* y, double* priced_usage,
                         ptrdiff_t count)


cdef void price_pattern(Pattern* pattern, const double* y) noexcept nogil:
    """Set priced_usage[j] = sum_k a_kj y_k and a bound of its rounding, once for all blocks that share the pattern."""
    cdef int j, e
    cdef double total, term, size, largest = 0.0
    if pattern.single:
        pattern.priced_size = copter_priced(pattern.coefficient, pattern.row, y, pattern.priced_usage,
                                            pattern.n_columns)
        return
    for j in range(pattern.n_columns):
        total = size = 0.0
        for e in range(pattern.column_start[j], pattern.column_start[j + 1]):
            term = pattern.coefficient[e] * y[pattern.row[e]]
            total += term
            size += fabs(term)
        pattern.priced_usage[j] = total
        size *= pattern.column_start[j + 1] - pattern.column_start[j] + 4
        if not size <= largest:
            largest = size
    pattern.priced_size = largest


cdef inline double smallest_run(const Block* block, double weight, int begin, int end) noexcept nogil:
    """Return the smallest reduced cost of a run of columns without exceptions."""
    cdef const double* usage = block.pattern.priced_usage
    cdef double scale = weight * block.scale, offset = weight * block.offset
    cdef double most = weight * block.most if block.most < INFINITY else INFINITY
    if block.single_precision:
        return copter_smallest_single(<const float*>block.cost, usage, scale, offset, most, begin, end)
    return copter_smallest(<const double*>block.cost, usage, scale, offset, most, begin, end)


cdef inline double smallest_between(const Block* block, double weight, int begin, int end) noexcept nogil:
    """Return the smallest reduced cost of the columns begin .. end - 1: exceptions singly, runs by vector loops."""
    cdef const double* usage = block.pattern.priced_usage
    cdef double best = INFINITY, value
    cdef int e, j, start = begin
    for e in range(block.n_exceptions):
        j = exception_at(block, e)
        if j < begin:
            continue
        if j >= end:
            break
        value = smallest_run(block, weight, start, j)
        if value < best:
            best = value
        value = weight * exception_cost_at(block, e) - usage[j]
        if value < best:
            best = value
        start = j + 1
    value = smallest_run(block, weight, start, end)
    return value if value < best else best


cdef inline int where_smallest(const Block* block, double weight, int begin, int end,
                               double* reduced_cost) noexcept nogil:
    """Return the column of smallest reduced cost, the first on a tie, and write its reduced cost."""
    cdef const double* usage = block.pattern.priced_usage
    cdef double best = INFINITY, value
    cdef int e = 0, j, where = begin
    while e < block.n_exceptions and exception_at(block, e) < begin:  # ends: e grows to the number of exceptions
        e += 1
    for j in range(begin, end):
        if e < block.n_exceptions and exception_at(block, e) == j:
            value = weight * exception_cost_at(block, e) - usage[j]
            e += 1
        else:
            value = weight * cost_of(block, j) - usage[j]
        if value < best:
            best = value
            where = j
    reduced_cost[0] = best
    return where


cdef void price_block(
    const Block* block,
    double weight,
    double threshold,
    double* smallest,
    int* column,
    double* reduced_cost,
    int* found,
) noexcept nogil:
    """Price one block whose pattern has been priced.

    smallest: smallest reduced cost of the block. column, reduced_cost (room for MAX_SEGMENTS): the best column of each
    segment whose reduced cost is below the threshold. found: number of these columns.
    """
    cdef int s, n = 0
    cdef const int* segment = block.pattern.segment_start
    # One run over all columns suffices for most blocks; only blocks with an improving column are searched by segment.
    smallest[0] = smallest_between(block, weight, 0, block.n_columns)
    if smallest[0] < threshold:
        for s in range(block.pattern.n_segments):
            if (block.pattern.n_segments == 1
                    or smallest_between(block, weight, segment[s], segment[s + 1]) < threshold):
                column[n] = where_smallest(block, weight, segment[s], segment[s + 1], &reduced_cost[n])
                n += 1
    found[0] = n
