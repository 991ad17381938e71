"""The basis of a block program, kept from round to round and through edits (docs/blocks.md, K7 to K10)."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum

import numpy as np
from numpy.typing import NDArray

from copter.blocks.program import BlockProgram
from copter.blocks.solve import MOST_ROWS, BlockAnswer
from copter.kernels.block_dual import BlockDual
from copter.kernels.working_inverse import WorkingInverse
from copter.runtime.watch import Watch

Floats = NDArray[np.float64]
Ints = NDArray[np.int32]
Ages = NDArray[np.int64]

SLICE = 10  # pivots between two looks at the watch
COLD_ITERATIONS = 25  # of an interior-point method
COLD_PASSES = 50  # multiplications with every entry, in one of them
AGAIN = 3  # times that a basis is inverted afresh in a round
LEAST_PIVOTS = 200  # before the basis is given up, plus twice what a cold solve costs
TOLERANCE = 1e-9  # of a value outside its bounds, relative to the largest bound of a row where that is above one
APART = 1e-8  # relative change of costs that keeps them from being equal
LEAST_COST = 1e-3  # relative to the largest, that a change is relative to
CLOSED = 1e-7  # error of the rows or of basic reduced costs that is still accepted at the end


class Ending(IntEnum):
    """How pivots end; INFEASIBLE: a row of the tableau that no column can move far enough."""

    OPTIMAL = 0
    INFEASIBLE = 1
    UNFINISHED = 2
    UNSTABLE = 3


@dataclass(frozen=True, slots=True)
class Kept:
    """What stays of a round: the program and its blocks' names, its scaling, the method's state."""

    program: BlockProgram
    slots: Ints
    generation: Ages
    scale: Floats
    factor: float
    dual: BlockDual


class WarmBasis:
    """Solves a block program from the basis at which the last one ended, by the dual simplex method.

    Blocks are known by slot and generation. A block whose costs or coefficients have changed is taken for a new one:
    its basic variables become artificial and leave, so that the basis stays dual feasible through every edit.
    """

    def __init__(self) -> None:
        self.kept: Kept | None = None
        self.failures = self.resting = 0  # in a row without an end, rounds to leave out: one, two, four, ...

    def solve(
        self, program: BlockProgram, slots: Ints, generation: Ages, prices: Floats, watch: Watch
    ) -> BlockAnswer | None:
        """The optimum, a vertex; None where the method does not apply, does not end, or the time is up.

        Parameters
        ----------
        program : BlockProgram
        slots : ndarray (blocks,) int32
        generation : ndarray (blocks,) int64
            With the slot, the name of a block.
        prices : ndarray (rows,)
            Of the coupling rows, as minimised: where there is no basis, the method starts from them.
        watch : Watch
        """
        if watch() or not applies_to(program):
            return None
        if self.resting:
            self.resting -= 1
            return None
        kept, self.kept = self.kept, None
        with np.errstate(all="ignore"):
            now = None if kept is None else carried(kept, program, slots, generation)
            ending = Ending.UNSTABLE if now is None else ended(now, watch)
            if ending == Ending.UNSTABLE:
                now = begun(program, slots, generation, prices)
                ending = Ending.UNSTABLE if now is None else ended(now, watch)
        if now is None or ending != Ending.OPTIMAL:
            if ending == Ending.UNFINISHED and not watch():
                self.failures += 1
                self.resting = 2 ** min(self.failures, 5) // 2
            return None
        self.kept, self.failures = now, 0
        n, dual = program.n_columns, now.dual
        x = np.clip(dual.values[:n], program.lower[:n], program.upper[:n])
        prices = true_prices(now, slots) * now.scale / now.factor
        return BlockAnswer(x, prices, dual.pivots, own_prices(program, dual.keys, prices), vertex=True)


def applies_to(program: BlockProgram) -> bool:
    """Whether every block has at most one private row, the sum of its columns."""
    rows = np.diff(program.private_start)
    limited = np.repeat(rows > 0, np.diff(program.column_start))
    return bool(
        0 < program.n_rows <= MOST_ROWS
        and program.n_columns > 0
        and program.n_columns == program.column_start[-1]
        and rows.max(initial=0) <= 1
        and np.array_equal(np.diff(program.own_start) > 0, limited)
        and (program.own_value == 1.0).all()
    )


def dual_of(program: BlockProgram, scale: Floats, factor: float, slots: Ints) -> BlockDual:
    """The method's state for a program with its rows and costs scaled, costs a little apart; no basis yet."""
    n, m = program.n_columns, program.n_rows
    blocks = len(program.column_start) - 1
    limited = np.diff(program.private_start) > 0
    least, most = np.full(blocks, -np.inf), np.full(blocks, np.inf)
    least[limited], most[limited] = program.lower[n + m :], program.upper[n + m :]
    row_lower, row_upper = program.lower[n : n + m] * scale, program.upper[n : n + m] * scale
    dual = BlockDual(
        m,
        program.column_start,
        program.start,
        program.row,
        program.value * scale[program.row],
        apart(program.cost * factor, program.column_start, slots),
        program.lower[:n],
        program.upper[:n],
        least,
        most,
        row_lower,
        row_upper,
    )
    finite = np.concatenate((row_lower[np.isfinite(row_lower)], row_upper[np.isfinite(row_upper)]))
    dual.tolerance = TOLERANCE * max(1.0, float(np.abs(finite).max(initial=0.0)) * 1e-2)
    return dual


def apart(cost: Floats, column_start: Ints, slots: Ints) -> Floats:
    """Costs moved by up to APART, so that no two columns tie; always alike for the same column of the same block."""
    counts = np.diff(column_start)
    column = np.arange(len(cost)) - np.repeat(column_start[:-1], counts)
    name = (np.repeat(slots, counts).astype(np.uint64) << np.uint64(16)) + column.astype(np.uint64)
    name = (name ^ (name >> np.uint64(31))) * np.uint64(0x9E3779B97F4A7C15)
    name = (name ^ (name >> np.uint64(29))) * np.uint64(0xBF58476D1CE4E5B9)
    part = (name >> np.uint64(11)).astype(np.float64) * 2.0**-53
    return cost + APART * (0.5 + part) * np.maximum(np.abs(cost), LEAST_COST)


def true_prices(kept: Kept, slots: Ints) -> Floats:
    """Prices of the kept basis for the costs as they are, scaled; none that no bound answers for."""
    program, dual = kept.program, kept.dual
    n, blocks, m = program.n_columns, len(program.column_start) - 1, program.n_rows
    cost = program.cost * kept.factor
    moved = np.zeros(n + blocks + m)
    moved[:n] = cost - apart(cost, program.column_start, slots)
    block = np.concatenate((np.repeat(np.arange(blocks), np.diff(program.column_start)), np.arange(blocks)))
    change = np.zeros(m)
    position = np.flatnonzero((dual.heads >= 0) & (dual.heads < n + blocks))
    head = dual.heads[position]
    key = dual.keys[block[head]]
    change[position] = moved[head] - np.where((head < n) == (key < n), 1.0, -1.0) * moved[key]
    prices = dual.prices + dual.inverse.entries @ change
    bound = np.where(prices > 0.0, dual.bounds[0, n + blocks :], dual.bounds[1, n + blocks :])
    return np.where(np.isfinite(bound), prices, 0.0)


def ended(kept: Kept, watch: Watch) -> Ending:
    """Pivot to the end, the time's end or too many pivots: how it ended; UNSTABLE where rounding spoilt it."""
    dual, left, again = kept.dual, LEAST_PIVOTS + 2 * worth(kept.dual), 0
    while left > 0:
        ending = Ending(dual.run(min(SLICE, left)))
        if ending == Ending.OPTIMAL and dual.error() > CLOSED:
            ending = Ending.UNSTABLE
        if ending == Ending.UNSTABLE and again < AGAIN and refactorised(kept):
            again, ending = again + 1, Ending.UNFINISHED
        if ending != Ending.UNFINISHED or watch():
            return ending
        left -= SLICE
    return Ending.UNFINISHED


def refactorised(kept: Kept) -> bool:
    """Whether the basis could be inverted afresh, with prices and values by it; not where variables are artificial."""
    program, dual = kept.program, kept.dual
    n, blocks, m = program.n_columns, len(program.column_start) - 1, program.n_rows
    head = dual.heads
    if (head < 0).any():
        return False
    block = np.concatenate((np.repeat(np.arange(blocks), np.diff(program.column_start)), np.arange(blocks)))
    own = np.flatnonzero(head < n + blocks)
    key = np.full(m, n)
    key[own] = dual.keys[block[head[own]]]
    sign = np.where((head < n) == (key < n), 1.0, -1.0)
    cost = np.append(apart(program.cost * kept.factor, program.column_start, kept.slots), 0.0)
    basis, right = np.zeros((m, m)), np.zeros(m)
    for variable, factor in ((head, np.ones(m)), (key, -sign)):
        position = np.flatnonzero(variable < n)
        column = variable[position]
        counts = np.diff(program.start)[column]
        entry, at = spread(program.start[column], counts), np.repeat(position, counts)
        value = program.value[entry] * kept.scale[program.row[entry]] * factor[at]
        np.add.at(basis, (program.row[entry], at), value)
        right[position] += factor[position] * cost[column]
    rows = np.flatnonzero(head >= n + blocks)
    basis[head[rows] - n - blocks, rows] = -1.0
    try:
        inverse = np.linalg.inv(basis)
    except np.linalg.LinAlgError:
        return False
    fresh = WorkingInverse(m)
    fresh.entries[:] = inverse.T
    return bool(np.isfinite(inverse).all()) and dual.take(
        fresh, inverse.T @ right, head.copy(), dual.keys.copy(), dual.at_uppers.copy()
    )


def worth(dual: BlockDual) -> int:
    """Pivots that cost as much as a cold solve by the interior-point method, by counted multiplications."""
    rows = dual.n_rows
    cold = COLD_ITERATIONS * (rows**3 / 3.0 + COLD_PASSES * dual.n_entries)
    return int(cold / (3.0 * rows**2 + rows + 1.0))


def own_prices(program: BlockProgram, keys: Ints, prices: Floats) -> Floats:
    """Prices of the private rows: the reduced cost of a block's key, zero where the key is the sum (K9)."""
    limited = np.flatnonzero(np.diff(program.private_start))
    key, found = keys[limited], np.zeros(len(limited))
    column = key < program.n_columns
    key = key[column]
    counts = np.diff(program.start)[key]
    entry = spread(program.start[key], counts)
    usage = np.bincount(
        np.repeat(np.arange(len(key)), counts),
        weights=program.value[entry] * prices[program.row[entry]],
        minlength=len(key),
    )
    found[column] = program.cost[key] - usage
    return found


# The two starts -------------------------------------------------------------------------------------------------------


def begun(program: BlockProgram, slots: Ints, generation: Ages, prices: Floats) -> Kept | None:
    """A start from prices alone."""
    _, every, factor = program.equilibrated()
    scale = every[: program.n_rows]
    dual = dual_of(program, scale, factor, slots)
    if not dual.begin(prices * factor / scale):
        return None
    return Kept(program, slots, generation, scale, factor, dual)


def carried(kept: Kept, program: BlockProgram, slots: Ints, generation: Ages) -> Kept | None:
    """The kept basis, taken over into a program: None where that cannot be."""
    before, old = kept.dual, kept.program
    rows = program.n_rows - old.n_rows
    if rows < 0:
        return None
    scale = np.concatenate((kept.scale, np.ones(rows)))
    dual = dual_of(program, scale, kept.factor, slots)
    blocks, old_blocks = len(slots), len(kept.slots)
    place = same_blocks(kept, program, slots, generation)
    heads = np.full(program.n_rows, -1, dtype=np.int32)
    high = np.zeros(program.n_columns + blocks + program.n_rows, dtype=np.uint8)
    keys = np.full(blocks, -1, dtype=np.int32)
    first, old_first = program.n_columns + blocks, old.n_columns + old_blocks
    # Columns and sums of the blocks that stayed.
    stayed = np.flatnonzero(place >= 0)
    counts = np.diff(old.column_start)[stayed]
    from_columns = spread(old.column_start[stayed], counts)
    number = np.full(old_first, -1, dtype=np.int32)  # of the old columns and sums in the new program
    number[from_columns] = spread(program.column_start[place[stayed]], counts)
    number[old.n_columns + stayed] = program.n_columns + place[stayed]
    known = number >= 0
    high[number[known]] = before.at_uppers[:old_first][known]
    keys[place[stayed]] = number[before.keys[stayed]]
    # Positions.
    head = before.heads
    own = (head >= 0) & (head < old_first)
    heads[: old.n_rows][own] = number[head[own]]
    heads[: old.n_rows][head >= old_first] = head[head >= old_first] - old_first + first
    heads[old.n_rows :] = first + np.arange(old.n_rows, program.n_rows)
    high[first : first + old.n_rows] = before.at_uppers[old_first:]
    inverse, prices = before.inverse, np.concatenate((before.prices, np.zeros(rows)))
    if rows:
        inverse = WorkingInverse(program.n_rows)
        inverse.reset()
        inverse.entries[: old.n_rows, : old.n_rows] = before.inverse.entries
    if not dual.take(inverse, prices, heads, keys, high):
        return None
    return Kept(program, slots, generation, scale, kept.factor, dual)


def same_blocks(kept: Kept, program: BlockProgram, slots: Ints, generation: Ages) -> Ints:
    """Where each old block with basic variables now stands, if only bounds have changed in it; -1 for all others."""
    old, basic = kept.program, np.flatnonzero(kept.dual.counts)
    place = np.full(len(kept.slots), -1, dtype=np.int32)
    if len(slots) == 0 or len(basic) == 0:
        return place
    order = np.argsort(slots, kind="stable")
    at = order[np.minimum(np.searchsorted(slots, kept.slots[basic], sorter=order), len(slots) - 1)]
    same = (slots[at] == kept.slots[basic]) & (generation[at] == kept.generation[basic])
    counts = np.diff(old.column_start)[basic]
    same &= counts == np.diff(program.column_start)[at]
    limited = np.diff(program.private_start) > 0
    same &= limited[at] == (np.diff(old.private_start)[basic] > 0)
    basic, at, counts = basic[same], at[same], counts[same]
    mine, its = spread(old.column_start[basic], counts), spread(program.column_start[at], counts)
    lengths = np.diff(old.start)[mine]
    equal = (old.cost[mine] == program.cost[its]) & (lengths == np.diff(program.start)[its])
    lengths = np.where(equal, lengths, 0)
    first, second = spread(old.start[mine], lengths), spread(program.start[its], lengths)
    entry = (old.row[first] == program.row[second]) & (old.value[first] == program.value[second])
    owner = np.repeat(np.arange(len(mine)), lengths)
    equal &= np.bincount(owner[~entry], minlength=len(mine)) == 0
    block = np.repeat(np.arange(len(basic)), counts)
    whole = np.bincount(block[~equal], minlength=len(basic)) == 0
    place[basic[whole]] = at[whole]
    return place


def spread(first: NDArray[np.integer], counts: NDArray[np.integer]) -> NDArray[np.int64]:
    """first[0], first[0] + 1, ... counts[0] of them, then those from first[1] on."""
    total = np.cumsum(counts) - counts
    return np.repeat(np.asarray(first, dtype=np.int64) - total, counts) + np.arange(int(counts.sum()))
