cdef struct BlockWork:
    # Sizes of a block (rows of its own, of its border, of the touched coupling rows), which coupling rows those are,
    # its factor, the border's rows of V, and the matrix over the coupling rows from which W'W is subtracted.
    int rows, border, touched
    const int* places
    double* factor
    double* wide
    double* total


cdef class Elimination:
    cdef readonly int n_rows, n_blocks, n_columns, n_private, most_touched, most_private
    cdef readonly object touched_start, touched, factor_start
    cdef object local
    cdef const int[::1] column_start, private_start, start, row, own_start, own_row
    cdef const double[::1] value, own_value
    cdef const int[::1] touched_start_view, touched_view, local_view
    cdef const long long[::1] factor_start_view
    cdef readonly int n_pieces
    cdef readonly double work
    cdef readonly object reduced
    cdef const int[::1] cuts
    cdef double[:, :, ::1] sums, panel, square
    cdef double[:, ::1] dense, wide, paired
    cdef int[:, ::1] paired_column, met, seen
    cdef const int[::1] border_start, border_row, border_place, group_start, group_column
    cdef double[::1] factor, theta, slack
    cdef void piece(self, int piece, int first, int last, bint ends) noexcept nogil
    cdef void outer(self, int j, double* total, double weight) noexcept nogil
    cdef int one_row(self, int piece, int g, double delta, double* total, int filled) noexcept nogil
    cdef void disjoint(self, int piece, int g, double delta, double* total) noexcept nogil
    cdef void cross(self, int j, const double* z, int r, const int* touched, double weight,
                    double* total) noexcept nogil
    cdef void add_panel(self, int piece, int filled, double* total) noexcept nogil
    cdef int many_rows(self, int piece, int g, int p, double* total, int filled) noexcept nogil
    cdef int border_of(self, int g, const int** border) noexcept nogil
    cdef int arrow_rows(self, int piece, int g, int p, double* total, int filled) noexcept nogil
    cdef void diagonal_row(self, int piece, int row, int i, BlockWork* block) noexcept nogil
    cdef int subtract_rows(self, int piece, int b, int r, const int* touched, double* total, int filled) noexcept nogil
    cdef void restore_block(self, int g, const double[::1] price, const double[::1] private,
                            double[::1] own) noexcept nogil
    cdef void solve_private(self, int g, int p, const double* right, double* solution) noexcept nogil
