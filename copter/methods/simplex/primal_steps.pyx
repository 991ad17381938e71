"""The bounded primal simplex method from a primal feasible basis: clears reduced costs after costs change (D9)."""

from libc.math cimport INFINITY, fabs

from copter.methods.simplex.tableau cimport (
    AGREEMENT, BLOCKED, DONE, LEAST_ENTRY, MOST_TROUBLE, PAUSED, STUCK, Tableau,
)

cdef double MOST_WEIGHT = 1e12  # reference weights are reset to one above this
cdef int MOST_IDLE = 20  # steps without progress for each row before the run ends STUCK: the method may be cycling


def primal_steps(Tableau tableau, double most_work):
    """Pivot until no reduced cost has the wrong sign or the work reaches `most_work`; return an Outcome.

    BLOCKED: the program is unbounded: no basic variable stops the step of variable `candidate[0]`, and `alpha` is its
    column. STUCK also if fresh factors show that the values violate bounds.
    """
    cdef int found
    with nogil:
        found = steps(tableau, most_work)
    if found < 0:
        raise MemoryError(f"the factors of a basis of {tableau.rows} rows")
    return found


cdef int steps(Tableau t, double most_work) noexcept nogil:
    cdef double end = t.factor.work + most_work, sign, length
    cdef int p = -1, q, found, trouble = 0, idle = 0
    while True:  # ends: each pass adds work, up to most_work
        if t.stale:
            found = t.refactor()
            if found < 0:
                return STUCK if found == -2 else -1
            t.primal_values()
            t.dual_values()
            if violated(t):
                return STUCK
        if t.factor.work > end:
            return PAUSED
        q = entering(t)
        if q < 0:
            if t.fresh:
                return DONE
            t.stale = True
            continue
        sign = -1.0 if t.d[q] > 0.0 else 1.0
        t.load(q)
        length = longest(t, q, sign, &p)
        if length == INFINITY:
            t.candidate[0] = q
            if t.fresh:
                return BLOCKED
            t.stale = True
            continue
        idle = 0 if length > 0.0 else idle + 1
        if idle > MOST_IDLE * t.rows:
            return STUCK
        if p >= 0:
            t.price_row(p)
            t.pivot_row()
            if fabs(t.alpha[p] - t.row[q]) > AGREEMENT * (1.0 + fabs(t.alpha[p])):
                trouble += 1
                if t.fresh or trouble > MOST_TROUBLE:
                    return STUCK
                t.stale = True
                continue
        if step(t, p, q, sign, length) < 0:
            return -1


cdef bint violated(Tableau t) noexcept nogil:
    cdef int i
    for i in range(t.rows):
        if fabs(t.violation(t.head[i])) > 1e2 * t.primal_tolerance:
            return True
    return False


cdef int entering(Tableau t) noexcept nogil:
    """Return the variable with the largest wrong-signed reduced cost relative to its reference weight; -1 for none."""
    cdef int j, best = -1
    cdef double d, largest = 0.0
    for j in range(t.total):
        if t.place[j] >= 0:
            continue
        d = t.misfit(j)
        if d != 0.0 and d * d > largest * t.weight[j]:
            largest, best = d * d / t.weight[j], j
    t.factor.work += t.total
    return best


cdef double longest(Tableau t, int q, double sign, int *leaving) noexcept nogil:
    """Harris's ratio test: return the step; the pivot is the largest among rows that block within tolerance.

    `leaving` is the pivot's row, or -1 if q reaches its own other bound first.
    """
    cdef int i, j, k
    cdef double rate, gap, bound = INFINITY, largest = 0.0, length = INFINITY
    for k in range(t.spot_count):
        i = t.spots[k]
        rate = -sign * t.alpha[i]
        if fabs(rate) <= LEAST_ENTRY:
            continue
        j = t.head[i]
        gap = (t.upper[j] - t.x[j] if rate > 0.0 else t.x[j] - t.lower[j]) + t.primal_tolerance
        bound = min(bound, max(gap, 0.0) / fabs(rate))
    leaving[0] = -1
    for k in range(t.spot_count):
        i = t.spots[k]
        rate = -sign * t.alpha[i]
        if fabs(rate) <= LEAST_ENTRY or fabs(rate) <= largest:
            continue
        j = t.head[i]
        gap = max(t.upper[j] - t.x[j] if rate > 0.0 else t.x[j] - t.lower[j], 0.0)
        if gap <= bound * fabs(rate):
            largest, leaving[0], length = fabs(rate), i, gap / fabs(rate)
    t.factor.work += 2.0 * t.rows
    if t.upper[q] - t.lower[q] <= length:
        leaving[0] = -1
        return t.upper[q] - t.lower[q]
    return length


cdef int step(Tableau t, int p, int q, double sign, double size) noexcept nogil:
    """Move q upwards (sign 1) or downwards (-1); it replaces p's variable in the basis unless p is -1."""
    cdef int i, j, k, out
    cdef double theta, ratio, reference = t.weight[q], entry, length = sign * size
    for k in range(t.spot_count):
        i = t.spots[k]
        t.x[t.head[i]] -= length * t.alpha[i]
    if p < 0:
        t.x[q] = t.upper[q] if sign > 0.0 else t.lower[q]
        t.fresh = False
        return 0
    t.x[q] += length
    entry, out = t.alpha[p], t.head[p]
    theta = t.d[q] / entry
    for k in range(t.touched_count):
        j = t.touched[k]
        t.d[j] -= theta * t.row[j]
        ratio = t.row[j] / entry
        t.weight[j] = max(t.weight[j], ratio * ratio * reference)
    t.x[out] = t.upper[out] if sign * entry < 0.0 else t.lower[out]
    t.d[out] = -theta
    t.weight[out] = max(reference / (entry * entry), 1.0)
    if t.weight[out] > MOST_WEIGHT:
        for j in range(t.total):
            t.weight[j] = 1.0
    t.factor.work += 2.0 * t.touched_count + t.rows
    return t.exchange(p, q)
