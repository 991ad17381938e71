"""The constraint matrix with the reads of the solver: contents of slabs, gathered columns, slabs side by side."""

import numpy as np

from copter.model.matrix.gathered import Gathered as _Gathered

from libc.math cimport INFINITY, fabs
from libc.string cimport memcpy

from copter.model.matrix.layout cimport Block, Pattern, cost_of, exception_at, exception_cost_at, is_summed
from copter.model.matrix.list_of_lists cimport Slab
from copter.model.matrix.priced_matrix cimport PricedMatrix


cdef inline bint is_capped(const Block* block) noexcept nogil:
    """Return whether the limit bounds each column that has no upper bound of its own."""
    return (block.lower_each == NULL and block.upper_each == NULL and block.upper == INFINITY
            and block.limit < INFINITY)


cdef class BlockMatrix(PricedMatrix):
    """The constraint matrix: a list of lists, with the passes that the solver makes over it."""

    # Contents of a slab --------------------------------------------------------------------------------------------

    def exceptions_of(self, int slot):
        """Return (columns, costs) of a slab's exceptions, the columns priced one by one: new arrays."""
        cdef Block* block = self.block_at(slot)
        cdef int e
        columns = np.array([exception_at(block, e) for e in range(block.n_exceptions)], dtype=np.int32)
        return columns, np.array([exception_cost_at(block, e) for e in range(block.n_exceptions)], dtype=np.float64)

    def costs_of(self, int slot):
        """Return the costs of a slab's columns, (n,) float64, a new array."""
        cdef Block* block = self.block_at(slot)
        cdef Slab slab = self.slabs[slot]
        costs = np.minimum(block.scale * slab.cost.astype(np.float64) + block.offset, block.most)
        if block.n_exceptions == 1:
            costs[block.single_column] = block.single_cost
        elif block.n_exceptions > 1:
            costs[slab.exception_column] = slab.exception_cost
        return costs

    def bounds_of(self, int slot):
        """Return (lower, upper) of a slab's columns, (n,) float64 each, new arrays; equal ones for a fixed slab.

        Columns without an upper bound of their own get the limit if it bounds them.
        """
        cdef Block* block = self.block_at(slot)
        lower, upper = self.free_bounds_of(slot)
        if is_capped(block):
            upper[:] = block.limit
        if block.fixed >= 0:
            value = min(upper[block.fixed], block.limit)
            upper[:] = lower
            lower[block.fixed] = upper[block.fixed] = value
        return lower, upper

    def free_bounds_of(self, int slot):
        """Return (lower, upper) of a slab's columns as if it were not fixed, (n,) float64 each, new arrays."""
        cdef Block* block = self.block_at(slot)
        cdef Slab slab = self.slabs[slot]
        n = block.n_columns
        lower = np.zeros(n) if slab.lower_each is None else slab.lower_each.copy()
        return lower, np.full(n, block.upper) if slab.upper_each is None else slab.upper_each.copy()

    def sizes_of(self, const int[::1] slots):
        """Return the number of columns of each slab, (n,) int32."""
        cdef Py_ssize_t i
        sizes = np.empty(slots.shape[0], dtype=np.int32)
        cdef int[::1] view = sizes
        with nogil:
            for i in range(slots.shape[0]):
                view[i] = self.blocks[slots[i]].n_columns
        return sizes

    def any_integer(self, const int[::1] slots):
        """Return whether the columns of any of these slots must be whole in an integer plan.

        Some slots may be free, or beyond the last one.
        """
        cdef Py_ssize_t i
        for i in range(slots.shape[0]):
            if slots[i] < self.n_slots and self.blocks[slots[i]].n_columns and self.blocks[slots[i]].integer:
                return True
        return False

    def costs_at(self, const int[::1] slots, const int[::1] columns):
        """Return the cost of one column of each slab, (n,) float64."""
        cdef Py_ssize_t i
        costs = np.empty(slots.shape[0])
        cdef double[::1] view = costs
        with nogil:
            for i in range(slots.shape[0]):
                view[i] = self.cost_at(&self.blocks[slots[i]], columns[i])
        return costs

    # Columns side by side ------------------------------------------------------------------------------------------

    def gather(self, const int[::1] slots, const int[::1] start, const int[::1] columns):
        """Return flat copies of listed columns: columns[start[g]] to columns[start[g + 1] - 1] belong to slots[g]."""
        cdef Py_ssize_t g, n = columns.shape[0], count = slots.shape[0]
        cdef int e, k, j, entries = 0
        cdef Block* block
        cdef Pattern* pattern
        limits, costs, lowers, uppers = np.empty(count), np.empty(n), np.empty(n), np.empty(n)
        starts = np.zeros(n + 1, dtype=np.int32)
        cdef double[::1] limit = limits, cost = costs, lower = lowers, upper = uppers
        cdef int[::1] entry_start = starts
        with nogil:
            for g in range(count):
                pattern = self.blocks[slots[g]].pattern
                for e in range(start[g], start[g + 1]):
                    entries += pattern.column_start[columns[e] + 1] - pattern.column_start[columns[e]]
                    entry_start[e + 1] = entries
        rows, coefficients = np.empty(entries, dtype=np.int32), np.empty(entries)
        cdef int[::1] row = rows
        cdef double[::1] coefficient = coefficients
        entries = 0
        with nogil:
            for g in range(count):
                block = &self.blocks[slots[g]]
                pattern = block.pattern
                limit[g] = block.limit
                for e in range(start[g], start[g + 1]):
                    j = columns[e]
                    cost[e] = self.cost_at(block, j)
                    lower[e] = block.lower_each[j] if block.lower_each != NULL else 0.0
                    upper[e] = block.upper_each[j] if block.upper_each != NULL else block.upper
                    if upper[e] > block.limit and block.lower_each == NULL:
                        upper[e] = block.limit
                    if block.fixed == j:
                        lower[e] = upper[e]
                    elif block.fixed >= 0:
                        upper[e] = lower[e]
                    for k in range(pattern.column_start[j], pattern.column_start[j + 1]):
                        row[entries] = pattern.row[k]
                        coefficient[entries] = pattern.coefficient[k]
                        entries += 1
        return _Gathered(limits, costs, lowers, uppers, starts, rows, coefficients)

    def columns_by_key(self, const long[::1] key):
        """Return (slots, first column of each and the end, generation of each column's slot, :meth:`gather` of them).

        key : ndarray (n,) int64
            slot << 32 | column, ascending.
        """
        cdef Py_ssize_t j, n = key.shape[0], g = 0
        cdef const long[::1] ages = self.generation
        columns, ages_now = np.empty(n, dtype=np.int32), np.empty(n, dtype=np.int64)
        places, starts = np.empty(n, dtype=np.int32), np.empty(n + 1, dtype=np.int32)
        cdef int[::1] column = columns, slot = places, start = starts
        cdef long[::1] age = ages_now
        with nogil:
            for j in range(n):
                column[j] = <int>key[j]
                age[j] = ages[key[j] >> 32]
                if g == 0 or slot[g - 1] != key[j] >> 32:
                    slot[g], start[g] = <int>(key[j] >> 32), <int>j
                    g += 1
            start[g] = <int>n
        slots, firsts = places[:g].copy(), starts[:g + 1].copy()
        return slots, firsts, ages_now, self.gather(slots, firsts, columns)

    # Slabs side by side -------------------------------------------------------------------------------------------

    def starts_of(self, const int[::1] slots):
        """Return the first column of each slab when slabs are laid side by side, and the end, (n + 1,) int64."""
        cdef Py_ssize_t i
        start = np.zeros(slots.shape[0] + 1, dtype=np.int64)
        cdef long long[::1] view = start
        for i in range(slots.shape[0]):
            view[i + 1] = view[i] + self.block_at(slots[i]).n_columns
        return start

    def flat_lower(self, const int[::1] slots, long long n):
        """Return the lower bounds of slabs side by side, as if none were fixed, (n,) with n columns in all."""
        cdef Py_ssize_t i
        cdef int j
        cdef long long at = 0
        cdef Block* block
        lower = np.zeros(n)
        cdef double[::1] view = lower
        for i in range(slots.shape[0]):
            block = self.block_at(slots[i])
            if block.lower_each != NULL:
                for j in range(block.n_columns):
                    view[at + j] = block.lower_each[j]
            at += block.n_columns
        return lower

    def flat_columns(self, const int[::1] slots, long long n):
        """Return (cost, lower, upper) of slabs side by side, (n,) each; bounds as in :meth:`bounds_of`."""
        cdef Py_ssize_t i
        cdef int j, e
        cdef long long at = 0
        cdef double value
        cdef Block* block
        cost, lower, upper = np.empty(n), np.empty(n), np.empty(n)
        cdef double[::1] costs = cost, low = lower, high = upper
        for i in range(slots.shape[0]):
            block = self.block_at(slots[i])
            for j in range(block.n_columns):
                costs[at + j] = cost_of(block, j)
                low[at + j] = block.lower_each[j] if block.lower_each != NULL else 0.0
                high[at + j] = block.upper_each[j] if block.upper_each != NULL else block.upper
                if is_capped(block):
                    high[at + j] = block.limit
            for e in range(block.n_exceptions):
                costs[at + exception_at(block, e)] = exception_cost_at(block, e)
            if block.fixed >= 0:
                value = min(high[at + block.fixed], block.limit)
                for j in range(block.n_columns):
                    high[at + j] = low[at + j]
                low[at + block.fixed] = high[at + block.fixed] = value
            at += block.n_columns
        return cost, lower, upper

    def flat_entries(self, const int[::1] slots, long long n):
        """Return (column starts int64, row slots, coefficients) of slabs side by side with n columns in all."""
        cdef Py_ssize_t i
        cdef int j
        cdef long long at = 0, entries = 0, count
        cdef Pattern* pattern
        start = np.zeros(n + 1, dtype=np.int64)
        cdef long long[::1] starts = start
        for i in range(slots.shape[0]):
            pattern = self.block_at(slots[i]).pattern
            for j in range(pattern.n_columns):
                starts[at + j + 1] = entries + pattern.column_start[j + 1]
            entries += pattern.column_start[pattern.n_columns]
            at += pattern.n_columns
        row, coefficient = np.empty(entries, dtype=np.int32), np.empty(entries)
        cdef int[::1] rows = row
        cdef double[::1] values = coefficient
        at = 0
        for i in range(slots.shape[0]):
            pattern = self.blocks[slots[i]].pattern
            count = pattern.column_start[pattern.n_columns]
            if count:
                memcpy(&rows[at], pattern.row, count * sizeof(int))
                memcpy(&values[at], pattern.coefficient, count * sizeof(double))
            at += count
        return start, row, coefficient

    def flat_reduced_costs(self, const int[::1] slots, long long n, const double[::1] y, bint costs=True):
        """Return cost - A'y of slabs side by side, (n,), at row prices y (n_rows,); -A'y if not `costs`."""
        cdef Py_ssize_t i
        cdef int j, k
        cdef long long at = 0
        cdef double used
        cdef Pattern* pattern
        cost = self.flat_columns(slots, n)[0] if costs else np.zeros(n)
        cdef double[::1] view = cost
        if len(y) < self.n_rows:
            raise ValueError(f"{len(y)} prices for {self.n_rows} rows")
        for i in range(slots.shape[0]):
            pattern = self.blocks[slots[i]].pattern
            for j in range(pattern.n_columns):
                used = 0.0
                for k in range(pattern.column_start[j], pattern.column_start[j + 1]):
                    used += pattern.coefficient[k] * y[pattern.row[k]]
                view[at + j] -= used
            at += pattern.n_columns
        return cost

    def own_rows(self, const int[::1] slots, long long n):
        """Return the own rows of slabs side by side, n columns in all: rows that only one slab's columns are in.

        A slab with a finite limit or least sum has its sum as its first row; its private rows follow.

        Returns
        -------
        first : ndarray (slabs + 1,) int32
            First row of each slab.
        start, row, value : CSC arrays
            Entries by column, int32; row numbers are counted within the slab.
        lower, upper : ndarray (rows,)
        """
        cdef Py_ssize_t i
        cdef int j, k, rows = 0
        cdef bint summed
        cdef long long at = 0, entries = 0
        cdef Block* block
        cdef Pattern* pattern
        first = np.zeros(slots.shape[0] + 1, dtype=np.int32)
        start = np.zeros(n + 1, dtype=np.int32)
        cdef int[::1] first_view = first, starts = start
        for i in range(slots.shape[0]):
            block = self.block_at(slots[i])
            pattern = block.pattern
            rows += is_summed(block) + pattern.n_private
            entries += block.n_columns * is_summed(block) + (pattern.own_start[block.n_columns] if pattern.n_private
                                                             else 0)
            first_view[i + 1] = rows
        if entries >= 1 << 31:
            raise MemoryError(f"the requests' own rows have {entries} entries: there may be 2^31 - 1")
        row, value = np.empty(entries, dtype=np.int32), np.empty(entries)
        lower, upper = np.empty(rows), np.empty(rows)
        cdef int[::1] row_view = row
        cdef double[::1] values = value, low = lower, high = upper
        entries = 0
        for i in range(slots.shape[0]):
            block = &self.blocks[slots[i]]
            pattern = block.pattern
            summed = is_summed(block)
            if summed:
                low[first_view[i]], high[first_view[i]] = block.least, block.limit
            for k in range(pattern.n_private):
                low[first_view[i] + summed + k] = block.private_lower[k]
                high[first_view[i] + summed + k] = block.private_upper[k]
            for j in range(block.n_columns):
                if summed:
                    row_view[entries], values[entries] = 0, 1.0
                    entries += 1
                if pattern.n_private:
                    for k in range(pattern.own_start[j], pattern.own_start[j + 1]):
                        row_view[entries], values[entries] = pattern.own_row[k] + summed, pattern.own_value[k]
                        entries += 1
                starts[at + j + 1] = <int>entries
            at += block.n_columns
        return first, start, row, value, lower, upper

    def followed(self, const long[::1] key, const long[::1] generation):
        """Compare columns that were kept with the slabs that there are now.

        Parameters
        ----------
        key : ndarray (n,) int64
            slot << 32 | column, ascending.
        generation : ndarray (n,) int64
            Generation of each key's slot when it was kept.

        Returns
        -------
        alive : ndarray (n,) bool or None
            Whether each column's slab is still there; None if all are.
        fresh : ndarray int32
            Slots whose slabs have no such column, ascending.
        required : bool
            Whether there are resident or fixed slabs.
        """
        cdef Py_ssize_t j = 0, n = key.shape[0]
        cdef int slot, count = 0
        cdef bint known, gone = False
        cdef const long[::1] now = self.generation
        mask, fresh = np.ones(n, dtype=bool), np.empty(self.n_slots, dtype=np.int32)
        cdef unsigned char[::1] alive = mask.view(np.uint8)
        cdef int[::1] found = fresh
        with nogil:
            for slot in range(self.n_slots):
                known = False
                while j < n and key[j] >> 32 == slot:  # ends: j grows to the number of keys
                    if generation[j] == now[slot]:
                        known = True
                    else:
                        alive[j] = 0
                        gone = True
                    j += 1
                if not known and self.blocks[slot].n_columns > 0:
                    found[count] = slot
                    count += 1
            for j in range(j, n):
                alive[j] = 0
                gone = True
        return mask if gone else None, fresh[:count].copy(), self.n_resident > 0 or len(self.fixed_slots) > 0

    def required_columns(self):
        """Return (slot, column), int32 arrays, of the columns that any working set must hold: resident, fixed ones."""
        cdef int slot, j
        cdef long long count = 0, at = 0
        for slot in range(self.n_slots):
            if self.blocks[slot].resident:
                count += self.blocks[slot].n_columns
            elif self.blocks[slot].n_columns and self.blocks[slot].fixed >= 0:
                count += 1
        slots, columns = np.empty(count, dtype=np.int32), np.empty(count, dtype=np.int32)
        cdef int[::1] slot_view = slots, column_view = columns
        for slot in range(self.n_slots):
            if self.blocks[slot].resident:
                for j in range(self.blocks[slot].n_columns):
                    slot_view[at], column_view[at] = slot, j
                    at += 1
            elif self.blocks[slot].n_columns and self.blocks[slot].fixed >= 0:
                slot_view[at], column_view[at] = slot, self.blocks[slot].fixed
                at += 1
        return slots, columns

    def limits(self):
        """Return (limit (n_slots,) float64, fixed (n_slots,) bool) of all slots."""
        cdef int slot
        limit = np.empty(self.n_slots)
        fixed = np.empty(self.n_slots, dtype=np.uint8)
        cdef double[::1] limit_view = limit
        cdef unsigned char[::1] fixed_view = fixed
        for slot in range(self.n_slots):
            limit_view[slot] = self.blocks[slot].limit
            fixed_view[slot] = self.blocks[slot].fixed >= 0
        return limit, fixed.view(bool)

    def fixed_usages(self):
        """Return the units of each row that fixed slabs use, (n_rows,): :meth:`fixed_usage` of each row."""
        cdef int slot, k
        cdef Block* block
        cdef Pattern* pattern
        cdef double value
        used = np.zeros(self.n_rows)
        cdef double[::1] view = used
        for slot in sorted(self.fixed_slots):
            block = &self.blocks[slot]
            pattern = block.pattern
            value = min(block.upper, block.limit)
            for k in range(pattern.column_start[block.fixed], pattern.column_start[block.fixed + 1]):
                view[pattern.row[k]] += value * pattern.coefficient[k]
        return used

    def fixed_usage(self, int row):
        """Return the units of a row that fixed slabs use."""
        cdef int slot, k
        cdef Block* block
        cdef Pattern* pattern
        cdef double total = 0.0, value
        for slot in sorted(self.fixed_slots):
            block = &self.blocks[slot]
            pattern = block.pattern
            value = min(block.upper, block.limit)
            for k in range(pattern.column_start[block.fixed], pattern.column_start[block.fixed + 1]):
                if pattern.row[k] == row:
                    total += value * pattern.coefficient[k]
        return total

    def rounding_bound(self):
        """Return a bound on the error of the objective, at any feasible point, that storing costs in float32 makes.

        Sum over float32 slabs of |scale| * rounding * (largest possible sum of |x|); inf if such a sum is unbounded.
        """
        cdef int slot
        cdef Slab slab
        cdef double total = 0.0
        for slot in range(self.n_slots if self.has_single else 0):
            if self.blocks[slot].n_columns and self.blocks[slot].single_precision:
                slab = self.slabs[slot]
                if slab.rounding > 0.0 and self.blocks[slot].scale != 0.0:
                    total += fabs(self.blocks[slot].scale) * slab.rounding * self.largest_sum(slot)
        return total

    def largest_sum(self, int slot):
        """Return the largest sum of |x| over a slab's columns within its bounds and limit."""
        cdef Block* block = self.block_at(slot)
        if not block.resident:
            return block.limit
        lower, upper = self.free_bounds_of(slot)
        below = float(np.maximum(-lower, 0.0).sum())
        return min(float(np.maximum(np.abs(lower), np.abs(upper)).sum()), block.limit + 2.0 * below)

    def resident_of(self, const int[::1] slots):
        """Return whether each of these slots' slabs is resident, (n,) bool."""
        cdef Py_ssize_t i
        found = np.empty(slots.shape[0], dtype=bool)
        cdef unsigned char[::1] view = found.view(np.uint8)
        for i in range(slots.shape[0]):
            view[i] = self.blocks[slots[i]].resident
        return found

    def resident_mask(self):
        """Return whether each slot's slab is resident, (n_slots,) bool: all its columns are in every working set."""
        cdef int slot
        mask = np.empty(self.n_slots, dtype=np.uint8)
        cdef unsigned char[::1] view = mask
        for slot in range(self.n_slots):
            view[slot] = self.blocks[slot].resident
        return mask.view(bool)
