from copter.methods.simplex.entries cimport Entries


cdef double TINY
cdef double WEAR
cdef int MOST_UPDATES


cdef class BasisFactor:
    cdef readonly int rows, updates, most_updates
    cdef readonly double work
    cdef public double most_work, least_pivot
    cdef Entries lower, upper, lower_by_row, upper_by_column, eta, active
    cdef int *pool
    cdef int *lower_start
    cdef int *lower_row_start
    cdef int *upper_start
    cdef int *upper_column_start
    cdef int *order
    cdef int *eta_start
    cdef int *eta_row
    cdef double *pivot
    cdef double *multiplier
    cdef int *column_begin
    cdef int *column_length
    cdef int *column_room
    cdef int *column_row
    cdef int *column_head
    cdef int *column_after
    cdef int *column_before
    cdef int *row_begin
    cdef int *row_length
    cdef int *row_room
    cdef int *row_head
    cdef int *row_after
    cdef int *row_before
    cdef int *row_active
    cdef int row_size, row_active_room
    cdef int *mark
    cdef int *lower_used
    cdef int *lower_rows_used
    cdef int *upper_used
    cdef int *upper_columns_used
    cdef int lower_count, lower_row_count, upper_count, upper_column_count
    cdef int *new_head

    cdef int factorise(
        self, const int *start, const int *index, const double *value, int columns, int *head
    ) noexcept nogil
    cdef void ftran(self, double *x) noexcept nogil
    cdef void btran(self, double *y) noexcept nogil
    cdef int update(self, const double *alpha, const int *spots, int count, int row) noexcept nogil
    cdef bint worn(self) noexcept nogil
    cdef int _load(self, const int *start, const int *index, const double *value, int columns, int *head) noexcept nogil
    cdef int _choose(self, int *row, int *column) noexcept nogil
    cdef void _look_in_column(self, int column, int *row, int *best_column, double *least, double *size) noexcept nogil
    cdef void _look_in_row(self, int row, int *best_row, int *column, double *least, double *size) noexcept nogil
    cdef int _eliminate(self, int row, int column, int step) noexcept nogil
    cdef int _subtract(self, int column, double factor, int first) noexcept nogil
    cdef int _room_in_column(self, int column) noexcept nogil
    cdef int _room_in_row(self, int row) noexcept nogil
    cdef int _need_rows(self, int more) noexcept nogil
    cdef void _drop_from_row(self, int row, int column) noexcept nogil
    cdef void _list_used(self) noexcept nogil
    cdef int _finish(self, int done, int columns, int *head) noexcept nogil
    cdef void _lower_ftran(self, double *x) noexcept nogil
    cdef void _upper_ftran(self, double *x) noexcept nogil
    cdef void _upper_btran(self, double *y) noexcept nogil
    cdef void _lower_btran(self, double *y) noexcept nogil
