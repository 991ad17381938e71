"""Working sets put together from the columns of others: one pass over all their arrays."""

import numpy as np


def merged_keys(const long[::1] key, const double[::1] x, alive, const long[::1] wanted):
    """Return the columns that are alive, with wanted ones that are not among them.

    Parameters
    ----------
    key, x : ndarray (n,) int64, float64
        Keys of columns, ascending, and their values.
    alive : ndarray (n,) bool or None
        Columns to keep; None for all.
    wanted : ndarray (k,) int64
        Keys, ascending.

    Returns
    -------
    key, x : ndarray
        New columns are zero.
    fresh : ndarray int64
        Positions of the new columns, ascending.
    """
    cdef Py_ssize_t n = key.shape[0], j = 0, e = 0, k = 0, count = 0
    cdef const unsigned char[::1] keep
    cdef bint all_alive = alive is None
    if not all_alive:
        keep = alive.view(np.uint8)
    keys, values = np.empty(n + wanted.shape[0], dtype=np.int64), np.empty(n + wanted.shape[0])
    places = np.empty(wanted.shape[0], dtype=np.int64)
    cdef long[::1] merged = keys, place = places
    cdef double[::1] value = values
    with nogil:
        while j < n or e < wanted.shape[0]:  # ends: j or e grows
            if j < n and not (all_alive or keep[j]):
                j += 1
            elif e == wanted.shape[0] or (j < n and key[j] <= wanted[e]):
                if e < wanted.shape[0] and key[j] == wanted[e]:
                    e += 1
                merged[k], value[k] = key[j], x[j]
                j, k = j + 1, k + 1
            else:
                if k == 0 or merged[k - 1] != wanted[e]:
                    merged[k], value[k], place[count] = wanted[e], 0.0, k
                    k, count = k + 1, count + 1
                e += 1
    return keys[:k], values[:k], places[:count]


def spliced(first, second, const int[::1] place, target):
    """Set the arrays of a working set to columns of two others.

    Parameters
    ----------
    first, second, target : WorkingSet
        `first` and `second` are only read.
    place : ndarray (n,) int32
        For each column, in the order of their keys, its column k of `first`, or ~k of `second`.

    Notes
    -----
    A group keeps the limit and multiplier of its slot in `first`, else those in `second`.
    """
    cdef const long[::1] key_1 = first.key, key_2 = second.key
    cdef const long[::1] generation_1 = first.generation, generation_2 = second.generation
    cdef const double[::1] x_1 = first.x, x_2 = second.x, cost_1 = first.cost, cost_2 = second.cost
    cdef const double[::1] lower_1 = first.lower, lower_2 = second.lower
    cdef const double[::1] upper_1 = first.upper, upper_2 = second.upper
    cdef const unsigned char[::1] free_1 = first.free, free_2 = second.free
    cdef const int[::1] begin_1 = first.entry_start, begin_2 = second.entry_start
    cdef const int[::1] row_1 = first.row, row_2 = second.row
    cdef const double[::1] coefficient_1 = first.coefficient, coefficient_2 = second.coefficient
    cdef const int[::1] slot_1 = first.slots, slot_2 = second.slots
    cdef const double[::1] limit_1 = first.limit, limit_2 = second.limit
    cdef const double[::1] multiplier_1 = first.multiplier, multiplier_2 = second.multiplier
    cdef Py_ssize_t n = place.shape[0], j, k, e, groups = 0, g = -1, a = 0, b = 0
    cdef long slot, last = -1
    cdef int entries = 0
    keys, ages, flags = np.empty(n, dtype=np.int64), np.empty(n, dtype=np.int64), np.empty(n, dtype=np.uint8)
    xs, costs, lowers, uppers = np.empty(n), np.empty(n), np.empty(n), np.empty(n)
    begins = np.empty(n + 1, dtype=np.int32)
    cdef long[::1] key = keys, generation = ages
    cdef double[::1] x = xs, cost = costs, lower = lowers, upper = uppers
    cdef unsigned char[::1] free = flags
    cdef int[::1] begin = begins
    with nogil:
        for j in range(n):
            k = place[j]
            begin[j] = entries
            if k >= 0:
                key[j], generation[j], x[j], cost[j] = key_1[k], generation_1[k], x_1[k], cost_1[k]
                lower[j], upper[j], free[j] = lower_1[k], upper_1[k], free_1[k]
                entries += begin_1[k + 1] - begin_1[k]
            else:
                k = ~k
                key[j], generation[j], x[j], cost[j] = key_2[k], generation_2[k], x_2[k], cost_2[k]
                lower[j], upper[j], free[j] = lower_2[k], upper_2[k], free_2[k]
                entries += begin_2[k + 1] - begin_2[k]
            slot = key[j] >> 32
            if slot != last:
                groups += 1
                last = slot
        begin[n] = entries
    rows, coefficients = np.empty(entries, dtype=np.int32), np.empty(entries)
    places, starts = np.empty(groups, dtype=np.int32), np.empty(groups + 1, dtype=np.int32)
    limits, multipliers = np.empty(groups), np.zeros(groups)
    cdef int[::1] row = rows, slots = places, start = starts
    cdef double[::1] coefficient = coefficients, limit = limits, multiplier = multipliers
    with nogil:
        last = -1
        for j in range(n):
            k = place[j]
            if k >= 0:
                for e in range(begin_1[k + 1] - begin_1[k]):
                    row[begin[j] + e] = row_1[begin_1[k] + e]
                    coefficient[begin[j] + e] = coefficient_1[begin_1[k] + e]
            else:
                k = ~k
                for e in range(begin_2[k + 1] - begin_2[k]):
                    row[begin[j] + e] = row_2[begin_2[k] + e]
                    coefficient[begin[j] + e] = coefficient_2[begin_2[k] + e]
            slot = key[j] >> 32
            if slot == last:
                continue
            last = slot
            g += 1
            slots[g], start[g] = <int>slot, <int>j
            while a < slot_1.shape[0] and slot_1[a] < slot:  # ends: a grows to the number of groups
                a += 1
            if a < slot_1.shape[0] and slot_1[a] == slot:
                limit[g], multiplier[g] = limit_1[a], multiplier_1[a]
                continue
            while b < slot_2.shape[0] and slot_2[b] < slot:  # ends: b grows to the number of groups
                b += 1
            limit[g], multiplier[g] = limit_2[b], multiplier_2[b]
        start[groups] = <int>n
    target.key, target.generation, target.x, target.cost = keys, ages, xs, costs
    target.lower, target.upper, target.free = lowers, uppers, flags
    target.entry_start, target.row, target.coefficient = begins, rows, coefficients
    target.slots, target.start, target.limit, target.multiplier = places, starts, limits, multipliers
    target.record = None
