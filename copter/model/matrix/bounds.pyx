"""Writes block programs from the matrix: bounds of some blocks, or a program of all slots that follows the matrix."""

import numpy as np

from libc.math cimport INFINITY

from copter.model.matrix.layout cimport Block, Pattern, cost_of, is_summed
from copter.model.matrix.block_matrix cimport BlockMatrix


def write_bounds(BlockMatrix matrix, const int[::1] slots, const int[::1] column_start, const int[::1] private_start,
                 const int[::1] places, int own, double[::1] lower, double[::1] upper):
    """Write the bounds of some blocks' columns and own rows; return whether the program still has the same rows.

    An upper bound that the limit implies is inf.

    Parameters
    ----------
    matrix : BlockMatrix
    slots : ndarray (blocks,) int32
    column_start, private_start : ndarray (blocks + 1,) int32
        First column and first own row of every block.
    places : ndarray (k,) int32
        Numbers of the blocks to write.
    own : int
        Index in `lower` and `upper` of the first own row.
    lower, upper : ndarray
        Written: bounds of columns, coupling rows, own rows.
    """
    cdef Py_ssize_t i
    cdef int g, j, r, k
    cdef bint holds = True, signed
    cdef Block* block
    with nogil:
        for i in range(places.shape[0]):
            g = places[i]
            block = &matrix.blocks[slots[g]]
            r = private_start[g]
            if (block.n_columns != column_start[g + 1] - column_start[g]
                    or is_summed(block) + block.pattern.n_private != private_start[g + 1] - r):
                holds = False
                break
            signed = is_signed(block)
            for j in range(block.n_columns):
                write_column(block, j, signed, &lower[column_start[g] + j], &upper[column_start[g] + j])
            if is_summed(block):
                lower[own + r], upper[own + r] = block.least, block.limit
                r += 1
            for k in range(block.pattern.n_private):
                lower[own + r + k], upper[own + r + k] = block.private_lower[k], block.private_upper[k]
    return holds


def block_program(BlockMatrix matrix, const int[::1] slots):
    """Return the arrays of a block program, by their names there; block g holds the columns of slots[g].

    A slab with a finite limit or least sum has its sum as its first private row; its other private rows follow.
    """
    cdef Py_ssize_t n = 0, rows = 0, entries = 0, own_entries = 0, blocks = slots.shape[0], m = matrix.n_rows, at
    cdef Py_ssize_t g, j, k, r, own, e = 0, t = 0
    cdef bint summed, signed
    cdef Block* block
    cdef Pattern* pattern
    for g in range(blocks):
        block = matrix.block_at(slots[g])
        pattern = block.pattern
        n += block.n_columns
        entries += pattern.column_start[block.n_columns]
        if is_summed(block):
            rows, own_entries = rows + 1, own_entries + block.n_columns
        if pattern.n_private:
            rows, own_entries = rows + pattern.n_private, own_entries + pattern.own_start[block.n_columns]
    if max(entries, own_entries, n + m + rows) >= 1 << 31:
        raise MemoryError(f"the program has {max(entries, own_entries)} entries: there may be 2^31 - 1")
    whole = np.empty(2 * (blocks + 1) + 2 * (n + 1) + entries + own_entries, dtype=np.int32)
    real = np.empty(entries + own_entries + 3 * n + 2 * (m + rows))
    cdef int[::1] i = whole
    cdef double[::1] x = real
    cdef const double[::1] lows = matrix.row_lower, highs = matrix.row_upper
    # where each array begins
    cdef Py_ssize_t private = blocks + 1, start = private + blocks + 1, own_start = start + n + 1
    cdef Py_ssize_t row = own_start + n + 1, own_row = row + entries, own_value = entries
    cdef Py_ssize_t cost = own_value + own_entries, lower = cost + n, upper = lower + n + m + rows
    own = n + m
    n = rows = 0
    with nogil:
        i[0] = i[private] = i[start] = i[own_start] = 0
        for r in range(m):
            x[lower + own - m + r], x[upper + own - m + r] = lows[r], highs[r]
        for g in range(blocks):
            block = &matrix.blocks[slots[g]]
            pattern, summed, signed = block.pattern, is_summed(block), is_signed(block)
            if summed:
                x[lower + own + rows], x[upper + own + rows] = block.least, block.limit
            for k in range(pattern.n_private):
                x[lower + own + rows + summed + k] = block.private_lower[k]
                x[upper + own + rows + summed + k] = block.private_upper[k]
            for j in range(block.n_columns):
                at = n + j
                x[cost + at] = matrix.cost_at(block, <int>j) if block.n_exceptions else cost_of(block, <int>j)
                write_column(block, <int>j, signed, &x[lower + at], &x[upper + at])
                for k in range(pattern.column_start[j], pattern.column_start[j + 1]):
                    i[row + e], x[e] = pattern.row[k], pattern.coefficient[k]
                    e += 1
                if summed:
                    i[own_row + t], x[own_value + t] = 0, 1.0
                    t += 1
                if pattern.n_private:
                    for k in range(pattern.own_start[j], pattern.own_start[j + 1]):
                        i[own_row + t], x[own_value + t] = pattern.own_row[k] + summed, pattern.own_value[k]
                        t += 1
                i[start + at + 1], i[own_start + at + 1] = <int>e, <int>t
            n += block.n_columns
            rows += summed + pattern.n_private
            i[g + 1], i[private + g + 1] = <int>n, <int>rows
    return {
        "column_start": whole[:private], "private_start": whole[private:start], "start": whole[start:own_start],
        "own_start": whole[own_start:row], "row": whole[row:own_row], "own_row": whole[own_row:],
        "value": real[:own_value], "own_value": real[own_value:cost], "cost": real[cost:lower],
        "lower": real[lower:upper], "upper": real[upper:],
    }


def own_keys(BlockMatrix matrix, const int[::1] slots):
    """Return the keys slot << 32 | row of all own rows of these slots, int64, slot by slot; row 0 is the sum."""
    cdef Py_ssize_t g, at = 0
    cdef int row
    cdef Block* block
    for g in range(slots.shape[0]):
        block = matrix.block_at(slots[g])
        at += is_summed(block) + block.pattern.n_private
    keys = np.empty(at, dtype=np.int64)
    cdef long long[::1] key = keys
    at = 0
    for g in range(slots.shape[0]):
        block = &matrix.blocks[slots[g]]
        for row in range(not is_summed(block), 1 + block.pattern.n_private):
            key[at] = (<long long>slots[g] << 32) | row
            at += 1
    return keys


def live_slots(BlockMatrix matrix):
    """Return the slots that have a request, ascending, int32."""
    cdef int slot, count = 0
    slots = np.empty(matrix.n_slots, dtype=np.int32)
    cdef int[::1] found = slots
    for slot in range(matrix.n_slots):
        if matrix.blocks[slot].n_columns > 0:
            found[count] = slot
            count += 1
    return slots[:count]


def sizes_of_slots(BlockMatrix matrix):
    """Return the number of columns of every slot, and the number of their entries, (slots,) int32 each; free: zero."""
    cdef int slot
    columns, entries = np.zeros((2, matrix.n_slots), dtype=np.int32)
    cdef int[::1] column = columns, entry = entries
    for slot in range(matrix.n_slots):
        column[slot] = matrix.blocks[slot].n_columns
        if column[slot]:
            entry[slot] = matrix.blocks[slot].pattern.column_start[column[slot]]
    return columns, entries


def usual_size(const int[::1] sizes, double share):
    """Return the largest of these sizes to which all smaller ones, zeros apart, may grow within a share of their sum.

    Without sizes above zero it is 1.
    """
    cdef Py_ssize_t i, n = sizes.shape[0]
    cdef int size, usual = 1, largest = 0
    cdef long long total = 0, fewer = 0, sum_fewer = 0
    for i in range(n):
        total += sizes[i]
        largest = max(largest, sizes[i])
    cdef int[::1] count = np.zeros(largest + 1, dtype=np.int32)
    for i in range(n):
        count[sizes[i]] += 1
    for size in range(1, largest + 1):
        if count[size] == 0:
            continue
        if size * fewer - sum_fewer > share * total:
            break
        usual = size
        fewer += count[size]
        sum_fewer += size * count[size]
    return usual


def roomy_sizes(const int[::1] sizes, const int[::1] columns, int usual, list free, const int[::1] spare):
    """Return sizes with room, int32: at least the usual one where there are columns, and in spare places without.

    Parameters
    ----------
    sizes, columns : ndarray (slots,) int32
        The sizes, of which some may be zero; zero columns mark slots without a request.
    usual : int
    free : list of int
        Slots without a request, of which the last are used first.
    spare : ndarray (k,) int32
        Sizes of the spare places: those that are used next, then new ones at the end.
    """
    cdef Py_ssize_t i, n = sizes.shape[0], known = min(len(free), spare.shape[0])
    found = np.zeros(n + spare.shape[0] - known, dtype=np.int32)
    cdef int[::1] size = found
    for i in range(n):
        if columns[i] > 0:
            size[i] = max(sizes[i], usual)
    for i in range(known):
        size[<int>free[len(free) - 1 - i]] = spare[i]
    for i in range(known, spare.shape[0]):
        size[n + i - known] = spare[i]
    return found


def gaps(int n_rows, const int[::1] columns, const int[::1] entries):
    """Return the arrays, by their names, of a block program with nothing but gaps: columns of cost and bounds zero.

    Each block has one private row, its sum; its entries are zeros of its last column.

    Parameters
    ----------
    n_rows : int
    columns, entries : ndarray (blocks,) int32
    """
    cdef Py_ssize_t g, j, blocks = columns.shape[0], n = 0, nnz = 0, at = 0
    for g in range(blocks):
        n += columns[g]
        nnz += entries[g]
    if max(n + n_rows + blocks, nnz) >= 1 << 31:
        raise MemoryError(f"the program has {nnz} entries: there may be 2^31 - 1")
    whole, ones = np.empty(2 * (blocks + 1) + 2 * (n + 1), dtype=np.int32), np.ones(n)
    cdef int[::1] i = whole
    cdef Py_ssize_t private = blocks + 1, start = private + blocks + 1, own_start = start + n + 1
    n = nnz = i[0] = 0
    for g in range(blocks):
        i[private + g] = <int>g
        for j in range(columns[g]):
            i[start + n + j] = <int>nnz
        n += columns[g]
        nnz += entries[g]
        i[g + 1] = <int>n
    i[private + blocks], i[start + n] = <int>blocks, <int>nnz
    for at in range(n + 1):
        i[own_start + at] = <int>at
    bounds = np.zeros((2, n + n_rows + blocks))
    return {
        "column_start": whole[:private], "private_start": whole[private:start], "start": whole[start:own_start],
        "own_start": whole[own_start:], "row": np.zeros(nnz, dtype=np.int32), "own_row": np.zeros(n, dtype=np.int32),
        "value": np.zeros(nnz), "own_value": ones, "cost": np.zeros(n), "lower": bounds[0], "upper": bounds[1],
    }


def count_sums_and_entries(BlockMatrix matrix):
    """Return the number of requests with a limit on several columns, and the number of entries in coupling rows."""
    cdef int slot, count = 0
    cdef long long entries = 0
    cdef Block* block
    for slot in range(matrix.n_slots):
        block = &matrix.blocks[slot]
        if block.n_columns > 0:
            count += block.n_columns > 1 and is_summed(block)
            entries += block.pattern.column_start[block.n_columns]
    return count, entries


def has_private_rows(BlockMatrix matrix):
    """Return whether a request has private rows; the sum of its columns is none."""
    cdef int slot
    for slot in range(matrix.n_slots):
        if matrix.blocks[slot].n_columns > 0 and matrix.blocks[slot].pattern.n_private > 0:
            return True
    return False


def write_blocks(BlockMatrix matrix, program, int[::1] slots, int[::1] block_of, long long[::1] stamps,
                 long long[::1] generation, unsigned char[::1] changed, const int[::1] edited=None):
    """Bring a program whose blocks hold the columns of one slot each up to the matrix, in place.

    Columns that a block has beyond its request's are fixed at zero; entries beyond them are zeros of its last column. A
    request that is too large for its slot's block changes blocks with a slot that has none, or a smaller one.

    Parameters
    ----------
    matrix : BlockMatrix
        No request has private rows.
    program : BlockProgram
        Each block has one private row, its sum; without limit and least it is free.
    slots, block_of : ndarray (blocks,) int32
        Slot of each block, block of each slot. Written.
    stamps, generation : ndarray (blocks,) int64
        Stamp of the usage and generation of the request that each block holds; -1 for none. Written.
    changed : ndarray (blocks + 1,) uint8
        Written: 0 for blocks that stay, 1 for other bounds, 2 for other costs, 3 for other entries; last, whether rows
        have other bounds.
    edited : ndarray (k,) int32, optional
        Slots that may differ; without it all are compared.

    Returns
    -------
    bool
        Whether the program has room for all requests; else nothing is written.
    """
    cdef const double[::1] lows = matrix.row_lower, highs = matrix.row_upper
    cdef double[::1] lower = program.lower, upper = program.upper
    cdef int i, j, g, n_blocks = stamps.shape[0], n_slots = matrix.n_slots
    cdef bint known = edited is not None
    cdef int visits = edited.shape[0] if known else n_slots
    cdef int n = program.n_columns, m = program.n_rows, n_swapped = 0
    if n_slots > n_blocks or matrix.n_rows != m:
        return False
    cdef int[::1] swapped = _make_room(matrix, program, slots, block_of, generation, edited)
    if swapped is None:
        return False
    n_swapped = swapped.shape[0]
    cdef _Writer writer = _Writer(matrix, program, stamps, generation)
    with nogil:
        for g in range(n_blocks + 1):
            changed[g] = 0
        for j in range(m):
            if lower[n + j] != lows[j] or upper[n + j] != highs[j]:
                lower[n + j], upper[n + j], changed[n_blocks] = lows[j], highs[j], 1
        for i in range(visits if known else n_blocks):
            g = block_of[edited[i]] if known else i
            changed[g] = writer.write(g, slots[g])
        for i in range(n_swapped):
            g = swapped[i]
            writer.write(g, slots[g])
            changed[g] = 3
    return True


cdef int[::1] _make_room(BlockMatrix matrix, program, int[::1] slots, int[::1] block_of,
                         const long long[::1] generation, const int[::1] edited):
    """Let requests that are too large for their blocks change places: with slots of no request or of a new smaller one,
    and if there is none, with any smaller one.

    Returns the blocks that have changed places; None, and everything as it was, if there are too few large ones.
    """
    cdef const int[::1] column_start = program.column_start, start = program.start
    cdef const long long[::1] ages = matrix.generation
    cdef int i, k, s, g, b, size, held, other, entries, rank, n_slots = matrix.n_slots, n_blocks = slots.shape[0]
    cdef int visits = n_slots if edited is None else edited.shape[0], most = 0, most_entries = 0
    cdef int[2] at = [0, 0]
    cdef list found = []
    for i in range(visits):
        s = i if edited is None else edited[i]
        size, g = matrix.blocks[s].n_columns, block_of[s]
        if size == 0:
            continue
        entries = matrix.blocks[s].pattern.column_start[size]
        if fits(size, entries, g, &column_start[0], &start[0]):
            continue
        if size < most or entries < most_entries:
            at = [0, 0]  # a block that was too small before may do
        most, most_entries, other = size, entries, -1
        for rank in range(2):
            while other < 0 and at[rank] < n_blocks:  # ends: at grows
                b = at[rank]
                held = matrix.blocks[slots[b]].n_columns if slots[b] < n_slots else 0
                if fits(size, entries, b, &column_start[0], &start[0]) and (held == 0 or (
                    (rank == 1 or generation[b] != ages[slots[b]])
                    and fits(held, matrix.blocks[slots[b]].pattern.column_start[held], g, &column_start[0], &start[0])
                )):
                    other = b
                else:
                    at[rank] += 1
        if other >= 0:
            found += [g, other]
            _swap(slots, block_of, g, other)
            continue
        for k in range(len(found) - 2, -1, -2):
            _swap(slots, block_of, found[k], found[k + 1])
        return None
    return np.array(found, dtype=np.int32)


cdef bint fits(int size, int entries, int g, const int* column_start, const int* start) noexcept nogil:
    """Whether a block has so many columns and entries."""
    cdef int first = column_start[g], last = column_start[g + 1]
    return size <= last - first and entries <= start[last] - start[first]


cdef void _swap(int[::1] slots, int[::1] block_of, int one, int other):
    """Exchange the slots of two blocks."""
    slots[one], slots[other] = slots[other], slots[one]
    block_of[slots[one]], block_of[slots[other]] = one, other


cdef class _Writer:
    """Writes blocks of a program whose places of columns and entries stay; see :func:`write_blocks`."""

    cdef BlockMatrix matrix
    cdef const int[::1] column_start
    cdef int[::1] start, row
    cdef double[::1] value, cost, lower, upper
    cdef const long long[::1] ages
    cdef long long[::1] stamps, generation
    cdef int own

    def __init__(self, BlockMatrix matrix, program, long long[::1] stamps, long long[::1] generation):
        self.matrix, self.ages, self.stamps, self.generation = matrix, matrix.generation, stamps, generation
        self.column_start, self.start, self.row = program.column_start, program.start, program.row
        self.value, self.cost, self.lower, self.upper = program.value, program.cost, program.lower, program.upper
        self.own = program.n_columns + program.n_rows

    cdef unsigned char write(self, int g, int slot) noexcept nogil:
        """Bring block g up to a slot, which may be beyond the matrix's last; return what has changed."""
        cdef int j, k, at, size, n_slots = self.matrix.n_slots
        cdef int first = self.column_start[g], last = self.column_start[g + 1], own = self.own
        cdef double number, low, high
        cdef Block* block = &self.matrix.blocks[min(slot, n_slots - 1)]
        cdef bint live = slot < n_slots and block.n_columns > 0, signed
        cdef long long stamp = block.pattern.stamp if live else -1
        cdef unsigned char kind = 0
        size, self.generation[g] = block.n_columns if live else 0, self.ages[slot] if live else -1
        if self.stamps[g] != stamp:
            at = self.start[first]
            for j in range(first, last):
                if self.start[j] != at:
                    self.start[j], kind = at, 3
                if j - first >= size:
                    continue
                for k in range(block.pattern.column_start[j - first], block.pattern.column_start[j - first + 1]):
                    if self.row[at] != block.pattern.row[k] or self.value[at] != block.pattern.coefficient[k]:
                        self.row[at], self.value[at], kind = block.pattern.row[k], block.pattern.coefficient[k], 3
                    at += 1
            for k in range(at, self.start[last]):
                kind = 3 if self.value[k] != 0.0 else kind
                self.row[k], self.value[k] = 0, 0.0
            self.stamps[g] = stamp
        elif not live:
            return 0
        signed = live and is_signed(block)
        for j in range(first, last):
            number = low = high = 0.0
            if j - first < size:
                number = self.matrix.cost_at(block, j - first) if block.n_exceptions else cost_of(block, j - first)
                write_column(block, j - first, signed, &low, &high)
            if number != self.cost[j]:
                self.cost[j], kind = number, max(kind, 2)
            if low != self.lower[j] or high != self.upper[j]:
                self.lower[j], self.upper[j], kind = low, high, max(kind, 1)
        low, high = block.least if live else -INFINITY, block.limit if live else INFINITY
        if low != self.lower[own + g] or high != self.upper[own + g]:
            self.lower[own + g], self.upper[own + g], kind = low, high, max(kind, 1)
        return kind


cdef inline bint is_signed(const Block* block) noexcept nogil:
    """Whether some column of a block may be negative."""
    cdef int j
    for j in range(block.n_columns):
        if block.lower_each != NULL and block.lower_each[j] < 0.0:
            return True
    return False


cdef inline void write_column(const Block* block, int j, bint signed, double* lower, double* upper) noexcept nogil:
    """Write the bounds of one column; a limit implies no upper bound if some column of the block may be negative."""
    lower[0] = block.lower_each[j] if block.lower_each != NULL else 0.0
    upper[0] = block.upper_each[j] if block.upper_each != NULL else block.upper
    if upper[0] > block.limit and block.lower_each == NULL:
        upper[0] = block.limit
    if block.fixed == j:
        lower[0] = upper[0]
    elif block.fixed >= 0:
        upper[0] = lower[0]
    if upper[0] >= block.limit and not signed and upper[0] > lower[0]:
        upper[0] = INFINITY
