from copter.model.matrix.layout cimport Block
from copter.model.matrix.list_of_lists cimport ListOfLists


cdef class BlockMatrix(ListOfLists):
    cdef void price_slot(self, int i, double weight, const double* threshold, double* smallest, int* column,
                         double* reduced, int* found) noexcept nogil
    cdef double cost_at(self, const Block* block, int column) noexcept nogil
