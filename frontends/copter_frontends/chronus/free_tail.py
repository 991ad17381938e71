"""Late leases that can never be full: they cost nothing, and the LP is of the others alone (papers/chronus.md, C15)."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from copter_frontends.chronus.draft import Draft
from copter_frontends.chronus.options import Bools, Floats, Ints, Options


@dataclass(frozen=True, slots=True)
class FreeTail:
    """Where the leases begin that would not be full if all jobs that can have them had them.

    A job takes what it can of them; what it needs of the leases before is what is left.

    Attributes
    ----------
    options : Options
        As given.
    scarce : int
        Leases before the tail; at least one.
    horizon : int
        All leases.
    """

    options: Options
    scarce: int
    horizon: int

    @classmethod
    def of(cls, options: Options, capacity: Ints) -> FreeTail:
        """Find it."""
        kinds, horizon = capacity.shape
        gpus, last = (np.zeros((kinds, options.jobs), dtype=np.int64) for _ in range(2))
        np.maximum.at(gpus, (options.kind, options.job), options.gpus)
        np.maximum.at(last, (options.kind, options.job), options.last)
        scarce = 1
        for q in range(kinds):
            ends = np.bincount(last[q], gpus[q], horizon + 1)
            wanted = ends[::-1].cumsum()[::-1][1:]  # by jobs whose last deadline is after the lease
            scarce = max(scarce, int(np.flatnonzero(wanted > capacity[q]).max(initial=0)) + 1)
        return cls(options, scarce, horizon)

    @property
    def reduced(self) -> Options:
        """The options in the leases before the tail; what they need there may be nothing."""
        options = self.options
        late = np.minimum(np.maximum(options.last - self.scarce, 0), options.need)
        return replace(options, need=options.need - late, last=np.minimum(options.last, self.scarce))

    def origin(self, reduced: Options, capacity: Ints, draft: Draft) -> Draft:
        """A plan of the options as one of the reduced ones."""
        result, jobs = Draft(reduced, capacity[:, : self.scarce]), np.flatnonzero(draft.row >= 0)
        rows, leases = draft.row[jobs], draft.taken[jobs, : self.scarce]
        result.put_all(rows, leases & (np.cumsum(leases, axis=1) <= reduced.need[rows][:, None]))
        return result

    def early(self, capacity: Ints) -> Ints:
        """GPUs in the leases before the tail."""
        return capacity[:, : self.scarce]

    def prices(self, price: Floats) -> Floats:
        """Prices of all leases from those before the tail."""
        return np.pad(price, ((0, 0), (0, self.horizon - self.scarce)))

    def leases(self, row: Ints, early: Bools) -> Bools:
        """Leases of jobs with these options, from those before the tail: in it as late as can be."""
        leases = np.pad(early, ((0, 0), (0, self.horizon - self.scarce)))
        jobs = np.flatnonzero(row >= 0)
        need, last = self.options.need[row[jobs]], self.options.last[row[jobs]]
        late = need - early[jobs].sum(axis=1)
        at = np.arange(self.horizon)[None, :]
        leases[jobs] |= (at >= (last - late)[:, None]) & (at < last[:, None])
        return leases
