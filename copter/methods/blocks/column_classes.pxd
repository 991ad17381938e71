cdef class ColumnClasses:
    cdef readonly int n_rows, n_columns, n_classes, n_moving, n_late
    cdef readonly long long work  # multiplications, so far
    cdef readonly bint alone
    cdef long long late_work  # entries of late rows met since classes were made
    cdef const int[::1] start, row
    cdef const double[::1] value
    cdef int[::1] row_start, column
    cdef int[::1] place, moving, late, class_of, class_start, class_row, table
    cdef double[::1] class_value, rate, slope, moved, ahead
    cdef unsigned char[::1] was_late
    cdef bint listed  # whether the columns of every row are listed
    cdef bint covers(self, const double* y) noexcept nogil
    cdef bint are_few(self, const double* y) noexcept nogil
    cdef void choose(self, const double* y, bint again) noexcept nogil
    cdef void classify(self) noexcept nogil
    cdef bint assign(self, int j) noexcept nogil
    cdef void list_rows(self) noexcept nogil
    cdef void isolate(self) noexcept nogil
    cdef int size_of(self, int j) noexcept nogil
    cdef int find(self, int at, int size, int mask) noexcept nogil
    cdef void forget(self) noexcept nogil
    cdef bint spread(self, const double* rho) noexcept nogil
    cdef void move(self, double step) noexcept nogil
    cdef void look_ahead(self, double step) noexcept nogil
