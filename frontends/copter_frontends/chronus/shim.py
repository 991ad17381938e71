"""From the LP's shares to whole lease plans that keep every promise (docs/chronus.md, C10)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from copter_frontends.chronus.draft import Draft
from copter_frontends.chronus.formulation import Incumbent, LeaseSolution
from copter_frontends.chronus.options import Ints, Options


@dataclass(frozen=True, slots=True)
class LeaseShim:
    """Knobs of the rounding.

    Parameters
    ----------
    most_failures : int
        Times that making room by moving others may fail in one plan; after that jobs only get what is free.
    goal : float
        Relative gap to the bound at which no more is tried.
    """

    most_failures: int = 24
    goal: float = 2e-3

    def __call__(
        self, options: Options, capacity: Ints, solution: LeaseSolution, incumbent: Incumbent | None = None
    ) -> Draft:
        """The better of the rounded LP and of the last plan with what fits beside it.

        Promised jobs go first in both. Where a promise cannot be kept (GPUs have gone, or a job was slower than
        thought) the draft with fewer broken ones wins, then the one of more reward.
        """
        drafts: list[Draft] = []
        for kept in ({}, incumbent or {}):
            if drafts and not kept:
                break
            draft = Draft(options, capacity)
            for row, leases in kept.values():
                draft.put(row, leases)
            self.fill(draft, solution)
            drafts.append(draft)
            if draft.broken == 0 and solution.bound - draft.reward <= self.goal * abs(solution.bound):
                break
        return min(drafts, key=lambda draft: (draft.broken, -draft.reward))

    def fill(self, draft: Draft, solution: LeaseSolution) -> None:
        """Promised jobs, then those that the LP chose, large and tight ones first, then all others by worth."""
        options, wishes = draft.options, solution.row
        worth, gain = options.best_of_jobs(solution.prices.worth(options), floor=-np.inf)
        waiting = np.flatnonzero((draft.row < 0) & (worth >= 0) & ((wishes >= 0) | options.must))
        rows = np.where(wishes >= 0, wishes, worth)[waiting]
        slack, size = options.last[rows] - options.need[rows], options.gpus[rows]
        order = np.lexsort((slack, -size, ~options.must[waiting]))
        late = []
        for job, row in zip(waiting[order].tolist(), rows[order].tolist(), strict=True):
            if not draft.put(row, np.flatnonzero(solution.leases[job])):
                late.append((job, row))
        for job, row in late:  # after the others, so that it takes nothing that was dealt to them
            if not draft.place(row) and options.must[job]:
                self._any(draft, job, squeeze=True)
        others = np.flatnonzero((draft.row < 0) & (worth >= 0) & ~options.must).tolist()
        left = self.most_failures
        for job in sorted(others, key=lambda job: -gain[job]):
            if not self._any(draft, job, squeeze=left > 0):
                left -= 1
        improve(draft, left)

    @staticmethod
    def _any(draft: Draft, job: int, squeeze: bool) -> bool:
        """The best option that fits, by reward; squeezing is tried after none has fitted by itself."""
        rows = by_value(draft.options, job)
        return any(draft.place(row) for row in rows) or (squeeze and any(draft.squeeze(row) for row in rows))


def improve(draft: Draft, most_failures: int) -> None:
    """Jobs that were given a later deadline than their best try for an earlier one."""
    options = draft.options
    has = np.flatnonzero(draft.row >= 0)
    best = options.best_of_jobs(options.value, floor=-np.inf)[1]
    behind = has[options.value[draft.row[has]] < best[has]]
    left = most_failures
    for job in behind.tolist():
        now = int(draft.row[job])
        leases = draft.remove(job)
        better = [row for row in by_value(options, job) if options.value[row] > options.value[now]]
        if any(draft.place(row) for row in better):
            continue
        if left <= 0 or not any(draft.squeeze(row) for row in better):
            left -= 1
            draft.put(now, leases)


def by_value(options: Options, job: int) -> list[int]:
    """A job's options by reward, then by GPU-leases."""
    first, last = np.searchsorted(options.job, [job, job + 1]).tolist()
    rows = np.arange(first, last)
    size = options.gpus[rows] * options.need[rows]
    return [int(row) for row in rows[np.lexsort((size, -options.value[rows]))]]
