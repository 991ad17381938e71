from copter.model.matrix.layout cimport Block, Pattern


cdef void price_pattern(Pattern* pattern, const double* y) noexcept nogil

cdef void price_block(
    const Block* block,
    double weight,
    double threshold,
    double* smallest,
    int* column,
    double* reduced_cost,
    int* found,
) noexcept nogil
