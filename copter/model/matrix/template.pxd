from copter.model.matrix.layout cimport Pattern


cdef class Template:
    cdef Pattern pattern
    cdef readonly object column_start
    cdef readonly object row
    cdef readonly object coefficient
    cdef readonly object segment_start
    cdef readonly object rows
    cdef readonly object private
    cdef public long long serial
    cdef public bint shared
    cdef object priced_usage
    cdef void hold(self, column_start, row, coefficient, private) except *
    cdef void take(self, Template other)
    cdef void refresh(self, const int* column_start, const int* row, const double* coefficient)


cdef object INT
cdef object FLOAT
cdef object contiguous(object array, object dtype)
cdef const double* double_pointer(object array) except? NULL
cdef const int* int_pointer(object array) except? NULL
cdef const void* address(object array, Py_ssize_t itemsize, char kind, char other) except? NULL
