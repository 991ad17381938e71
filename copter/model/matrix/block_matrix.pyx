"""Passes over all slabs of the constraint matrix: pricing, gathering columns, and other reads by the solver."""

import numpy as np

from copter.model.matrix.gathered import Gathered as _Gathered

from cython.parallel cimport prange
from libc.math cimport INFINITY, NAN, fabs, isnan
from libc.stdlib cimport calloc, free, malloc
from libc.string cimport memcpy
from posix.time cimport CLOCK_MONOTONIC, clock_gettime, timespec

from copter.model.matrix.fetch cimport fetch_cost, fetch_head, fetch_pattern
from copter.model.matrix.layout cimport (
    MAX_SEGMENTS, Block, Pattern, cost_of, exception_at, exception_cost_at, is_summed
)
from copter.model.matrix.price cimport price_block, price_pattern
from copter.model.matrix.list_of_lists cimport ListOfLists, Slab
from copter.model.matrix.template cimport Template

from copter.runtime import threads as _threads

cdef enum:
    OFTEN = 16  # patterns priced between two looks at the clock
    FEW = 4  # slots priced between two looks at the clock
    AHEAD = 2  # patterns that are prefetched before they are priced

cdef double HALF_ULP = 2.0 ** -53  # largest relative error of one rounded operation in float64


cdef inline double now_s() noexcept nogil:
    """Return the seconds of a monotonic clock."""
    cdef timespec moment
    clock_gettime(CLOCK_MONOTONIC, &moment)
    return moment.tv_sec + 1e-9 * moment.tv_nsec


cdef inline bint is_capped(const Block* block) noexcept nogil:
    """Return whether the limit bounds each column that has no upper bound of its own."""
    return (block.lower_each == NULL and block.upper_each == NULL and block.upper == INFINITY
            and block.limit < INFINITY)


cdef inline double offset_size(const Block* block) noexcept nogil:
    """Return |offset| of a block's costs, plus |most| if it has one, to which a cost's rounding error is relative."""
    return fabs(block.offset) + (fabs(block.most) if block.most < INFINITY else 0.0)


cdef class BlockMatrix(ListOfLists):
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

    cdef double cost_at(self, const Block* block, int column) noexcept nogil:
        cdef int e
        for e in range(block.n_exceptions):
            if exception_at(block, e) == column:
                return exception_cost_at(block, e)
        return cost_of(block, column)

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
        """Return whether the columns of any of these slots must be whole in an integer plan."""
        cdef Py_ssize_t i
        cdef list slabs = self.slabs
        for i in range(slots.shape[0]):
            if (<Slab>slabs[slots[i]]).integer:
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

    # Passes -------------------------------------------------------------------------------------------------------

    def price(self, const double[::1] y, const double[::1] threshold, int n_threads, double weight=1.0,
              double seconds=INFINITY):
        """Price each slab that is not resident at the row prices y (n_rows,).

        Parameters
        ----------
        y : ndarray (n_rows,) float64
        threshold : ndarray (n_slots,) float64
            Columns with a reduced cost below their slot's threshold are returned.
        n_threads : int
        weight : float
            Factor on all costs. With 0, y is a ray of the dual: the columns returned are those that contradict
            infeasibility.
        seconds : float
            Wall-clock time after which no further slab is priced.

        Returns
        -------
        smallest : ndarray (n_slots,) float64
            Smallest reduced cost of each slab; the fixed column's for a fixed slab; inf for resident and empty slots;
            NaN for slabs not priced in time.
        slot, column : ndarray int32
            Best column of each segment below its slot's threshold, by slot.
        reduced_cost : ndarray float64
            Of these columns.
        """
        cdef int i, n = self.n_slots, n_patterns = 0, threads = _threads.safe_threads(n_threads)
        cdef Template template
        cdef Pattern** patterns
        smallest = np.full(n, np.inf)
        column = np.empty((n, MAX_SEGMENTS), dtype=np.int32)
        reduced = np.empty((n, MAX_SEGMENTS))
        found = np.zeros(n, dtype=np.int32)
        cdef double[::1] smallest_view = smallest
        cdef int[:, ::1] column_view = column
        cdef double[:, ::1] reduced_view = reduced
        cdef int[::1] found_view = found
        if n == 0:
            return smallest, found, found, smallest
        if len(y) < self.n_rows or len(threshold) < n:
            raise ValueError(f"{len(y)} prices for {self.n_rows} rows, {len(threshold)} thresholds for {n} slots")
        cdef const double* prices = &y[0] if y.shape[0] else NULL
        patterns = <Pattern**>malloc((len(self.templates) + 1) * sizeof(Pattern*))
        if patterns == NULL:
            raise MemoryError("no memory for a pricing pass")
        for template in self.templates:
            if template.pattern.n_users:
                patterns[n_patterns] = &template.pattern
                n_patterns += 1
        cdef double end = now_s() + seconds
        cdef bint skipped = False
        cdef unsigned char* late = <unsigned char*>calloc(n_patterns // OFTEN + 1, 1)
        if late == NULL:
            free(patterns)
            raise MemoryError("no memory for a pricing pass")
        for i in prange(n_patterns, nogil=True, num_threads=threads, schedule="static", chunksize=OFTEN):
            if i % OFTEN == 0 and seconds < INFINITY and now_s() > end:
                late[i // OFTEN] = 1
            if late[i // OFTEN]:
                continue
            if i + 2 * AHEAD < n_patterns:
                fetch_head(patterns[i + 2 * AHEAD])
                fetch_pattern(patterns[i + AHEAD])
            price_pattern(patterns[i], prices)
        for i in range(n_patterns // OFTEN + 1):
            skipped |= late[i]
        free(late)
        free(patterns)
        if skipped:
            smallest[:] = np.nan
            return smallest, found[:0], found[:0], smallest[:0]
        for i in prange(n, nogil=True, num_threads=threads, schedule="dynamic", chunksize=4 * FEW):
            if seconds < INFINITY and (i % FEW and isnan(smallest_view[i - i % FEW]) or not i % FEW and now_s() > end):
                smallest_view[i] = NAN
                continue
            if i + 4 * AHEAD < n:
                fetch_cost(&self.blocks[i + 4 * AHEAD])
            self.price_slot(i, weight, &threshold[0], &smallest_view[0], &column_view[0, 0], &reduced_view[0, 0],
                            &found_view[0])
        inside = np.arange(MAX_SEGMENTS) < found[:, None]
        slot = np.repeat(np.arange(n, dtype=np.int32), found)
        return smallest, slot, column[inside], reduced[inside]

    def price_errors(self):
        """Return the absolute part of a bound on each slab's rounding error in the last pricing, (n_slots,) float64.

        The exact reduced cost d of a column differs from the computed one by at most this plus 8 half ulps of |d|. The
        bound covers the rounding of costs, because |scale * cost| is at most the sum of |d|, the priced usage and the
        offset (or the slab's most and the offset, if the most replaces the cost). Zero for resident and empty slots.
        """
        cdef int i
        cdef Block* block
        errors = np.zeros(self.n_slots)
        cdef double[::1] view = errors
        for i in range(self.n_slots):
            block = &self.blocks[i]
            if block.n_columns and not block.resident:
                view[i] = 8.0 * HALF_ULP * (block.pattern.priced_size + 2.0 * offset_size(block))
        return errors

    def offsets(self):
        """Return |offset| of every slot's costs, plus |most| if it has one, (n_slots,) float64."""
        cdef int i
        found = np.zeros(self.n_slots)
        cdef double[::1] view = found
        for i in range(self.n_slots):
            view[i] = offset_size(&self.blocks[i]) if self.blocks[i].n_columns else 0.0
        return found

    cdef void price_slot(self, int i, double weight, const double* threshold, double* smallest, int* column,
                         double* reduced, int* found) noexcept nogil:
        cdef Block* block = &self.blocks[i]
        if block.n_columns == 0 or block.resident:
            return
        if block.fixed >= 0:
            smallest[i] = weight * self.cost_at(block, block.fixed) - block.pattern.priced_usage[block.fixed]
            return
        price_block(block, weight, threshold[i], &smallest[i], &column[i * MAX_SEGMENTS], &reduced[i * MAX_SEGMENTS],
                    &found[i])

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
        for slot in range(self.n_slots):
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

    def resident_mask(self):
        """Return whether each slot's slab is resident, (n_slots,) bool: all its columns are in every working set."""
        cdef int slot
        mask = np.empty(self.n_slots, dtype=np.uint8)
        cdef unsigned char[::1] view = mask
        for slot in range(self.n_slots):
            view[slot] = self.blocks[slot].resident
        return mask.view(bool)
