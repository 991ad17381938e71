"""Working sets put together from the columns of others: one pass over all their arrays."""

import numpy as np

from libc.string cimport memcpy


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


def unknown_keys(const long[::1] key, const long[::1] wanted):
    """Return the wanted keys that are not among ascending ones, ascending, and the places before which they belong.

    wanted : ndarray (k,) int64
        Ascending, each once.
    """
    cdef Py_ssize_t e, low = 0, high, middle, count = 0
    fresh, at = np.empty(wanted.shape[0], dtype=np.int64), np.empty(wanted.shape[0], dtype=np.int64)
    cdef long[::1] found = fresh, place = at
    for e in range(wanted.shape[0]):
        high = key.shape[0]
        while low < high:  # ends: the interval halves
            middle = (low + high) // 2
            if key[middle] < wanted[e]:
                low = middle + 1
            else:
                high = middle
        if low == key.shape[0] or key[low] != wanted[e]:
            found[count], place[count] = wanted[e], low
            count += 1
    return fresh[:count], at[:count]


def places_with(Py_ssize_t n, const long[::1] at):
    """Return the places (for :func:`spliced`) of n columns of a first set, with column k of a second before at[k].

    at : ndarray (k,) int64
        Ascending.
    """
    cdef Py_ssize_t j = 0, k, count = at.shape[0]
    places = np.empty(n + count, dtype=np.int32)
    cdef int[::1] place = places
    for k in range(count):
        while j < at[k]:  # ends: j grows
            place[j + k] = <int>j
            j += 1
        place[j + k] = <int>~k
    while j < n:  # ends: j grows
        place[j + count] = <int>j
        j += 1
    return places


def places_of(const unsigned char[::1] flag, bint wanted):
    """Return the places (for :func:`spliced`) of the columns whose flags are as wanted, ascending."""
    cdef Py_ssize_t j, n = flag.shape[0], count = 0
    for j in range(n):
        count += (flag[j] != 0) == wanted
    places = np.empty(count, dtype=np.int32)
    cdef int[::1] place = places
    count = 0
    for j in range(n):
        if (flag[j] != 0) == wanted:
            place[count] = <int>j
            count += 1
    return places


def without(const long[::1] key, const double[::1] x, const long[::1] generation, const unsigned char[::1] idle):
    """Return keys, values and generations of the columns that are not idle."""
    cdef Py_ssize_t j, n = key.shape[0], count = 0
    keys, values, ages = np.empty(n, dtype=np.int64), np.empty(n), np.empty(n, dtype=np.int64)
    cdef long[::1] kept = keys, age = ages
    cdef double[::1] value = values
    with nogil:
        for j in range(n):
            kept[count], value[count], age[count] = key[j], x[j], generation[j]
            count += idle[j] == 0
    return keys[:count], values[:count], ages[:count]


cdef struct Columns:
    # What a working set holds of each column.
    const long* key
    const long* generation
    const double* x
    const double* cost
    const double* lower
    const double* upper
    const unsigned char* free
    const int* begin
    const int* row
    const double* coefficient


cdef int held(columns, Columns* found) except -1:
    """Take the addresses of a working set's arrays, which it keeps."""
    cdef const long[::1] key = columns.key, generation = columns.generation
    cdef const double[::1] x = columns.x, cost = columns.cost, lower = columns.lower, upper = columns.upper
    cdef const unsigned char[::1] free = columns.free
    cdef const int[::1] begin = columns.entry_start, row = columns.row
    cdef const double[::1] coefficient = columns.coefficient
    found.key, found.generation, found.x, found.cost = &key[0], &generation[0], &x[0], &cost[0]
    found.lower, found.upper, found.free, found.begin = &lower[0], &upper[0], &free[0], &begin[0]
    found.row, found.coefficient = &row[0], &coefficient[0]
    return 0


cdef inline Py_ssize_t run_of(const int[::1] place, Py_ssize_t j) noexcept nogil:
    """Return where the run of consecutive columns of one set that begins at j ends."""
    cdef Py_ssize_t end = j + 1
    cdef int step = 1 if place[j] >= 0 else -1
    while end < place.shape[0] and place[end] == place[end - 1] + step:  # ends: end grows
        end += 1
    return end


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
    cdef Columns[2] of
    held(first, &of[0])
    held(second, &of[1])
    cdef const int[::1] slot_1 = first.slots, slot_2 = second.slots
    cdef const double[::1] limit_1 = first.limit, limit_2 = second.limit
    cdef const double[::1] multiplier_1 = first.multiplier, multiplier_2 = second.multiplier
    cdef Py_ssize_t n = place.shape[0], j, e, k, end, size, groups = 0, g = -1, a = 0, b = 0
    cdef long slot, last = -1
    cdef int entries = 0, shift
    cdef Columns* source
    keys, ages, flags = np.empty(n, dtype=np.int64), np.empty(n, dtype=np.int64), np.empty(n, dtype=np.uint8)
    xs, costs, lowers, uppers = np.empty(n), np.empty(n), np.empty(n), np.empty(n)
    begins = np.empty(n + 1, dtype=np.int32)
    cdef long[::1] key = keys, generation = ages
    cdef double[::1] x = xs, cost = costs, lower = lowers, upper = uppers
    cdef unsigned char[::1] free = flags
    cdef int[::1] begin = begins
    with nogil:
        j = 0
        while j < n:  # ends: every run has a column
            end, k = run_of(place, j), place[j]
            source = &of[0] if k >= 0 else &of[1]
            k = k if k >= 0 else ~k
            size = (end - j) * sizeof(double)
            memcpy(&key[j], source.key + k, size)
            memcpy(&generation[j], source.generation + k, size)
            memcpy(&x[j], source.x + k, size)
            memcpy(&cost[j], source.cost + k, size)
            memcpy(&lower[j], source.lower + k, size)
            memcpy(&upper[j], source.upper + k, size)
            memcpy(&free[j], source.free + k, end - j)
            shift = entries - source.begin[k]
            for e in range(end - j):
                begin[j + e] = source.begin[k + e] + shift
            entries = source.begin[k + end - j] + shift
            j = end
        begin[n] = entries
        for j in range(n):
            slot = key[j] >> 32
            groups += slot != last
            last = slot
    rows, coefficients = np.empty(entries, dtype=np.int32), np.empty(entries)
    places, starts = np.empty(groups, dtype=np.int32), np.empty(groups + 1, dtype=np.int32)
    limits, multipliers = np.empty(groups), np.zeros(groups)
    cdef int[::1] row = rows, slots = places, start = starts
    cdef double[::1] coefficient = coefficients, limit = limits, multiplier = multipliers
    with nogil:
        j = 0
        while j < n:  # ends: every run has a column
            end, k = run_of(place, j), place[j]
            source = &of[0] if k >= 0 else &of[1]
            k = source.begin[k if k >= 0 else ~k]
            size = begin[end] - begin[j]
            memcpy(&row[begin[j]], source.row + k, size * sizeof(int))
            memcpy(&coefficient[begin[j]], source.coefficient + k, size * sizeof(double))
            j = end
        last = -1
        for j in range(n):
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
