cdef enum:
    TILE = 56  # rows of a tile: its products are small enough for BLAS to stay in this thread
