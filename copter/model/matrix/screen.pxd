from copter.model.matrix.layout cimport Block, Near


cdef double ratio_of(const double* y, const double* earlier, int rows) noexcept nogil

cdef bint is_screened(const Block* block, const Near* near, double ratio, double threshold, double* smallest,
                      int* column, double* reduced_cost, int* found) noexcept nogil

cdef Near* near_columns(const Block* block, Near* near, double smallest) noexcept nogil
cdef bint is_settled(const Block* block, double ratio, double least, int column) noexcept nogil
cdef void rescaled(Block* block, double scale, double offset, int exception) noexcept nogil
cdef void hold_rest(Block* block, const Near* near, double ratio, int prices) noexcept nogil
