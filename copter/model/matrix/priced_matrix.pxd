from copter.model.matrix.layout cimport Block, Near
from copter.model.matrix.list_of_lists cimport ListOfLists


cdef struct Pass:
    # What a pricing pass is given, and where it writes: as in :meth:`PricedMatrix.price`, arrays by slot.
    double weight, end
    bint timed, screen, knows, searches
    const double* ratio
    const double* threshold
    const double* least
    const int* best
    double* smallest
    int* column
    double* reduced
    int* found


cdef struct Done:
    # What has been done of a pass: columns priced, and slabs by how they were.
    long long priced, screened, settled, searched


cdef class PricedMatrix(ListOfLists):
    cdef Near** near
    cdef int near_capacity
    cdef int passes
    cdef long long debt, last_work
    cdef readonly long long columns_priced
    cdef readonly long long slabs_screened
    cdef object earlier
    cdef double[:, ::1] terms  # of the dual value by slot, with their rounding errors, from the last pass
    cdef void note_term(self, int i, double smallest) noexcept nogil
    cdef Done price_few(self, const Pass* running, int begin, int end) noexcept nogil
    cdef int reserve_near(self) except -1
    cdef bint keeps(self, const double[::1] y, double* ratio) except -1
    cdef bint is_near(self, int i, const double* ratio, double threshold, double* smallest, int* column,
                      double* reduced, int* found) noexcept nogil
    cdef bint is_known(self, int i, const double* ratio, double least, int best) noexcept nogil
    cdef bint find_near(self, int i, double smallest) noexcept nogil
    cdef double price_error(self, const Block* block) noexcept nogil
    cdef void price_slot(self, int i, double weight, double threshold, double* smallest, int* column, double* reduced,
                         int* found) noexcept nogil
    cdef double cost_at(self, const Block* block, int column) noexcept nogil
