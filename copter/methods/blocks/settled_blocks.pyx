"""Finds the blocks that prices settle, and the columns that the others need (docs/method/blocks.md, K6)."""

import numpy as np

from libc.math cimport INFINITY, fmin

cdef enum:
    LOOK_BACK = 8  # a column is compared with this many columns of its block that were kept last


def best_costs(program, const double[::1] prices):
    """Return the columns' reduced costs a unit of their block's limit, and each block's least, at most zero.

    Parameters
    ----------
    program : BlockProgram
        As for :func:`.useful_columns`.
    prices : ndarray (coupling rows,)
    """
    cdef const int[::1] column_start = program.column_start, start = program.start, row = program.row
    cdef const double[::1] value = program.value, own_value = program.own_value, cost = program.cost
    cdef int g, j, e, n_blocks = <int>column_start.shape[0] - 1
    cdef double[::1] reduced = np.empty(cost.shape[0]), least = np.zeros(n_blocks)
    cdef double total
    with nogil:
        for g in range(n_blocks):
            for j in range(column_start[g], column_start[g + 1]):
                total = cost[j]
                for e in range(start[j], start[j + 1]):
                    total -= value[e] * prices[row[e]]
                reduced[j] = total / own_value[j]
                least[g] = fmin(least[g], reduced[j])
    return reduced.base, least.base


def usage(program, const double[::1] x):
    """Return the usage of the coupling rows by a point, of which most values may be zero, (rows,)."""
    cdef const int[::1] start = program.start, row = program.row
    cdef const double[::1] value = program.value
    cdef int j, e
    found = np.zeros(program.n_rows)
    cdef double[::1] used = found
    with nogil:
        for j in range(x.shape[0]):
            if x[j] != 0.0:
                for e in range(start[j], start[j + 1]):
                    used[row[e]] += value[e] * x[j]
    return found


def movers(program, const double[::1] wanted, const double[::1] movable):
    """Return where columns can move usage of the rows in which some is wanted.

    Parameters
    ----------
    program : BlockProgram
    wanted : ndarray (rows,)
        Usage of each row; none where it is not positive.
    movable : ndarray (columns,)
        By how much each column can move.

    Returns
    -------
    row, column : ndarray (entries,) int32
    share : ndarray (entries,)
        What the column can move in the row, of what is wanted there.
    """
    cdef const int[::1] start = program.start, row = program.row
    cdef const double[::1] value = program.value
    cdef int j, e, count = 0
    cdef int[::1] rows, columns
    cdef double[::1] shares
    with nogil:
        for j in range(movable.shape[0]):
            if movable[j] > 0.0:
                for e in range(start[j], start[j + 1]):
                    count += wanted[row[e]] > 0.0
    found = np.empty(count, dtype=np.int32), np.empty(count, dtype=np.int32), np.empty(count)
    rows, columns, shares = found
    count = 0
    with nogil:
        for j in range(movable.shape[0]):
            if movable[j] > 0.0:
                for e in range(start[j], start[j + 1]):
                    if wanted[row[e]] > 0.0:
                        rows[count], columns[count] = row[e], j
                        shares[count] = value[e] * movable[j] / wanted[row[e]]
                        count += 1
    return found


def tied_blocks(program, const double[::1] reduced, double margin):
    """Return how many blocks have several best columns, none worse by more than the margin.

    Parameters
    ----------
    program : BlockProgram
    reduced : ndarray (columns,)
        As :func:`best_costs` returns them.
    margin : float
    """
    cdef const int[::1] column_start = program.column_start
    cdef int g, j, near, n_blocks = <int>column_start.shape[0] - 1
    cdef long tied = 0
    cdef double least
    with nogil:
        for g in range(n_blocks):
            least, near = INFINITY, 0
            for j in range(column_start[g], column_start[g + 1]):
                least = fmin(least, reduced[j])
            for j in range(column_start[g], column_start[g + 1]):
                near += reduced[j] <= least + margin
            tied += near > 1
    return tied


def settled_blocks(program, const double[::1] reduced, double margin, const unsigned char[::1] free,
                   const double[::1] point=None):
    """Return what settled blocks take, which blocks are loose, and the columns that the loose ones may take.

    Parameters
    ----------
    program : BlockProgram
        As for :func:`.useful_columns`.
    reduced : ndarray (columns,)
        As :func:`best_costs` returns them.
    margin : float
        A choice, of which a block's unused limit is one, is near if it is worse than the best by at most this.
    free : ndarray (blocks,) uint8
        Blocks that are loose in any case, with all of their columns.
    point : ndarray (columns,), optional
        Values that blocks with several near choices take, scaled to their limits; without it these are loose.

    Returns
    -------
    taken : ndarray (columns,)
        Values of the settled blocks' columns, zero elsewhere.
    loose : ndarray (blocks,) bool
    near : ndarray (columns,) bool
        The near columns of loose blocks, the first of equal ones.
    """
    cdef const int[::1] column_start = program.column_start, start = program.start, row = program.row
    cdef const double[::1] value = program.value, own_value = program.own_value
    cdef const double[::1] upper = program.upper, cost = program.cost
    cdef int g, j, k, count, n = <int>start.shape[0] - 1, n_blocks = <int>column_start.shape[0] - 1
    cdef int first_row = n + program.n_rows
    taken, open_blocks = np.zeros(n), np.zeros(n_blocks, dtype=np.bool_)
    near = np.zeros(n, dtype=np.bool_)
    cdef double[::1] take = taken
    cdef unsigned char[::1] keep = near.view(np.uint8), loose = open_blocks.view(np.uint8)
    cdef int last[LOOK_BACK]
    cdef double limit, least, bar, total, scale
    cdef bint twin, full, known = point is not None, holds
    with nogil:
        for g in range(n_blocks):
            limit, least, count, total = upper[first_row + g], INFINITY, 0, 0.0
            for j in range(column_start[g], column_start[g + 1]):
                least = fmin(least, reduced[j])
            if least > margin and not free[g]:
                continue
            full, bar = least < -margin, fmin(least, 0.0) + margin
            for j in range(column_start[g], column_start[g + 1]):
                if not free[g] and reduced[j] > bar:
                    continue
                if known:
                    total += point[j] * own_value[j]
                twin = False
                if own_value[j] * upper[j] >= limit:
                    for k in range(min(count, LOOK_BACK)):
                        twin = twin or alike(j, last[k], start, row, value, own_value, cost)
                if not twin:
                    last[count % LOOK_BACK] = j
                    keep[j] = True
                    count += 1
            loose[g] = True
            if free[g] or (full and limit == INFINITY):
                continue
            if count == 1 and full:
                j = last[0]
                if own_value[j] * upper[j] >= limit:
                    take[j], keep[j], loose[g] = limit / own_value[j], False, False
            elif known and (total > 0.0 or not full):
                scale = 0.0 if total <= 0.0 else limit / total if full else fmin(1.0, limit / total)
                holds = True
                for j in range(column_start[g], column_start[g + 1]):
                    holds = holds and point[j] * scale <= upper[j]
                if holds:
                    loose[g] = False
                    for j in range(column_start[g], column_start[g + 1]):
                        if keep[j] or reduced[j] <= bar:
                            take[j], keep[j] = point[j] * scale, False
    return taken, open_blocks, near


cdef bint alike(int one, int other, const int[::1] start, const int[::1] row, const double[::1] value,
                const double[::1] own, const double[::1] cost) noexcept nogil:
    """Return whether two columns have the same cost and entries."""
    cdef int e, size = start[one + 1] - start[one]
    if cost[one] != cost[other] or own[one] != own[other] or start[other + 1] - start[other] != size:
        return False
    for e in range(size):
        if row[start[one] + e] != row[start[other] + e] or value[start[one] + e] != value[start[other] + e]:
            return False
    return True
