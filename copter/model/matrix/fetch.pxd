"""Asking for memory that a pass will read soon: patterns and costs of single requests lie scattered."""

from copter.model.matrix.layout cimport Block, Near, Pattern


cdef enum:
    LINE = 64  # bytes of a cache line
    MOST_AHEAD = 1024  # most bytes of an array to prefetch: beyond, the processor's own prefetching has started


cdef extern from *:
    void __builtin_prefetch(const void* address) noexcept nogil


cdef inline void fetch(const void* address, size_t size) noexcept nogil:
    """Ask for an array's first bytes."""
    cdef const char* place = <const char*>address
    cdef size_t at = 0
    while at < size and at < MOST_AHEAD:
        __builtin_prefetch(place + at)
        at += LINE


cdef inline void fetch_head(const Pattern* pattern) noexcept nogil:
    """Ask for a pattern itself, so that it is there when its arrays are asked for."""
    fetch(pattern, sizeof(Pattern))


cdef inline void fetch_pattern(const Pattern* pattern) noexcept nogil:
    """Ask for the arrays of a pattern: those of single requests lie scattered in memory."""
    cdef int entries = pattern.column_start[pattern.n_columns]
    fetch(pattern.row, entries * sizeof(int))
    fetch(pattern.coefficient, entries * sizeof(double))
    fetch(pattern.priced_usage, pattern.n_columns * sizeof(double))


cdef inline void fetch_cost(const Block* block) noexcept nogil:
    """Ask for the costs of a block."""
    fetch(block.cost, block.n_columns * (sizeof(float) if block.single_precision else sizeof(double)))


cdef inline void fetch_near(const Near* near) noexcept nogil:
    """Ask for the near columns of a block, as far as they are usually many."""
    if near != NULL:
        fetch(near, 4 * LINE)
