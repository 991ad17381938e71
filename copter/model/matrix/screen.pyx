"""Screening: blocks whose best column is found among a few near ones, without a pass over all their costs.

Prices of rows that only have upper bounds are at most zero (as minimised), so that a column's reduced cost is its cost
plus a usage that grows with every price. At *low prices*, a share of those of an earlier pass, all columns are cheaper
than at any higher prices: the columns that are not near at low prices have a least reduced cost there, `rest`, and no
smaller one later (equation A17 of docs/method/algorithm.md). Only the near columns are priced again.
"""

from libc.math cimport INFINITY, fabs
from libc.stdlib cimport free, realloc

from copter.model.matrix.layout cimport Block, Near, base_cost, cost_of

cdef extern from "reduce.h" nogil:
    double copter_smallest(const double* cost, const double* priced_usage, double scale, double offset,
                           double most, int begin, int end)
    double copter_smallest_single(const float* cost, const double* priced_usage, double scale, double offset,
                                  double most, int begin, int end)
    double copter_smallest_listed(const double* cost, const int* column, const double* priced_usage, double scale,
                                  double offset, double most, int single, int count)

cdef enum:
    RUN = 64  # columns of a run, whose smallest reduced cost is found at once
    MOST_RUNS = 256  # runs are longer where there would be more
    ROOM = 8  # records have room for a multiple of so many near columns
    MOST_NEAR = 48  # a block with more near columns is not screened

cdef double LOW = 0.6  # low prices, as a share of those of the pass
cdef double RISE = 0.3  # a column is near if it may be the best one after prices have risen by this share
cdef double HIGH = 0.75  # the least share of prices at which a bound on all columns but the best is noted
cdef double HIGHEST = 0.98  # the largest one
cdef double SLACK = 64.0 * 2.0 ** -53  # bound on the relative rounding errors of a comparison


cdef double ratio_of(const double* y, const double* earlier, int rows) noexcept nogil:
    """Return the largest number such that all prices y are at least that number times the low ones of an earlier pass.

    -1 if a price of either is positive.
    """
    cdef int k
    cdef double ratio = INFINITY
    for k in range(rows):
        if not (y[k] <= 0.0 and earlier[k] <= 0.0):
            return -1.0
        if earlier[k] < 0.0:
            ratio = min(ratio, y[k] / (LOW * earlier[k]))
    return ratio * (1.0 - SLACK)


cdef inline double* bases(const Near* near) noexcept nogil:
    """Return the stored costs of the near columns, which follow their record."""
    return <double*>(near + 1)


cdef inline int* columns(const Near* near) noexcept nogil:
    """Return the near columns, ascending."""
    return <int*>(bases(near) + near.count)


cdef inline double least_later(const Block* block, const Near* near) noexcept nogil:
    """Return a lower bound on the reduced costs of all columns that are neither near nor exceptions.

    A change of scale by a factor s is covered if all prices are at least s times the low ones.
    """
    cdef double factor = block.scale / near.scale, shift = block.offset - factor * near.offset
    cdef double rest = factor * near.rest + shift
    if near.rest == INFINITY:
        return INFINITY
    rest -= SLACK * (factor * (fabs(near.rest) + near.size + fabs(near.offset)) + fabs(block.offset) + fabs(shift))
    return rest if rest < block.most else block.most


cdef bint is_settled(const Block* block, double ratio, double least, int column) noexcept nogil:
    """Return whether `column`, whose reduced cost is `least`, is surely a block's best: the others are not read.

    ratio: as for :func:`is_screened`, of the prices of the block's bound.
    """
    cdef double level
    if (column != block.best or block.fixed >= 0 or block.resident or block.usage != block.pattern.stamp
            or not block.factor > 0.0):
        return False
    level = ratio * LOW / block.factor * (1.0 - SLACK)  # of the prices, over the change of scale
    return level >= block.share and block.rest + block.slope * (min(level, 1.0) - block.share) >= least


cdef void rescaled(Block* block, double scale, double offset, int exception) noexcept nogil:
    """Let a block's bound follow a change of scale and offset; `exception` is the only single column's, -1 for none."""
    cdef double factor = scale / block.scale if block.scale != 0.0 else 0.0, shift = offset - factor * block.offset
    if not 0.0 < factor < INFINITY or (exception >= 0 and exception != block.best):
        block.prices = 0
        return
    block.factor *= factor
    block.slope *= factor
    if block.rest < INFINITY:
        block.rest = factor * block.rest + shift - SLACK * (
            factor * (fabs(block.rest) + block.pattern.priced_size + fabs(block.offset)) + fabs(offset) + fabs(shift))


cdef void hold_rest(Block* block, const Near* near, double ratio, int prices) noexcept nogil:
    """Note the least reduced cost of all columns but the best for later passes, if that is possible.

    ratio: as for :func:`is_screened`. prices: number of the running pass.
    """
    cdef const double* usage = block.pattern.priced_usage
    cdef int single = block.single_column if block.n_exceptions else -1, best = single, e, j
    cdef double least = block.single_cost - usage[single] if single >= 0 else INFINITY, value, rest, most
    cdef double share = max(block.scale / near.scale / ratio * (1.0 + SLACK), HIGH)
    block.prices = 0
    if block.most < INFINITY or block.n_exceptions > 1 or not share <= HIGHEST:
        return
    for e in range(near.count):
        j = columns(near)[e]
        value = block.scale * bases(near)[e] + block.offset - usage[j]
        if j != single and value < least:
            least, best = value, j
    if best < 0 or (single >= 0 and best != single):
        return
    rest = most = least_later(block, near)
    for e in range(near.count):
        j = columns(near)[e]
        if j != best:
            value = block.scale * bases(near)[e] + block.offset
            rest, most = min(rest, value - share * usage[j]), min(most, value - usage[j])
    block.slope = 0.0
    if rest < INFINITY:
        block.slope = (most - rest) / (1.0 - share)
        rest -= SLACK * (fabs(rest) + block.slope + block.pattern.priced_size + fabs(block.offset))
    block.best, block.prices, block.share, block.rest, block.factor = best, prices, share, rest, 1.0
    block.usage = block.pattern.stamp


cdef bint is_screened(const Block* block, const Near* near, double ratio, double threshold, double* smallest,
                      int* column, double* reduced_cost, int* found) noexcept nogil:
    """Price a block by its near columns, with the results of :func:`.price_block`; False if they do not suffice.

    ratio: largest number such that all prices are at least that number times the low prices. `smallest` is a lower
    bound only where it is not negative.
    """
    cdef const double* usage = block.pattern.priced_usage
    cdef int single = block.single_column if block.n_exceptions else -1
    cdef double least, rest, alone = INFINITY
    if block.n_exceptions > 1 or near.scale == 0.0 or not 0.0 < block.scale / near.scale <= ratio:
        return False
    rest = least_later(block, near)
    if not rest >= threshold:  # a column that is not near may enter
        return False
    least = copter_smallest_listed(bases(near), columns(near), usage, block.scale, block.offset, block.most, single,
                                   near.count)
    if single >= 0:
        alone = block.single_cost - usage[single]
        least = min(least, alone)
    if not rest >= least:  # the best column may be one that is not near
        if not rest >= 0.0:
            return False
        least = rest
    smallest[0] = least
    if least < threshold:
        found[0] = best_of_segments(block, near, alone, threshold, column, reduced_cost)
    return True


cdef int best_of_segments(const Block* block, const Near* near, double alone, double threshold, int* column,
                          double* reduced_cost) noexcept nogil:
    """Write the best near column of each segment that has one below the threshold; returns how many there are.

    alone: the reduced cost of the exception, if there is one.
    """
    cdef const double* usage = block.pattern.priced_usage
    cdef const int* place = columns(near)
    cdef int single = block.single_column if block.n_exceptions else -1
    cdef int e = 0, j, s, where, end, n = 0
    cdef double value, best
    for s in range(block.pattern.n_segments):
        best, where, end = INFINITY, -1, block.pattern.segment_start[s + 1]
        if block.pattern.segment_start[s] <= single < end:
            best, where = alone, single
        while e < near.count and place[e] < end:  # ends: e grows to the number of near columns
            j = place[e]
            if j != single:
                value = block.scale * bases(near)[e] + block.offset
                value = (value if value < block.most else block.most) - usage[j]
                if value < best or (value == best and j < where):
                    best, where = value, j
            e += 1
        if best < threshold:
            column[n], reduced_cost[n] = where, best
            n += 1
    return n


cdef inline double smallest_low(const Block* block, int begin, int end) noexcept nogil:
    """Return the smallest reduced cost of a run of columns at low prices, as if there were no exceptions."""
    cdef const double* usage = block.pattern.priced_usage
    cdef double scale = block.scale / LOW, offset = block.offset / LOW, most = block.most / LOW
    if block.single_precision:
        return LOW * copter_smallest_single(<const float*>block.cost, usage, scale, offset, most, begin, end)
    return LOW * copter_smallest(<const double*>block.cost, usage, scale, offset, most, begin, end)


cdef inline int room_of(int count) noexcept nogil:
    """Return for how many near columns there is room in a record: a few more, so that most records stay in place."""
    return (count + ROOM - 1) // ROOM * ROOM


cdef Near* near_columns(const Block* block, Near* near, double smallest) noexcept nogil:
    """Return a record of a block's near columns at the prices at which it has just been priced; NULL for too many.

    near: memory of an earlier record, or NULL; it is reused or freed. smallest: the block's smallest reduced cost.
    """
    cdef const double* usage = block.pattern.priced_usage
    cdef double[MOST_RUNS] least
    cdef double[MOST_NEAR] base
    cdef int[MOST_NEAR] place
    cdef int n = block.n_columns, width = RUN, runs, k, j, first = 0, best = 0, count = 0
    cdef double value, lowest = INFINITY, rest = INFINITY, limit
    cdef Near* grown
    while width * MOST_RUNS < n:  # ends: the width doubles
        width *= 2
    runs = (n + width - 1) // width
    for k in range(runs):
        least[k] = smallest_low(block, k * width, min(n, (k + 1) * width))
        if least[k] < least[first]:
            first = k
    for j in range(first * width, min(n, (first + 1) * width)):
        value = cost_of(block, j) - LOW * usage[j]
        if value < lowest:
            lowest, best = value, j
    limit = min(smallest, 0.0) - RISE * usage[best]
    for k in range(runs):
        if least[k] >= limit:
            rest = min(rest, least[k])
            continue
        for j in range(k * width, min(n, (k + 1) * width)):
            value = cost_of(block, j) - LOW * usage[j]
            if value >= limit:
                rest = min(rest, value)
            elif count == MOST_NEAR:
                free(near)
                return NULL
            else:
                base[count], place[count] = base_cost(block, j), j
                count += 1
    grown = near
    if near == NULL or room_of(near.count) != room_of(count):
        grown = <Near*>realloc(near, sizeof(Near) + room_of(count) * (sizeof(double) + sizeof(int)))
    if grown == NULL:
        free(near)
        return NULL
    grown.count, grown.rest, grown.size = count, rest, block.pattern.priced_size
    grown.size += fabs(block.most) if block.most < INFINITY else 0.0
    grown.scale, grown.offset = block.scale, block.offset
    grown.costs, grown.usage = block.stamp, block.pattern.stamp
    for j in range(count):
        bases(grown)[j], columns(grown)[j] = base[j], place[j]
    return grown
