"""Coordinate descent on the augmented Lagrangian of the working columns, aware of each block's limit."""

from libc.math cimport INFINITY


cdef inline double row_price(double activity, double lower, double upper, double y, double penalty) noexcept nogil:
    """Multiplier that a row would take at this activity (equation A8): y - penalty * (activity - slack)."""
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
    """Move one column and keep the activities and row prices it touches in step."""
    cdef Py_ssize_t k
    cdef int r
    x[j] += step
    for k in range(entry_start[j], entry_start[j + 1]):
        r = row[k]
        activity[r] += coefficient[k] * step
        price[r] = row_price(activity[r], row_lower[r], row_upper[r], y[r], penalty[r])


def refresh_prices(const double[::1] row_lower, const double[::1] row_upper, const double[::1] y,
                   const double[::1] penalty, const double[::1] activity, double[::1] price):
    """Write the multiplier of every row at these activities (equation A8)."""
    cdef Py_ssize_t r
    with nogil:
        for r in range(activity.shape[0]):
            price[r] = row_price(activity[r], row_lower[r], row_upper[r], y[r], penalty[r])


def sweep(const int[::1] start, const double[::1] limit, const double[::1] cost, const double[::1] lower,
          const double[::1] upper, const int[::1] entry_start, const int[::1] row, const double[::1] coefficient,
          const double[::1] row_lower, const double[::1] row_upper, const double[::1] y, const double[::1] penalty,
          const double[::1] center, double sigma, double[::1] x, double[::1] activity, double[::1] price):
    """One pass of exact coordinate steps over all groups, in place; returns the largest step taken.

    In a group whose limit has room, its cheapest column moves alone; in a tight one, weight moves from the dearest
    column to the cheapest (a pair step keeps the sum); then every column that would rather shrink does.
    """
    cdef Py_ssize_t g, j, k, best, worst
    cdef double gradient, low, high, room, curvature, step, largest = 0.0
    with nogil:
        for g in range(start.shape[0] - 1):
            room = limit[g]
            best = worst = -1
            low, high = INFINITY, -INFINITY
            for j in range(start[g], start[g + 1]):
                gradient = gradient_of(j, cost[j], (x[j] - center[j]) / sigma, entry_start, row, coefficient, price)
                curvature = 1.0 / sigma
                for k in range(entry_start[j], entry_start[j + 1]):
                    curvature += penalty[row[k]] * coefficient[k] * coefficient[k]
                if gradient > 0.0 or limit[g] == INFINITY:
                    step = -gradient / curvature
                    if x[j] + step < lower[j]:
                        step = lower[j] - x[j]
                    if x[j] + step > upper[j]:
                        step = upper[j] - x[j]
                    if step != 0.0:
                        move(j, step, entry_start, row, coefficient, row_lower, row_upper, y, penalty, x, activity,
                             price)
                        largest = step if step > largest else (-step if -step > largest else largest)
                        gradient += curvature * step
                room -= x[j]
                if gradient < low and x[j] < upper[j]:
                    low, best = gradient, j
                if gradient > high and x[j] > lower[j]:
                    high, worst = gradient, j
            if limit[g] == INFINITY or best < 0:
                continue
            curvature = 1.0 / sigma
            for k in range(entry_start[best], entry_start[best + 1]):
                curvature += penalty[row[k]] * coefficient[k] * coefficient[k]
            if low < 0.0 and room > 0.0:
                step = -low / curvature
                step = min(step, room, upper[best] - x[best])
                move(best, step, entry_start, row, coefficient, row_lower, row_upper, y, penalty, x, activity, price)
                largest = step if step > largest else largest
            elif worst >= 0 and worst != best and high > low:
                for k in range(entry_start[worst], entry_start[worst + 1]):
                    curvature += penalty[row[k]] * coefficient[k] * coefficient[k]
                curvature += 1.0 / sigma
                step = min((high - low) / (2.0 * curvature), upper[best] - x[best], x[worst] - lower[worst])
                move(best, step, entry_start, row, coefficient, row_lower, row_upper, y, penalty, x, activity, price)
                move(worst, -step, entry_start, row, coefficient, row_lower, row_upper, y, penalty, x, activity, price)
                largest = step if step > largest else largest
    return largest
