"""Improvement of a plan by removing some jobs and placing them again in another order (docs/papers/chronus.md, C16)."""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from copter_frontends.policies.chronus.draft import Draft
from copter_frontends.policies.chronus.options import Floats, Ints

FEWEST, MOST = 3, 24  # least and most jobs removed in one exchange
IN_VAIN, AT_MOST = 100, 250  # the search ends after so many exchanges in a row without gain, or so many in all
ALL_OTHERS = 0.1  # share of the exchanges for a broken promise that remove all unpromised jobs of the type
SEED = 20_210  # for the choice of jobs to remove, so that equal plans are improved in the same way


def exchange(draft: Draft, worth: Floats, goal: float) -> None:
    """Improve a plan, in place: fewer promised jobs without leases, then more reward.

    Each exchange serves a job that has no leases or less than its best reward. Some jobs on the GPU type of one of its
    options are removed. Then this job is placed first, the promised jobs follow by deadline, and then the other jobs by
    reward relative to their deadline. An exchange that makes the plan worse is undone.

    Parameters
    ----------
    draft : Draft
    worth : float64 array (rows,)
        Worth of each option at the LP's prices; options of large worth are tried first.
    goal : float
        The search ends at this reward if no promise is broken.
    """
    search, vain = _Search(draft, worth), 0
    for _ in range(AT_MOST):
        wanting = search.wanting()
        if vain >= IN_VAIN or not len(wanting) or (draft.broken == 0 and draft.reward >= goal):
            return
        vain = 0 if search.exchanged(int(search.rng.choice(wanting))) else vain + 1


class _Search:
    """The search for exchanges on one plan."""

    def __init__(self, draft: Draft, worth: Floats) -> None:
        self.draft, self.rng = draft, np.random.default_rng(SEED)
        options = draft.options
        first = options.rows_of().tolist()
        order = np.lexsort((-worth, options.job)).tolist()
        self.rows = [order[a:b] for a, b in pairwise(first)]  # each job's options, largest worth first
        self.best = options.best_of_jobs(options.value)[1]

    def wanting(self) -> Ints:
        """Return the jobs to place: promised jobs without leases if there are any, otherwise all that could gain
        value.
        """
        draft, options = self.draft, self.draft.options
        possible = self.best > 0.0
        broken = np.flatnonzero(options.must & possible & (draft.row < 0))
        if len(broken):
            return broken
        has = np.where(draft.row >= 0, options.value[draft.row], 0.0)
        return np.flatnonzero(self.best > has)

    def exchanged(self, job: int) -> bool:
        """Remove some jobs in favour of this one, and place them again; returns whether the plan improved."""
        draft, options, rng = self.draft, self.draft.options, self.rng
        kept, before = (draft.row.copy(), draft.taken.copy(), draft.free.copy()), (draft.broken, -draft.reward)
        row = self.rows[job][int(rng.integers(len(self.rows[job])))]
        kind, last = int(options.kind[row]), int(options.last[row])
        there = np.flatnonzero((draft.row >= 0) & (options.kind[draft.row] == kind))
        there = there[draft.taken[there, :last].any(axis=1) & (there != job)]
        out = rng.choice(there, min(int(rng.integers(FEWEST, MOST + 1)), len(there)), replace=False)
        if options.must[job] and draft.row[job] < 0 and rng.random() < ALL_OTHERS:
            out = np.union1d(out, there[~options.must[there]])
        for each in (job, *out.tolist()):
            draft.remove(each)
        self.put_back(out if draft.place(row) else np.append(out, job))
        now = draft.broken, -draft.reward
        if now > before:
            draft.row[:], draft.taken[:], draft.free[:] = kept
        return now < before

    def put_back(self, jobs: Ints) -> None:
        """Place jobs in a new order, promised jobs first; stops at the first promised job without room."""
        draft, options = self.draft, self.draft.options
        due = np.array([int(options.last[self.rows[job]].min()) for job in jobs.tolist()])
        by = np.where(options.must[jobs], due, -self.best[jobs] / np.maximum(due, 1))
        for job in jobs[np.lexsort((self.rng.random(len(jobs)), by, ~options.must[jobs]))].tolist():
            placed = any(draft.place(row) for row in self.rows[job])
            if options.must[job] and not placed and not any(draft.squeeze(row) for row in self.rows[job]):
                return
