from copter.methods.simplex.basis_factor cimport BasisFactor


cdef double LEAST_ENTRY
cdef double AGREEMENT
cdef int MOST_TROUBLE

cdef enum Outcome:
    DONE = 0  # no violation is left
    BLOCKED = 1  # no column (or row) stops the step: `ray` proves that the program is infeasible (or unbounded)
    PAUSED = 2  # the allowed work is done
    STUCK = 3  # stopped by rounding errors, or cycling


cdef class _Store:
    cdef object whole
    cdef dict arrays
    cdef Py_ssize_t used

    cdef Py_ssize_t take(self, str name, Py_ssize_t size)


cdef class Tableau:
    cdef readonly int rows, columns, total, iterations, dual_misfits, idle
    cdef readonly BasisFactor factor
    cdef object reals, wholes
    cdef dict _arrays
    cdef int entries
    cdef int *start
    cdef int *index
    cdef double *value
    cdef int *row_start
    cdef int *row_index
    cdef double *row_value
    cdef double *lower
    cdef double *upper
    cdef double *cost
    cdef double *x
    cdef double *d
    cdef double *weight
    cdef double *edge
    cdef double *squared
    cdef int *head
    cdef int *place
    cdef double *rho
    cdef double *alpha
    cdef double *tau
    cdef double *moved
    cdef double *row
    cdef int *touched
    cdef int *candidate
    cdef double *gap
    cdef double *size
    cdef int *spots
    cdef int *rho_spots
    cdef int *violated
    cdef int *is_listed
    cdef int touched_count, flips, flip_count, spot_count, rho_count, violated_count
    cdef double norm
    cdef bint fresh, stale
    cdef double primal_tolerance, dual_tolerance

    cdef void _lay(self, dict arrays)
    cdef void _transpose(self)
    cdef int refactor(self) noexcept nogil
    cdef void primal_values(self) noexcept nogil
    cdef void dual_values(self) noexcept nogil
    cdef double violation(self, int j) noexcept nogil
    cdef int violations(self) noexcept nogil
    cdef void measure(self, int i) noexcept nogil
    cdef double misfit(self, int j) noexcept nogil
    cdef void settle_duals(self, bint shift) noexcept nogil
    cdef void load(self, int j) noexcept nogil
    cdef void add(self, int j, double factor, double *into) noexcept nogil
    cdef void price_row(self, int p) noexcept nogil
    cdef void pivot_row(self) noexcept nogil
    cdef void dense_row(self, double entries) noexcept nogil
    cdef int exchange(self, int p, int q) noexcept nogil


cdef double resting(double lower, double upper, bint above) noexcept nogil
