"""Carries a basis from one block program to the next, with a start for new blocks (method/simplex.md)."""

import numpy as np

from libc.math cimport isfinite

from copter.methods.simplex.tableau cimport Tableau, resting

cdef double LEAST_ENTRY = 1e-6  # least |scaled entry| with which a column may start as a row's basic variable


def whole_columns(program):
    """Merge the entries of a block program's coupling and private rows into one matrix by columns.

    Parameters
    ----------
    program : BlockProgram
        The private rows of all blocks follow its coupling rows.

    Returns
    -------
    start, index, value : CSC arrays
    """
    cdef const int[::1] column_start = program.column_start, private_start = program.private_start
    cdef const int[::1] start = program.start, row = program.row, own_start = program.own_start
    cdef const int[::1] own_row = program.own_row
    cdef const double[::1] value = program.value, own_value = program.own_value
    cdef int n_rows = program.n_rows
    cdef int g, j, e, at = 0, n = start.shape[0] - 1
    cdef int[::1] starts = np.empty(n + 1, dtype=np.int32)
    cdef int[::1] index = np.empty(row.shape[0] + own_row.shape[0], dtype=np.int32)
    cdef double[::1] entries = np.empty(row.shape[0] + own_row.shape[0])
    with nogil:
        for g in range(column_start.shape[0] - 1):
            for j in range(column_start[g], column_start[g + 1]):
                starts[j] = at
                for e in range(start[j], start[j + 1]):
                    index[at], entries[at] = row[e], value[e]
                    at += 1
                for e in range(own_start[j], own_start[j + 1]):
                    index[at], entries[at] = n_rows + private_start[g] + own_row[e], own_value[e]
                    at += 1
        starts[n] = at
    return starts.base, index.base, entries.base


def carried_prices(const long long[::1] known, const double[::1] before, const long long[::1] rows,
                   const double[::1] scale, double unit):
    """Return prices of coupling rows, by place and generation, and the same scaled; zero for other rows.

    Parameters
    ----------
    known, rows : ndarray int64
        Generations of the earlier rows, and of the present ones.
    before : ndarray
        Prices of the earlier rows, and of more.
    scale : ndarray
        Scales of the present rows, and of more.
    unit : float
        Unit of the scaled costs.
    """
    cdef int i, both = min(known.shape[0], rows.shape[0])
    found = np.zeros((2, rows.shape[0]))
    cdef double[:, ::1] price = found
    for i in range(both):
        if known[i] == rows[i]:
            price[0, i], price[1, i] = before[i], before[i] / (scale[i] * unit)
    return found[0], found[1]


def carry(Tableau before, Tableau now, tuple old, tuple new, const double[::1] prices, tuple moved=None):
    """Give a tableau the basis of another one, as far as both have the same blocks and rows.

    Blocks are matched by slot and generation, coupling rows by place and generation. If a new block has a first private
    row, the cheapest column in that row at the prices becomes basic, if its reduced cost is negative. Positions of the
    basis that stay empty get unit columns when the basis is factorised.

    Parameters
    ----------
    before : Tableau or None
    now : Tableau
    old, new : tuple
        Each: column_start, private_start, slots (ascending), generations of blocks, generations of coupling rows.
    prices : ndarray (coupling rows,)
        Scaled prices.
    moved : tuple, optional
        (whether each block has other columns than before under the same name, and for each column and each private row
        the one of the old block that it continues, -1 for none); entries of blocks that have not moved do not count.
    """
    cdef const unsigned char[::1] has_moved = None if moved is None else moved[0]
    cdef const int[::1] column_from = None if moved is None else moved[1]
    cdef const int[::1] row_from = None if moved is None else moved[2]
    cdef const int[::1] column_start = new[0], private_start = new[1], slots = new[2]
    cdef const long long[::1] generation = new[3], rows = new[4]
    cdef const int[::1] old_columns = old[0], old_private = old[1], old_slots = old[2]
    cdef const long long[::1] old_generation = old[3], old_rows = old[4]
    cdef int g, h = 0, i, j, first, size, count = 0, m = rows.shape[0], k = old_rows.shape[0]
    # variables that become basic; of new blocks, those that start so; for each variable the old one that it continues,
    # -1: none, -2: a logical variable that is not basic
    cdef int[:, ::1] work = np.empty((3, now.total + 1), dtype=np.int32)
    cdef int *basic = &work[0, 0]
    cdef int *cheapest = &work[1, 0]
    cdef int *source = &work[2, 0]
    cdef int n_new = 0
    cdef bint known, moves = moved is not None
    with nogil:
        for j in range(now.total):
            source[j] = -1
        for i in range(min(m, k)):
            if before is not None and rows[i] == old_rows[i]:
                source[now.columns + i] = before.columns + i
        for g in range(slots.shape[0]):
            first, size = column_start[g], column_start[g + 1] - column_start[g]
            while h < old_slots.shape[0] and old_slots[h] < slots[g]:  # ends: h grows
                h += 1
            known = (
                before is not None and h < old_slots.shape[0] and old_slots[h] == slots[g]
                and old_generation[h] == generation[g] and old_columns[h + 1] - old_columns[h] == size
                and old_private[h + 1] - old_private[h] == private_start[g + 1] - private_start[g]
            )
            if before is not None and moves and has_moved[g]:
                for j in range(size):
                    if column_from[first + j] >= 0:
                        source[first + j] = old_columns[h] + column_from[first + j]
                for j in range(private_start[g], private_start[g + 1]):
                    if row_from[j] >= 0:
                        source[now.columns + m + j] = before.columns + k + old_private[h] + row_from[j]
            elif known:
                for j in range(size):
                    source[first + j] = old_columns[h] + j
                for j in range(private_start[g + 1] - private_start[g]):
                    source[now.columns + m + private_start[g] + j] = before.columns + k + old_private[h] + j
            elif private_start[g] < private_start[g + 1]:
                i = m + private_start[g]
                j = best_of(now, first, first + size, i, m, &prices[0] if m else NULL)
                if j >= 0:
                    source[now.columns + i], cheapest[n_new] = -2, j
                    n_new += 1
        for j in range(now.total):
            now.place[j] = -1
            i = source[j]
            now.x[j] = resting(now.lower[j], now.upper[j], i >= 0 and before.x[i] == before.upper[i]
                               and before.lower[i] < before.upper[i])
            if i >= 0 and before.place[i] >= 0:
                basic[count] = j
                count += 1
            elif i == -1 and j >= now.columns:
                basic[count] = j
                count += 1
        for i in range(n_new):
            basic[count] = cheapest[i]
            count += 1
    if count > now.rows:  # rows have gone: those nearest to a bound leave
        kept = work.base[0, :count].copy()
        work.base[0, : now.rows] = kept[np.argsort(-_room(before, work.base[2], kept), kind="stable")[: now.rows]]
        count = now.rows
    for i in range(now.rows):
        now.head[i] = basic[i] if i < count else -1
        if i < count:
            now.place[basic[i]] = i
            if source[basic[i]] >= 0:
                now.edge[i] = before.edge[before.place[source[basic[i]]]]
    now.stale = True


cdef _room(Tableau before, source, kept):
    """Return the basic variables' distances to their bounds, (k,); infinite for new logical variables."""
    which = source[kept]
    at = np.maximum(which, 0)
    if before is None:
        return np.zeros(len(kept))
    x, lower, upper = before.arrays["x"][at], before.arrays["lower"][at], before.arrays["upper"][at]
    return np.where(which >= 0, np.minimum(x - lower, upper - x), np.inf)


cdef int best_of(Tableau now, int first, int last, int i, int m, const double* prices) noexcept nogil:
    """Return the column that fills a block's first private row at least reduced cost a unit (D11); -1 for none.

    Only columns with a negative reduced cost, an entry of at least `LEAST_ENTRY` and no finite upper bound count. -1
    also if the row's logical variable has no finite lower bound.
    """
    cdef int j, e, best = -1
    cdef double d, entry, least = 0.0
    if not isfinite(now.lower[now.columns + i]):
        return -1
    for j in range(first, last):
        d, entry = now.cost[j], 0.0
        for e in range(now.start[j], now.start[j + 1]):
            if now.index[e] == i:
                entry = now.value[e]
            elif now.index[e] < m:
                d -= now.value[e] * prices[now.index[e]]
        if d >= 0.0 or isfinite(now.upper[j]):
            continue
        if entry < LEAST_ENTRY:
            continue
        if d / entry < least:
            best, least = j, d / entry
    return best
