"""The basis of a block program, kept between rounds and through edits (docs/method/blocks.md, K9 to K15)."""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import IntEnum

import numpy as np
from numpy.typing import NDArray

from copter.highs.linear import AT_UPPER, BASIC, Vertex
from copter.methods.blocks.answer import BlockAnswer
from copter.methods.blocks.basis_carry import carried_basis, key_costs, moved_costs, same_blocks, true_prices
from copter.methods.blocks.block_dual import BlockDual
from copter.methods.blocks.program import BlockProgram
from copter.methods.blocks.slotted_program import SlottedProgram
from copter.methods.blocks.sparse_dual import SparseDual
from copter.methods.blocks.working_inverse import WorkingInverse
from copter.methods.choose import after_failure, vertex_work
from copter.model.ledger import Ledger
from copter.model.matrix.changes import Mark
from copter.runtime.watch import Watch

Floats = NDArray[np.float64]
Ints = NDArray[np.int32]
Ages = NDArray[np.int64]

# Coupling rows up to which the working basis has a dense inverse. On 112 rows most rounds are a tenth faster with
# sparse factors, but the longest ones a quarter slower; on 200 rows they take 0.4 to 0.9 of the time.
DENSE_ROWS = 128
MOST_ROWS = 100_000  # coupling rows up to which there is a basis
FEW_PRICES = 1e-9  # smaller prices, relative to the largest, count as zero where a basis starts from them
SLICE = 10  # pivots of up to `DENSE_ROWS` rows between two looks at the clock
COLD_ITERATIONS = 20  # assumed iterations of a cold interior-point solve
PASSES = 20.0  # assumed multiplications per entry in one such iteration
PRODUCTS = 1.5  # assumed multiplications to eliminate a block, per pair of its entries in different rows
LARGE_BLOCK, LARGE_PRODUCTS = 64, 0.05  # the same for blocks of more entries, whose products run along columns
CALLS = 500_000.0  # assumed fixed cost of one iteration, in multiplications
# with at most this many coupling rows the method after failed pivots is the proximal one, else interior points
FEW_ROWS = 64
PROXIMAL_PASSES = 200.0  # assumed passes over the entries in a proximal solve
# cost of a multiplication in the tiled factorisation, relative to one in a pivot: of up to TILED_ROWS rows, and of more
TILED_ROWS = 256
TILED = 0.1
LARGE_TILED = 0.035
# Work limit of pivots that start from prices and from a basis, in cold solves; each failure halves it.
MOST_COLD = (2.0, 1.25)
SPARSE_COST = 2.6  # cost of an operation with sparse factors, relative to one in a cold solve
# Work limit of pivots with sparse factors from a basis, as a share of a cold solve's: so many times what the last
# rounds took at most, within these bounds. So a round that falls out of line costs little more than a cold one.
SHARE_GROWTH = 2.0
LEAST_SHARE = 0.2
MOST_SHARE = 1.0
SHARES = 3  # rounds that count for it
MOST_TIES = 20  # blocks with several best columns, for each coupling row, up to which pivots start from prices
FEW_TIES = 4  # the same, below which prices settle little where pivots have far to go; a vertex has up to one
AGAIN = 3  # most inversions of the basis in one round after the first
LARGE = 2_000_000  # bytes of inverse and entries; larger ones do not fit the cache, so that pivots are slower
SLOWER = 2.0  # cost of a multiplication in a pivot of more than LARGE bytes, relative to one in a cold solve
# Relative perturbation of costs, so that no two are equal; more with sparse factors, whose ratio tests let reduced
# costs pass by a little: programs of equal options would make them go in circles.
APART, SPARSELY_APART = 1e-8, 1e-7
LEAST_COST = 1e-3  # costs below this share of the largest are perturbed as if they had this size
CLOSED = 1e-7  # largest accepted error of rows, and of basic reduced costs, at the end


class Ending(IntEnum):
    """How the pivots ended. INFEASIBLE: the tableau has a violated row that no column can repair."""

    OPTIMAL = 0
    INFEASIBLE = 1
    UNFINISHED = 2
    UNSTABLE = 3


@dataclass(frozen=True, slots=True)
class LastRound:
    """State kept from a round: the program, its blocks' names, its scaling, the tableau."""

    program: BlockProgram
    slots: Ints
    generation: Ages
    scale: Floats
    factor: float
    dual: BlockDual | SparseDual
    cold: float  # work of a solve without this state, see cold_work

    def is_of(self, program: BlockProgram, slots: Ints, generation: Ages) -> bool:
        """Whether this is the state of exactly this program."""
        bounds = ((self.program.lower, program.lower), (self.program.upper, program.upper))
        if not all(np.array_equal(one, other) for one, other in bounds):
            return False
        return self.has_blocks_of(program, slots, generation)

    def has_blocks_of(self, program: BlockProgram, slots: Ints, generation: Ages) -> bool:
        """Whether blocks, costs and coefficients equal those of a program."""
        old = self.program
        if not (same(self.slots, slots) and same(self.generation, generation) and same(old.cost, program.cost)):
            return False
        return old.has_entries_of(program)

    def differs_in_right_sides(self, program: BlockProgram, slots: Ints, generation: Ages) -> bool:
        """Whether a program differs from the kept one at most in finite bounds of its coupling and private rows.

        A bound that was infinite must still be, and one that was finite must not become infinite.
        """
        n, old = program.n_columns, self.program
        if len(old.lower) != len(program.lower) or n != old.n_columns:
            return False
        for before, now in ((old.lower, program.lower), (old.upper, program.upper)):
            if not np.array_equal(before[:n], now[:n]):
                return False
            if not np.array_equal(np.isfinite(before[n:]), np.isfinite(now[n:])):
                return False
        return self.has_blocks_of(program, slots, generation)


class BlockWarmBasis:
    """Solves a block program by the dual simplex method, from the final basis of the last solve.

    A block's name is its slot and generation. A block with changed costs or coefficients is treated as a new one: its
    basic variables become artificial and leave the basis, which so stays dual feasible through every edit.

    Attributes
    ----------
    last : LastRound or None
        The last program and its basis.
    answer : BlockAnswer or None
        Answer of the kept program, before later edits.
    slotted : SlottedProgram or None
        The program that follows a model's matrix in place, see :meth:`follow`.
    """

    def __init__(self) -> None:
        self.last: LastRound | None = None
        self.answer: BlockAnswer | None = None
        self.slotted: SlottedProgram | None = None
        self.mark: Mark | None = None  # of the edits that the slotted program contains, if that is known
        self.stays = False  # whether the slotted program has not changed since the last answer
        # the kept program, and the mark of the edits that it contains
        self.seen: tuple[BlockProgram, Mark] | None = None
        self.failures = self.resting = 0  # consecutive failures; rounds left to skip: one, two, four, ...
        self.late = 0  # consecutive rounds that ran out of time after pivots gave up, see :meth:`ran_out`
        self.stopped: LastRound | None = None  # where this round's pivots gave up
        self.gave_up = False  # whether the last round's sparse pivots ended at their work limit, or rest after that
        self.ties = 0  # blocks with several best columns after another method's optimum, for each coupling row
        self.unsettled = self.waiting = 0  # the same as failures and resting, of rounds in which prices settle no part
        self.shares: list[float] = []  # work of the last rounds' sparse pivots, as a share of a cold solve's

    def follow(self, ledger: Ledger) -> SlottedProgram:
        """Return a model's program; where its gaps suffice, program and basis follow the edits in place (K14)."""
        slotted, last, matrix = self.slotted, self.last, ledger.matrix
        self.slotted = self.last = None  # after an error neither is behind the model
        edited = None if self.mark is None else ledger.changes.of_requests_since(self.mark)
        self.mark = ledger.changes.mark
        if slotted is None or not slotted.follow(matrix, edited):
            slotted = SlottedProgram.of(matrix, slotted)
            if last is not None and not isinstance(last.dual, SparseDual):
                last = None
        elif last is not None and last.program is slotted.program:
            self.stays = self.stays and not slotted.changed.any()
            if not self.stays and not renewed(last, slotted):
                last = None
        self.slotted, self.last = slotted, last
        return slotted

    def solve(
        self,
        program: BlockProgram,
        slots: Ints,
        generation: Ages,
        prices: Floats,
        watch: Watch,
        point: Floats | None = None,
        fresh: bool = False,
    ) -> BlockAnswer | None:
        """Return an optimal vertex; None if the method does not apply, fails, or runs out of time.

        Parameters
        ----------
        program : BlockProgram
        slots : ndarray (blocks,) int32
        generation : ndarray (blocks,) int64
            Generation of each slot; slot and generation are a block's name.
        prices : ndarray (rows,)
            Prices of the coupling rows, as minimised; without a basis the method starts from them.
        watch : Watch
        point : ndarray (columns,), optional
            A point near the optimum of these prices; a sparse basis starts from its fractional columns.
        fresh : bool
            Whether the basis is another method's for this very program (:meth:`enter`): its pivots do not rest, and do
            not count among those of warm rounds.
        """
        follows = self.slotted is not None and program is self.slotted.program
        self.gave_up = False
        known = follows or (self.last is not None and self.last.program.shares_entries_of(program))
        if watch() or not (known or applies_to(program)):
            return None
        late = self.late if self.late and not fresh and np.isfinite(watch.limit_s) else 0
        if late > 1 and late & (late - 1) == 0:
            self.gave_up = program.n_rows > DENSE_ROWS
            return None
        if self.resting and not late and not fresh:
            self.resting, self.gave_up = self.resting - 1, program.n_rows > DENSE_ROWS
            return None
        last, self.last = self.last, None
        current = last is not None and last.program is program and follows
        if (
            last is not None
            and self.answer is not None
            and (self.stays if current else last.is_of(program, slots, generation))
        ):
            self.last = last if follows else replace(last, program=program)
            return replace(self.answer, iterations=0)
        with np.errstate(all="ignore"):
            now = last if last is None or current else carried(last, program, slots, generation)
            most = MOST_SHARE if fresh or now is None else self.most_cold(now) / 2**self.failures
            if late:
                most = np.inf
            ending = Ending.UNSTABLE if now is None else ended(now, watch, most)
            begins, cautious = ending == Ending.UNSTABLE, most < MOST_SHARE / 2**self.failures
            if begins and self.ties > MOST_TIES:
                self.gave_up = True
                return None
            if begins:
                now = begun(program, slots, generation, prices, point)
                if not late:
                    most = MOST_COLD[0] if point is None else MOST_SHARE
                ending = Ending.UNSTABLE if now is None else ended(now, watch, most / 2**self.failures)
        if now is None or ending != Ending.OPTIMAL:
            if ending == Ending.UNFINISHED:
                self.last, self.answer, self.stays = now, None, False  # the next round starts from here
                self.stopped = now
                if now is not None and isinstance(now.dual, SparseDual) and not watch():
                    self.gave_up = True
                    self.last = now if begins else None  # or from the next method's optimum, in turns
                    if cautious and not begins:  # the next rounds may take longer
                        self.shares = [*self.shares[1 - SHARES :], MOST_SHARE]
                    else:
                        self.failures, resting = after_failure(self.failures)
                        self.resting = resting // 2
                elif not watch():
                    self.failures, self.resting = after_failure(self.failures)
            return None
        self.last, self.stays = now, follows
        self.failures = self.failures if fresh else 0
        n, dual = program.n_columns, now.dual
        if isinstance(dual, SparseDual) and not fresh:
            self.shares = [*self.shares[1 - SHARES :], SPARSE_COST * dual.work / now.cold]
        x = np.maximum(dual.values[:n], program.lower[:n])
        np.minimum(x, program.upper[:n], out=x)
        true = program.cost * now.factor
        prices = dual.true_prices(true) if isinstance(dual, SparseDual) else true_prices(dual, true)
        prices *= now.scale / now.factor
        own = key_costs(
            dual.keys, program.private_start, program.start, program.row, program.value, program.cost, prices
        )
        self.answer = BlockAnswer(x, prices, dual.pivots, own, vertex=True)
        return self.answer

    def ran_out(self) -> None:
        """Take note that the round has run out of time, whatever came after the pivots.

        The next round's pivots go on from where these stopped, until its deadline; its second, fourth, eighth, ...
        successor leaves all of its time to the next method.
        """
        self.late += 1
        if self.last is None:
            self.last, self.answer, self.stays = self.stopped, None, False

    def enter(self, program: BlockProgram, slots: Ints, generation: Ages, vertex: Vertex) -> bool:
        """Take over a vertex's basis, from which the next :meth:`solve` of this program starts; whether that is one."""
        with np.errstate(all="ignore"):
            self.last, self.answer, self.stays = entered(program, slots, generation, vertex), None, False
        return self.last is not None

    def settles(self) -> bool:
        """Whether prices shall settle a part of the program this round (K6).

        Not where pivots have far to go and few blocks tie, and not in the rounds after failures.
        """
        if self.gave_up and self.ties < FEW_TIES:
            return False
        self.waiting -= self.waiting > 0
        return self.waiting == 0

    def note_settled(self, settled: bool) -> None:
        """Take note of whether prices have settled a part; pivots that failed before rest while they do."""
        if settled:
            self.unsettled, self.resting = 0, max(self.resting, 1 if self.failures else 0)
        else:
            self.unsettled, self.waiting = after_failure(self.unsettled)

    def most_cold(self, last: LastRound) -> float:
        """Work limit of pivots from a basis, as a share of a cold solve's."""
        if not isinstance(last.dual, SparseDual):
            return MOST_COLD[1]
        expected = SHARE_GROWTH * max(self.shares, default=MOST_SHARE)
        return min(max(expected, LEAST_SHARE), MOST_SHARE)


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


def dual_of(
    program: BlockProgram, scale: Floats, factor: float, slots: Ints, alone: bool = False
) -> BlockDual | SparseDual:
    """Return the dual simplex state of a program, with rows and costs scaled and costs perturbed, but no basis.

    `alone` as for :class:`.ColumnClasses`.
    """
    cost = perturbed(program, factor, slots)
    return BlockDual(program, scale, cost, alone) if program.n_rows <= DENSE_ROWS else SparseDual(program, scale, cost)


def perturbed(program: BlockProgram, factor: float, slots: Ints) -> Floats:
    """Return the scaled costs, changed so little that no two are equal."""
    apart = APART if program.n_rows <= DENSE_ROWS else SPARSELY_APART
    return moved_costs(program.cost * factor, program.column_start, slots, apart, LEAST_COST)


def scaled_bounds(program: BlockProgram, scale: Floats) -> tuple[Floats, Floats, Floats, Floats]:
    """Return the bounds of the blocks' sums and of the scaled rows: (least, most, lower, upper)."""
    n, m = program.n_columns, program.n_rows
    blocks = len(program.column_start) - 1
    limited = np.diff(program.private_start) > 0
    least, most = np.full(blocks, -np.inf), np.full(blocks, np.inf)
    least[limited], most[limited] = program.lower[n + m :], program.upper[n + m :]
    return least, most, program.lower[n : n + m] * scale, program.upper[n : n + m] * scale


def ended(last: LastRound, watch: Watch, most_cold: float = MOST_COLD[0]) -> Ending:
    """Pivot until optimal, out of time, or out of pivots; returns how it ended (UNSTABLE: rounding errors)."""
    dual, again = last.dual, 0
    if isinstance(dual, SparseDual):
        return sparsely_ended(last, dual, watch, most_cold)
    update = 3.0 * dual.n_rows**2 + dual.n_rows + 1.0
    most = most_cold * last.cold
    if 8.0 * dual.n_rows**2 + 12.0 * dual.n_entries > LARGE:
        most /= SLOWER
    while update * dual.pivots + dual.work + dual.classes.work <= most:
        ending = Ending(dual.run(SLICE))
        if ending == Ending.OPTIMAL and dual.error() > CLOSED:
            ending = Ending.UNSTABLE
        if ending == Ending.UNSTABLE and again < AGAIN and refactorised(last):
            again, ending = again + 1, Ending.UNFINISHED
        if ending != Ending.UNFINISHED or watch():
            return ending
    return Ending.UNFINISHED


def sparsely_ended(last: LastRound, dual: SparseDual, watch: Watch, most_cold: float) -> Ending:
    """Pivot as in :func:`ended`, with sparse factors."""
    again, pivots = 0, max(SLICE * DENSE_ROWS // dual.n_rows, 1)  # a pivot of more rows takes longer
    while SPARSE_COST * dual.work <= most_cold * last.cold:
        ending = Ending(dual.run(pivots))
        if ending == Ending.OPTIMAL and dual.error() > CLOSED:
            ending = Ending.UNSTABLE
        if ending == Ending.UNSTABLE and again < AGAIN and dual.renewed():
            again, ending = again + 1, Ending.UNFINISHED
        if ending != Ending.UNFINISHED or watch():
            return ending
    return Ending.UNFINISHED


def refactorised(last: LastRound) -> bool:
    """Invert the basis afresh and recompute prices and values; returns False if it contains artificial variables."""
    program, dual = last.program, last.dual
    if isinstance(dual, SparseDual):
        return dual.renewed()
    n, blocks, m = program.n_columns, len(program.column_start) - 1, program.n_rows
    head = dual.heads
    if (head < 0).any():
        return False
    block = np.concatenate((np.repeat(np.arange(blocks), np.diff(program.column_start)), np.arange(blocks)))
    own = np.flatnonzero(head < n + blocks)
    key = np.full(m, n)
    key[own] = dual.keys[block[head[own]]]
    sign = np.where((head < n) == (key < n), 1.0, -1.0)
    moved = moved_costs(program.cost * last.factor, program.column_start, last.slots, APART, LEAST_COST)
    cost = np.append(moved, 0.0)
    basis, right = np.zeros((m, m)), np.zeros(m)
    for variable, factor in ((head, np.ones(m)), (key, -sign)):
        position = np.flatnonzero(variable < n)
        column = variable[position]
        counts = np.diff(program.start)[column]
        entry, at = spread(program.start[column], counts), np.repeat(position, counts)
        value = program.value[entry] * last.scale[program.row[entry]] * factor[at]
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


def cold_work(program: BlockProgram) -> float:
    """Estimate the work of a solve by the next method, in multiplications of a pivot."""
    return min(blocks_work(program), first_vertex_work(program))


def first_vertex_work(program: BlockProgram) -> float:
    """Estimate the work of a first vertex by HiGHS (K18)."""
    return vertex_work(len(program.row) + len(program.own_row), program.n_rows)


def blocks_work(program: BlockProgram) -> float:
    """Estimate the work of a cold solve without it."""
    if program.n_rows <= FEW_ROWS:
        return COLD_ITERATIONS * CALLS + PROXIMAL_PASSES * len(program.row)
    entries = np.diff(program.start[program.column_start]).astype(np.float64)
    each = np.where(entries > LARGE_BLOCK, LARGE_PRODUCTS, PRODUCTS)
    products = float((each * entries * np.minimum(entries, program.n_rows)).sum())
    tiled = TILED if program.n_rows <= TILED_ROWS else LARGE_TILED
    once = CALLS + tiled * program.n_rows**3 / 3.0 + PASSES * len(program.row) + products
    return COLD_ITERATIONS * once


# The two starts -------------------------------------------------------------------------------------------------------


def begun(
    program: BlockProgram, slots: Ints, generation: Ages, prices: Floats, point: Floats | None = None
) -> LastRound | None:
    """Return a start from prices, and with sparse factors from a point, if there is one."""
    _, every, factor = program.equilibrated()
    scale = every[: program.n_rows]
    dual = dual_of(program, scale, factor, slots)
    scaled = prices * factor / scale
    if isinstance(dual, SparseDual):
        scaled[np.abs(scaled) <= FEW_PRICES * np.abs(scaled).max(initial=0.0)] = 0.0
        holds = dual.begin_at(scaled, point)
    else:
        holds = dual.begin(scaled)
    if not holds:
        return None
    return LastRound(program, slots, generation, scale, factor, dual, cold_work(program))


def entered(program: BlockProgram, slots: Ints, generation: Ages, vertex: Vertex) -> LastRound | None:
    """Return a start from a vertex whose basis is known (K18); None if the basis does not fit the blocks."""
    if vertex.y is None or vertex.statuses is None or vertex.x is None:
        return None
    n, m, blocks = program.n_columns, program.n_rows, len(program.column_start) - 1
    owner = np.repeat(np.arange(blocks), np.diff(program.column_start))
    sums = np.full(blocks, BASIC, dtype=np.int8)  # a block without a private row has a free sum
    limited = np.diff(program.private_start) > 0
    sums[limited] = vertex.statuses[n + m :]
    every = np.concatenate((vertex.statuses[:n], sums, vertex.statuses[n : n + m]))
    basic = every == BASIC
    keys = np.full(blocks, -1, dtype=np.int32)
    columns = np.flatnonzero(basic[:n])
    columns = columns[np.argsort(vertex.x[columns], kind="stable")]
    keys[owner[columns]] = columns  # the last one written is the largest
    keys[sums == BASIC] = n + np.flatnonzero(sums == BASIC)
    if (keys < 0).any():
        return None
    basic[keys] = False
    heads = np.flatnonzero(basic).astype(np.int32)
    if len(heads) != m:
        return None
    _, every_scale, factor = program.equilibrated()
    scale = every_scale[:m]
    dual = dual_of(program, scale, factor, slots)
    high = (every == AT_UPPER).astype(np.uint8)
    if not isinstance(dual, SparseDual) or not dual.enter(vertex.y[:m] * factor / scale, heads, keys, high):
        return None
    return LastRound(program, slots, generation, scale, factor, dual, cold_work(program))


def carried(last: LastRound, program: BlockProgram, slots: Ints, generation: Ages) -> LastRound | None:
    """Transfer the kept basis to a program; None if that is impossible."""
    before, old = last.dual, last.program
    if last.differs_in_right_sides(program, slots, generation):
        bounds = scaled_bounds(program, last.scale)
        return replace(last, program=program) if before.renew(*bounds) else None
    rows = program.n_rows - old.n_rows
    if rows < 0:
        return None
    scale = np.concatenate((last.scale, np.ones(rows)))
    alone = isinstance(before, BlockDual) and before.classes.alone
    dual = dual_of(program, scale, last.factor, slots, alone)
    place = same_blocks(before, dual, last.slots, last.generation, slots, generation)
    heads, keys, high = carried_basis(before, dual, place)
    prices = np.concatenate((before.prices, np.zeros(rows)))
    if isinstance(dual, SparseDual):
        norms = before.norms if isinstance(before, SparseDual) else None
        holds = dual.enter(prices, heads, keys, high, norms)
        return LastRound(program, slots, generation, scale, last.factor, dual, cold_work(program)) if holds else None
    inverse = before.inverse
    if rows:
        inverse = WorkingInverse(program.n_rows)
        inverse.reset()
        inverse.entries[: old.n_rows, : old.n_rows] = before.inverse.entries
    if not dual.take(inverse, prices, heads, keys, high):
        return None
    return LastRound(program, slots, generation, scale, last.factor, dual, cold_work(program))


def renewed(last: LastRound, slotted: SlottedProgram) -> bool:
    """Bring a basis up to its program, which has followed the matrix; returns False if it cannot go on."""
    program, dual, n, m = last.program, last.dual, last.program.n_columns, last.program.n_rows
    cost = perturbed(program, last.factor, last.slots)
    row_lower, row_upper = program.lower[n : n + m] * last.scale, program.upper[n : n + m] * last.scale
    dual.rewrite(slotted.changed, program, last.scale, cost)
    return dual.renew(program.lower[n + m :], program.upper[n + m :], row_lower, row_upper, slotted.changed)


def same(one: NDArray[np.generic], other: NDArray[np.generic]) -> bool:
    """Whether two arrays are identical or equal."""
    return one is other or np.array_equal(one, other)


def spread(first: NDArray[np.integer], counts: NDArray[np.integer]) -> NDArray[np.int64]:
    """Return counts[0] consecutive numbers from first[0], then counts[1] from first[1], and so on."""
    total = np.cumsum(counts) - counts
    return np.repeat(np.asarray(first, dtype=np.int64) - total, counts) + np.arange(int(counts.sum()))
