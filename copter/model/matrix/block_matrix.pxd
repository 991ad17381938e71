from copter.model.matrix.priced_matrix cimport PricedMatrix


cdef class BlockMatrix(PricedMatrix):
    pass
