"""Matching of rows and columns between two programs of a shifted time window (method/simplex.md)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from copter.problem.linear_program import LinearProgram

Indices = NDArray[np.intp]
Hashes = NDArray[np.uint64]

DEPTH = 3  # rounds in which hashes take in those of neighbours, so that a storage's hash depends on the load it serves
LEAST_SHARE = 0.1  # least share of rows and columns that must be found by their numbers
SAMPLE = 500  # number of changed numbers that are searched among the old ones
MOST_STRETCH = 4  # programs whose numbers of rows or columns differ by a larger factor are not compared
# a known shift applies if at least this share of the moved rows and columns keep their costs and bounds
MOST_ALIKE = 0.9
NUMBERS = ("c", "col_lower", "col_upper", "row_lower", "row_upper")

_FACTORS = np.array([0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9, 0x94D049BB133111EB], dtype=np.uint64)
_SHIFT = np.uint64(29)


@dataclass(frozen=True, slots=True)
class Shift:
    """Positions of a program's rows and columns in an earlier program.

    Attributes
    ----------
    columns, rows : ndarray (n,), (m,)
        Position in the earlier program; -1 for new ones.
    """

    columns: Indices
    rows: Indices

    def joins(self, old: LinearProgram, new: LinearProgram) -> bool:
        """Whether two programs of the same structure differ by this shift, judged by costs and bounds."""
        if old.shape != new.shape or new.shape != (len(self.rows), len(self.columns)):
            return False
        rows, columns = (np.flatnonzero(place != np.arange(len(place))) for place in (self.rows, self.columns))
        for at, place, names in ((columns, self.columns, NUMBERS[:3]), (rows, self.rows, NUMBERS[3:])):
            same = np.ones(len(at), dtype=bool)
            for name in names:
                same &= getattr(new, name)[at] == getattr(old, name)[place[at]]
            if np.count_nonzero(same) < MOST_ALIKE * len(at):
                return False
        return True


def recognise(old: LinearProgram, new: LinearProgram) -> Shift | None:
    """Find the rows and columns of a program in an earlier one; None if too few are found or none has moved.

    Two rows (or columns) match if they have the same numbers and neighbours and no other one in either program has.
    Rows and columns next to a match follow it. The rest keep their positions if both programs have the same shape,
    otherwise they are new. The work is a few sorts of rows and columns and a few passes over the entries.

    Parameters
    ----------
    old, new : LinearProgram
    """
    if old.sense != new.sense or 0 in (*old.shape, *new.shape):
        return None
    if any(
        not 1 <= MOST_STRETCH * one / other <= MOST_STRETCH**2 for one, other in zip(old.shape, new.shape, strict=True)
    ):
        return None
    levels = [signatures(lp) for lp in (old, new)]
    kinds = [kinds_of(lp) for lp in (old, new)]
    found, known = [], 0
    for side in (0, 1):
        place = np.full(new.shape[1 - side], -1)
        for depth in range(DEPTH, -1, -1):
            match(levels[0][depth][side], levels[1][depth][side], place)
        forget_stragglers(place)
        known += int(np.count_nonzero(place >= 0))
        for step in (1, -1):
            extend(kinds[0][side], kinds[1][side], place, step)
        found.append(place)
    stay = old.shape == new.shape
    if known < LEAST_SHARE * sum(new.shape):
        return None
    if stay:
        at = [np.arange(len(place)) for place in found]
        if same_pattern(old, new) and all(
            (place[place >= 0] == here[place >= 0]).all() for place, here in zip(found, at, strict=True)
        ):
            return None
        found = [np.where(place >= 0, place, here) for place, here in zip(found, at, strict=True)]
    return Shift(*found)


def looks_shifted(old: LinearProgram, new: LinearProgram) -> bool:
    """Whether changed numbers of a program were at other positions in an earlier program of the same pattern.

    One pass so distinguishes a shift from a sweep, in which all numbers are new.
    """
    sought, among = [], []
    pairs = [(getattr(old, name), getattr(new, name)) for name in NUMBERS]
    if old.A is not new.A:
        pairs.append((old.A.data, new.A.data))
    for before, now in pairs:
        moved = np.flatnonzero((before != now) & np.isfinite(now))
        sought.append(now[moved])
        among.append(before[moved])
    values = np.concatenate(sought)
    if not len(values):
        return False
    values = values[:: 1 + len(values) // SAMPLE]
    return bool(np.isin(values, np.concatenate(among)).mean() >= LEAST_SHARE)


def same_pattern(one: LinearProgram, other: LinearProgram) -> bool:
    """Whether two programs have their entries in the same places."""
    return one.A is other.A or (
        one.shape == other.shape
        and np.array_equal(one.A.indptr, other.A.indptr)
        and np.array_equal(one.A.indices, other.A.indices)
    )


def signatures(lp: LinearProgram) -> list[tuple[Hashes, Hashes]]:
    """Return hashes of columns and rows: by their own numbers, then mixed with their neighbours' up to :data:`DEPTH`
    times.
    """
    column, row = mixed(lp.c, lp.col_lower, lp.col_upper), mixed(lp.row_lower, lp.row_upper)
    entry, index, start = mixed(lp.A.data), lp.A.indices, lp.A.indptr
    at = np.repeat(np.arange(lp.shape[1]), np.diff(start))
    by_row = np.argsort(index, kind="stable")
    row_start = np.concatenate(([0], np.cumsum(np.bincount(index, minlength=lp.shape[0]))))
    found = [(column, row)]
    for _ in range(DEPTH):
        by_entry = scrambled(entry + column[at])[by_row]
        column = scrambled(column + sums_between(scrambled(entry + row[index]), start))
        row = scrambled(row + sums_between(by_entry, row_start))
        found.append((column, row))
    return found


def sums_between(values: Hashes, start: NDArray[np.integer[Any]]) -> Hashes:
    """Return the sums, modulo 2**64, of consecutive groups of hashes that begin at `start`."""
    sums = np.concatenate((np.zeros(1, dtype=np.uint64), np.cumsum(values, dtype=np.uint64)))
    found: Hashes = sums[start[1:]] - sums[start[:-1]]
    return found


def mixed(*numbers: NDArray[np.float64]) -> Hashes:
    """Return one hash of several numbers, element by element."""
    found = np.zeros(len(numbers[0]), dtype=np.uint64)
    for each in numbers:
        found = scrambled(found * _FACTORS[0] + (each + 0.0).view(np.uint64))  # gives -0.0 the hash of 0.0
    return found


def scrambled(value: Hashes) -> Hashes:
    """Return hashes in which every bit depends on all of the input."""
    found: Hashes = (value ^ (value >> _SHIFT)) * _FACTORS[1]
    found = (found ^ (found >> _SHIFT)) * _FACTORS[2]
    found ^= found >> _SHIFT
    return found


def kinds_of(lp: LinearProgram) -> tuple[Indices, Indices]:
    """Return a number for every column and row, equal if the number of entries, the kinds of bounds and, for columns,
    the coefficients and the kinds of their rows are equal.
    """

    def kind(count: Indices, lower: NDArray[np.float64], upper: NDArray[np.float64]) -> Indices:
        found: Indices = 8 * count + 4 * (lower == upper) + 2 * np.isfinite(lower) + np.isfinite(upper)
        return found

    row = kind(np.bincount(lp.A.indices, minlength=lp.shape[0]), lp.row_lower, lp.row_upper)
    column = kind(np.diff(lp.A.indptr), lp.col_lower, lp.col_upper)
    entry = mixed(lp.A.data) + row.astype(np.uint64)[lp.A.indices]
    of_rows = sums_between(scrambled(entry), lp.A.indptr)
    return scrambled(column.astype(np.uint64) + of_rows).view(np.intp), row


def match(old: Hashes, new: Hashes, place: Indices) -> None:
    """Match unmatched rows or columns whose hash occurs once in each program."""
    if (place >= 0).all():
        return
    (values, mine), (others, theirs) = once(new), once(old)
    _, one, other = np.intersect1d(values, others, assume_unique=True, return_indices=True)
    mine, theirs = mine[one], theirs[other]
    free = unplaced(len(old), place)
    fits = (place[mine] < 0) & free[theirs]
    place[mine[fits]] = theirs[fits]


def once(values: Hashes) -> tuple[Hashes, Indices]:
    """Return the values that occur once, ascending, and their positions."""
    order = np.argsort(values)
    ranked = values[order]
    apart = np.ones(len(values) + 1, dtype=bool)
    apart[1:-1] = ranked[1:] != ranked[:-1]
    alone = apart[1:] & apart[:-1]
    return ranked[alone], order[alone]


def unplaced(size: int, place: Indices) -> NDArray[np.bool_]:
    """Mark the rows or columns of the earlier program that have no match."""
    free = np.ones(size, dtype=bool)
    free[place[place >= 0]] = False
    return free


def forget_stragglers(place: Indices) -> None:
    """Undo matches that moved by another distance than both neighbours, if most matches moved as a neighbour did.

    Such a match can be wrong: the first step of a window, for example, may look like the first step of the next window.
    """
    at = np.flatnonzero(place >= 0)
    alike = np.diff(place[at] - at) == 0
    along = np.zeros(len(at), dtype=bool)
    along[1:] |= alike
    along[:-1] |= alike
    if 2 * np.count_nonzero(along) > len(at):
        place[at[~along]] = -1


def extend(old: Indices, new: Indices, place: Indices, step: int) -> None:
    """Let unmatched rows or columns follow the neighbour before (step 1) or behind (-1) them if their kinds agree."""
    n, at = len(place), np.arange(len(place))
    if step > 0:
        near = np.maximum.accumulate(np.where(place >= 0, at, -1))
    else:
        near = np.minimum.accumulate(np.where(place >= 0, at, n)[::-1])[::-1]
    free = unplaced(len(old), place)
    mine = np.flatnonzero((place < 0) & (near >= 0) & (near < n))
    wanted = place[near[mine]] + mine - near[mine]
    fits = (wanted >= 0) & (wanted < len(old))
    mine, wanted = mine[fits], wanted[fits]
    fits = free[wanted] & (old[wanted] == new[mine])
    mine, wanted = mine[fits], wanted[fits]
    wanted, first = np.unique(wanted, return_index=True)
    place[mine[first]] = wanted


__all__ = ("Shift", "looks_shifted", "recognise", "same_pattern")
