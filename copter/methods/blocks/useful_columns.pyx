"""Finds the columns of a block program that another column makes useless (docs/method/blocks.md, K5)."""

import numpy as np

from libc.math cimport INFINITY, fmax, fmin

cdef double ROUNDING = 1e-9  # a limit is loose if the rows' bounds keep the block's sum below it by this share of it


def useful_columns(program):
    """Return the columns that an optimum may need, and those that alone take their block's limit.

    Every row of the program has an upper bound only, every coupling entry is positive, columns start at zero, and a
    block has no private row but its limit.

    Parameters
    ----------
    program : BlockProgram

    Returns
    -------
    useful : ndarray (columns,) uint8
        0 for columns that are zero at an optimum or among `alone`.
    alone : ndarray (blocks,) int32
        The column whose value is the block's limit, while the block's others are zero; -1 if there is none.
    """
    cdef const int[::1] column_start = program.column_start, private_start = program.private_start
    cdef const int[::1] start = program.start, row = program.row
    cdef const double[::1] value = program.value, own_value = program.own_value
    cdef const double[::1] cost = program.cost, upper = program.upper
    cdef int n_rows = program.n_rows, n = <int>start.shape[0] - 1, n_blocks = <int>column_start.shape[0] - 1
    cdef int g, j, e, best
    cdef double limit, most, total, price
    cdef double[::1] least = np.zeros(n_rows), own_least = np.zeros(n_blocks)
    found, single = np.zeros(n, dtype=np.uint8), np.full(n_blocks, -1, dtype=np.int32)
    cdef unsigned char[::1] useful = found
    cdef int[::1] alone = single
    with nogil:
        for g in range(n_blocks):  # a column that meets one row only bounds that row's price from below
            limit = upper[n + n_rows + private_start[g]]
            total = 0.0
            for j in range(column_start[g], column_start[g + 1]):
                most = INFINITY
                for e in range(start[j], start[j + 1]):
                    most = fmin(most, upper[n + row[e]] / value[e])
                total += own_value[j] * fmax(most, 0.0)
            for j in range(column_start[g], column_start[g + 1]):
                if own_value[j] * upper[j] < limit:
                    continue
                e = start[j]
                if total < limit * (1.0 - ROUNDING):
                    if start[j + 1] == e + 1:
                        least[row[e]] = fmax(least[row[e]], -cost[j] / value[e])
                        useful[j] = 1
                elif start[j + 1] == e and limit < INFINITY and -cost[j] > own_value[j] * own_least[g]:
                    own_least[g] = -cost[j] / own_value[j]
                    alone[g] = j
        for g in range(n_blocks):
            best = alone[g]
            for j in range(column_start[g], column_start[g + 1]):
                price = own_value[j] * own_least[g]
                for e in range(start[j], start[j + 1]):
                    price += value[e] * least[row[e]]
                useful[j] |= j != best and price < -cost[j]
                if useful[j]:
                    alone[g] = -1
            if best >= 0 and alone[g] < 0:
                useful[best] = 1
    return found, single
