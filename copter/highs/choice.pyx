"""One configuration of each request: single changes under penalties that rise and fall (method/plans.md, M19)."""

import numpy as np

from posix.time cimport CLOCK_MONOTONIC, clock_gettime, timespec

cdef double SMALLEST = 1e-6, LARGEST = 1e12  # bounds of the weights, as multiples of those at first


cdef unsigned long long drawn(unsigned long long *state) noexcept nogil:
    """Return the next of a row of pseudo-random numbers (xorshift)."""
    state[0] ^= state[0] << 13
    state[0] ^= state[0] >> 7
    state[0] ^= state[0] << 17
    return state[0]


cdef double penalty(double value, double low, double high, double weight) noexcept nogil:
    """Return what a row's sum costs beyond its sides."""
    if value > high:
        return weight * (value - high)
    if value < low:
        return weight * (low - value)
    return 0.0


cdef bint is_past(double until) noexcept nogil:
    """Whether it is later than a time of ``time.perf_counter()``."""
    cdef timespec moment
    clock_gettime(CLOCK_MONOTONIC, &moment)
    return moment.tv_sec + 1e-9 * moment.tv_nsec >= until


def oscillate(
    const double[:, ::1] usage, const double[::1] cost, const long long[::1] order, const long long[::1] first,
    const double[::1] low, const double[::1] high, const double[::1] tolerance, double[::1] weight, long long[::1] now,
    double raised, double lowered, double enough, long long patience, double until
):
    """Change one request's configuration at a time to the cheapest under penalties on broken rows, until none changes;
    then make broken rows dearer and the others cheaper, and go on.

    Parameters
    ----------
    usage : ndarray (configurations, rows)
    cost : ndarray (configurations,)
    order : ndarray (configurations,) int64
        Configurations by request.
    first : ndarray (requests + 1,) int64
        Those of request g are order[first[g]] to order[first[g + 1]].
    low, high : ndarray (rows,)
    tolerance : ndarray (rows,)
        By how much a row may be beyond a side and still counts as held.
    weight : ndarray (rows,)
        Cost of a unit that a row has too much or too little; changed.
    now : ndarray (requests,) int64
        Each request's configuration; the best choice that holds on return, or the last one if there is none.
    raised, lowered : float
        Factors on the weights of broken rows, and of the others.
    enough : float
        The search ends with a choice that costs at most this.
    patience : int
        It ends after so many changes of the weights without a gain.
    until : float
        Time of ``time.perf_counter()`` at which to end.

    Returns
    -------
    bool
        Whether the choice holds.
    """
    cdef Py_ssize_t requests = first.shape[0] - 1, m = low.shape[0], g, h, k, i, p, old, pick
    cdef double total, least, value = np.inf
    cdef double[::1] used = np.zeros(m), without = np.zeros(m)
    cdef const double[::1] least_weight = SMALLEST * np.asarray(weight), most_weight = LARGEST * np.asarray(weight)
    cdef long long[::1] best = np.array(now), turn = np.arange(requests, dtype=np.int64)
    cdef bint moved, holds, late = False
    cdef unsigned long long state = 88172645463325252
    cdef long long idle = 0
    with nogil:
        for g in range(requests):
            for i in range(m):
                used[i] += usage[now[g], i]
        while idle < patience and not late and value > enough:  # ends: idle grows, and falls only as value does
            idle += 1
            moved = True
            while moved and not late:  # ends: each move lowers the total; the clock is asked
                moved = False
                for h in range(requests - 1, 0, -1):
                    k = <Py_ssize_t>(drawn(&state) % <unsigned long long>(h + 1))
                    p = turn[h]
                    turn[h] = turn[k]
                    turn[k] = p
                for h in range(requests):
                    late = late or is_past(until)
                    if late:
                        break
                    g = turn[h]
                    old = now[g]
                    least, pick = cost[old], old
                    for i in range(m):
                        without[i] = used[i] - usage[old, i]
                        least += penalty(used[i], low[i], high[i], weight[i])
                    least -= 1e-9 * (1.0 + abs(least))
                    for k in range(first[g], first[g + 1]):
                        p = order[k]
                        total = cost[p]
                        for i in range(m):
                            if total >= least:
                                break
                            total += penalty(without[i] + usage[p, i], low[i], high[i], weight[i])
                        if total < least and p != old:
                            least, pick = total, p
                    if pick != old:
                        now[g], moved = pick, True
                        for i in range(m):
                            used[i] = without[i] + usage[pick, i]
            holds = True
            for i in range(m):
                if used[i] > high[i] + tolerance[i] or used[i] < low[i] - tolerance[i]:
                    holds = False
                    weight[i] = min(raised * weight[i], most_weight[i])
                else:
                    weight[i] = max(lowered * weight[i], least_weight[i])
            if holds:
                total = 0.0
                for g in range(requests):
                    total += cost[now[g]]
                if total < value:
                    value, idle = total, 0
                    best[:] = now
    if value == np.inf:
        return False
    now[:] = best
    return True
