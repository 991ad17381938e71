"""Parallel columns: merged if their costs are parallel too; otherwise one may dominate the other."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp

from copter.methods.presolve.parallel import ParallelLines
from copter.methods.presolve.restoration import Floats, Indices, Restoration, nearest_to_zero
from copter.methods.presolve.work import Mask, Work


@dataclass(frozen=True, slots=True)
class ParallelColumns:
    """Merged pairs, with the columns' previous bounds: the second column, `ratio` times the first, was merged into
    the first.
    """

    first: Indices
    second: Indices
    ratio: Floats
    first_lower: Floats
    first_upper: Floats
    second_lower: Floats
    second_upper: Floats

    def undo(self, state: Restoration) -> None:
        """Split the value so that both columns stay within their bounds (equation P13)."""
        total = state.x[self.first]
        lower, upper = state.bound(self.second_lower), state.bound(self.second_upper)
        second = nearest_to_zero(lower, upper)
        rest = total - self.ratio * second
        first = np.clip(rest, state.bound(self.first_lower), state.bound(self.first_upper))
        state.x[self.first] = first
        state.x[self.second] = np.where(first == rest, second, np.clip((total - first) / self.ratio, lower, upper))


@dataclass(frozen=True, slots=True)
class Pairs:
    """Parallel columns: `second` is `ratio` times `first`; its cost is `ratio` times the first's plus `extra`."""

    first: Indices
    second: Indices
    ratio: Floats
    extra: Floats
    size: Floats

    @classmethod
    def of(cls, work: Work, first: Indices, second: Indices, ratio: Floats) -> Pairs:
        """Return pairs with the difference of their costs and the size it is compared with."""
        share = ratio * work.c[first]
        return cls(first, second, ratio, work.c[second] - share, np.abs(work.c[second]) + np.abs(share))

    def dominated(self, work: Work) -> tuple[Mask, Mask]:
        """Mark pairs whose second column belongs at its lower, and at its upper bound, at all prices (equation P13)."""
        sure = np.abs(self.extra) > work.tolerances.dual_margin * self.size
        open_above, open_below = np.isposinf(work.col_upper[self.first]), np.isneginf(work.col_lower[self.first])
        positive = self.ratio > 0
        helped = np.where(positive, open_above, open_below)
        hindered = np.where(positive, open_below, open_above)
        return (
            sure & (self.extra > 0) & helped & np.isfinite(work.col_lower[self.second]),
            sure & (self.extra < 0) & hindered & np.isfinite(work.col_upper[self.second]),
        )


def reduce_parallel_columns(work: Work) -> bool:
    """Merge parallel columns with parallel costs and fix dominated ones (equation P13)."""
    matrix = sp.csc_array((work.value, (work.row, work.col)), shape=(work.m, work.n))
    column = np.repeat(np.arange(work.n), np.diff(matrix.indptr))
    lines = ParallelLines.find(column, matrix.indices, matrix.data, work.n, work.m, work.tolerances.parallel)
    if not len(lines.member):
        return False
    heads = np.flatnonzero(np.bincount(lines.first, minlength=work.n))
    column = np.concatenate((heads, lines.member))
    group = np.concatenate((heads, lines.first))
    ratio = np.concatenate((np.ones(len(heads)), lines.ratio))
    order = np.lexsort((work.c[column] / ratio, group))
    return _reduce_groups(work, column[order], group[order], ratio[order])


def _reduce_groups(work: Work, column: Indices, group: Indices, ratio: Floats) -> bool:
    """Try neighbouring columns in each group, from even and odd positions, until nothing changes."""
    merged: list[Indices] = []
    fixed: list[Indices] = []
    values: list[Floats] = []
    parity, idle = 0, 0
    while idle < 2:
        place = np.arange(parity, len(column) - 1, 2)
        place = place[group[place] == group[place + 1]]
        pairs = Pairs.of(work, column[place], column[place + 1], ratio[place + 1] / ratio[place])
        keep = np.ones(len(column), dtype=np.bool_)
        equal = np.abs(pairs.extra) <= work.tolerances.parallel * pairs.size
        _merge(work, pairs, equal)
        merged.append(pairs.second[equal])
        keep[place[equal] + 1] = False
        swapped = Pairs.of(work, pairs.second, pairs.first, 1.0 / pairs.ratio)
        for some, offset in ((pairs, 1), (swapped, 0)):
            to_lower, to_upper = some.dominated(work)
            go = (to_lower | to_upper) & ~equal & keep[place] & keep[place + 1]
            bound = np.where(to_lower, work.col_lower[some.second], work.col_upper[some.second])
            fixed.append(some.second[go])
            values.append(bound[go])
            keep[place[go] + offset] = False
        idle = idle + 1 if keep.all() else 0
        column, group, ratio = column[keep], group[keep], ratio[keep]
        parity = 1 - parity
    gone, at_bound = np.concatenate(merged), np.concatenate(fixed)
    work.bounds_changed()
    work.remove(np.zeros(0, dtype=np.int64), gone)
    work.fix(at_bound, np.concatenate(values))
    return len(gone) + len(at_bound) > 0


def _merge(work: Work, pairs: Pairs, which: Mask) -> None:
    """Let the first column of each pair represent both."""
    if not which.any():
        return
    first, second, ratio = pairs.first[which], pairs.second[which], pairs.ratio[which]
    lower, upper = work.col_lower, work.col_upper
    work.records.append(ParallelColumns(first, second, ratio, lower[first], upper[first], lower[second], upper[second]))
    at_lower, at_upper = ratio * lower[second], ratio * upper[second]
    lower[first] += np.minimum(at_lower, at_upper)
    upper[first] += np.maximum(at_lower, at_upper)
