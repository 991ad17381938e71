"""Detection of rows or columns that are multiples of each other."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from copter.methods.presolve.restoration import Floats, Indices
from copter.methods.presolve.totals import totals

# Seed of the hash that proposes parallel rows and columns; as entries are compared afterwards, any seed is correct.
HASH_SEED = 20210


@dataclass(frozen=True, slots=True)
class ParallelLines:
    """Lines (rows or columns) equal to `ratio` times their group's first line; the first line itself is not listed."""

    member: Indices
    first: Indices
    ratio: Floats

    @classmethod
    def find(
        cls, line: Indices, across: Indices, value: Floats, lines: int, width: int, tolerance: float
    ) -> ParallelLines:
        """Find parallel lines, given by entries sorted by line and position.

        Lines are hashed after division by their first entry; every proposal is compared entry by entry, to a relative
        `tolerance`.
        """
        count = np.bincount(line, minlength=lines)
        start = np.concatenate(([0], np.cumsum(count)[:-1]))
        candidates = np.flatnonzero(count > 0)
        if not len(candidates):
            return cls(candidates, candidates, np.zeros(0))
        scale = np.ones(lines)
        scale[candidates] = value[start[candidates]]
        normal = value / scale[line]
        weight = np.random.default_rng(HASH_SEED).uniform(1.0, 2.0, width)
        term = normal * weight[across]
        mark, size = totals(line, term, lines), totals(line, np.abs(term), lines)
        by_mark = candidates[np.argsort(mark[candidates], kind="stable")]
        mark, size, length, opening = mark[by_mark], size[by_mark], count[by_mark], across[start[by_mark]]
        same = (
            (length[1:] == length[:-1])
            & (opening[1:] == opening[:-1])
            & (np.diff(mark) <= 16 * tolerance * np.maximum(size[1:], size[:-1]))
        )
        opens = np.concatenate(([True], ~same))
        first = by_mark[opens][np.cumsum(opens) - 1]
        proposed = first != by_mark
        member, first = by_mark[proposed], first[proposed]
        equal = _same_entries(member, first, start, count, across, normal, tolerance)
        member, first = member[equal], first[equal]
        return cls(member, first, scale[member] / scale[first])


def _same_entries(
    member: Indices, first: Indices, start: Indices, count: Indices, across: Indices, normal: Floats, tolerance: float
) -> Indices:
    """Return the pairs of lines, of equal entry counts, whose entries agree."""
    length = count[member]
    pair = np.repeat(np.arange(len(member)), length)
    step = np.arange(len(pair)) - np.repeat(np.cumsum(length) - length, length)
    one, other = start[member][pair] + step, start[first][pair] + step
    differs = (across[one] != across[other]) | (np.abs(normal[one] - normal[other]) > tolerance * np.abs(normal[other]))
    return np.flatnonzero(totals(pair, differs, len(member)) == 0)
