"""Carries a basis over to an edited program and computes its prices for the true costs (method/blocks.md, K12)."""

import numpy as np

from libc.math cimport INFINITY, fabs
from libc.stdint cimport uint64_t

from copter.methods.blocks.block_basis cimport ARTIFICIAL, BlockBasis
from copter.methods.blocks.ascending cimport ascending


def moved_costs(const double[::1] cost, const int[::1] column_start, const int[::1] slots, double apart, double least):
    """Return slightly changed costs, so that no two columns tie.

    A column of a slot always gets the same change.

    Parameters
    ----------
    cost : ndarray (columns,)
    column_start : ndarray (blocks + 1,) int32
    slots : ndarray (blocks,) int32
    apart : float
        Relative change.
    least : float
        The change is relative to |cost|, or to this number where |cost| is smaller.

    Returns
    -------
    ndarray (columns,)
    """
    cdef int g, j
    cdef uint64_t name
    result = np.empty(cost.shape[0])
    cdef double[::1] moved = result
    with nogil:
        for g in range(slots.shape[0]):
            for j in range(column_start[g], column_start[g + 1]):
                name = ((<uint64_t>slots[g]) << 16) + <uint64_t>(j - column_start[g])
                name = (name ^ (name >> 31)) * <uint64_t>0x9E3779B97F4A7C15
                name = (name ^ (name >> 29)) * <uint64_t>0xBF58476D1CE4E5B9
                moved[j] = cost[j] + apart * (0.5 + (name >> 11) * 2.0 ** -53) * max(fabs(cost[j]), least)
    return result


def same_blocks(BlockBasis before, BlockBasis now, const int[::1] old_slots, const long long[::1] old_generation,
                const int[::1] slots, const long long[::1] generation):
    """Return the new position of each old block that has basic variables and differs in bounds only; -1 for others.

    A block is the same if its slot and its generation are. Slots that are not in ascending order are searched for.

    Returns
    -------
    ndarray (old blocks,) int32
    """
    cdef int old, at = 0, count = slots.shape[0]
    cdef int i
    place = np.full(before.n_blocks, -1, dtype=np.int32)
    cdef int[::1] places = place
    cdef const int[::1] by_slot = ascending(slots), old_order = ascending(old_slots)
    with nogil:
        for i in range(before.n_blocks):
            old = old_order[i]
            while at < count and slots[by_slot[at]] < old_slots[old]:  # ends: at grows to count
                at += 1
            if at == count:
                break
            if slots[by_slot[at]] != old_slots[old] or before.count[old] == 0:
                continue
            if generation[by_slot[at]] == old_generation[old] and is_same(before, old, now, by_slot[at]):
                places[old] = by_slot[at]
    return place


cdef bint is_same(BlockBasis before, int old, BlockBasis now, int g) noexcept nogil:
    """Return whether two blocks have the same columns, and the new one has each bound that a variable rests at."""
    cdef int i = before.column_start[old], j = now.column_start[g], e, f, k
    cdef int size = before.column_start[old + 1] - i, length
    cdef int s = before.n_columns + old, t = now.n_columns + g
    if now.column_start[g + 1] - j != size:
        return False
    if rests(before, old, s) and fabs(now.high[t] if before.at_upper[s] else now.low[t]) == INFINITY:
        return False
    for k in range(size):
        if before.cost[i + k] != now.cost[j + k]:
            return False
        if rests(before, old, i + k):
            if fabs(now.high[j + k] if before.at_upper[i + k] else now.low[j + k]) == INFINITY:
                return False
    e, f = before.start[i], now.start[j]
    length = before.start[i + size] - e
    if now.start[j + size] - f != length:
        return False
    for k in range(1, size):
        if before.start[i + k] - e != now.start[j + k] - f:
            return False
    for k in range(length):
        if before.row[e + k] != now.row[f + k] or before.value[e + k] != now.value[f + k]:
            return False
    return True


cdef bint rests(BlockBasis basis, int g, int v) noexcept nogil:
    """Return whether a variable of a block is nonbasic and at a bound: neither basic nor the key."""
    return basis.place[v] < 0 and basis.key[g] != v


def carried_basis(BlockBasis before, BlockBasis now, const int[::1] place):
    """Return the old basis in the numbering of an edited program, which may have more rows.

    Returns
    -------
    heads : ndarray (rows,) int32
        Basic variables. An artificial variable replaces each one whose block has changed or gone; new rows get their
        activity.
    keys : ndarray (blocks,) int32
        Key of each block that has stayed; -1 for other blocks.
    at_upper : ndarray (variables,) uint8
    """
    cdef int g, j, k, p, v, shift, first = now.n_columns + now.n_blocks, old_first = before.n_columns + before.n_blocks
    heads = np.empty(now.n_rows, dtype=np.int32)
    keys = np.full(now.n_blocks, -1, dtype=np.int32)
    high = np.zeros(first + now.n_rows, dtype=np.uint8)
    cdef int[::1] head = heads, key = keys
    cdef unsigned char[::1] at_upper = high
    with nogil:
        for g in range(before.n_blocks):
            if place[g] < 0:
                continue
            shift = now.column_start[place[g]] - before.column_start[g]
            for j in range(before.column_start[g], before.column_start[g + 1]):
                at_upper[j + shift] = before.at_upper[j]
            at_upper[now.n_columns + place[g]] = before.at_upper[before.n_columns + g]
            k = before.key[g]
            key[place[g]] = k + shift if k < before.n_columns else now.n_columns + place[g]
        for p in range(before.n_rows):
            v = before.head[p]
            if v >= old_first:
                head[p] = v - old_first + first
            elif v == ARTIFICIAL or place[before.block(v)] < 0:
                head[p] = ARTIFICIAL
            else:
                g = before.block(v)
                shift = now.column_start[place[g]] - before.column_start[g]
                head[p] = v + shift if v < before.n_columns else now.n_columns + place[g]
            at_upper[first + p] = before.at_upper[old_first + p]
        for p in range(before.n_rows, now.n_rows):
            head[p] = first + p
    return heads, keys, high


def true_prices(BlockBasis basis, const double[::1] cost):
    """Return the prices of the basis for the given costs, not for the perturbed ones; prices of infinite bounds are
    zero.

    Parameters
    ----------
    basis : BlockBasis
    cost : ndarray (columns,)

    Returns
    -------
    ndarray (rows,)
    """
    cdef int p, v, k, i, first = basis.n_columns + basis.n_blocks
    cdef double share, bound
    change = np.zeros(basis.n_rows)
    cdef double[::1] moved = change
    with nogil:
        for p in range(basis.n_rows):
            v = basis.head[p]
            if v == ARTIFICIAL or v >= first:
                continue
            if v < basis.n_columns:
                moved[p] = cost[v] - basis.cost[v]
            k = basis.key[basis.block(v)]
            if k < basis.n_columns:
                share = basis.key_share(v)
                moved[p] -= share * (cost[k] - basis.cost[k])
    prices = basis.prices + basis.inverse.entries @ change
    cdef double[::1] price = prices
    for i in range(basis.n_rows):
        bound = basis.low[first + i] if price[i] > 0.0 else basis.high[first + i]
        if fabs(bound) == INFINITY:
            price[i] = 0.0
    return prices


def key_costs(const int[::1] key, const int[::1] private_start, const int[::1] start, const int[::1] row,
              const double[::1] value, const double[::1] cost, const double[::1] y):
    """Return the reduced cost of each private row's block key; zero where the key is the block's sum (K11).

    Returns
    -------
    ndarray (private rows,)
    """
    cdef int g, e, k, at = 0
    cdef double total
    result = np.zeros(private_start[private_start.shape[0] - 1])
    cdef double[::1] found = result
    with nogil:
        for g in range(key.shape[0]):
            if private_start[g + 1] == private_start[g]:
                continue
            k = key[g]
            if k < cost.shape[0]:
                total = cost[k]
                for e in range(start[k], start[k + 1]):
                    total -= value[e] * y[row[e]]
                found[at] = total
            at += 1
    return result
