from copter.kernels.layout cimport Block, Pattern


cdef class Template:
    cdef Pattern pattern
    cdef readonly object column_start
    cdef readonly object row
    cdef readonly object coefficient
    cdef readonly object segment_start
    cdef object priced_usage
    cdef void refresh(self)


cdef class Slab:
    cdef readonly Template template
    cdef readonly int slot
    cdef readonly object cost
    cdef readonly object lower_each
    cdef readonly object upper_each
    cdef readonly object exception_column
    cdef readonly object exception_cost


cdef class BlockMatrix:
    cdef Block* blocks
    cdef int capacity
    cdef readonly int n_slots
    cdef readonly list slabs
    cdef readonly object generation
    cdef readonly object row_lower
    cdef readonly object row_upper
    cdef readonly object row_scale
    cdef readonly object row_generation
    cdef readonly int n_rows
    cdef readonly long long n_columns
    cdef readonly dict templates
    cdef list free_slots
    cdef list free_rows
    cdef int reserve(self) except -1
    cdef Block* block_at(self, int slot) except NULL
    cdef void price_slot(self, int i, double weight, const double* threshold, double* smallest, int* column,
                         double* reduced, int* found) noexcept nogil
    cdef double cost_at(self, const Block* block, int column) noexcept nogil
