"""The bounded dual simplex method: rows by steepest edge, columns by a ratio test that flips bounds (D5 to D8)."""

from libc.math cimport INFINITY, fabs
from libc.string cimport memcpy, memset

from copter.methods.simplex.tableau cimport (
    AGREEMENT, BLOCKED, DONE, LEAST_ENTRY, MOST_TROUBLE, PAUSED, STUCK, Tableau,
)

cdef double LEAST_PIVOT = 1e-7  # least size of a pivot, unless the factors are fresh
cdef double NO_STEP = 1e-12  # dual steps of at most this size count as zero
cdef double LEAST_WEIGHT = 1e-4  # lower bound of a steepest edge weight
# Rows are compared again if the true weight of the best one exceeds its stored weight this many times.
cdef double FORGOTTEN = 4.0
cdef double ROUNDING = 1e-12  # share of a violation that rounding may leave after the flips of all columns
cdef double ROUNDED_UP = 1.0 + 1e-15  # factor that covers the rounding of one product
cdef double MOST_LOOKS = 60.0  # visits to each candidate before a ratio test ends at a breakpoint already passed


def dual_steps(Tableau tableau, double most_work):
    """Pivot until no bound is violated or the work reaches `most_work`; return an Outcome."""
    cdef int found
    with nogil:
        found = steps(tableau, most_work)
    if found < 0:
        raise MemoryError(f"the factors of a basis of {tableau.rows} rows")
    return found


cdef int steps(Tableau t, double most_work) noexcept nogil:
    cdef double end = t.factor.work + most_work, true_weight, side
    cdef int p, q, i, found, trouble = 0
    while True:  # ends: each pass adds work, up to most_work
        if t.stale:
            found = t.refactor()
            if found < 0:
                return STUCK if found == -2 else -1
            t.dual_values()
            t.settle_duals(True)
            t.primal_values()
        if t.factor.work > end:
            return PAUSED
        p = leaving_row(t)
        if p < 0:
            if t.fresh:
                return DONE
            t.stale = True
            continue
        t.price_row(p)
        true_weight, i = t.norm, t.head[p]
        if true_weight > FORGOTTEN * t.edge[p]:
            t.edge[p] = true_weight
            continue
        t.edge[p] = true_weight
        t.pivot_row()
        side = t.violation(i)
        q = entering_column(t, side)
        if q < 0:
            if t.fresh:
                return BLOCKED
            t.stale = True
            continue
        t.load(q)
        if fabs(t.alpha[p] - t.row[q]) > AGREEMENT * (1.0 + fabs(t.alpha[p])) or (
            fabs(t.alpha[p]) < LEAST_PIVOT and not t.fresh
        ):
            trouble += 1
            if trouble > MOST_TROUBLE:
                return STUCK
            if t.fresh:
                t.edge[p] *= 1e6  # other rows first
            t.stale = True
            continue
        trouble = 0
        if step(t, p, q, side, true_weight) < 0:
            return -1


cdef int leaving_row(Tableau t) noexcept nogil:
    """Return the row with the largest violation relative to its steepest edge norm; -1 if none is violated."""
    cdef int i, k = 0, best = -1
    cdef double largest = 0.0
    cdef double *squared = t.squared
    cdef double *edge = t.edge
    t.factor.work += 0.5 * t.violated_count
    while k < t.violated_count:  # ends: each pass goes on in the list, or shortens it
        i = t.violated[k]
        if squared[i] == 0.0:
            t.violated_count -= 1
            t.violated[k] = t.violated[t.violated_count]
            t.is_listed[i] = False
            continue
        k += 1
        if squared[i] > largest * edge[i]:
            largest = squared[i] / edge[i]
            best = i
    return best


cdef inline double room(Tableau t, int j, double sign) noexcept nogil:
    """Return how far a reduced cost may fall before it has the wrong sign; -1 if the variable sets no limit."""
    cdef double entry = sign * t.row[j]
    if t.lower[j] == t.upper[j] or fabs(entry) < LEAST_ENTRY:
        return -1.0
    if t.x[j] == t.lower[j]:
        return max(t.d[j], 0.0) if entry > 0.0 else -1.0
    if t.x[j] == t.upper[j]:
        return max(-t.d[j], 0.0) if entry < 0.0 else -1.0
    return 0.0


cdef inline void swap(Tableau t, int one, int other) noexcept nogil:
    """Exchange two candidates of the ratio test."""
    t.candidate[one], t.candidate[other] = t.candidate[other], t.candidate[one]
    t.gap[one], t.gap[other] = t.gap[other], t.gap[one]
    t.size[one], t.size[other] = t.size[other], t.size[one]


cdef int entering_column(Tableau t, double side) noexcept nogil:
    """The bound flipping ratio test: return the entering column, -1 if no column ends the dual step.

    Breakpoints within the tolerance of each other form a group. While the row's violation exceeds the flips of a group,
    the variables of the group go to their other bounds. The pivot is the largest entry of the last group, or of an
    earlier one if that entry is tiny. The flipped variables stand before `flips` in `candidate`. If breakpoints lie so
    far apart that each is a group of its own, the step ends early at a possible pivot: shorter, but as valid.
    """
    cdef double sign = -1.0 if side < 0.0 else 1.0, slope = fabs(side), largest = 0.0, theta, best, gap, end_work
    cdef double before, left = 0.0
    cdef int k, j, count = 0, begin, end = 0, last, chosen = -1, previous = -1, group_end = 0
    for k in range(t.touched_count):
        j = t.touched[k]
        gap = room(t, j, sign)
        if gap >= 0.0:
            t.candidate[count], t.gap[count], t.size[count] = j, gap, fabs(t.row[j])
            largest = max(largest, t.size[count])
            count += 1
    t.factor.work += 2.0 * t.touched_count
    last = within_reach(t, count, slope)
    if last < 0:
        return -1
    t.flips = 0
    end_work = t.factor.work + MOST_LOOKS * (count + 100.0)
    while end < last and slope >= 0.0:  # ends: each group takes candidates away
        theta, begin, before = INFINITY, end, slope
        for k in range(begin, last):
            theta = min(theta, (t.gap[k] + t.dual_tolerance) / t.size[k])
        theta *= ROUNDED_UP  # a gap that dwarfs the tolerance is within its own theta all the same
        best = 0.0
        for k in range(begin, last):
            if t.gap[k] <= theta * t.size[k]:
                swap(t, k, end)
                j = t.candidate[end]
                slope -= t.size[end] * (t.upper[j] - t.lower[j])
                if t.size[end] > best:
                    best, chosen = t.size[end], j
                end += 1
        t.factor.work += 2.0 * (last - begin)
        if end == begin:
            return previous  # gaps that are no numbers
        if previous < 0 or best >= min(0.1 * largest, 1.0):
            previous, left, group_end = chosen, before, end
            t.flips = begin
        if t.factor.work > end_work:
            break
    flip_ties(t, previous, group_end, left)
    return previous


cdef void flip_ties(Tableau t, int entering, int end, double slope) noexcept nogil:
    """Let variables that tie with the entering one go to their other bounds, until its own range makes up for the rest.

    Their reduced costs are zero after the step. Without this each of them would take a pivot of its own.

    Parameters
    ----------
    entering : int
    end : int
        Number of candidates up to the end of the entering variable's group; before `flips` are those that flip.
    slope : float
        The row's violation less the flips so far.
    """
    cdef int k, j
    cdef double theta = 0.0, change, enough = INFINITY
    for k in range(t.flips, end):
        if t.candidate[k] == entering:
            theta = t.gap[k] / t.size[k]
            enough = t.size[k] * (t.upper[entering] - t.lower[entering])
    for k in range(t.flips, end):
        if slope <= enough:
            return
        j = t.candidate[k]
        change = t.size[k] * (t.upper[j] - t.lower[j])
        if j != entering and change < slope and fabs(t.gap[k] - theta * t.size[k]) <= t.dual_tolerance:
            slope -= change
            swap(t, k, t.flips)
            t.flips += 1


cdef int within_reach(Tableau t, int count, double slope) noexcept nogil:
    """Move the candidates whose breakpoints come before the slope is used up to the front; return their number.

    Returns -1 if the flips of all candidates together do not use up the slope.
    """
    cdef double change = 0.0, theta = 0.0, least
    cdef int k, j, begin, last = 0
    while last < count and change < slope:  # ends: each pass takes candidates, or multiplies theta by ten
        least = INFINITY
        begin = last
        for k in range(begin, count):
            if t.gap[k] <= theta * t.size[k]:
                swap(t, k, last)
                j = t.candidate[last]
                change += t.size[last] * (t.upper[j] - t.lower[j])
                last += 1
            else:
                least = min(least, (t.gap[k] + t.dual_tolerance) / t.size[k])
        t.factor.work += count - begin
        if last == begin and least == INFINITY:
            return -1  # gaps that are no numbers
        theta = max(10.0 * theta, least * ROUNDED_UP)
    if change < slope - t.primal_tolerance - ROUNDING * slope:
        return -1
    return last


cdef int step(Tableau t, int p, int q, double side, double weight) noexcept nogil:
    """Flip, update reduced costs and values, and let q replace p's variable in the basis."""
    cdef int out = t.head[p], k, i, j
    cdef double theta, length, ratio, entry = t.alpha[p], bound = t.lower[out] if side < 0.0 else t.upper[out]
    theta = t.d[q] / entry
    if theta * side < 0.0:  # within tolerance on the wrong side
        t.cost[q] -= t.d[q]
        t.d[q] = theta = 0.0
    if fabs(theta) <= NO_STEP:
        t.idle += 1
    if theta != 0.0:
        for k in range(t.touched_count):
            j = t.touched[k]
            t.d[j] -= theta * t.row[j]
    flip(t)
    length = (t.x[out] - bound) / entry
    memcpy(t.tau, t.rho, t.rows * sizeof(double))
    t.factor.ftran(t.tau)
    for k in range(t.spot_count):
        i = t.spots[k]
        j = t.head[i]
        t.x[j] -= length * t.alpha[i]
        if i != p:
            ratio = t.alpha[i] / entry
            t.edge[i] = max(t.edge[i] - ratio * (2.0 * t.tau[i] - ratio * weight), LEAST_WEIGHT)
            t.measure(i)
    t.x[q] += length
    t.x[out] = bound
    t.d[out] = -theta
    t.edge[p] = max(weight / (entry * entry), LEAST_WEIGHT)
    t.factor.work += 2.0 * t.rows + t.touched_count
    i = t.exchange(p, q)
    t.measure(p)
    return i


cdef void flip(Tableau t) noexcept nogil:
    """Move the variables that the ratio test has passed to their other bounds."""
    cdef int k, i, j
    cdef double other
    if t.flips == 0:
        return
    memset(t.moved, 0, t.rows * sizeof(double))
    for k in range(t.flips):
        j = t.candidate[k]
        other = t.lower[j] if t.x[j] == t.upper[j] else t.upper[j]
        t.add(j, other - t.x[j], t.moved)
        t.x[j] = other
    t.factor.ftran(t.moved)
    for i in range(t.rows):
        if t.moved[i] != 0.0:
            t.x[t.head[i]] -= t.moved[i]
            t.measure(i)
