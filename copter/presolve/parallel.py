"""Which rows, or columns, are multiples of each other."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from copter.presolve.restoration import Floats, Indices
from copter.presolve.totals import totals

HASH_SEED = 20210  # any: the hash only proposes, entries decide


@dataclass(frozen=True, slots=True)
class ParallelLines:
    """Lines (rows or columns) that are `ratio` times their group's first line; the first is not a member of its own."""

    member: Indices
    first: Indices
    ratio: Floats

    @classmethod
    def find(
        cls, line: Indices, across: Indices, value: Floats, lines: int, width: int, tolerance: float
    ) -> ParallelLines:
        """Search lines given by entries sorted by line and, within it, across.

        Lines are hashed after division by their first entry; every proposal is compared entry by entry, to a relative
        `tolerance`.
        """
        count = np.bincount(line, minlength=lines)
        start = np.concatenate(([0], np.cumsum(count)[:-1]))
        candidates = np.flatnonzero(count > 0)
        lead = value[start[candidates]]
        scale = np.ones(lines)
        scale[candidates] = lead
        normal = value / scale[line]
        weight = np.random.default_rng(HASH_SEED).uniform(1.0, 2.0, width)
        term = normal * weight[across]
        mark = totals(line, term, lines)[candidates]
        size = totals(line, np.abs(term), lines)[candidates]
        opening = across[start[candidates]]
        order = np.lexsort((mark, opening, count[candidates]))
        sorted_lines, mark, size, opening = candidates[order], mark[order], size[order], opening[order]
        same = (
            (np.diff(count[sorted_lines]) == 0)
            & (np.diff(opening) == 0)
            & (np.diff(mark) <= 16 * tolerance * np.maximum(size[1:], size[:-1]))
        )
        group = np.concatenate(([0], np.cumsum(~same))) if len(order) else np.zeros(0, dtype=np.int64)
        heads = sorted_lines[np.concatenate(([0], np.flatnonzero(~same) + 1))] if len(order) else sorted_lines
        first = heads[group]
        proposed = first != sorted_lines
        member, first = sorted_lines[proposed], first[proposed]
        equal = _same_entries(member, first, start, count, across, normal, tolerance)
        member, first = member[equal], first[equal]
        return cls(member, first, scale[member] / scale[first])


def _same_entries(
    member: Indices, first: Indices, start: Indices, count: Indices, across: Indices, normal: Floats, tolerance: float
) -> Indices:
    """Places of the pairs of lines, of equal counts, whose entries agree."""
    length = count[member]
    pair = np.repeat(np.arange(len(member)), length)
    step = np.arange(len(pair)) - np.repeat(np.cumsum(length) - length, length)
    one, other = start[member][pair] + step, start[first][pair] + step
    differs = (across[one] != across[other]) | (np.abs(normal[one] - normal[other]) > tolerance * np.abs(normal[other]))
    return np.flatnonzero(totals(pair, differs, len(member)) == 0)
