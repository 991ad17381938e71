"""Coordinate descent on the augmented Lagrangian over the working columns, within each block's limit."""

from libc.math cimport INFINITY


cdef inline double row_price(double activity, double lower, double upper, double y, double penalty) noexcept nogil:
    """Return a row's multiplier at an activity (equation A10): y - penalty * (activity - slack)."""
    cdef double shifted = activity - y / penalty
    if shifted < lower:
        return penalty * (lower - shifted)
    if shifted > upper:
        return penalty * (upper - shifted)
    return 0.0


cdef inline double gradient_of(Py_ssize_t j, double cost, double proximal, const int[::1] entry_start,
                               const int[::1] row, const double[::1] coefficient,
                               const double[::1] price) noexcept nogil:
    cdef double gradient = cost + proximal
    cdef Py_ssize_t k
    for k in range(entry_start[j], entry_start[j + 1]):
        gradient -= coefficient[k] * price[row[k]]
    return gradient


cdef inline void move(Py_ssize_t j, double step, const int[::1] entry_start, const int[::1] row,
                      const double[::1] coefficient, const double[::1] row_lower, const double[::1] row_upper,
                      const double[::1] y, const double[::1] penalty, double[::1] x, double[::1] activity,
                      double[::1] price) noexcept nogil:
    """Move one column, and update the activities and prices of its rows."""
    cdef Py_ssize_t k
    cdef int r
    x[j] += step
    for k in range(entry_start[j], entry_start[j + 1]):
        r = row[k]
        activity[r] += coefficient[k] * step
        price[r] = row_price(activity[r], row_lower[r], row_upper[r], y[r], penalty[r])


def refresh_prices(const double[::1] row_lower, const double[::1] row_upper, const double[::1] y,
                   const double[::1] penalty, const double[::1] activity, double[::1] price):
    """Write each row's multiplier at these activities (equation A10)."""
    cdef Py_ssize_t r
    with nogil:
        for r in range(activity.shape[0]):
            price[r] = row_price(activity[r], row_lower[r], row_upper[r], y[r], penalty[r])


cdef inline double curvature_of(Py_ssize_t j, double sigma, const int[::1] entry_start, const int[::1] row,
                                const double[::1] coefficient, const double[::1] penalty) noexcept nogil:
    """Return an upper bound of the second derivative along one column."""
    cdef double curvature = 1.0 / sigma
    cdef Py_ssize_t k
    for k in range(entry_start[j], entry_start[j + 1]):
        curvature += penalty[row[k]] * coefficient[k] * coefficient[k]
    return curvature


def sweep(const int[::1] start, const double[::1] limit, const double[::1] cost, const double[::1] lower,
          const double[::1] upper, const int[::1] entry_start, const int[::1] row, const double[::1] coefficient,
          const double[::1] row_lower, const double[::1] row_upper, const double[::1] y, const double[::1] penalty,
          const double[::1] center, double sigma, double[::1] x, double[::1] activity, double[::1] price):
    """Make one pass of exact coordinate steps over the groups, in place; return the largest step.

    First each column of a group that gains by shrinking shrinks. Then, in a group with a limit, the cheapest column
    takes the room that is left, and weight of the dearest column beyond it (a pair step, which keeps the sum).
    """
    cdef Py_ssize_t g, j, best, worst
    cdef bint limited
    cdef double gradient, low, high, room, first, second, step, wanted, largest = 0.0
    with nogil:
        for g in range(start.shape[0] - 1):
            limited = limit[g] < INFINITY
            room = limit[g]
            best = worst = -1
            low, high = INFINITY, -INFINITY
            for j in range(start[g], start[g + 1]):
                gradient = gradient_of(j, cost[j], (x[j] - center[j]) / sigma, entry_start, row, coefficient, price)
                if gradient > 0.0 or not limited:
                    first = curvature_of(j, sigma, entry_start, row, coefficient, penalty)
                    step = min(max(-gradient / first, lower[j] - x[j]), upper[j] - x[j])
                    if step != 0.0:
                        move(j, step, entry_start, row, coefficient, row_lower, row_upper, y, penalty, x, activity,
                             price)
                        largest = max(largest, abs(step))
                        gradient += first * step
                room -= x[j]
                if gradient < low and x[j] < upper[j]:
                    low, best = gradient, j
                if gradient > high and x[j] > lower[j]:
                    high, worst = gradient, j
            if limited and best >= 0:
                low = gradient_of(best, cost[best], (x[best] - center[best]) / sigma, entry_start, row, coefficient,
                                  price)
                first = curvature_of(best, sigma, entry_start, row, coefficient, penalty)
                wanted = min(-low / first, upper[best] - x[best])
                step = max(0.0, min(wanted, room))
                if step > 0.0:
                    move(best, step, entry_start, row, coefficient, row_lower, row_upper, y, penalty, x, activity,
                         price)
                    largest = max(largest, step)
                if step < wanted and worst >= 0 and worst != best:
                    low += first * step
                    high = gradient_of(worst, cost[worst], (x[worst] - center[worst]) / sigma, entry_start, row,
                                       coefficient, price)
                    second = curvature_of(worst, sigma, entry_start, row, coefficient, penalty)
                    step = min((high - low) / (2.0 * (first + second)), upper[best] - x[best], x[worst] - lower[worst])
                    if step > 0.0:
                        move(best, step, entry_start, row, coefficient, row_lower, row_upper, y, penalty, x, activity,
                             price)
                        move(worst, -step, entry_start, row, coefficient, row_lower, row_upper, y, penalty, x, activity,
                             price)
                        largest = max(largest, step)
    return largest
