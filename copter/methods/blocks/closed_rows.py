"""Coupling rows without capacity, such as a failed link: their columns are zero and leave the program (K7)."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from copter.methods.blocks.answer import BlockAnswer
from copter.methods.blocks.program import BlockProgram, sums_before
from copter.problem.values import ranges

Floats = NDArray[np.float64]
Ints = NDArray[np.int32]
Places = NDArray[np.intp]


@dataclass(frozen=True, slots=True)
class OpenProgram:
    """A program without the columns that its closed rows force to zero.

    Attributes
    ----------
    whole, program : BlockProgram
        The program with these columns and without them; both have the same coupling rows.
    columns, private : ndarray
        Columns and private rows of the whole program that stay.
    closed : ndarray
        Coupling rows that are closed.
    """

    whole: BlockProgram
    program: BlockProgram
    columns: Places
    private: Places
    closed: Places

    def reduced(self, answer: BlockAnswer) -> BlockAnswer:
        """Restrict an answer of the whole program to the open program."""
        return replace(answer, x=answer.x[self.columns], private=np.zeros(0))

    def restored(self, x: Floats, y: Floats, private: Floats) -> tuple[Floats, Floats, Floats]:
        """Extend a point and prices to the whole program; closed rows get prices that make their columns
        unattractive.
        """
        whole, m = self.whole, self.whole.n_rows
        point, prices, own = np.zeros(whole.n_columns), y.copy(), np.zeros(len(whole.lower) - whole.n_columns - m)
        point[self.columns], own[self.private] = x, private
        prices[self.closed] = 0.0
        gone = np.flatnonzero(np.bincount(self.columns, minlength=whole.n_columns) == 0)
        row, value, at = entries_of(whole, gone)
        reduced = whole.cost[gone] - own_usage(whole, gone, own)
        reduced -= np.bincount(at, weights=value * prices[row], minlength=len(gone))
        closed = np.flatnonzero(np.isin(row, self.closed))
        np.minimum.at(prices, row[closed], reduced[at[closed]] / value[closed])
        return point, prices, own


def opened(program: BlockProgram) -> OpenProgram | None:
    """Return the program without the columns of closed rows; None if no row is closed or a block needs a removed
    column.

    A row is closed if its upper bound is zero, its coefficients are positive and its columns have lower bounds of zero.
    """
    n, m = program.n_columns, program.n_rows
    is_closed = (program.upper[n : n + m] == 0.0) & (program.lower[n : n + m] <= 0.0)
    if not is_closed.any():
        return None
    entry = np.flatnonzero(is_closed[program.row])
    column = np.searchsorted(program.start, entry, side="right") - 1
    is_used = np.bincount(program.row[entry], minlength=m) > 0
    is_used[program.row[entry[(program.value[entry] <= 0.0) | (program.lower[column] != 0.0)]]] = False
    is_closed &= is_used
    gone = np.zeros(n, dtype=bool)
    gone[column[is_closed[program.row[entry]]]] = True
    gone &= program.upper[:n] >= 0.0
    if not gone.any():
        return None
    counts = np.diff(program.column_start)
    left = counts - np.add.reduceat(np.append(gone, False), program.column_start[:-1]) * (counts > 0)
    stays = (left > 0) | (counts == 0)
    rows = np.diff(program.private_start)
    private = np.repeat(stays, rows)
    low, high = program.lower[n + m :][~private], program.upper[n + m :][~private]
    if (low > 0.0).any() or (high < 0.0).any():
        return None
    lean = without(program, ~gone, left[stays], rows[stays], private)
    return OpenProgram(program, lean, np.flatnonzero(~gone), np.flatnonzero(private), np.flatnonzero(is_closed))


def without(
    program: BlockProgram,
    kept: NDArray[np.bool_],
    columns: NDArray[np.integer],
    rows: NDArray[np.integer],
    private: NDArray[np.bool_],
) -> BlockProgram:
    """Return a program with only the kept columns and private rows; `columns` and `rows` count them per block."""
    entries, own_entries = np.diff(program.start), np.diff(program.own_start)
    entry = np.repeat(kept, entries)
    own_kept = kept[: len(own_entries)]
    own_entry = np.repeat(own_kept, own_entries)
    bounds = np.concatenate((kept, np.ones(program.n_rows, dtype=bool), private))
    return replace(
        program,
        column_start=sums_before(columns),
        private_start=sums_before(rows),
        start=sums_before(entries[kept]),
        row=program.row[entry],
        value=program.value[entry],
        own_start=sums_before(own_entries[own_kept]),
        own_row=program.own_row[own_entry],
        own_value=program.own_value[own_entry],
        cost=program.cost[kept],
        lower=program.lower[bounds],
        upper=program.upper[bounds],
    )


def entries_of(program: BlockProgram, columns: Places) -> tuple[Ints, Floats, Places]:
    """Return (row, value, index of the column) of all coupling-row entries of some columns."""
    start = program.start.astype(np.int64)
    entry = ranges(start[columns], start[columns + 1])
    return program.row[entry], program.value[entry], np.repeat(np.arange(len(columns)), np.diff(program.start)[columns])


def own_usage(program: BlockProgram, columns: Places, private: Floats) -> Floats:
    """Return B'pi for some columns: their entries in private rows times the rows' prices."""
    start = program.own_start.astype(np.int64)
    owned = np.flatnonzero(columns < len(start) - 1)
    column = columns[owned]
    entry = ranges(start[column], start[column + 1])
    at = np.repeat(owned, np.diff(start)[column])
    block = np.searchsorted(program.column_start, columns[at], side="right") - 1
    row = program.private_start[block] + program.own_row[entry]
    return np.bincount(at, weights=program.own_value[entry] * private[row], minlength=len(columns)).astype(np.float64)
