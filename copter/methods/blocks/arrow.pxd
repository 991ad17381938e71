cdef enum:
    MOST_BORDER = 16  # most rows of a border

cdef void factorise(double* factor, const double* before, int p, const int* border, int b) noexcept nogil

cdef void solve(const double* factor, int p, const int* border, int b, const double* right,
                double* solution) noexcept nogil
