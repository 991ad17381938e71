from copter.model.matrix.template cimport Template


cdef class RowLists:
    cdef readonly object row_lower
    cdef readonly object row_upper
    cdef readonly object row_scale
    cdef readonly object row_generation
    cdef readonly object row_serial
    cdef readonly int n_rows
    cdef readonly dict templates
    cdef readonly dict template_of_serial
    cdef readonly list row_templates
    cdef readonly list free_rows
    cdef public long long next_serial
    cdef public long long next_row
    cdef void raise_scales(self, Template template) except *
