"""The constraint matrix as a list of slabs, one a request, edited in place.

A request is a slab of columns that share a template (usage pattern and coefficients) and own their costs. Slabs hang
in a table of slots: adding one fills a free slot, removing one empties it, and nothing else moves. Resources are rows;
what touches a row is found through the templates, which are few. This is the List-of-Lists trade of thesis 4.3.2
with the inner lists long enough to run at memory speed.
"""

import numpy as np

from cython.parallel cimport prange
from libc.math cimport INFINITY
from libc.stdlib cimport free, realloc
from libc.string cimport memset

from copter.kernels.layout cimport MAX_SEGMENTS, Block, Pattern, exception_at, exception_cost_at
from copter.kernels.price cimport price_block, price_pattern


cdef const double* double_pointer(object array) except? NULL:
    """Address of a float64 array that its owner keeps alive; NULL for None or an empty one."""
    cdef const double[::1] view
    if array is None or len(array) == 0:
        return NULL
    view = array
    return &view[0]


cdef const int* int_pointer(object array) except? NULL:
    cdef const int[::1] view
    if array is None or len(array) == 0:
        return NULL
    view = array
    return &view[0]


def segments_of(column_start, row):
    """Cut columns into runs that use the same rows; one run if there would be more than MAX_SEGMENTS."""
    n = len(column_start) - 1
    if n == 0:
        return np.zeros(1, dtype=np.int32)
    counts = np.diff(column_start)
    same = counts[1:] == counts[:n - 1]
    if same.any():
        width = counts.max(initial=0)
        padded = np.full((n, width + 1), -1, dtype=np.int64)
        inside = np.arange(width + 1) < counts[:, None]
        padded[inside] = row
        same &= (padded[1:] == padded[:n - 1]).all(axis=1)
    starts = np.concatenate(([0], np.flatnonzero(~same) + 1, [n])).astype(np.int32)
    if len(starts) - 1 > MAX_SEGMENTS:
        starts = np.array([0, n], dtype=np.int32)
    return starts


cdef class Template:
    """Usage of a request's columns (n of them), by column: CSC arrays over row slots, held read-only."""

    def __init__(self, column_start, row, coefficient):
        self.column_start = np.ascontiguousarray(column_start, dtype=np.int32)
        self.row = np.ascontiguousarray(row, dtype=np.int32)
        self.coefficient = np.ascontiguousarray(coefficient, dtype=np.float64)
        self.pattern.n_users = 0
        self.refresh()

    cdef void refresh(self):
        """Point the kernels at the arrays as they now are."""
        cdef double[::1] usage
        self.segment_start = segments_of(self.column_start, self.row)
        self.pattern.n_columns = <int>len(self.column_start) - 1
        self.pattern.n_segments = <int>len(self.segment_start) - 1
        self.priced_usage = np.zeros(max(self.pattern.n_columns, 1))
        usage = self.priced_usage
        self.pattern.priced_usage = &usage[0]
        self.pattern.column_start = int_pointer(self.column_start)
        self.pattern.row = int_pointer(self.row)
        self.pattern.coefficient = double_pointer(self.coefficient)
        self.pattern.segment_start = int_pointer(self.segment_start)

    @property
    def n_columns(self):
        """Number of columns."""
        return self.pattern.n_columns

    @property
    def users(self):
        """Number of live slabs that use this template."""
        return self.pattern.n_users

    def drop_row(self, int slot):
        """Take a row's entries out."""
        counts = np.diff(self.column_start)
        owner = np.repeat(np.arange(len(counts)), counts)
        kept = self.row != slot
        self.column_start = np.concatenate(
            ([0], np.cumsum(np.bincount(owner[kept], minlength=len(counts))))
        ).astype(np.int32)
        self.row = np.ascontiguousarray(self.row[kept])
        self.coefficient = np.ascontiguousarray(self.coefficient[kept])
        self.refresh()

    def touches(self, int slot):
        """Whether any column uses this row."""
        return bool((self.row == slot).any())


cdef class Slab:
    """One request's columns: the arrays that its block in the slot table points at."""

    def __init__(self, Template template, int slot):
        self.template = template
        self.slot = slot


cdef class BlockMatrix:
    """Slabs in slots, rows in row slots; every edit costs time in proportion to the slab that it touches."""

    def __cinit__(self):
        self.blocks = NULL
        self.capacity = 0

    def __init__(self):
        self.slabs = []
        self.free_slots = []
        self.free_rows = []
        self.generation = np.zeros(0, dtype=np.int64)
        self.row_lower = np.zeros(0)
        self.row_upper = np.zeros(0)
        self.row_scale = np.zeros(0)
        self.row_generation = np.zeros(0, dtype=np.int64)
        self.templates = {}

    def __dealloc__(self):
        free(self.blocks)

    # Rows ---------------------------------------------------------------------------------------------------------

    def add_row(self, double lower, double upper):
        """Add a row lower <= a'x <= upper without entries; return its slot."""
        if self.free_rows:
            slot = self.free_rows.pop()
        else:
            slot = self.n_rows
            self.n_rows += 1
            if slot >= len(self.row_lower):
                room = max(8, 2 * slot)
                self.row_lower = np.concatenate((self.row_lower, np.full(room - slot, -np.inf)))
                self.row_upper = np.concatenate((self.row_upper, np.full(room - slot, np.inf)))
                self.row_scale = np.concatenate((self.row_scale, np.ones(room - slot)))
                self.row_generation = np.concatenate((self.row_generation, np.zeros(room - slot, dtype=np.int64)))
        self.row_lower[slot], self.row_upper[slot], self.row_scale[slot] = lower, upper, 1.0
        return slot

    def set_row_bounds(self, int slot, double lower, double upper):
        """Change the bounds of a row."""
        self.row_lower[slot], self.row_upper[slot] = lower, upper

    def drop_row(self, int slot):
        """Take a row out, with its entries in every template."""
        for template in self.templates:
            if template.touches(slot):
                template.drop_row(slot)
        self.row_lower[slot], self.row_upper[slot], self.row_scale[slot] = -np.inf, np.inf, 1.0
        self.row_generation[slot] += 1
        self.free_rows.append(slot)

    # Templates and slabs ------------------------------------------------------------------------------------------

    def add_template(self, column_start, row, coefficient):
        """Add a usage pattern; `row` holds row slots, ascending within a column."""
        template = Template(column_start, row, coefficient)
        self.templates[template] = None
        if len(template.row):
            np.maximum.at(self.row_scale, template.row, np.abs(template.coefficient))
        return template

    def drop_template(self, Template template):
        """Forget a pattern that no slab uses."""
        del self.templates[template]

    cdef int reserve(self) except -1:
        """Make room for one more slot."""
        cdef int room
        cdef Block* grown
        if self.n_slots < self.capacity:
            return 0
        room = max(16, 2 * self.capacity)
        grown = <Block*>realloc(self.blocks, room * sizeof(Block))
        if grown == NULL:
            raise MemoryError("no memory for more requests")
        memset(grown + self.capacity, 0, (room - self.capacity) * sizeof(Block))
        self.blocks = grown
        self.generation = np.concatenate((self.generation, np.zeros(room - self.capacity, dtype=np.int64)))
        self.capacity = room
        return 0

    cdef Block* block_at(self, int slot) except NULL:
        if slot < 0 or slot >= self.n_slots or self.slabs[slot] is None:
            raise IndexError(f"no slab in slot {slot}")
        return &self.blocks[slot]

    def add_slab(self, Template template, cost, double limit, lower, upper, double scale=1.0, double offset=0.0):
        """Hang a slab into a free slot and return the slot.

        `cost` (n,) is kept, not copied. `lower`, `upper`: a float for all columns or an array (n,) that is kept.
        """
        cdef Block* block
        cdef int slot
        if self.free_slots:
            slot = self.free_slots.pop()
        else:
            self.reserve()
            slot = self.n_slots
            self.n_slots += 1
            self.slabs.append(None)
        slab = Slab(template, slot)
        slab.cost = cost
        slab.lower_each = None if np.isscalar(lower) and lower == 0.0 else \
            np.ascontiguousarray(np.broadcast_to(lower, template.n_columns), dtype=np.float64)
        slab.upper_each = None if np.isscalar(upper) else upper
        self.slabs[slot] = slab
        block = &self.blocks[slot]
        block.n_columns = template.n_columns
        block.fixed = -1
        block.n_exceptions = 0
        block.scale, block.offset, block.limit = scale, offset, limit
        block.upper = upper if np.isscalar(upper) else INFINITY
        block.pattern = &template.pattern
        block.cost = double_pointer(cost)
        block.exception_column, block.exception_cost = NULL, NULL
        block.lower_each = double_pointer(slab.lower_each)
        block.upper_each = double_pointer(slab.upper_each)
        block.resident = not (slab.lower_each is None and slab.upper_each is None and limit < INFINITY
                              and limit <= block.upper)
        template.pattern.n_users += 1
        self.generation[slot] += 1
        self.n_columns += template.n_columns
        return slot

    def remove_slab(self, int slot):
        """Empty a slot: pointers only, whatever the size of the model."""
        cdef Block* block = self.block_at(slot)
        cdef Slab slab = self.slabs[slot]
        slab.template.pattern.n_users -= 1
        self.n_columns -= block.n_columns
        memset(block, 0, sizeof(Block))
        block.fixed = -1
        self.slabs[slot] = None
        self.generation[slot] += 1
        self.free_slots.append(slot)

    # Costs and fixing ---------------------------------------------------------------------------------------------

    def set_cost(self, int slot, cost, double scale, double offset):
        """Replace a slab's cost array (kept, not copied), scale and offset; exceptions are forgotten."""
        cdef Block* block = self.block_at(slot)
        cdef Slab slab = self.slabs[slot]
        slab.cost = cost
        block.cost = double_pointer(cost)
        block.scale, block.offset = scale, offset
        self.set_exceptions(slot, None, None)

    def set_scale(self, int slot, double scale, double offset):
        """Change scale and offset of a slab's costs: O(1)."""
        cdef Block* block = self.block_at(slot)
        block.scale, block.offset = scale, offset

    def scale_of(self, int slot):
        """(scale, offset) of a slab's costs."""
        cdef Block* block = self.block_at(slot)
        return block.scale, block.offset

    def limit_of(self, int slot):
        """Largest sum of a slab's columns."""
        return self.block_at(slot).limit

    def fixed_of(self, int slot):
        """Column that a slab is fixed on, or -1."""
        return self.block_at(slot).fixed

    def is_resident(self, int slot):
        """Whether all columns of a slab are in the working set at all times."""
        return self.block_at(slot).resident == 1

    def set_exceptions(self, int slot, columns, costs):
        """Columns (ascending) whose costs are given as they are; None for none."""
        cdef Block* block = self.block_at(slot)
        cdef Slab slab = self.slabs[slot]
        count = 0 if columns is None else len(columns)
        block.n_exceptions = <int>count
        slab.exception_column = np.ascontiguousarray(columns, dtype=np.int32) if count > 1 else None
        slab.exception_cost = np.ascontiguousarray(costs, dtype=np.float64) if count > 1 else None
        block.exception_column = int_pointer(slab.exception_column)
        block.exception_cost = double_pointer(slab.exception_cost)
        if count == 1:
            block.single_column, block.single_cost = columns[0], costs[0]

    def rescale(self, const int[::1] slots, const double[::1] scale, const double[::1] offset,
                const int[::1] column, const double[::1] cost):
        """Set scale, offset and at most one exception (column -1: none) of many slabs, in one call."""
        cdef Py_ssize_t i
        cdef Block* block
        with nogil:
            for i in range(slots.shape[0]):
                block = &self.blocks[slots[i]]
                block.scale, block.offset = scale[i], offset[i]
                block.n_exceptions = column[i] >= 0
                block.single_column, block.single_cost = column[i], cost[i]

    def sizes_of(self, const int[::1] slots):
        """Number of columns of each slab, (n,) int32."""
        cdef Py_ssize_t i
        sizes = np.empty(slots.shape[0], dtype=np.int32)
        cdef int[::1] view = sizes
        with nogil:
            for i in range(slots.shape[0]):
                view[i] = self.blocks[slots[i]].n_columns
        return sizes

    def costs_at(self, const int[::1] slots, const int[::1] columns):
        """Cost of one column of each slab, (n,) float64."""
        cdef Py_ssize_t i
        costs = np.empty(slots.shape[0])
        cdef double[::1] view = costs
        with nogil:
            for i in range(slots.shape[0]):
                view[i] = self.cost_at(&self.blocks[slots[i]], columns[i])
        return costs

    def set_fixed(self, int slot, int column):
        """Hold one column at its upper bound and all others at their lower; -1 frees them."""
        cdef Block* block = self.block_at(slot)
        block.fixed = column

    def costs_of(self, int slot):
        """Costs of a slab's columns, (n,) float64, a new array."""
        cdef Block* block = self.block_at(slot)
        cdef Slab slab = self.slabs[slot]
        costs = block.scale * slab.cost + block.offset
        if block.n_exceptions == 1:
            costs[block.single_column] = block.single_cost
        elif block.n_exceptions > 1:
            costs[slab.exception_column] = slab.exception_cost
        return costs

    def bounds_of(self, int slot):
        """(lower, upper) of a slab's columns, (n,) float64 each, new arrays; a fixed slab's are equal."""
        cdef Block* block = self.block_at(slot)
        cdef Slab slab = self.slabs[slot]
        n = block.n_columns
        lower = np.zeros(n) if slab.lower_each is None else slab.lower_each.copy()
        upper = np.full(n, block.upper) if slab.upper_each is None else slab.upper_each.copy()
        if block.fixed >= 0:
            value = min(upper[block.fixed], block.limit)
            upper[:] = lower
            lower[block.fixed] = upper[block.fixed] = value
        return lower, upper

    def lower_of(self, int slot):
        """Lower bounds of a slab's columns when it is not fixed, (n,) float64, a new array."""
        cdef Block* block = self.block_at(slot)
        cdef Slab slab = self.slabs[slot]
        return np.zeros(block.n_columns) if slab.lower_each is None else slab.lower_each.copy()

    # Passes -------------------------------------------------------------------------------------------------------

    def price(self, const double[::1] y, const double[::1] threshold, int n_threads, double weight=1.0):
        """Price every slab that is not resident at the row prices y (n_rows,).

        threshold (n_slots,): columns with a reduced cost below it are found. weight: factor on all costs (0 prices
        a ray of the dual: the columns that speak against infeasibility are found).

        Returns
        -------
        smallest : ndarray (n_slots,) float64
            Smallest reduced cost of each slab; that of the fixed column for a fixed slab; inf for resident and
            empty slots.
        slot, column : ndarray int32
            Best column of each segment below its slab's threshold, by slot.
        reduced_cost : ndarray float64
        """
        cdef int i, n = self.n_slots
        cdef Template template
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
        for template in self.templates:
            if template.pattern.n_users:
                price_pattern(&template.pattern, &y[0] if y.shape[0] else NULL)
        for i in prange(n, nogil=True, num_threads=n_threads, schedule="dynamic", chunksize=16):
            self.price_slot(i, weight, &threshold[0], &smallest_view[0], &column_view[0, 0], &reduced_view[0, 0],
                            &found_view[0])
        inside = np.arange(MAX_SEGMENTS) < found[:, None]
        slot = np.repeat(np.arange(n, dtype=np.int32), found)
        return smallest, slot, column[inside], reduced[inside]

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

    cdef double cost_at(self, const Block* block, int column) noexcept nogil:
        cdef int e
        for e in range(block.n_exceptions):
            if exception_at(block, e) == column:
                return exception_cost_at(block, e)
        return block.scale * block.cost[column] + block.offset

    def gather_sizes(self, const int[::1] slots, const int[::1] start, const int[::1] columns):
        """Number of matrix entries of the listed columns: group g's, of slots[g], are columns[start[g]:start[g+1]]."""
        cdef Py_ssize_t g
        cdef int e, j
        cdef long long entries = 0
        cdef const int* column_start
        with nogil:
            for g in range(slots.shape[0]):
                column_start = self.blocks[slots[g]].pattern.column_start
                for e in range(start[g], start[g + 1]):
                    j = columns[e]
                    entries += column_start[j + 1] - column_start[j]
        return entries

    def gather(self, const int[::1] slots, const int[::1] start, const int[::1] columns, double[::1] limit,
               double[::1] cost, double[::1] lower, double[::1] upper, int[::1] entry_start, int[::1] row,
               double[::1] coefficient):
        """Copy the listed columns out into flat arrays (costs, bounds, CSC entries) and the groups' limits."""
        cdef Py_ssize_t g
        cdef int e, k, j, entries = 0
        cdef Block* block
        cdef Pattern* pattern
        with nogil:
            entry_start[0] = 0
            for g in range(slots.shape[0]):
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
                    entry_start[e + 1] = entries

    def required_columns(self):
        """(slot, column) int32 arrays of the columns that a working set must hold: resident slabs', fixed ones."""
        cdef int slot
        cdef list slots = [], columns = []
        for slot in range(self.n_slots):
            if self.blocks[slot].n_columns == 0:
                continue
            if self.blocks[slot].resident:
                columns.append(np.arange(self.blocks[slot].n_columns, dtype=np.int32))
                slots.append(np.full(self.blocks[slot].n_columns, slot, dtype=np.int32))
            elif self.blocks[slot].fixed >= 0:
                columns.append(np.array([self.blocks[slot].fixed], dtype=np.int32))
                slots.append(np.array([slot], dtype=np.int32))
        if not slots:
            return np.zeros(0, dtype=np.int32), np.zeros(0, dtype=np.int32)
        return np.concatenate(slots), np.concatenate(columns)

    def limits(self):
        """(limit (n_slots,) float64, fixed (n_slots,) bool) of all slots."""
        cdef int slot
        limit = np.empty(self.n_slots)
        fixed = np.empty(self.n_slots, dtype=np.uint8)
        cdef double[::1] limit_view = limit
        cdef unsigned char[::1] fixed_view = fixed
        for slot in range(self.n_slots):
            limit_view[slot] = self.blocks[slot].limit
            fixed_view[slot] = self.blocks[slot].fixed >= 0
        return limit, fixed.view(bool)

    def resident_mask(self):
        """Whether each slot's slab is resident, (n_slots,) bool."""
        cdef int slot
        mask = np.empty(self.n_slots, dtype=np.uint8)
        cdef unsigned char[::1] view = mask
        for slot in range(self.n_slots):
            view[slot] = self.blocks[slot].resident
        return mask.view(bool)
