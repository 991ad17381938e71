"""Domain propagation: what the rows of a program say about the bounds of its columns (docs/integer.md, M2 and M3)."""

from libc.math cimport ceil, fabs, floor, isinf

cdef double FEASIBLE = 1e-6  # of 1 + |side|: how far a row's least activity may be beyond its side
cdef double INTEGRAL = 1e-6  # a bound of an integer column this close to a whole number is that number
cdef double WORTHWHILE = 1e-3  # of a continuous column's range: smaller cuts are left out
cdef double LARGEST = 1e8  # a continuous column's first finite bound must be below this


def propagate(
    const int[::1] row_start, const int[::1] row_column, const double[::1] row_value,
    const double[::1] row_lower, const double[::1] row_upper,
    const int[::1] column_start, const int[::1] column_row, const unsigned char[::1] integer,
    double[::1] lower, double[::1] upper, int[::1] queue, unsigned char[::1] queued, int waiting, long long budget,
):
    """Tighten bounds in place, row by row, until nothing changes or the budget of entries is used up.

    The first `waiting` places of `queue` hold the rows to begin with, each marked in `queued`, which is all zeros again
    at the end. Returns whether no row contradicts the bounds.
    """
    cdef int m = queue.shape[0], head = 0, i, j, k, p, q, sign
    cdef int no_least, no_most
    cdef double least, most, a, side, rest, bound, low, high, room
    cdef bint holds = True, changed
    with nogil:
        while waiting > 0 and holds and budget > 0:
            i = queue[head]
            head = head + 1 if head + 1 < m else 0
            waiting -= 1
            queued[i] = 0
            least = most = 0.0
            no_least = no_most = 0
            budget -= row_start[i + 1] - row_start[i]
            for p in range(row_start[i], row_start[i + 1]):
                a, j = row_value[p], row_column[p]
                low = lower[j] if a > 0 else upper[j]
                high = upper[j] if a > 0 else lower[j]
                if isinf(low):
                    no_least += 1
                else:
                    least += a * low
                if isinf(high):
                    no_most += 1
                else:
                    most += a * high
            if no_least == 0 and least > row_upper[i] + FEASIBLE * (1.0 + fabs(row_upper[i])):
                holds = False
            if no_most == 0 and most < row_lower[i] - FEASIBLE * (1.0 + fabs(row_lower[i])):
                holds = False
            if not holds or (no_least > 1 and no_most > 1):
                continue
            for p in range(row_start[i], row_start[i + 1]):
                a, j = row_value[p], row_column[p]
                if lower[j] == upper[j]:
                    continue
                changed = False
                for sign in range(2):
                    # sign 0: the row's upper side bounds a x_j above; sign 1: its lower side bounds it below.
                    side = row_upper[i] if sign == 0 else row_lower[i]
                    if isinf(side):
                        continue
                    # The row's activity without the column, as it was when the row was begun: bounds that this very
                    # loop tightens make it an underestimate of what is known, never wrong.
                    low = lower[j] if (a > 0) == (sign == 0) else upper[j]
                    if isinf(low):
                        if (no_least if sign == 0 else no_most) > 1:
                            continue
                        rest = least if sign == 0 else most
                    else:
                        if (no_least if sign == 0 else no_most) > 0:
                            continue
                        rest = (least if sign == 0 else most) - a * low
                    bound = (side - rest) / a
                    if (a > 0) == (sign == 0):
                        if integer[j]:
                            bound = floor(bound + INTEGRAL)
                            if bound >= upper[j] - 0.5:
                                continue
                        else:
                            room = upper[j] - lower[j]
                            if isinf(upper[j]):
                                if fabs(bound) > LARGEST:
                                    continue
                            elif upper[j] - bound <= WORTHWHILE * (room if not isinf(room) else 1.0 + fabs(upper[j])):
                                if bound >= lower[j]:
                                    continue
                        upper[j] = bound
                    else:
                        if integer[j]:
                            bound = ceil(bound - INTEGRAL)
                            if bound <= lower[j] + 0.5:
                                continue
                        else:
                            room = upper[j] - lower[j]
                            if isinf(lower[j]):
                                if fabs(bound) > LARGEST:
                                    continue
                            elif bound - lower[j] <= WORTHWHILE * (room if not isinf(room) else 1.0 + fabs(lower[j])):
                                if bound <= upper[j]:
                                    continue
                        lower[j] = bound
                    changed = True
                    if lower[j] > upper[j]:
                        if lower[j] - upper[j] > FEASIBLE * (1.0 + fabs(upper[j])):
                            holds = False
                        else:
                            lower[j] = upper[j]
                    # A tightened column would falsify the other side's `rest`: that side is looked at in the next visit.
                    break
                if not holds:
                    break
                if changed:
                    for q in range(column_start[j], column_start[j + 1]):
                        k = column_row[q]
                        if not queued[k]:
                            queued[k] = 1
                            queue[head + waiting if head + waiting < m else head + waiting - m] = k
                            waiting += 1
        while waiting > 0:
            queued[queue[head]] = 0
            head = head + 1 if head + 1 < m else 0
            waiting -= 1
    return holds
