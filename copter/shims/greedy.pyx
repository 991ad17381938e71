"""Greedy integer plans: offers columns in an order, and fills idle requests by value per unit of resource."""

import heapq as _heapq

import numpy as np

from copter.model.matrix.layout cimport Block, Pattern, may_be_one
from copter.model.matrix.block_matrix cimport BlockMatrix

cdef enum:
    ASKED_EVERY = 20_000  # columns visited between two looks at the clock


cdef inline bint fits(const Pattern* pattern, int j, const double[::1] left, const double[::1] room) noexcept nogil:
    """Return whether each row has the units left that a column uses."""
    cdef int e
    for e in range(pattern.column_start[j], pattern.column_start[j + 1]):
        if not pattern.coefficient[e] <= left[pattern.row[e]] + room[pattern.row[e]]:
            return False
    return True


cdef inline void take(const Pattern* pattern, int j, double[::1] left) noexcept nogil:
    cdef int e
    for e in range(pattern.column_start[j], pattern.column_start[j + 1]):
        left[pattern.row[e]] -= pattern.coefficient[e]


cdef int checked(BlockMatrix matrix, int slot, int column) except -1:
    """Raise IndexError unless the slot has this column."""
    if slot < 0 or slot >= matrix.n_slots or column < 0 or column >= matrix.blocks[slot].n_columns:
        raise IndexError(f"slot {slot} has no column {column}")
    return 0


def integer_slots(BlockMatrix matrix):
    """Return whether each slot holds a request whose columns must be whole, (n_slots,) bool."""
    return survey(matrix)[1]


def survey(BlockMatrix matrix):
    """Read all slots once.

    Returns
    -------
    sizes : ndarray (n_slots,) int32
        Number of columns; zero for an empty slot.
    whole : ndarray (n_slots,) bool
        Whether a slot holds a request whose columns must be whole.
    bound : ndarray int32
        Fixed slots and those with bounds on single columns, ascending; only these can be forced.
    units : bool
        Whether all integer requests have the limit 1, and no column that can be -1 or less.
    """
    cdef Py_ssize_t slot, n = matrix.n_slots, count = 0
    cdef int j
    cdef const Block* block
    cdef bint units = True
    sizes, whole, bound = np.empty(n, dtype=np.int32), np.empty(n, dtype=bool), np.empty(n, dtype=np.int32)
    cdef int[::1] size = sizes, listed = bound
    cdef unsigned char[::1] integer = whole.view(np.uint8)
    with nogil:
        for slot in range(n):
            block = &matrix.blocks[slot]
            size[slot], integer[slot] = block.n_columns, block.n_columns > 0 and block.integer
            if integer[slot] and (block.limit != 1.0 or block.integer == 2):
                units = False
            if integer[slot] and block.lower_each != NULL:
                for j in range(block.n_columns):
                    units = units and block.lower_each[j] > -1.0
            if block.n_columns > 0 and (block.fixed >= 0 or block.lower_each != NULL or block.upper_each != NULL):
                listed[count] = <int>slot
                count += 1
    return sizes, whole, bound[:count].copy(), units


def carried(const int[::1] sizes, const unsigned char[::1] free, const long[::1] generation, const int[::1] column,
            const long[::1] then):
    """Return (slots, columns), int32, of a former plan that are still to be had, by slot.

    Parameters
    ----------
    sizes, free : ndarray (n_slots,) int32 and uint8
        Number of columns, and whether a slot may be given any column.
    generation : ndarray int64
        Of the slots now.
    column, then : ndarray (k,) int32 and int64
        The former plan's columns, negative for none, and the slots' generations at that time.
    """
    cdef Py_ssize_t slot, count = 0, known = min(sizes.shape[0], column.shape[0])
    slots, columns = np.empty(known, dtype=np.int32), np.empty(known, dtype=np.int32)
    cdef int[::1] slot_of = slots, column_of = columns
    with nogil:
        for slot in range(known):
            if 0 <= column[slot] < sizes[slot] and free[slot] and generation[slot] == then[slot]:
                slot_of[count], column_of[count] = <int>slot, column[slot]
                count += 1
    return slots[:count], columns[:count]


def takeable(BlockMatrix matrix, const int[::1] slots, const int[::1] columns):
    """Return whether each column's own bounds allow the value one, (n,) bool."""
    cdef Py_ssize_t i
    found = np.zeros(slots.shape[0], dtype=bool)
    cdef unsigned char[::1] view = found.view(np.uint8)
    for i in range(slots.shape[0]):
        checked(matrix, slots[i], columns[i])
        view[i] = may_be_one(&matrix.blocks[slots[i]], columns[i])
    return found


def offer(BlockMatrix matrix, const int[::1] slots, const int[::1] columns, const Py_ssize_t[::1] order,
          double[::1] left, const double[::1] room, int[::1] column_of_slot):
    """Offer columns one by one, in the given order; an idle slot takes the first of its columns that fits.

    left, room (n_rows,): units left of each row, and units by which use may exceed these. Changes left and
    column_of_slot in place.
    """
    cdef Py_ssize_t i, at
    cdef int slot
    cdef Block* block
    for i in range(order.shape[0]):
        at = order[i]
        slot = slots[at]
        checked(matrix, slot, columns[at])
        block = &matrix.blocks[slot]
        if column_of_slot[slot] < 0 and may_be_one(block, columns[at]) and fits(block.pattern, columns[at], left, room):
            take(block.pattern, columns[at], left)
            column_of_slot[slot] = columns[at]


cdef int best_of(BlockMatrix matrix, int slot, const int[::1] columns, const double[::1] left, const double[::1] room,
                 const double[::1] row_scale, double* ratio) noexcept nogil:
    """Return the listed column that fits and costs least per unit of resource, the first on a tie; -1 for none."""
    cdef Block* block = &matrix.blocks[slot]
    cdef const Pattern* pattern = block.pattern
    cdef double cost, size, best = 0.0
    cdef int j, e, where = -1
    cdef Py_ssize_t i
    for i in range(columns.shape[0]):
        j = columns[i]
        if not (may_be_one(block, j) and fits(pattern, j, left, room)):
            continue
        cost = matrix.cost_at(block, j)
        if cost >= 0.0:
            continue
        size = 0.0
        for e in range(pattern.column_start[j], pattern.column_start[j + 1]):
            size += pattern.coefficient[e] / row_scale[pattern.row[e]]
        cost /= size if size > 1e-12 else 1e-12
        if cost < best:
            best, where = cost, j
    ratio[0] = best
    return where


def fill(BlockMatrix matrix, const int[::1] slots, list columns, double[::1] left, const double[::1] room,
         const double[::1] row_scale, int[::1] column_of_slot, stop):
    """Give idle slots columns that lower the cost, the best per unit of resource first, until none fits.

    columns: for each slot, an ascending int32 array of the columns that it may take. stop: called now and then; True
    ends the filling, and the columns taken so far stay.
    """
    cdef Py_ssize_t i
    cdef int slot, column
    cdef double ratio
    cdef const int[::1] listed
    cdef long long looked = 0
    cdef bint late = False
    waiting = []
    for i in range(slots.shape[0]):
        slot, listed = slots[i], columns[i]
        for column in listed:
            checked(matrix, slot, column)
        looked += listed.shape[0] + 100
        if looked >= ASKED_EVERY:
            looked = 0
            late = stop()
            if late:
                break
        column = best_of(matrix, slot, listed, left, room, row_scale, &ratio)
        if column >= 0:
            _heapq.heappush(waiting, (ratio, slot, column, i))
    while waiting:  # ends: a slot comes back only after another took what it wanted, and stop is asked
        ratio, slot, column, i = _heapq.heappop(waiting)
        looked += 100
        if looked >= ASKED_EVERY:
            looked = 0
            if late or stop():
                break
        if fits(matrix.blocks[slot].pattern, column, left, room):
            take(matrix.blocks[slot].pattern, column, left)
            column_of_slot[slot] = column
            continue
        listed = columns[i]
        looked += listed.shape[0]
        if late:
            continue
        column = best_of(matrix, slot, listed, left, room, row_scale, &ratio)
        if column >= 0:
            _heapq.heappush(waiting, (ratio, slot, column, i))
