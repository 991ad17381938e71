cdef enum:
    TILE = 56  # rows of a tile: products of tiles are small enough for BLAS to use this thread only

cdef void factor_square(double* square, int n, int stride, const double* least) noexcept nogil
