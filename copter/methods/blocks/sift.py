"""Partial solves of a large program: only columns that may become best near the last prices; other blocks are fixed
(K17).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from copter.methods.blocks.answer import Accept, BlockAnswer
from copter.methods.blocks.column_reach import column_reach, largest_of_rows
from copter.methods.blocks.loose_rows import kept_entries, row_terms
from copter.methods.blocks.program import BlockProgram, sums_before
from copter.methods.blocks.screen import standing
from copter.problem.values import ranges

Floats = NDArray[np.float64]
Ints = NDArray[np.int32]
Places = NDArray[np.int64]
Mask = NDArray[np.bool_]

LEAST_BLOCKS = 4000  # a program of fewer blocks is solved whole: a part would not be much smaller
RADIUS = 0.02  # the part has the columns that could become best while prices move by at most this share of their sizes
IDLE_PRICE = 0.01  # size of a zero price, in units of the largest cost over the row's largest entry
TIE = 1e-7  # reduced costs that differ by less than this share of the largest cost count as equal
TIED = 1e-4  # a block is tied if its second-best column is within this share of RADIUS of the best
# Most tied blocks in the first part, the largest ones first: per priced row, and as a share of all blocks.
MOST_TIED = (4, 0.01)
ROOM = 1e-3  # held blocks must leave this share of a row's bound free; else its largest users join the part
MOST_COLUMNS = 0.5  # if a part needs more than this share of the columns, the whole program is solved instead
PARTS = 8  # parts tried, each larger than the last, before the whole program is solved
MORE = 0.02
"""Second part: this share of the blocks with a positive reduced gain; each later part takes twice as many."""

LEAST_MORE = 1000  # least number of blocks of each later part, if so many have a positive reduced gain


def has_parts(program: BlockProgram) -> bool:
    """Whether a program has many blocks, none with a private row besides its sum, so that most blocks can stay
    fixed.
    """
    rows, own = np.diff(program.private_start), np.diff(program.own_start)
    return bool(
        len(rows) >= LEAST_BLOCKS
        and program.n_rows > 0
        and program.n_columns == program.column_start[-1]
        and rows.max() <= 1
        and np.array_equal(own > 0, np.repeat(rows > 0, np.diff(program.column_start)))
        and (program.own_value == 1.0).all()
    )


class Sifting:
    """Growing parts of one program, solved until the answer of one is optimal for the whole.

    Parameters
    ----------
    program : BlockProgram
    last : BlockAnswer
        Answer of the last solve; blocks whose choice is the best there stay as they are.
    solve : callable
        Function that solves a part with the given coupling rows and returns prices of all coupling rows.
    accept : callable
        Function that decides whether an answer is optimal for the whole program.
    vertex : bool
        Whether every block that stays shall be at one column.
    """

    def __init__(
        self,
        program: BlockProgram,
        last: BlockAnswer,
        solve: Callable[[BlockProgram, Ints], BlockAnswer | None],
        accept: Accept,
        vertex: bool,
    ) -> None:
        self.program, self.solve, self.accept = program, solve, accept
        n, m, blocks = program.n_columns, program.n_rows, len(program.column_start) - 1
        self.x, self.y = np.zeros(n) if vertex else np.maximum(last.x, 0.0), self.signed(last.y)
        self.sizes = np.diff(program.column_start)
        self.limited = np.diff(program.private_start) > 0
        self.sums = np.empty((2, blocks))
        self.sums[0], self.sums[1] = -np.inf, np.inf
        self.sums[:, self.limited] = program.lower[n + m :], program.upper[n + m :]
        cost, largest = float(np.abs(program.cost).max(initial=0.0)), largest_of_rows(m, program.row, program.value)
        self.tie, self.idle = TIE * cost, IDLE_PRICE * cost / np.where(largest > 0.0, largest, 1.0)
        self.near = np.zeros(m, dtype=np.bool_)  # rows near their bounds at the last point
        self.held, self.reach, self.worth, self.loss = self.x, np.empty(0), np.empty(0), np.empty(0)

    def run(self, rows: Mask) -> BlockAnswer | None:
        """Solve growing parts, the first over these coupling rows, until one answer is accepted for the whole program.

        Returns None if the whole program has to be solved.
        """
        rows, iterations = rows | (self.y != 0.0), 0
        self.look(rows)
        kept = self.first()
        for again in range(PARTS):
            made = self.part(kept, rows)
            if made is None:
                return None
            part, columns = made
            found = self.solve(part, np.flatnonzero(rows).astype(np.int32))
            if found is None:
                return None
            iterations += found.iterations
            self.x, self.y = self.held, self.signed(found.y)
            self.x[columns] = found.x
            over, self.near = standing(self.program, self.x)
            rows = rows | self.near
            self.look(rows)
            if not over.any():
                self.worth[(self.counts(kept) > 0) & self.limited] = found.private
                answer = replace(found, x=self.x, y=self.y, iterations=iterations, private=self.worth[self.limited])
                if self.accept(answer):
                    return answer
            kept |= self.more(kept, MORE * 2**again)
            self.held = self.x.copy()
        return None

    def signed(self, y: Floats) -> Floats:
        """Return the prices, with zero for those whose sign belongs to an infinite bound of the row."""
        n, m = self.program.n_columns, self.program.n_rows
        bound = np.where(y > 0.0, self.program.lower[n : n + m], self.program.upper[n : n + m])
        return np.where(np.isfinite(bound), y, 0.0)

    # Which columns ------------------------------------------------------------------------------------------------

    def look(self, rows: Mask) -> None:
        """Compute the values at which blocks stay, the radius for these rows' prices, and the blocks' prices."""
        program, n = self.program, self.program.n_columns
        weight = np.where(rows, np.maximum(np.abs(self.y), self.idle), 0.0)
        self.held, self.reach, self.worth, self.loss = column_reach(
            program.column_start,
            program.start,
            program.row,
            program.value,
            program.cost,
            program.lower[:n],
            program.upper[:n],
            self.sums,
            self.x,
            self.y,
            weight,
            self.tie,
        )

    def first(self) -> Mask:
        """Mark the columns within the radius; of blocks with ties, only those of the largest blocks."""
        close = self.reach <= RADIUS
        tied = self.counts(np.abs(self.reach) <= TIED * RADIUS) > 0
        most = max(MOST_TIED[0] * int(np.count_nonzero(self.y)), int(MOST_TIED[1] * len(tied)))
        if np.count_nonzero(tied) > most:
            order = np.argsort(-np.where(tied, self.sums[1], -np.inf), kind="stable")
            tied[order[:most]] = False
            close &= ~np.repeat(tied, self.sizes)
        return close

    def more(self, kept: Mask, share: float) -> Mask:
        """Mark the columns that the last part's prices make attractive; of other blocks, those with the largest
        gains.
        """
        opened = self.counts(kept) > 0
        loss = np.where(opened, 0.0, self.loss)
        order = np.argsort(-loss, kind="stable")[: max(int(share * len(loss)), LEAST_MORE)]
        gains = np.zeros(len(loss), dtype=np.bool_)
        gains[order] = loss[order] > 0.0
        opened, gains = np.repeat(opened, self.sizes), np.repeat(gains, self.sizes)
        close = (self.x > 0.0) | (self.held > 0.0) | (self.reach <= RADIUS)
        return np.asarray((opened & ((self.reach <= 0.0) | (self.held > 0.0))) | (gains & close))

    def counts(self, columns: Mask) -> Places:
        """Count the given columns per block."""
        total = np.zeros(len(columns) + 1, dtype=np.int64)
        np.cumsum(columns, out=total[1:])
        start = self.program.column_start
        return np.asarray(total[start[1:]] - total[start[:-1]])

    # The part -----------------------------------------------------------------------------------------------------

    def part(self, kept: Mask, rows: Mask) -> tuple[BlockProgram, Places] | None:
        """Return (program of the kept columns and rows plus the columns that make room, its columns).

        `kept` and `held` are updated. None if the part would be most of the program.
        """
        program, n, m = self.program, self.program.n_columns, self.program.n_rows
        while True:
            opened = np.repeat(self.counts(kept) > 0, self.sizes)
            kept |= opened & (self.held > 0.0)
            if np.count_nonzero(kept) > MOST_COLUMNS * n:
                return None
            closed = np.where(opened, 0.0, self.held)
            up, down = row_terms(m, program.start, program.row, program.value, closed)
            used, upper = up - down, program.upper[n : n + m]
            excess = np.where(rows & (up > 0.0) & np.isfinite(upper), used - upper + ROOM * np.abs(upper), -1.0)
            if not (excess > 0.0).any():
                break
            kept |= self.making_room(closed, excess)
        self.held = closed
        columns = np.flatnonzero(kept)
        return part_of(program, columns, self.counts(kept), np.flatnonzero(rows), used), columns

    def making_room(self, closed: Floats, excess: Floats) -> Mask:
        """Mark columns of blocks that use an overused row: enough for twice the excess, tied blocks first."""
        program = self.program
        full = np.flatnonzero(excess > 0.0)
        place = np.full(program.n_rows, -1, dtype=np.int32)
        place[full] = np.arange(len(full), dtype=np.int32)
        start, row, value = kept_entries(place, program.start, program.row, program.value)
        column = np.repeat(np.arange(program.n_columns), np.diff(start))
        use = value * closed[column]
        users = np.flatnonzero(use > 0.0)
        block = np.searchsorted(program.column_start, column[users], side="right") - 1
        apart = self.counts(np.abs(self.reach) <= RADIUS)[block] == 0
        order = np.lexsort((-use[users], apart, row[users]))
        users, block = users[order], block[order]
        total = np.cumsum(use[users])
        first = np.searchsorted(row[users], np.arange(len(full)))
        before = np.concatenate(([0.0], total))[first][row[users]]
        needed = total - use[users] - before < 2.0 * excess[full][row[users]]
        opens = np.zeros(len(program.column_start) - 1, dtype=np.bool_)
        opens[block[needed]] = True
        return np.asarray(np.repeat(opens, self.sizes) & ((self.reach <= RADIUS) | (self.held > 0.0)))


def part_of(program: BlockProgram, columns: Places, counts: Places, rows: Places, used: Floats) -> BlockProgram:
    """Return the program of some columns (`counts` per block) in some coupling rows, of which `used` is taken."""
    n, m = program.n_columns, program.n_rows
    blocks = np.flatnonzero(counts)

    def pieces(start: Ints, which: Places) -> Places:
        return ranges(start[which].astype(np.int64), start[which + 1].astype(np.int64))

    private, entries = pieces(program.private_start, blocks), pieces(program.start, columns)
    own = pieces(program.own_start, columns)
    place = np.full(m, -1, dtype=np.int32)
    place[rows] = np.arange(len(rows), dtype=np.int32)
    start, row, value = kept_entries(
        place, sums_before(np.diff(program.start)[columns]), program.row[entries], program.value[entries]
    )
    stays = np.concatenate((columns, n + rows, n + m + private))
    lower, upper = program.lower[stays], program.upper[stays]
    coupling = slice(len(columns), len(columns) + len(rows))
    lower[coupling] -= used[rows]
    upper[coupling] -= used[rows]
    return BlockProgram(
        n_rows=len(rows),
        column_start=sums_before(counts[blocks]),
        private_start=sums_before(np.diff(program.private_start)[blocks]),
        start=start,
        row=row,
        value=value,
        own_start=sums_before(np.diff(program.own_start)[columns]),
        own_row=program.own_row[own],
        own_value=program.own_value[own],
        cost=program.cost[columns],
        lower=lower,
        upper=upper,
    )
