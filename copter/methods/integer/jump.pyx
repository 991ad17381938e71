"""Weighted local search for a point that satisfies every row (docs/method/integer.md, M6)."""

from libc.math cimport ceil, floor

cdef int CANDIDATES = 40  # most columns of a violated row that one step examines
cdef int TENURE = 10  # a column that has moved stays for this many steps, plus up to as many random ones


cdef inline unsigned long long random(unsigned long long* state) noexcept nogil:
    """Return the next number of a xorshift generator."""
    state[0] ^= state[0] << 13
    state[0] ^= state[0] >> 7
    state[0] ^= state[0] << 17
    return state[0]


cdef inline double violation(double activity, double lower, double upper) noexcept nogil:
    if activity > upper:
        return activity - upper
    return lower - activity if activity < lower else 0.0


def jump(
    const int[::1] row_start, const int[::1] row_column, const double[::1] row_value,
    const double[::1] row_lower, const double[::1] row_upper, const double[::1] tolerance,
    const int[::1] column_start, const int[::1] column_row, const double[::1] column_value,
    const double[::1] lower, const double[::1] upper, const unsigned char[::1] integer,
    double[::1] x, double[::1] activity, double[::1] weight, long long[::1] held_until,
    int[::1] violated, int[::1] place, unsigned long long seed, long long first, long long steps,
):
    """Local search: move columns of violated rows, one by one, to where the weighted violation falls most.

    If no move lowers the weighted violation, the weights of violated rows rise. All arrays from `x` on are changed
    in place; `violated` begins with the violated rows, and place[i] is row i's position in it or -1. Returns (number of
    violated rows, steps made); ends early when no row is violated.
    """
    cdef int m = row_lower.shape[0], n_violated = 0, i, j, k, q, p, length, _tried, best_column, at, last
    cdef long long step = first
    cdef unsigned long long state = seed | 1
    cdef double excess, a, target, delta, score, best_score, best_target, before, after
    with nogil:
        for i in range(m):
            place[i] = -1
            if violation(activity[i], row_lower[i], row_upper[i]) > tolerance[i]:
                place[i] = n_violated
                violated[n_violated] = i
                n_violated += 1
        while n_violated > 0 and step < first + steps:  # ends: step grows to first + steps
            step += 1
            i = violated[random(&state) % n_violated]
            length = row_start[i + 1] - row_start[i]
            if length == 0:
                continue
            excess = activity[i] - row_upper[i] if activity[i] > row_upper[i] else activity[i] - row_lower[i]
            best_column, best_score, best_target = -1, 1e300, 0.0
            p = random(&state) % length
            for _tried in range(length if length < CANDIDATES else CANDIDATES):
                p = p + 1 if p + 1 < length else 0
                a, j = row_value[row_start[i] + p], row_column[row_start[i] + p]
                if lower[j] == upper[j] or held_until[j] > step:
                    continue
                target = x[j] - excess / a
                if integer[j]:  # far enough for the row to hold
                    target = floor(target + 1e-9) if target < x[j] else ceil(target - 1e-9)
                if target < lower[j]:
                    target = lower[j]
                elif target > upper[j]:
                    target = upper[j]
                delta = target - x[j]
                if delta == 0.0:
                    continue
                score = 0.0
                for q in range(column_start[j], column_start[j + 1]):
                    k = column_row[q]
                    before = violation(activity[k], row_lower[k], row_upper[k])
                    after = violation(activity[k] + column_value[q] * delta, row_lower[k], row_upper[k])
                    score += weight[k] * (after - before)
                    # A row that becomes satisfied or violated counts beyond the change of its violation.
                    score += weight[k] * ((after > tolerance[k]) - <int>(before > tolerance[k]))
                if score < best_score:
                    best_column, best_score, best_target = j, score, target
            if best_column < 0:
                continue
            if best_score >= 0.0:
                for q in range(n_violated):
                    weight[violated[q]] += 1.0
            j, delta = best_column, best_target - x[best_column]
            x[j] = best_target
            held_until[j] = step + TENURE // 2 + <long long>(random(&state) % TENURE)
            for q in range(column_start[j], column_start[j + 1]):
                k = column_row[q]
                activity[k] += column_value[q] * delta
                if violation(activity[k], row_lower[k], row_upper[k]) > tolerance[k]:
                    if place[k] < 0:
                        place[k] = n_violated
                        violated[n_violated] = k
                        n_violated += 1
                elif place[k] >= 0:
                    at, last = place[k], violated[n_violated - 1]
                    violated[at] = last
                    place[last] = at
                    place[k] = -1
                    n_violated -= 1
    return n_violated, step - first
