# Values, slopes, conjugates and best totals of concave worths of a total z >= 0 (docs/method/concave_worth.md, W3 to
# W5); numbers as in copter/problem/worth.py. They are written here so that the passes' loops take them in.

from libc.math cimport INFINITY, exp, fabs, log, pow

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


cdef inline double value_at(const Curve* u, double z) noexcept nogil:
    """u(z)."""
    cdef int k
    cdef double worth
    if u.kind == LOG:
        return u.a * log(z + u.floor)
    if u.kind == POWER:
        return u.a * pow(z + u.floor, 1.0 - u.alpha) / (1.0 - u.alpha)
    if u.kind == QUADRATIC:
        return u.a * z - 0.5 * u.alpha * z * z
    if u.kind == LINEAR:
        return 0.0
    worth = u.a
    for k in range(u.n_pieces):
        if k == u.n_pieces - 1 or z <= u.length[k]:
            return worth + u.slope[k] * z
        worth += u.slope[k] * u.length[k]
        z -= u.length[k]
    return worth


cdef inline double slope_after(const Curve* u, double z) noexcept nogil:
    """u'(z), the one to the right where there are two."""
    cdef int k
    if u.kind == LOG:
        return u.a / (z + u.floor) if z + u.floor > 0.0 else INFINITY
    if u.kind == POWER:
        return u.a * pow(z + u.floor, -u.alpha) if z + u.floor > 0.0 else INFINITY
    if u.kind == QUADRATIC:
        return u.a - u.alpha * z
    if u.kind == LINEAR:
        return 0.0
    for k in range(u.n_pieces - 1):
        if z < u.length[k]:
            return u.slope[k]
        z -= u.length[k]
    return u.slope[u.n_pieces - 1]


cdef inline double least_total(const Curve* u, double s) noexcept nogil:
    """The least z >= 0 of largest u(z) - s z; infinite if there is none."""
    cdef int k
    cdef double z
    if u.kind == LOG:
        z = u.a / s - u.floor if s > 0.0 else INFINITY
        return z if z > 0.0 else 0.0
    if u.kind == POWER:
        z = pow(u.a / s, 1.0 / u.alpha) - u.floor if s > 0.0 else INFINITY
        return z if z > 0.0 else 0.0
    if u.kind == QUADRATIC:
        return (u.a - s) / u.alpha if s < u.a else 0.0
    z = 0.0
    for k in range(u.n_pieces):
        if u.slope[k] <= s:
            break
        z += u.length[k]
    return z


cdef inline double smooth_total(const Curve* u, double s, double mu, double* falls) noexcept nogil:
    """The total of largest u(z) - s z, smoothed where it jumps (W8), and its fall for each unit of the slope s."""
    cdef int k
    cdef double z, t, share, width
    falls[0] = 0.0
    if u.kind == PIECES:
        z = 0.0
        width = mu * (fabs(u.slope[0]) + fabs(u.slope[u.n_pieces - 1]))
        for k in range(u.n_pieces):
            t = (u.slope[k] - s) / width
            if t > 40.0:
                z += u.length[k]
            elif t > -40.0:
                share = 1.0 / (1.0 + exp(-t))
                z += u.length[k] * share
                falls[0] += u.length[k] * share * (1.0 - share) / width
        return z
    z = least_total(u, s)
    if z > 0.0:
        if u.kind == LOG:
            falls[0] = (z + u.floor) / s
        elif u.kind == POWER:
            falls[0] = (z + u.floor) / (u.alpha * s)
        else:
            falls[0] = 1.0 / u.alpha
    return z


cdef inline double conjugate(const Curve* u, double s, double* size) noexcept nogil:
    """u*(s), the largest u(z) - s z over z >= 0 (for PIECES up to the last length); `size` bounds the terms added."""
    cdef int k
    cdef double total, term, far
    if u.kind == LINEAR:
        size[0] = 0.0
        return 0.0
    if u.kind == PIECES:
        total = u.a
        size[0] = fabs(u.a)
        for k in range(u.n_pieces):
            if u.slope[k] > s:
                total += u.length[k] * (u.slope[k] - s)
                size[0] += u.length[k] * (fabs(u.slope[k]) + fabs(s))
        return total
    if u.kind == QUADRATIC:
        term = u.a - s
        size[0] = (fabs(u.a) + fabs(s)) * (fabs(u.a) + fabs(s)) / u.alpha
        return 0.5 * term * term / u.alpha if term > 0.0 else 0.0
    if s <= 0.0:
        size[0] = INFINITY
        return INFINITY
    if u.floor > 0.0 and s >= slope_after(u, 0.0):
        total = value_at(u, 0.0)
        size[0] = fabs(total) + u.a
        return total
    far = s * u.floor
    if u.kind == LOG:
        term = u.a * log(u.a / s)
        size[0] = fabs(term) + 2.0 * u.a + far
        return term - u.a + far
    term = u.a * u.alpha / (1.0 - u.alpha) * pow(u.a / s, (1.0 - u.alpha) / u.alpha)
    size[0] = fabs(term) * (4.0 + fabs(1.0 - u.alpha) / u.alpha * fabs(log(u.a / s))) + far
    return term + far
