"""Solve of a block program in which prices of an earlier optimum settle most blocks (docs/method/blocks.md, K6)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from copter.methods.blocks.answer import Accept, BlockAnswer
from copter.methods.blocks.program import BlockProgram
from copter.methods.blocks.reduced_program import ReducedProgram
from copter.methods.blocks.settled_blocks import best_costs, movers, settled_blocks, tied_blocks, usage

Floats = NDArray[np.float64]
Ints = NDArray[np.int32]
Places = NDArray[np.int64]
Mask = NDArray[np.bool_]
Solver = Callable[[BlockProgram, Ints, Accept], BlockAnswer | None]

MARGIN = 0.05  # a block is settled if its best choice wins by this share of the largest cost
MOST_LEFT = 0.6  # if all parts have more than this share of the columns, the whole program is solved
GUESSES = 4  # most solves of parts; then the whole program is solved
REACH = 100.0  # loose blocks can move so many times what a row is overfilled by, or lacks at its price
TIED = 1e-4  # share of the largest cost by which tied columns differ at most
MANY = 0.05  # of all blocks: with more wrong ones the part was too small to hold the prices
MOVED = 1e-3  # share of the largest price by which a price moves
PRICED = 1e-6  # a row with at least this share of the largest price is one that an optimum fills
ROUNDING = 1e-12  # excess of settled blocks over a row's bound, as a share of it, that counts as rounding


@dataclass(slots=True)
class Settled:
    """A program whose blocks take near choices at some prices, except for the loose ones.

    Attributes
    ----------
    program : BlockProgram
        Has limits alone (:func:`.has_limits_alone`).
    prices : ndarray (rows,)
    point : ndarray (columns,) or None
        Values near an optimum: what blocks with several near choices take of each.
    x : ndarray (columns,)
        Values of the settled blocks' columns, zero elsewhere.
    loose : ndarray (blocks,) bool
    near : ndarray (columns,) bool
        The columns of loose blocks that stay.
    """

    program: BlockProgram
    prices: Floats
    point: Floats | None
    x: Floats
    loose: Mask
    near: Mask

    @classmethod
    def at(cls, program: BlockProgram, prices: Floats, point: Floats | None = None) -> Settled:
        """Settle blocks at prices, but loosen some in rows that they would overfill, or leave open at a price."""
        reduced, least = best_costs(program, prices)
        free, margin = np.zeros(len(program.column_start) - 1, dtype=np.uint8), MARGIN * largest_cost(program)
        found = cls(program, prices, point, *settled_blocks(program, reduced, margin, free, point))
        n, m = program.n_columns, program.n_rows
        high = program.upper[n : n + m]
        if point is not None:
            priced = np.abs(prices) > PRICED * np.abs(prices).max(initial=0.0)
            near = reduced <= least[block_of(program)] + margin
            found.loosen_some(np.where(priced, REACH * (high - found.used), 0.0), np.where(near, found.room, 0.0))
        while True:  # ends: each turn loosens a block of each row that is overfilled
            used = found.used
            over = np.where(used - high > ROUNDING * used, used - high, 0.0)
            if not over.any():
                return found
            found.loosen_some(REACH * over, found.x)

    @property
    def used(self) -> Floats:
        """Usage of the rows by the settled blocks, (rows,)."""
        return usage(self.program, self.x)

    @property
    def room(self) -> Floats:
        """By how much each column of a settled block can rise, (columns,)."""
        program, block = self.program, block_of(self.program)
        limit = program.upper[program.n_columns + program.n_rows :][block] / program.own_value
        found: Floats = np.where(self.loose[block] | ~np.isfinite(limit), 0.0, limit - self.x)
        return found

    def loosen_some(self, wanted: Floats, movable: Floats) -> None:
        """Loosen the blocks that move most until as much can move as is wanted.

        Parameters
        ----------
        wanted : ndarray (rows,)
            Usage of each row; none where it is not positive.
        movable : ndarray (columns,)
            By how much each column can move.
        """
        row, column, share = movers(self.program, wanted, movable)
        order = np.argsort(row + 1.0 / (1.0 + share), kind="stable")  # by row, then by share from the largest
        row, column, share = row[order], column[order], share[order]
        before = np.cumsum(share) - share
        self.loosen(block_of(self.program)[column[before - before[np.searchsorted(row, row)] < 1.0]])

    def loosen(self, blocks: Places) -> None:
        """Make blocks loose, with all of their columns that differ."""
        program, free = self.program, np.zeros(len(self.loose), dtype=np.uint8)
        free[blocks] = True
        _, _, near = settled_blocks(program, np.zeros(program.n_columns), 0.0, free)
        freed = np.repeat(free.astype(bool), np.diff(program.column_start))
        self.near |= near & freed
        self.x[freed] = 0.0
        self.loose[blocks] = True

    def widen(self, prices: Floats, wrong: Places) -> None:
        """Loosen the blocks that are wrong, and those that other prices do not settle, or not alike.

        Where too many are wrong, loosen those that can move a whole row's room, in the rows whose prices have moved.
        """
        program = self.program
        if self.point is not None and len(wrong) > MANY * len(self.loose):
            n, m = program.n_columns, program.n_rows
            moved = np.abs(prices - self.prices) > MOVED * np.abs(prices).max(initial=0.0)
            self.loosen_some(np.where(moved, program.upper[n : n + m], 0.0), self.x + self.room)
            return
        other = Settled.at(program, prices, self.point)
        self.near |= other.near
        differs = block_of(program)[self.x != other.x]
        self.loosen(np.union1d(np.union1d(wrong, differs), np.flatnonzero(other.loose & ~self.loose)))

    def part(self) -> ReducedProgram:
        """Return the program of the loose blocks in the room that settled ones leave."""
        program = self.program
        n, m, upper = program.n_columns, program.n_rows, program.upper.copy()
        upper[n : n + m] = np.maximum(upper[n : n + m] - self.used, 0.0)
        found = ReducedProgram.of_parts(replace(program, upper=upper), np.arange(m, dtype=np.int32), self.near)
        found.whole.x[:] = self.x
        found.program, found.rows = found.program.without_loose_rows()
        if found.without_useless_columns():
            found.program, binding = found.program.without_loose_rows()
            found.rows = found.rows[binding]
        return found

    def wrong(self, prices: Floats, tolerance: float, private: Floats) -> Places:
        """Return the settled blocks that lose by their choice, and the loose ones that lose by what they are left.

        Parameters
        ----------
        prices : ndarray (coupling rows,)
        tolerance : float
            Loss a unit of a block's limit that does not count, as a share of the largest cost.
        private : ndarray (blocks,)
            Prices of the limits.
        """
        program, most = self.program, tolerance * largest_cost(self.program)
        reduced, least = best_costs(program, prices)
        block, limit = block_of(program), program.upper[program.n_columns + program.n_rows :]
        taken = np.flatnonzero(self.x > 0.0)
        total = np.bincount(block[taken], self.x[taken] * program.own_value[taken], len(limit))
        found = ~self.loose & (least < -most) & (limit - total > ROUNDING * total)  # an unused limit
        found[block[taken[reduced[taken] - least[block[taken]] > most]]] = True
        own = np.where(self.loose, private, -np.inf)
        found[block[reduced - own[block] < -most]] = True
        return np.flatnonzero(found)

    def completed(self, answer: BlockAnswer) -> BlockAnswer:
        """Return an answer with prices of settled blocks' limits."""
        _, least = best_costs(self.program, answer.y)
        return replace(answer, private=np.where(self.loose, answer.private, least))


def ties_a_row(program: BlockProgram, prices: Floats) -> int:
    """Return how many blocks have several best columns at prices, for each coupling row."""
    reduced, _ = best_costs(program, prices)
    return tied_blocks(program, reduced, TIED * largest_cost(program)) // program.n_rows


def solve_settled(
    program: BlockProgram,
    prices: Floats,
    tolerance: float,
    solve: Solver,
    accept: Accept | None,
    point: Floats | None = None,
) -> BlockAnswer | None:
    """Solve a program in parts that prices leave; None if they leave too much, or after `GUESSES` parts.

    Parameters
    ----------
    program : BlockProgram
        Has limits alone.
    prices : ndarray (rows,)
        Of an earlier optimum.
    tolerance : float
        Relative loss at which a choice is wrong in the end.
    solve : callable
        Returns an answer of a program of some of the coupling rows, None after a failure; it is also given what accepts
        an answer.
    accept : callable or None
        Whether an answer of the program will do; None accepts all.
    point : ndarray (columns,), optional
        Of the earlier optimum.
    """
    state = Settled.at(program, prices, point)
    solved = 0
    for _ in range(GUESSES):
        solved += int(state.near.sum())
        if solved > MOST_LEFT * program.n_columns:
            return None
        part, accepted = state.part(), list[BlockAnswer]()

        def ends(
            found: BlockAnswer,
            state: Settled = state,
            part: ReducedProgram = part,
            accepted: list[BlockAnswer] = accepted,
        ) -> bool:
            answer = state.completed(part.answer(found))
            if accept is not None and accept(answer):
                accepted.append(answer)
            return bool(accepted) or accept is None or len(state.wrong(answer.y, tolerance, answer.private)) > 0

        answer = solve(part.program, part.rows, ends)
        if accepted:
            return accepted[-1]
        if answer is None:
            return None
        whole = state.completed(part.answer(answer))
        wrong = state.wrong(whole.y, tolerance, whole.private)
        if not len(wrong):
            return whole
        state.widen(whole.y, wrong)
    return None


def largest_cost(program: BlockProgram) -> float:
    """Return the size of the largest cost."""
    return float(np.abs(program.cost).max(initial=0.0))


def block_of(program: BlockProgram) -> Places:
    """Return each column's block."""
    return np.repeat(np.arange(len(program.column_start) - 1), np.diff(program.column_start))
