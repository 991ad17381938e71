from copter.model.matrix.layout cimport Block
from copter.model.matrix.row_lists cimport RowLists
from copter.model.matrix.template cimport Template


cdef class Slab:
    cdef readonly Template template
    cdef readonly int slot
    cdef object own_cost  # None while it is a part of `flat_cost` for which no array has been asked
    cdef object flat_cost
    cdef Py_ssize_t first_cost
    cdef readonly object lower_each
    cdef readonly object upper_each
    cdef readonly object exception_column
    cdef readonly object exception_cost
    cdef readonly object private_bounds
    cdef readonly double rounding
    cdef readonly bint integer
    cdef readonly object whole_each
    cdef void keep_cost(self, object cost)
    cdef int keep_whole(self, object integer) except -1


cdef class SavedSlab:
    cdef readonly int slot
    cdef Block block
    cdef Slab slab
    cdef tuple held
    cdef long generation


cdef class ListOfLists(RowLists):
    cdef Block* blocks
    cdef int capacity
    cdef long long stamps
    cdef readonly int n_slots
    cdef readonly list slabs
    cdef readonly object generation
    cdef long[::1] ages  # the same array
    cdef bint has_single  # whether costs have ever been float32
    cdef readonly long long n_columns
    cdef readonly int n_with_rows
    cdef readonly int n_resident
    cdef readonly list free_slots
    cdef readonly dict fixed_slots
    cdef int reserve(self, int slots) except -1
    cdef long long next_stamp(self) noexcept nogil
    cdef Block* block_at(self, int slot) except NULL
    cdef void hang(self, int slot, Slab slab, double limit, double upper, double scale, double offset,
                   double least)
    cdef void note_residence(self, Block* block)
    cdef void tell(self, const Block* block, int times)
    cdef void hold_private(self, int slot, private_bounds, Py_ssize_t place) except *
