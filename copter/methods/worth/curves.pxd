# A concave worth of a total z >= 0, as the passes read it; numbers as in copter/problem/worth.py.

cdef enum:
    LINEAR, LOG, POWER, PIECES, QUADRATIC

cdef struct Curve:
    int kind
    int n_pieces
    double a          # weight; of QUADRATIC the slope at zero; of PIECES the worth at zero
    double floor
    double alpha      # 1 for LOG; of QUADRATIC the curvature
    const double* slope   # of each piece, descending
    const double* length  # the last one's goes to the largest total of the request

cdef double value_at(const Curve* u, double z) noexcept nogil
cdef double slope_after(const Curve* u, double z) noexcept nogil
cdef double least_total(const Curve* u, double s) noexcept nogil
cdef double smooth_total(const Curve* u, double s, double mu, double* falls) noexcept nogil
cdef double conjugate(const Curve* u, double s, double* size) noexcept nogil
