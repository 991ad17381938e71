"""Coupling rows without capacity, such as a link that is down: their columns are zero and leave the program (K16)."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from copter.blocks.program import BlockProgram, sums_before

Floats = NDArray[np.float64]
Ints = NDArray[np.int32]
Places = NDArray[np.intp]


@dataclass(frozen=True, slots=True)
class OpenProgram:
    """A program without the columns that its closed rows keep at zero.

    Attributes
    ----------
    whole, program : BlockProgram
        With them and without; the coupling rows are the same.
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

    def restored(self, x: Floats, y: Floats, private: Floats) -> tuple[Floats, Floats, Floats]:
        """A point and prices of the whole program; a closed row's price keeps its columns from being worth having."""
        whole, m = self.whole, self.whole.n_rows
        point, prices, own = np.zeros(whole.n_columns), y.copy(), np.zeros(len(whole.lower) - whole.n_columns - m)
        point[self.columns], own[self.private] = x, private
        prices[self.closed] = 0.0
        reduced = whole.cost - usage(whole, prices, own)
        column = np.repeat(np.arange(whole.n_columns), np.diff(whole.start))
        entry = np.flatnonzero(np.isin(whole.row, self.closed))
        np.minimum.at(prices, whole.row[entry], reduced[column[entry]] / whole.value[entry])
        return point, prices, own


def opened(program: BlockProgram) -> OpenProgram | None:
    """The program without closed rows' columns; None where no row is closed, or a block needs what it would lose.

    A row is closed if its upper bound is zero and all that it adds up has coefficients above zero and lower bounds of
    zero.
    """
    n, m = program.n_columns, program.n_rows
    is_closed = program.upper[n : n + m] == 0.0
    is_closed &= (program.lower[n : n + m] <= 0.0) & (np.bincount(program.row, minlength=m) > 0)
    if not is_closed.any():
        return None
    column = np.repeat(np.arange(n), np.diff(program.start))
    is_closed[program.row[(program.value <= 0.0) | (program.lower[column] != 0.0)]] = False
    gone = np.zeros(n, dtype=bool)
    gone[column[is_closed[program.row]]] = True
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
    """The program's columns and private rows that are kept; `columns` and `rows` say how many each block has left."""
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


def usage(program: BlockProgram, y: Floats, private: Floats) -> Floats:
    """A'y of all columns, the private rows' prices too."""
    n, own_entries = program.n_columns, np.diff(program.own_start)
    column = np.repeat(np.arange(n), np.diff(program.start))
    found = np.zeros(n)
    found += np.bincount(column, weights=program.value * y[program.row], minlength=n)
    block = np.repeat(np.arange(len(program.column_start) - 1), np.diff(program.column_start))
    own = np.repeat(np.arange(len(own_entries)), own_entries)
    row = program.private_start[block[own]] + program.own_row
    found += np.bincount(own, weights=program.own_value * private[row], minlength=n)
    return found
