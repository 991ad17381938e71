"""One configuration of each request: changes of single ones while cost and broken rows fall (method/plans.md, M19)."""

from posix.time cimport CLOCK_MONOTONIC, clock_gettime, timespec


def exchange(
    const double[:, ::1] usage, const double[::1] cost, const long long[::1] order, const long long[::1] first,
    const double[::1] low, const double[::1] high, const double[::1] weight, long long[::1] now, double[::1] used,
    int passes, double until
):
    """Change one request's configuration at a time to the cheapest, until none changes.

    Parameters
    ----------
    usage : ndarray (configurations, rows)
    cost : ndarray (configurations,)
    order : ndarray (configurations,) int64
        Configurations by request.
    first : ndarray (requests + 1,) int64
        Those of request g are order[first[g]] to order[first[g + 1]].
    low, high : ndarray (rows,)
    weight : ndarray (rows,)
        Cost of a unit that a row has too much or too little.
    now : ndarray (requests,) int64
        Each request's configuration; changed.
    used : ndarray (rows,)
        Sums of the rows; changed.
    passes : int
        Most passes over all requests.
    until : float
        Time of ``time.perf_counter()`` at which to end.

    Returns
    -------
    bool
        Whether it ended before that time.
    """
    cdef Py_ssize_t requests = first.shape[0] - 1, m = low.shape[0], g, k, i, p, old, best
    cdef double value, total, least, current
    cdef timespec moment
    cdef bint moved
    cdef int _turn
    with nogil:
        for _turn in range(passes):
            moved = False
            for g in range(requests):
                clock_gettime(CLOCK_MONOTONIC, &moment)
                if moment.tv_sec + 1e-9 * moment.tv_nsec >= until:
                    with gil:
                        return False
                old = now[g]
                best, least, current = old, 0.0, 0.0
                for k in range(first[g] - 1, first[g + 1]):
                    p = old if k < first[g] else order[k]  # the present one is the first, and gives the least
                    if k >= first[g] and p == old:
                        continue
                    total = cost[p]
                    for i in range(m):
                        value = used[i] - usage[old, i] + usage[p, i]
                        if value > high[i]:
                            total += weight[i] * (value - high[i])
                        elif value < low[i]:
                            total += weight[i] * (low[i] - value)
                    if k < first[g]:
                        least = current = total
                    elif total < least:
                        best, least = p, total
                if best != old and least < current - 1e-9 * (1.0 + abs(current)):
                    for i in range(m):
                        used[i] += usage[best, i] - usage[old, i]
                    now[g], moved = best, True
            if not moved:
                break
    return True
