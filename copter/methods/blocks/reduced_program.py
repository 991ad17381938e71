"""What is left of a block program once rows and columns that decide nothing are out (equation K5)."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from copter.methods.blocks.answer import Accept, BlockAnswer
from copter.methods.blocks.program import BlockProgram
from copter.methods.blocks.useful_columns import useful_columns

Ints = NDArray[np.int32]
Places = NDArray[np.int64]

WORTH = 0.1  # columns are sought once more while the last search took out at least this share of them


@dataclass(slots=True)
class ReducedProgram:
    """A part of a block program whose optima are optima of the whole.

    Attributes
    ----------
    program : BlockProgram
        The part that is left.
    rows, columns, private : ndarray
        Its coupling rows, columns and private rows, by their places in the whole, ascending.
    whole : BlockAnswer
        Values and prices of everything else.
    """

    program: BlockProgram
    rows: Ints
    columns: Places
    private: Places
    whole: BlockAnswer
    last: tuple[BlockAnswer, BlockAnswer] | None = field(default=None, init=False)

    @classmethod
    def of(cls, program: BlockProgram) -> ReducedProgram:
        """Leave out coupling rows that cannot bind, and then columns that others make useless, while that gains."""
        n, m = program.n_columns, program.n_rows
        n_private = len(program.lower) - n - m
        lean, rows = program.without_loose_rows()
        whole = BlockAnswer(np.zeros(n), np.zeros(m), 0, np.zeros(n_private))
        found = cls(lean, rows, np.arange(n), np.arange(n_private), whole)
        if has_limits_alone(program):
            while found.without_useless_columns():  # ends: each turn takes out a tenth of the columns
                lean, binding = found.program.without_loose_rows()
                found.program, found.rows = lean, found.rows[binding]
        return found

    @classmethod
    def of_parts(cls, program: BlockProgram, rows: Ints, keep: NDArray[np.bool_]) -> ReducedProgram:
        """Leave out all but some coupling rows and some columns."""
        part, columns, private = program.of_rows(rows).of_columns(keep)
        n_private = len(program.lower) - program.n_columns - program.n_rows
        whole = BlockAnswer(np.zeros(program.n_columns), np.zeros(program.n_rows), 0, np.zeros(n_private))
        return cls(part, rows, columns, private, whole)

    def without_useless_columns(self) -> bool:
        """Leave out the useless columns; returns whether there were many."""
        program = self.program
        useful, alone = useful_columns(program)
        n, m = program.n_columns, program.n_rows
        keep = useful.astype(bool)
        if n == 0 or keep.sum() > (1.0 - WORTH) * n:
            return False
        block = np.flatnonzero(alone >= 0)
        column = alone[block]
        self.whole.x[self.columns[column]] = program.upper[n + m + block] / program.own_value[column]
        self.whole.private[self.private[block]] = program.cost[column] / program.own_value[column]
        self.program, columns, private = program.of_columns(keep)
        self.columns, self.private = self.columns[columns], self.private[private]
        return bool(keep.any())

    def answer(self, found: BlockAnswer) -> BlockAnswer:
        """Return the whole program's answer to an answer of the part; the same for the same one."""
        if self.last is None or self.last[0] is not found:
            x, private = self.whole.x.copy(), self.whole.private.copy()
            x[self.columns], private[self.private] = found.x, found.private
            self.last = found, BlockAnswer(x, found.y, found.iterations, private, found.vertex)
        return self.last[1]

    def accept(self, accept: Accept | None) -> Accept | None:
        """Return what accepts answers of the part."""
        return None if accept is None else lambda found: accept(self.answer(found))


def has_limits_alone(program: BlockProgram) -> bool:
    """Whether columns of zero and more compete, in blocks with a limit each, for rows with upper bounds only."""
    n = program.n_columns
    blocks, own = len(program.column_start) - 1, program.own_value
    return (
        n == program.column_start[-1] == len(own)
        and np.array_equal(program.private_start, np.arange(blocks + 1))
        and np.array_equal(program.own_start, np.arange(n + 1))
        and bool((own > 0.0).all() and (program.value > 0.0).all())
        and not program.lower[:n].any()
        and bool(np.isneginf(program.lower[n:]).all())
    )
