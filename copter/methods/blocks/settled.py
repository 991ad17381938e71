"""Solve of a block program in which prices of an earlier optimum settle most blocks (docs/method/blocks.md, K6)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from copter.methods.blocks.answer import Accept, BlockAnswer
from copter.methods.blocks.program import BlockProgram
from copter.methods.blocks.reduced_program import ReducedProgram
from copter.methods.blocks.settled_blocks import best_costs, settled_blocks

Floats = NDArray[np.float64]
Ints = NDArray[np.int32]
Places = NDArray[np.int64]
Mask = NDArray[np.bool_]
Look = Callable[[Floats, float], bool]
Solver = Callable[[BlockProgram, Ints, Look, Accept], BlockAnswer | None]

MARGIN = 0.05  # a block is settled if its best choice wins by this share of the largest cost
MOST_LEFT = 0.6  # if more than this share of the columns is left, the whole program is solved
GUESSES = 4  # most solves of parts; then the whole program is solved
SHARE = 3.0  # a choice is wrong, at prices of some relative accuracy, if it loses this multiple of it
ROUNDING = 1e-12  # excess of settled blocks over a row's bound, as a share of it, that counts as rounding


@dataclass(slots=True)
class Settled:
    """A program whose blocks take their best column at some prices, except for the loose ones.

    Attributes
    ----------
    program : BlockProgram
        Has limits alone (:func:`.has_limits_alone`).
    column : ndarray (blocks,) int32
        The column that takes the block's limit; -1 for an empty block, -2 for a loose one.
    kept : ndarray (columns,) bool
        The columns of loose blocks that stay.
    """

    program: BlockProgram
    column: Ints
    kept: Mask

    @classmethod
    def at(cls, program: BlockProgram, prices: Floats) -> Settled:
        """Settle blocks at prices, but none of those that together overfill a row."""
        reduced, _ = best_costs(program, prices)
        free = np.zeros(len(program.column_start) - 1, dtype=np.uint8)
        found = cls(program, *settled_blocks(program, reduced, MARGIN * largest_cost(program), free))
        n, m, counts = program.n_columns, program.n_rows, np.diff(program.start)
        while True:  # ends: each turn loosens a block of each row that is overfilled
            term = program.value * np.repeat(found.x, counts)
            used, high = np.bincount(program.row, term, m), program.upper[n : n + m]
            over = used - high > ROUNDING * used
            if not over.any():
                return found
            column = np.repeat(np.arange(n), counts)[over[program.row] & (term > 0.0)]
            found.loosen(block_of(program)[column])

    @property
    def loose(self) -> Mask:
        """Which blocks are loose, (blocks,)."""
        return np.asarray(self.column < -1)

    @property
    def x(self) -> Floats:
        """Values of the settled blocks' columns, zero elsewhere."""
        program, found = self.program, np.zeros(self.program.n_columns)
        block = np.flatnonzero(self.column >= 0)
        at = self.column[block]
        found[at] = program.upper[program.n_columns + program.n_rows + block] / program.own_value[at]
        return found

    def loosen(self, blocks: Places) -> None:
        """Make blocks loose, with all of their columns that differ."""
        program, free = self.program, np.zeros(len(self.column), dtype=np.uint8)
        free[blocks] = True
        _, kept = settled_blocks(program, np.zeros(program.n_columns), 0.0, free)
        self.kept |= kept & np.repeat(free.astype(bool), np.diff(program.column_start))
        self.column[blocks] = -2

    def widen(self, prices: Floats, wrong: Places) -> None:
        """Loosen the blocks that are wrong, and those that other prices do not settle, or not alike."""
        other = Settled.at(self.program, prices)
        self.kept |= other.kept
        self.loosen(np.union1d(wrong, np.flatnonzero(other.column != self.column)))

    def part(self) -> ReducedProgram:
        """Return the program of the loose blocks in the room that settled ones leave."""
        program, x = self.program, self.x
        n, m, upper = program.n_columns, program.n_rows, program.upper.copy()
        used = np.bincount(program.row, program.value * np.repeat(x, np.diff(program.start)), m)
        upper[n : n + m] = np.maximum(upper[n : n + m] - used, 0.0)
        found = ReducedProgram.of_parts(replace(program, upper=upper), np.arange(m, dtype=np.int32), self.kept)
        found.program, found.rows = found.program.without_loose_rows()
        found.whole.x[:] = x
        return found

    def wrong(self, prices: Floats, tolerance: float, private: Floats | None = None) -> Places:
        """Return the settled blocks that lose by their choice, and the loose ones that lose by what they are left.

        Parameters
        ----------
        prices : ndarray (coupling rows,)
        tolerance : float
            Loss a unit of a block's limit that does not count, as a share of the largest cost.
        private : ndarray (blocks,), optional
            Prices of the limits; without them loose blocks lose nothing.
        """
        program, most = self.program, tolerance * largest_cost(self.program)
        reduced, least = best_costs(program, prices)
        found = (self.column == -1) & (least < -most)
        taken = np.flatnonzero(self.column >= 0)
        found[taken] = reduced[self.column[taken]] - least[taken] > most
        if private is not None:
            own = np.where(self.loose, private, -np.inf)
            found[block_of(program)[reduced - np.repeat(own, np.diff(program.column_start)) < -most]] = True
        return np.flatnonzero(found)

    def completed(self, answer: BlockAnswer) -> BlockAnswer:
        """Return an answer with prices of settled blocks' limits."""
        _, least = best_costs(self.program, answer.y)
        return replace(answer, private=np.where(self.loose, answer.private, least))


def solve_settled(
    program: BlockProgram, prices: Floats, tolerance: float, solve: Solver, accept: Accept | None
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
        Returns an answer of a program of some of the coupling rows. It is also given what looks at prices on the way
        and their accuracy, and may refuse them, and what accepts an answer. None after a refusal or a failure.
    accept : callable or None
        Whether an answer of the program will do; None accepts all.
    """
    state = Settled.at(program, prices)
    for _ in range(GUESSES):
        if state.kept.mean() > MOST_LEFT:
            return None
        part, refused = state.part(), list[tuple[Floats, Places]]()

        def look(y: Floats, accuracy: float, state: Settled = state, refused: list[Any] = refused) -> bool:
            wrong = state.wrong(y, SHARE * accuracy)
            refused += [(y, wrong)] if len(wrong) else []
            return not refused

        def ends(found: BlockAnswer, state: Settled = state, part: ReducedProgram = part) -> bool:
            answer = state.completed(part.answer(found))
            return accept is None or len(state.wrong(answer.y, tolerance, answer.private)) > 0 or accept(answer)

        answer = solve(part.program, part.rows, look, ends)
        if answer is not None:
            whole = state.completed(part.answer(answer))
            wrong = state.wrong(whole.y, tolerance, whole.private)
            if not len(wrong):
                return whole
            refused = [(whole.y, wrong)]
        if not refused:
            return None
        state.widen(*refused[-1])
    return None


def largest_cost(program: BlockProgram) -> float:
    """Return the size of the largest cost."""
    return float(np.abs(program.cost).max(initial=0.0))


def block_of(program: BlockProgram) -> Places:
    """Return each column's block."""
    return np.repeat(np.arange(len(program.column_start) - 1), np.diff(program.column_start))
