"""Writes the bounds of a block program from the matrix: of all blocks, or of changed blocks only."""

from libc.math cimport INFINITY

from copter.model.matrix.layout cimport Block, is_summed
from copter.model.matrix.block_matrix cimport BlockMatrix


def write_bounds(BlockMatrix matrix, const int[::1] slots, const int[::1] column_start, const int[::1] private_start,
                 const int[::1] places, int own, double[::1] lower, double[::1] upper):
    """Write the bounds of some blocks' columns and own rows; return whether the program still has the same rows.

    An upper bound that the limit implies is inf.

    Parameters
    ----------
    matrix : BlockMatrix
    slots : ndarray (blocks,) int32
    column_start, private_start : ndarray (blocks + 1,) int32
        First column and first own row of every block.
    places : ndarray (k,) int32
        Numbers of the blocks to write.
    own : int
        Index in `lower` and `upper` of the first own row.
    lower, upper : ndarray
        Written: bounds of columns, coupling rows, own rows.
    """
    cdef Py_ssize_t i
    cdef int g, j, r, k
    cdef bint holds = True, signed
    cdef Block* block
    with nogil:
        for i in range(places.shape[0]):
            g = places[i]
            block = &matrix.blocks[slots[g]]
            r = private_start[g]
            if (block.n_columns != column_start[g + 1] - column_start[g]
                    or is_summed(block) + block.pattern.n_private != private_start[g + 1] - r):
                holds = False
                break
            signed = False
            for j in range(block.n_columns):
                signed |= block.lower_each != NULL and block.lower_each[j] < 0.0
            for j in range(block.n_columns):
                write_column(block, j, signed, &lower[column_start[g] + j], &upper[column_start[g] + j])
            if is_summed(block):
                lower[own + r], upper[own + r] = block.least, block.limit
                r += 1
            for k in range(block.pattern.n_private):
                lower[own + r + k], upper[own + r + k] = block.private_lower[k], block.private_upper[k]
    return holds


cdef inline void write_column(const Block* block, int j, bint signed, double* lower, double* upper) noexcept nogil:
    """Write the bounds of one column; a limit implies no upper bound if some column of the block may be negative."""
    lower[0] = block.lower_each[j] if block.lower_each != NULL else 0.0
    upper[0] = block.upper_each[j] if block.upper_each != NULL else block.upper
    if upper[0] > block.limit and block.lower_each == NULL:
        upper[0] = block.limit
    if block.fixed == j:
        lower[0] = upper[0]
    elif block.fixed >= 0:
        upper[0] = lower[0]
    if upper[0] >= block.limit and not signed and upper[0] > lower[0]:
        upper[0] = INFINITY
