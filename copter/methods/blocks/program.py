"""Block programs: columns by request, coupling rows, and private rows of each request (equation K1)."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from copter.methods.blocks.loose_rows import kept_entries, reach_of_rows
from copter.model.matrix import BlockMatrix
from copter.model.matrix.bounds import block_program, write_bounds
from copter.problem.values import ranges

Floats = NDArray[np.float64]
Ints = NDArray[np.int32]
Places = NDArray[np.int64]

ROUNDING = 1e-9  # a loose row stays within its bounds by at least this share of its largest possible activity


@dataclass(frozen=True, slots=True)
class BlockProgram:
    """The program min cost'x, lower <= (x, A x) <= upper, in which every private row involves one block of columns.

    Attributes
    ----------
    n_rows : int
        Coupling rows.
    column_start, private_start : ndarray (blocks + 1,) int32
        First column and first private row of every block; columns after the last block belong to no block.
    start, row, value : CSC arrays
        Entries in coupling rows.
    own_start, own_row, own_value : CSC arrays
        Entries in private rows, counted within the block, ascending.
    cost : ndarray (columns,)
    lower, upper : ndarray (columns + rows,)
        Bounds of the columns, then of the coupling rows, then of the private rows.
    """

    n_rows: int
    column_start: Ints
    private_start: Ints
    start: Ints
    row: Ints
    value: Floats
    own_start: Ints
    own_row: Ints
    own_value: Floats
    cost: Floats
    lower: Floats
    upper: Floats

    @property
    def n_columns(self) -> int:
        """Number of columns."""
        return len(self.cost)

    def shares_entries_of(self, other: BlockProgram) -> bool:
        """Whether both programs hold identical coefficient arrays, so that they differ in bounds at most (K14)."""
        return self.value is other.value and self.own_value is other.own_value

    def has_entries_of(self, other: BlockProgram) -> bool:
        """Whether the blocks and coefficients equal those of `other`; bounds and costs may differ."""
        return self.shares_entries_of(other) or (
            self.n_rows == other.n_rows
            and np.array_equal(self.column_start, other.column_start)
            and np.array_equal(self.private_start, other.private_start)
            and np.array_equal(self.start, other.start)
            and np.array_equal(self.row, other.row)
            and np.array_equal(self.value, other.value)
            and np.array_equal(self.own_start, other.own_start)
            and np.array_equal(self.own_row, other.own_row)
            and np.array_equal(self.own_value, other.own_value)
        )

    def without_loose_rows(self) -> tuple[BlockProgram, Ints]:
        """Return (program without the coupling rows that cannot bind, remaining rows) (K5).

        Its solutions are solutions of this program, with prices of zero for the removed rows.
        """
        n, m = self.n_columns, self.n_rows
        least, most = reach_of_rows(self)
        size = np.where(np.isfinite(least), np.abs(least), 0.0) + np.where(np.isfinite(most), np.abs(most), 0.0)
        margin = ROUNDING * size
        binds = (least - margin < self.lower[n : n + m]) | (most + margin > self.upper[n : n + m])
        rows = np.flatnonzero(binds).astype(np.int32)
        lean = self.of_rows(rows)
        alone = np.flatnonzero(~lean.repeated_rows()).astype(np.int32)
        return lean.of_rows(alone), rows[alone]

    def repeated_rows(self) -> NDArray[np.bool_]:
        """Mark coupling rows implied by another row: equal entries, and bounds at least as wide, (rows,) (K5).

        Of equal rows the first one stays. Rows are first compared by the sum of their entries times random weights,
        then entry by entry.
        """
        n, m = self.n_columns, self.n_rows
        repeated = np.zeros(m, dtype=np.bool_)
        weight = np.random.default_rng(0).random(n)
        column = np.repeat(np.arange(n), np.diff(self.start))
        key = np.bincount(self.row, self.value * weight[column], m)
        low, high = self.lower[n : n + m], self.upper[n : n + m]
        order = np.lexsort((np.arange(m), -low, high, key))
        alike = np.flatnonzero(key[order[1:]] == key[order[:-1]])
        if not len(alike):
            return repeated
        mine = np.zeros(m, dtype=np.bool_)
        mine[order[alike]] = mine[order[alike + 1]] = True
        at = np.flatnonzero(mine[self.row])
        at = at[np.argsort(self.row[at], kind="stable")]
        first = np.searchsorted(self.row[at], np.arange(m + 1))
        stays = int(order[0])
        for before, row in zip(order[:-1].tolist(), order[1:].tolist(), strict=True):
            if key[before] != key[row]:
                stays = row
                continue
            one, other = at[first[stays] : first[stays + 1]], at[first[row] : first[row + 1]]
            same = np.array_equal(column[one], column[other]) and np.array_equal(self.value[one], self.value[other])
            if same and low[stays] >= low[row] and high[stays] <= high[row]:
                repeated[row] = True
            else:
                stays = row
        return repeated

    def of_rows(self, rows: Ints) -> BlockProgram:
        """Return the program with only some of its coupling rows, ascending."""
        n, m = self.n_columns, self.n_rows
        if len(rows) == m:
            return self
        place = np.full(m, -1, dtype=np.int32)
        place[rows] = np.arange(len(rows), dtype=np.int32)
        start, row, value = kept_entries(place, self.start, self.row, self.value)
        stays = np.concatenate((np.arange(n), n + rows, np.arange(n + m, len(self.lower))))
        return replace(
            self,
            n_rows=len(rows),
            start=start,
            row=row,
            value=value,
            lower=self.lower[stays],
            upper=self.upper[stays],
        )

    def of_columns(self, keep: NDArray[np.bool_]) -> tuple[BlockProgram, Places, Places]:
        """Return (program of some of its columns and of their blocks, its columns, its private rows)."""
        n, m = self.n_columns, self.n_rows
        before = sums_before(keep)
        counts = np.diff(before[self.column_start])
        columns, blocks = np.flatnonzero(keep), np.flatnonzero(counts)
        private = pieces(self.private_start, blocks)
        entries, own = pieces(self.start, columns), pieces(self.own_start, columns)
        stays = np.concatenate((columns, np.arange(n, n + m), n + m + private))
        part = replace(
            self,
            column_start=sums_before(counts[blocks]),
            private_start=sums_before(np.diff(self.private_start)[blocks]),
            start=sums_before(np.diff(self.start)[columns]),
            row=self.row[entries],
            value=self.value[entries],
            own_start=sums_before(np.diff(self.own_start)[columns]),
            own_row=self.own_row[own],
            own_value=self.own_value[own],
            cost=self.cost[columns],
            lower=self.lower[stays],
            upper=self.upper[stays],
        )
        return part, columns, private

    def equilibrated(self) -> tuple[BlockProgram, Floats, float]:
        """Return (program with rows and costs of size one, scale of all rows, scale of the costs).

        Scales are powers of two, so scaling rounds nothing. Prices of the scaled program are this program's prices
        divided by the row's scale and by the scale of the costs.
        """
        rows, n = len(self.lower) - self.n_columns, self.n_columns
        largest = np.zeros(rows)
        np.maximum.at(largest, self.row, np.abs(self.value))
        own = np.zeros(0, dtype=np.int64)
        if (self.own_value != 1.0).any():
            blocks = np.repeat(self.n_rows + self.private_start[:-1], np.diff(self.column_start))
            own = np.repeat(blocks, np.diff(self.own_start)[: len(blocks)]) + self.own_row
            np.maximum.at(largest, own, np.abs(self.own_value))
        scale = np.exp2(-np.round(np.log2(np.where(largest > 0.0, largest, 1.0))))
        size = float(np.abs(self.cost).max(initial=0.0))
        factor = float(np.exp2(-np.round(np.log2(size)))) if size > 0.0 else 1.0
        every = np.ones(len(self.lower))
        every[n:] = scale
        scaled = replace(
            self,
            value=self.value * scale[self.row],
            own_value=self.own_value * scale[own] if len(own) else self.own_value,
            cost=self.cost * factor,
            lower=self.lower * every,
            upper=self.upper * every,
        )
        return scaled, scale, factor


def program_of(matrix: BlockMatrix, slots: Ints) -> BlockProgram:
    """Return the block program of a model's matrix, as a minimisation.

    Parameters
    ----------
    matrix : BlockMatrix
    slots : ndarray (requests,) int32
        Slots of the requests, in any order. A request's sum, if it has a limit or a least, is its first private row.
    """
    return BlockProgram(n_rows=matrix.n_rows, **block_program(matrix, slots))


def patched(program: BlockProgram, matrix: BlockMatrix, slots: Ints, changed: Ints) -> BlockProgram | None:
    """Return the program with current bounds; None if blocks have other private rows than before (K14).

    Parameters
    ----------
    program : BlockProgram
        Program of the matrix at a time when it had the same columns, costs and entries.
    matrix : BlockMatrix
    slots : ndarray (blocks,) int32
        Slots of the program's blocks, ascending.
    changed : ndarray (k,) int32
        Slots whose bounds may have changed, ascending.
    """
    n, m = program.n_columns, program.n_rows
    lower, upper = program.lower.copy(), program.upper.copy()
    lower[n : n + m], upper[n : n + m] = matrix.row_lower[:m], matrix.row_upper[:m]
    places = np.searchsorted(slots, changed).astype(np.int32)
    if not write_bounds(matrix, slots, program.column_start, program.private_start, places, n + m, lower, upper):
        return None
    return replace(program, lower=lower, upper=upper)


def whole_matrix(program: BlockProgram) -> sp.csc_array:
    """Return the entries of all rows: the coupling rows, then the private ones, (rows, columns)."""
    n, m = program.n_columns, program.n_rows
    blocks = np.repeat(program.private_start[:-1], np.diff(program.column_start))
    own = np.zeros(n, dtype=np.int32)
    own[: len(blocks)] = m + blocks
    counts, owned = np.diff(program.start), np.diff(program.own_start)
    row = program.own_row + np.repeat(own, owned)
    every = np.concatenate((np.repeat(np.arange(n), counts), np.repeat(np.arange(n), owned)))
    order = np.argsort(every, kind="stable")
    entries = np.concatenate((program.value, program.own_value))[order]
    rows = np.concatenate((program.row, row))[order]
    return sp.csc_array((entries, rows, sums_before(counts + owned)), shape=(len(program.lower) - n, n))


def pieces(start: Ints, chosen: Places) -> Places:
    """Return the entries of the chosen pieces."""
    return ranges(start[chosen].astype(np.int64), start[chosen + 1].astype(np.int64))


def sums_before(counts: NDArray[np.generic]) -> Ints:
    """Return 0, c0, c0 + c1, ...: the start of each piece and the end of the last."""
    sums = np.zeros(len(counts) + 1, dtype=np.int32)
    np.cumsum(counts, out=sums[1:])
    return sums
