"""The constraint matrix as a list of slabs, one per request, edited in place.

A request is a slab of columns that share a template (usage pattern and coefficients) and own their costs. Slabs hang
in a table of slots: adding one fills a free slot, removing one empties it, and nothing else moves. This is the
List-of-Lists trade-off of thesis 4.3.2, with inner lists so long that passes run at memory speed. Every edit can be
undone exactly: see :class:`SavedSlab` and the `retract` methods.
"""

import numpy as np

from libc.math cimport INFINITY
from libc.stdlib cimport free, realloc
from libc.string cimport memcpy, memset

from copter.model.matrix.layout cimport Block, has_rows
from copter.model.matrix.row_lists cimport RowLists
from copter.model.matrix.screen cimport rescaled
from copter.model.matrix.template cimport Template, address, double_pointer, int_pointer


cdef const void* cost_pointer(object cost) except? NULL:
    """Return the address of a float64 or float32 array that its owner keeps alive."""
    if cost.dtype.char == "f":
        return address(cost, sizeof(float), b"f", b"f")
    return double_pointer(cost)


cdef inline bint is_simple(const Block* block) noexcept nogil:
    """Return whether all columns are between zero and one common upper bound that is no less than the limit."""
    return (block.lower_each == NULL and block.upper_each == NULL and block.limit < INFINITY
            and block.limit <= block.upper)


cdef int require_table(Template template, table, Py_ssize_t place) except -1:
    """Raise ValueError unless row `place` of a table holds bounds for all private rows of the template."""
    cdef int rows = template.pattern.n_private
    if table is None:
        if rows:
            raise ValueError(f"the template has {rows} private rows, of which no bounds are given")
    elif rows == 0 or table.ndim != 2 or table.shape[1] != 2 * rows or not 0 <= place < table.shape[0]:
        raise ValueError(f"private bounds have shape {table.shape}, the template has {rows} private rows")
    return 0


cdef inline bint is_number(object bound):
    """Return whether a bound is one number for all columns."""
    return isinstance(bound, float) or not isinstance(bound, np.ndarray)


cdef class Slab:
    """One request's columns: the arrays that the request's block in the slot table points to.

    Attributes
    ----------
    rounding : float
        Largest error of storing the costs (before scale); zero for float64.
    integer : bool
        Whether columns must be whole in an integer plan.
    whole_each : ndarray of bool (n,) or None
        Which of them must be, if not all or none.
    private_bounds : ndarray (k, 2 * rows) or None
        Table with the private rows' lower, then upper bounds; the block points to one row of it. Slabs added together
        share a table. Entries change in place.
    """

    def __init__(self, Template template, int slot):
        self.template = template
        self.slot = slot

    @property
    def cost(self):
        """Costs, (n,), float64 or float32, before scale and offset; the same object until other costs are set."""
        if self.own_cost is None:
            self.own_cost = self.flat_cost[self.first_cost:self.first_cost + self.template.pattern.n_columns]
        return self.own_cost

    cdef void keep_cost(self, object cost):
        """Hold an array as the costs."""
        self.own_cost, self.flat_cost = cost, None

    cdef int keep_whole(self, object integer) except -1:
        """Keep which columns must be whole: a bool for all, or an array (n,)."""
        self.whole_each = None
        if not isinstance(integer, np.ndarray):
            self.integer = integer
            return 0
        if integer.shape != (self.template.n_columns,):
            raise ValueError(f"integrality has shape {integer.shape}, not ({self.template.n_columns},)")
        self.integer = integer.any()
        if self.integer and not integer.all():
            self.whole_each = np.array(integer, dtype=bool)
        return 0


cdef class SavedSlab:
    """A slab's state before an edit: :meth:`ListOfLists.restore_slab` restores it to the last bit."""


cdef class ListOfLists(RowLists):
    """Slabs in slots over rows in row slots; an edit takes time in proportion to the slab that it touches."""

    def __cinit__(self):
        self.blocks = NULL
        self.capacity = 0
        self.stamps, self.has_single = 0, False

    def __init__(self):
        RowLists.__init__(self)
        self.slabs = []
        self.free_slots = []
        self.fixed_slots = {}
        self.ages = self.generation = np.zeros(0, dtype=np.int64)

    def __dealloc__(self):
        free(self.blocks)

    # Slabs --------------------------------------------------------------------------------------------------------

    cdef int reserve(self, int slots) except -1:
        """Make room for this many slots."""
        cdef int room
        cdef Block* grown
        if slots <= self.capacity:
            return 0
        room = max(16, slots, self.capacity + self.capacity // 2)
        generation = self.generation
        if room > len(generation):  # first: a signal may end it, and blocks without a generation must not be
            generation = np.concatenate((generation, np.zeros(room - len(generation), dtype=np.int64)))
        grown = <Block*>realloc(self.blocks, room * sizeof(Block))
        if grown == NULL:
            raise MemoryError("no memory for more requests")
        memset(grown + self.capacity, 0, (room - self.capacity) * sizeof(Block))
        self.blocks = grown
        self.capacity = room
        self.ages = self.generation = generation
        return 0

    def make_room(self, int more):
        """Make room for so many slabs more at once, so that the table of slots is not moved while they are added."""
        self.reserve(self.n_slots + max(more - <int>len(self.free_slots), 0))

    cdef long long next_stamp(self) noexcept nogil:
        """Return a number for costs that are new to a block: what was derived from others is not of these."""
        self.stamps += 1
        return self.stamps

    cdef Block* block_at(self, int slot) except NULL:
        if slot < 0 or slot >= self.n_slots or self.slabs[slot] is None:
            raise IndexError(f"no slab in slot {slot}")
        return &self.blocks[slot]

    def add_slab(self, Template template, cost, double limit, lower, upper, double scale=1.0, double offset=0.0,
                 integer=False, double rounding=0.0, double least=-INFINITY, private_bounds=None,
                 Py_ssize_t place=0):
        """Put a slab into a free slot and return the slot.

        The arrays are kept, not copied: `cost` (n,), float64 or float32; `lower` and `upper`, each a float for all
        columns or an array (n,); and `private_bounds` (k, 2 * rows), a table whose row `place` is the slab's.
        """
        cdef int slot
        slab = self.new_slab(template, cost, lower, upper, integer, rounding)
        require_table(template, private_bounds, place)
        if self.free_slots:
            slot = self.free_slots.pop()
        else:
            self.reserve(self.n_slots + 1)
            slot = self.n_slots
            self.n_slots += 1
            self.slabs.append(None)
        self.hang(slot, slab, limit, upper if is_number(upper) else INFINITY, scale, offset, least)
        self.hold_private(slot, private_bounds, place)
        self.ages[slot] += 1
        return slot

    def retract_slab(self, int slot, bint reused):
        """Undo :meth:`add_slab`, which must be the last edit not yet undone; `reused`: its slot was a freed one."""
        self.remove_slab(slot)
        self.ages[slot] -= 2
        if not reused:
            self.free_slots.pop()
            self.n_slots -= 1
            self.slabs.pop()

    def place_slab(self, int slot, Template template, cost, double limit, lower, upper, double scale, double offset,
                   integer, double rounding, double least=-INFINITY, private_bounds=None, Py_ssize_t place=0):
        """Put a slab into an empty slot of a table that :meth:`restore_slots` has laid out."""
        if not 0 <= slot < self.n_slots or self.slabs[slot] is not None:
            raise ValueError(f"slot {slot} is not empty")
        slab = self.new_slab(template, cost, lower, upper, integer, rounding)
        require_table(template, private_bounds, place)
        self.hang(slot, slab, limit, upper if is_number(upper) else INFINITY, scale, offset, least)
        self.hold_private(slot, private_bounds, place)

    def new_slab(self, Template template, cost, lower, upper, integer, double rounding):
        """Return a slab that holds these arrays; raises ValueError if their lengths are not the template's."""
        cdef Slab slab = Slab(template, -1)
        n = template.n_columns
        if cost.shape != (n,) or n == 0 or cost.dtype.char not in "df":
            raise ValueError(f"costs have shape {cost.shape} and type {cost.dtype}, the template has {n} columns")
        for bound in (lower, upper):
            if not is_number(bound) and bound.shape != (n,):
                raise ValueError(f"bounds have shape {bound.shape}, the template has {n} columns")
        slab.keep_cost(cost)
        slab.lower_each = None if is_number(lower) and lower == 0.0 else \
            np.ascontiguousarray(np.broadcast_to(lower, n), dtype=np.float64)
        slab.upper_each = None if is_number(upper) else upper
        slab.keep_whole(integer)
        slab.rounding = rounding
        return slab

    cdef void hang(self, int slot, Slab slab, double limit, double upper, double scale, double offset, double least):
        """Fill a slot's block from a slab."""
        cdef Block* block = &self.blocks[slot]
        slab.slot = slot
        self.slabs[slot] = slab
        memset(block, 0, sizeof(Block))
        block.n_columns = slab.template.pattern.n_columns
        block.fixed = -1
        block.scale, block.offset, block.limit, block.upper, block.least = scale, offset, limit, upper, least
        block.most = INFINITY
        block.pattern = &slab.template.pattern
        block.single_precision = slab.cost.dtype.char == "f"
        block.integer = slab.integer if slab.whole_each is None else 2
        self.has_single |= block.single_precision
        block.cost, block.stamp = cost_pointer(slab.cost), self.next_stamp()
        block.lower_each = double_pointer(slab.lower_each)
        block.upper_each = double_pointer(slab.upper_each)
        self.note_residence(block)
        slab.template.pattern.n_users += 1
        self.n_columns += block.n_columns
        self.tell(block, 1)

    cdef void hold_private(self, int slot, private_bounds, Py_ssize_t place) except *:
        """Point a block without private bounds to a row of a table, which :func:`require_table` has checked."""
        cdef Block* block = &self.blocks[slot]
        cdef Slab slab = self.slabs[slot]
        cdef double[:, ::1] table
        slab.private_bounds = private_bounds
        if private_bounds is not None:
            table = private_bounds
            block.private_lower = &table[place, 0]
            block.private_upper = &table[place, block.pattern.n_private]

    cdef void note_residence(self, Block* block):
        """Mark a block as resident (all columns in every working set) unless :meth:`is_simple`."""
        block.resident = not is_simple(block) or has_rows(block)

    cdef void tell(self, const Block* block, int times):
        """Count a block among those with rows of their own and the resident ones; -1 takes it out."""
        self.n_with_rows += times * has_rows(block)
        self.n_resident += times * block.resident

    def remove_slab(self, int slot):
        """Empty a slot; only pointers change, so the time does not depend on the model's size."""
        cdef Block* block = self.block_at(slot)
        cdef Slab slab = self.slabs[slot]
        slab.template.pattern.n_users -= 1
        self.n_columns -= block.n_columns
        self.tell(block, -1)
        memset(block, 0, sizeof(Block))
        block.fixed = -1
        self.fixed_slots.pop(slot, None)
        self.slabs[slot] = None
        self.ages[slot] += 1
        self.free_slots.append(slot)

    def save_slab(self, int slot):
        """Return the state that edits of this slab can change; only the block is copied."""
        cdef SavedSlab saved = SavedSlab.__new__(SavedSlab)
        cdef Slab slab
        saved.block = self.block_at(slot)[0]
        slab = self.slabs[slot]
        saved.slot, saved.slab, saved.generation = slot, slab, self.ages[slot]
        costs = (slab.own_cost, slab.flat_cost, slab.first_cost)
        saved.held = (slab.template, costs, slab.lower_each, slab.upper_each, slab.exception_column,
                      slab.exception_cost, slab.rounding, slab.integer, slab.whole_each, slab.private_bounds)
        return saved

    def save_costs(self, const int[::1] slots):
        """Return the state that edits of many slabs' costs can change, for :meth:`restore_costs`; copies no cost."""
        cdef Py_ssize_t i
        cdef Slab slab
        blocks = self.save_blocks(slots)
        costs, flats, columns, values, roundings = [], [], [], [], np.empty(slots.shape[0])
        firsts = np.empty(slots.shape[0], dtype=np.int64)
        cdef double[::1] rounding = roundings
        cdef long[::1] first = firsts
        for i in range(slots.shape[0]):
            slab = self.slabs[slots[i]]
            costs.append(slab.own_cost)
            flats.append(slab.flat_cost)
            columns.append(slab.exception_column)
            values.append(slab.exception_cost)
            rounding[i], first[i] = slab.rounding, slab.first_cost
        return blocks, (costs, flats, firsts), columns, values, roundings

    def restore_costs(self, const int[::1] slots, saved):
        """Undo an edit of many slabs' costs."""
        cdef Py_ssize_t i
        cdef Slab slab
        blocks, (costs, flats, firsts), columns, values, roundings = saved
        for i in range(slots.shape[0]):
            slab = self.slabs[slots[i]]
            slab.own_cost, slab.flat_cost, slab.first_cost = costs[i], flats[i], firsts[i]
            slab.exception_column, slab.exception_cost = columns[i], values[i]
            slab.rounding = roundings[i]
        self.restore_blocks(slots, blocks)

    def restore_slab(self, SavedSlab saved):
        """Undo the edits of a slab since :meth:`save_slab`, or its removal; later edits must be undone first."""
        cdef Slab slab = saved.slab
        cdef Template template = saved.held[0]
        if self.slabs[saved.slot] is None:
            self.free_slots.pop()
            self.slabs[saved.slot] = slab
            self.n_columns += saved.block.n_columns
        else:
            slab.template.pattern.n_users -= 1
            self.tell(&self.blocks[saved.slot], -1)
        slab.template = template
        (_, costs, slab.lower_each, slab.upper_each, slab.exception_column, slab.exception_cost, slab.rounding,
         slab.integer, slab.whole_each, slab.private_bounds) = saved.held
        slab.own_cost, slab.flat_cost, slab.first_cost = costs
        template.pattern.n_users += 1
        self.blocks[saved.slot] = saved.block
        self.tell(&self.blocks[saved.slot], 1)
        self.ages[saved.slot] = saved.generation
        if saved.block.fixed >= 0:
            self.fixed_slots[saved.slot] = None
        else:
            self.fixed_slots.pop(saved.slot, None)

    def save_blocks(self, const int[::1] slots):
        """Return copies of many slabs' blocks for :meth:`restore_blocks`, before an edit that changes blocks only."""
        cdef Py_ssize_t i
        blocks = np.empty((slots.shape[0], sizeof(Block)), dtype=np.uint8)
        cdef unsigned char[:, ::1] view = blocks
        for i in range(slots.shape[0]):
            memcpy(&view[i, 0], self.block_at(slots[i]), sizeof(Block))
        return blocks

    def restore_blocks(self, const int[::1] slots, const unsigned char[:, ::1] blocks):
        """Undo an edit of many blocks."""
        cdef Py_ssize_t i
        cdef Block* block
        for i in range(slots.shape[0]):
            block = self.block_at(slots[i])
            self.tell(block, -1)
            memcpy(block, &blocks[i, 0], sizeof(Block))
            self.tell(block, 1)

    # Edits of a slab ----------------------------------------------------------------------------------------------

    def set_cost(self, int slot, cost, double scale, double offset, double rounding=0.0):
        """Replace a slab's cost array (kept, not copied), scale and offset; its exceptions are dropped."""
        cdef Block* block = self.block_at(slot)
        cdef Slab slab = self.slabs[slot]
        if cost.shape != (block.n_columns,) or cost.dtype.char not in "df":
            raise ValueError(f"costs have shape {cost.shape} and type {cost.dtype}, the slab {block.n_columns} columns")
        slab.keep_cost(cost)
        slab.rounding = rounding
        block.single_precision = cost.dtype.char == "f"
        self.has_single |= block.single_precision
        block.cost, block.stamp = cost_pointer(cost), self.next_stamp()
        block.scale, block.offset, block.most = scale, offset, INFINITY
        self.set_exceptions(slot, None, None)

    def set_costs(self, const int[::1] slots, costs, double scale, double offset):
        """Do :meth:`set_cost` for many slabs with one float64 array, slab by slab (or a matrix with one row a slab)."""
        cdef Py_ssize_t i, at = 0
        flat = costs.reshape(-1)
        cdef const double[::1] values = flat
        cdef Block* block
        cdef Slab slab
        for i in range(slots.shape[0]):
            at += self.block_at(slots[i]).n_columns
        if at != values.shape[0]:
            raise ValueError(f"{values.shape[0]} costs for {at} columns")
        at = 0
        for i in range(slots.shape[0]):
            block, slab = self.block_at(slots[i]), self.slabs[slots[i]]
            slab.own_cost, slab.flat_cost, slab.first_cost = None, flat, at
            slab.rounding = 0.0
            slab.exception_column = slab.exception_cost = None
            block.single_precision = False
            block.cost, block.stamp = &values[at], self.next_stamp()
            block.scale, block.offset, block.most = scale, offset, INFINITY
            block.n_exceptions = block.prices = 0
            block.exception_column, block.exception_cost = NULL, NULL
            at += block.n_columns

    def share_costs(self, const int[::1] slots, list costs, const int[::1] which, double scale, double offset):
        """Do :meth:`set_cost` with float64 arrays that slabs share: slots[i] gets costs[which[i]], kept, not copied."""
        cdef Py_ssize_t i
        cdef Block* block
        cdef Slab slab
        sizes, places = np.array([len(each) for each in costs], dtype=np.int64), np.empty(len(costs), dtype=np.uintp)
        cdef long[::1] size = sizes
        cdef size_t[::1] place = places
        for i in range(place.shape[0]):
            place[i] = <size_t>cost_pointer(costs[i])
        for i in range(slots.shape[0]):
            if size[which[i]] != self.block_at(slots[i]).n_columns:
                raise ValueError(f"{size[which[i]]} costs for {self.block_at(slots[i]).n_columns} columns")
        for i in range(slots.shape[0]):
            block, slab = self.block_at(slots[i]), self.slabs[slots[i]]
            slab.own_cost, slab.flat_cost, slab.rounding = costs[which[i]], None, 0.0
            slab.exception_column = slab.exception_cost = None
            block.single_precision = False
            block.cost, block.stamp = <const void*>place[which[i]], self.next_stamp()
            block.scale, block.offset, block.most = scale, offset, INFINITY
            block.n_exceptions = block.prices = 0
            block.exception_column, block.exception_cost = NULL, NULL

    def set_scale(self, int slot, double scale, double offset):
        """Change scale and offset of a slab's costs, and forget their most: O(1)."""
        cdef Block* block = self.block_at(slot)
        block.scale, block.offset, block.most, block.prices = scale, offset, INFINITY, 0

    def set_exceptions(self, int slot, columns, costs):
        """Set the columns (ascending) whose costs do not follow scale and offset; None for no such column."""
        cdef Block* block = self.block_at(slot)
        cdef Slab slab = self.slabs[slot]
        count = 0 if columns is None else len(columns)
        if count and (columns[0] < 0 or columns[count - 1] >= block.n_columns or len(costs) != count):
            raise ValueError(f"exceptions must be of columns 0 to {block.n_columns - 1}, ascending, each with its cost")
        block.n_exceptions, block.prices = <int>count, 0
        slab.exception_column = np.ascontiguousarray(columns, dtype=np.int32) if count > 1 else None
        slab.exception_cost = np.ascontiguousarray(costs, dtype=np.float64) if count > 1 else None
        block.exception_column = int_pointer(slab.exception_column)
        block.exception_cost = double_pointer(slab.exception_cost)
        if count == 1:
            block.single_column, block.single_cost = columns[0], costs[0]

    def rescale(self, const int[::1] slots, const double[::1] scale, const double[::1] offset,
                const int[::1] column, const double[::1] cost, const double[::1] most=None):
        """Set scale, offset and at most one exception (column -1: none) of many slabs, all or none of them.

        Returns what :meth:`take_back_scales` needs to undo it.
        """
        cdef Py_ssize_t i, n = slots.shape[0]
        cdef Block* block
        numbers, places = np.empty((n, 4)), np.empty((n, 2), dtype=np.int32)
        cdef double[:, ::1] number = numbers
        cdef int[:, ::1] place = places
        for i in range(n):
            if not 0 <= slots[i] < self.n_slots or self.blocks[slots[i]].n_columns == 0 or not (
                    -1 <= column[i] < self.blocks[slots[i]].n_columns):
                self.take_back_scales(slots[:i], numbers, places)
                raise IndexError(f"slot {slots[i]} has no column {column[i]}")
            block = &self.blocks[slots[i]]
            number[i, 0], number[i, 1], number[i, 2] = block.scale, block.offset, block.most
            number[i, 3], place[i, 0], place[i, 1] = block.single_cost, block.n_exceptions, block.single_column
            if block.prices and block.most == INFINITY and (most is None or most[i] == INFINITY):
                rescaled(block, scale[i], offset[i], column[i])
            else:
                block.prices = 0
            block.scale, block.offset = scale[i], offset[i]
            block.most = INFINITY if most is None else most[i]
            block.n_exceptions = column[i] >= 0
            block.single_column, block.single_cost = column[i], cost[i]
        return numbers, places

    def take_back_scales(self, const int[::1] slots, const double[:, ::1] number, const int[:, ::1] place):
        """Undo :meth:`rescale`."""
        cdef Py_ssize_t i
        cdef Block* block
        for i in range(slots.shape[0] - 1, -1, -1):  # a slot may be listed twice
            block = self.block_at(slots[i])
            block.prices = 0
            block.scale, block.offset, block.most = number[i, 0], number[i, 1], number[i, 2]
            block.single_cost, block.n_exceptions, block.single_column = number[i, 3], place[i, 0], place[i, 1]

    def set_fixed(self, int slot, int column):
        """Fix one column at its upper bound and all others at their lower bounds; -1 frees them."""
        cdef Block* block = self.block_at(slot)
        if column < -1 or column >= block.n_columns:
            raise IndexError(f"slot {slot} has no column {column}")
        block.fixed = column
        if column >= 0:
            self.fixed_slots[slot] = None
        else:
            self.fixed_slots.pop(slot, None)

    def set_template(self, int slot, Template template):
        """Give a slab another usage pattern with the same number of columns."""
        cdef Block* block = self.block_at(slot)
        cdef Slab slab = self.slabs[slot]
        if template.pattern.n_columns != block.n_columns:
            raise ValueError(f"the template has {template.n_columns} columns, the slab {block.n_columns}")
        if template.pattern.n_private != block.pattern.n_private:
            raise ValueError(f"the template has {template.n_private} private rows, not {block.pattern.n_private}")
        slab.template.pattern.n_users -= 1
        slab.template = template
        template.pattern.n_users += 1
        block.pattern, block.prices = &template.pattern, 0

    def set_limits(self, int slot, double limit, lower, upper, double least=-INFINITY):
        """Change a slab's limit, least sum and bounds; a bound is a float for all columns or an array (n,), kept."""
        cdef Block* block = self.block_at(slot)
        cdef Slab slab = self.slabs[slot]
        other = self.new_slab(slab.template, slab.cost, lower, upper, False, slab.rounding)
        slab.lower_each, slab.upper_each = other.lower_each, other.upper_each
        block.lower_each, block.upper_each = double_pointer(slab.lower_each), double_pointer(slab.upper_each)
        self.tell(block, -1)
        block.limit, block.upper, block.least = limit, upper if is_number(upper) else INFINITY, least
        self.note_residence(block)
        self.tell(block, 1)

    def set_sums(self, const int[::1] slots, const double[::1] limit, const double[::1] least):
        """Change the limits and least sums of many slabs."""
        cdef Py_ssize_t i
        cdef Block* block
        for i in range(slots.shape[0]):
            self.block_at(slots[i])
        for i in range(slots.shape[0]):
            block = &self.blocks[slots[i]]
            self.tell(block, -1)
            block.limit, block.least = limit[i], least[i]
            self.note_residence(block)
            self.tell(block, 1)

    def set_private_bounds(self, const int[::1] slots, const double[::1] lower, const double[::1] upper):
        """Change all private rows' bounds of many slabs in place; the arrays hold them slab by slab."""
        cdef Py_ssize_t i, k, at = 0
        cdef Block* block
        for i in range(slots.shape[0]):
            at += self.block_at(slots[i]).pattern.n_private
        if lower.shape[0] != at or upper.shape[0] != at:
            raise ValueError(f"{lower.shape[0]} and {upper.shape[0]} bounds for {at} private rows")
        at = 0
        for i in range(slots.shape[0]):
            block = &self.blocks[slots[i]]
            for k in range(block.pattern.n_private):
                block.private_lower[k], block.private_upper[k] = lower[at], upper[at]
                at += 1

    def set_integer(self, int slot, integer):
        """Set whether a slab's columns must be whole in an integer plan: a bool for all of them, or an array (n,)."""
        cdef Block* block = self.block_at(slot)
        cdef Slab slab = self.slabs[slot]
        slab.keep_whole(integer)
        block.integer = slab.integer if slab.whole_each is None else 2

    # Contents of a slab --------------------------------------------------------------------------------------------

    def scale_of(self, int slot):
        """Return (scale, offset) of a slab's costs."""
        cdef Block* block = self.block_at(slot)
        return block.scale, block.offset

    def most_of(self, int slot):
        """Return the upper limit on the costs, as minimised, of a slab's columns other than its exceptions; inf for
        none.
        """
        return self.block_at(slot).most

    def set_most(self, int slot, double most):
        """Change the upper limit on the costs of a slab's columns other than its exceptions."""
        cdef Block* block = self.block_at(slot)
        block.most, block.prices = most, 0

    def limit_of(self, int slot):
        """Return the upper bound of the sum of a slab's columns."""
        return self.block_at(slot).limit

    def least_of(self, int slot):
        """Return the lower bound of the sum of a slab's columns, -inf for none."""
        return self.block_at(slot).least

    def upper_of(self, int slot):
        """Return the common upper bound of a slab's columns, inf if columns have their own."""
        return self.block_at(slot).upper

    def fixed_of(self, int slot):
        """Return the column that a slab is fixed on, or -1."""
        return self.block_at(slot).fixed

    def is_resident(self, int slot):
        """Return whether all columns of a slab are in every working set."""
        return self.block_at(slot).resident == 1

    def is_fixable(self, int slot):
        """Return whether a slab can be fixed: one column at its upper bound (or the limit), the others at zero."""
        cdef Block* block = self.block_at(slot)
        return is_simple(block) and block.pattern.n_private == 0

    def sums_of(self, const int[::1] slots):
        """Return (limit, least) of the sums of many slabs, (n,) float64 each."""
        cdef Py_ssize_t i
        limit, least = np.empty(slots.shape[0]), np.empty(slots.shape[0])
        cdef double[::1] limit_view = limit, least_view = least
        for i in range(slots.shape[0]):
            limit_view[i], least_view[i] = self.blocks[slots[i]].limit, self.blocks[slots[i]].least
        return limit, least

    def contradiction(self, const int[::1] slots, const double[::1] limit):
        """Return (place, sum of lower bounds, is fixed) of the first slab that contradicts its limit; place -1: none.

        A limit fits if it is no less than the sum of the lower bounds, and if a fixed slab can still be fixed with it.
        """
        cdef Py_ssize_t i
        cdef Block* block
        cdef Slab slab
        for i in range(slots.shape[0]):
            block = &self.blocks[slots[i]]
            if block.lower_each != NULL and limit[i] < INFINITY:
                slab = self.slabs[slots[i]]
                total = float(slab.lower_each.sum())
                if not -INFINITY < total <= limit[i]:
                    return i, total, False
            if block.fixed >= 0 and not (limit[i] < INFINITY and limit[i] <= block.upper):
                return i, 0.0, True
        return -1, 0.0, False

    def any_single_precision(self, const int[::1] slots):
        """Return whether the costs of any of these slabs are float32."""
        cdef Py_ssize_t i
        for i in range(slots.shape[0]):
            if self.blocks[slots[i]].single_precision:
                return True
        return False

    def private_sizes(self, const int[::1] slots):
        """Return the number of private rows of each slab, (n,) int32."""
        cdef Py_ssize_t i
        sizes = np.empty(slots.shape[0], dtype=np.int32)
        cdef int[::1] view = sizes
        for i in range(slots.shape[0]):
            view[i] = self.blocks[slots[i]].pattern.n_private
        return sizes

    def private_bounds_of(self, const int[::1] slots):
        """Return (lower, upper) of the private rows of many slabs, slab by slab, new arrays."""
        cdef Py_ssize_t i, k, at = 0
        cdef Block* block
        for i in range(slots.shape[0]):
            at += self.block_at(slots[i]).pattern.n_private
        lower, upper = np.empty(at), np.empty(at)
        cdef double[::1] lower_view = lower, upper_view = upper
        at = 0
        for i in range(slots.shape[0]):
            block = &self.blocks[slots[i]]
            for k in range(block.pattern.n_private):
                lower_view[at], upper_view[at] = block.private_lower[k], block.private_upper[k]
                at += 1
        return lower, upper

    # Renumbering slots ----------------------------------------------------------------------------------------------

    def compaction(self):
        """Return the new slot of each old one after :meth:`compact`, -1 for an empty one."""
        cdef int slot, target = 0
        moved = np.full(self.n_slots, -1, dtype=np.int64)
        cdef long long[::1] new = moved
        for slot in range(self.n_slots):
            if self.slabs[slot] is not None:
                new[slot] = target
                target += 1
        return moved

    def compact(self, const long long[::1] moved):
        """Move slabs down into the empty slots, in order, as :meth:`compaction` says; no signal comes in between.

        A caller that keeps data by slot must renumber them by this map.
        """
        cdef int slot, target, last = 0
        cdef Slab slab
        if moved.shape[0] != self.n_slots:
            raise ValueError(f"a map of {moved.shape[0]} slots for {self.n_slots}")
        fixed_slots = {int(moved[slot]): None for slot in sorted(self.fixed_slots)}
        for slot in range(self.n_slots):
            if self.slabs[slot] is None:
                continue
            target = <int>moved[slot]
            last = target + 1
            if slot != target:
                slab = self.slabs[slot]
                slab.slot = target
                self.blocks[target] = self.blocks[slot]
                memset(&self.blocks[slot], 0, sizeof(Block))
                self.slabs[target], self.slabs[slot] = slab, None
                self.ages[target] += 1
                self.ages[slot] += 1
        self.fixed_slots = fixed_slots
        del self.slabs[last:]
        self.free_slots = []
        self.n_slots = last
        self.settle_scales()

    def restore_slots(self, int n_slots, free_slots, generation):
        """Lay out a table of empty slots as another table had it."""
        if n_slots < 0 or len(generation) != n_slots:
            raise ValueError(f"{len(generation)} generations for {n_slots} slots")
        self.reserve(n_slots)
        self.n_slots = n_slots
        self.slabs = [None] * n_slots
        self.free_slots = [int(slot) for slot in free_slots]
        self.generation[:n_slots] = generation
