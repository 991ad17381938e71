"""The shim from the LP's shares to integer lease plans that keep every promise (docs/papers/chronus.md, C16)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from copter_frontends.policies.chronus.draft import Draft
from copter_frontends.policies.chronus.exchange import exchange
from copter_frontends.policies.chronus.formulation import LeaseSolution
from copter_frontends.policies.chronus.options import Floats, Ints, Options
from copter_frontends.policies.chronus.repacking import repacked

SHORT = 2e-3  # a plan is good enough if its reward is at most this share below the LP's value


@dataclass(frozen=True, slots=True)
class LeaseShim:
    """Rounds the LP's solution to an integer plan.

    Parameters
    ----------
    most_failures : int
        After so many failed attempts in one plan to make room by moving other jobs, jobs only get free leases.
    """

    most_failures: int = 8

    def __call__(self, options: Options, capacity: Ints, solution: LeaseSolution, origin: Draft | None = None) -> Draft:
        """Return the best of: the rounded LP, the last plan's promises plus the LP's choices, and the last plan.

        Promised jobs are placed first. The best draft is the one with fewest broken promises (which occur if GPUs were
        lost or a job was slower than estimated), then with most reward. If this draft breaks promises or falls short of
        the LP's value, the LP's options get new leases and the plan is improved by exchanges. If that plan breaks more
        promises than the last plan, the last plan is also improved by exchanges.

        Parameters
        ----------
        options : Options
        capacity : int64 array (types, leases)
        solution : LeaseSolution
        origin : Draft, optional
            The last plan with the same options, filled with other jobs that fit.
        """
        goal = (1.0 - SHORT) * solution.value
        drafts = [Draft(options, capacity)] + ([] if origin is None else [origin])
        self.fill(drafts[0], solution)
        if origin is not None and drafts[0].broken:
            kept = np.flatnonzero(options.must & (origin.row >= 0))
            drafts.append(Draft(options, capacity))
            drafts[-1].put_all(origin.row[kept], origin.taken[kept])
            self.fill(drafts[-1], solution)
        if min(map(_rank, drafts)) > (0, -goal):
            drafts.append(self.anew(options, capacity, solution, goal))
            if origin is not None and drafts[-1].broken > origin.broken:
                drafts.append(origin.copy())
                exchange(drafts[-1], solution.prices.worth(options), goal)
        return min(drafts, key=_rank)

    def anew(self, options: Options, capacity: Ints, solution: LeaseSolution, goal: float) -> Draft:
        """Return a plan of the LP's options with newly assigned leases."""
        worth = solution.prices.worth(options)
        best, gain = options.best_of_jobs(worth, floor=-np.inf)
        row = np.where((solution.row < 0) & options.must, best, solution.row)
        draft = repacked(options, capacity, row, gain)
        exchange(draft, worth, goal)
        if draft.broken or draft.reward < goal:
            self.add_others(draft, best, gain)
        return draft

    def fill(self, draft: Draft, solution: LeaseSolution) -> None:
        """Place promised jobs, large ones first, then the LP's choices and then all other jobs, both by reduced value.

        A job that the LP splits has a reduced value of zero and so comes last.
        """
        options, wishes = draft.options, solution.row
        worth, gain = options.best_of_jobs(solution.prices.worth(options), floor=-np.inf)
        waiting = np.flatnonzero((draft.row < 0) & (worth >= 0) & ((wishes >= 0) | options.must))
        rows = np.where(wishes >= 0, wishes, worth)[waiting]
        slack, size = options.last[rows] - options.need[rows], options.gpus[rows]
        must = options.must[waiting]
        order = np.lexsort((slack, -np.where(must, size, gain[waiting]), ~must))
        waiting, rows = waiting[order], rows[order]
        fits = draft.put_all(rows, solution.leases[waiting])
        for job, row in zip(waiting[~fits].tolist(), rows[~fits].tolist(), strict=True):
            if not draft.place(row) and options.must[job]:
                self._any(draft, job, squeeze=True)
        self.add_others(draft, worth, gain)

    def add_others(self, draft: Draft, worth: Ints, gain: Floats) -> None:
        """Place unpromised jobs without leases if they fit, by gain, then improve deadlines."""
        others = np.flatnonzero((draft.row < 0) & (worth >= 0) & ~draft.options.must)
        others = others[np.argsort(-gain[others], kind="stable")]
        left = self.most_failures
        for job, able in zip(others.tolist(), draft.jobs_with_room(others).tolist(), strict=True):
            if (able or left > 0) and not self._any(draft, job, squeeze=left > 0):
                left -= 1
        improve(draft, left)

    @staticmethod
    def _any(draft: Draft, job: int, squeeze: bool) -> bool:
        """Place the best option that fits, by reward; squeeze only if none fits otherwise."""
        rows = draft.ranked(job)
        return any(draft.place(row) for row in rows) or (squeeze and any(draft.squeeze(row) for row in rows))


def _rank(draft: Draft) -> tuple[int, float]:
    """Return the plan's rank: fewer broken promises first, then more reward."""
    return draft.broken, -draft.reward


def improve(draft: Draft, most_failures: int) -> None:
    """Try earlier deadlines for jobs with a later deadline than their best.

    If a job finds no room, other jobs' leases are moved, until this has failed `most_failures` times. An improved job
    frees leases for others, so that all jobs are tried again as long as one improves.
    """
    options, left = draft.options, most_failures
    got_better = len(options.value) > 0
    best = options.best_of_jobs(options.value)[1]
    while got_better:
        got_better = False
        rows = np.flatnonzero(options.value > np.where(draft.row >= 0, options.value[draft.row], np.inf)[options.job])
        able = np.zeros(options.jobs, dtype=bool)
        able[options.job[rows[draft.roomy(rows, own=True)]]] = True
        has = np.flatnonzero(draft.row >= 0)
        behind = has[options.value[draft.row[has]] < best[has]]
        for job, may in zip(behind.tolist(), able[behind].tolist(), strict=True):
            if not may and left <= 0:
                continue
            now = int(draft.row[job])
            leases = draft.remove(job)
            better = [row for row in draft.ranked(job) if options.value[row] > options.value[now]]
            if any(draft.place(row) for row in better):
                got_better = True
            elif left <= 0 or not any(draft.squeeze(row) for row in better):
                left -= 1
                draft.put(now, leases)
