"""Late leases that can never be full cost nothing, so that the LP contains only earlier ones (papers/chronus.md,
C15).
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from copter_frontends.policies.chronus.draft import Draft
from copter_frontends.policies.chronus.options import Bools, Floats, Ints, Options


@dataclass(frozen=True, slots=True)
class FreeTail:
    """The last leases, in which the capacity suffices for every job that may still run.

    A job uses as much of this tail as it can; only the rest of its need competes for the scarce leases before the tail.

    Attributes
    ----------
    options : Options
        The jobs' options over all leases.
    scarce : int
        Number of leases before the tail; at least one.
    horizon : int
        Number of all leases.
    """

    options: Options
    scarce: int
    horizon: int

    @classmethod
    def of(cls, options: Options, capacity: Ints) -> FreeTail:
        """Find the first lease from which on no GPU type can be in demand beyond its capacity."""
        kinds, horizon = capacity.shape
        gpus, last = (np.zeros((kinds, options.jobs), dtype=np.int64) for _ in range(2))
        np.maximum.at(gpus, (options.kind, options.job), options.gpus)
        np.maximum.at(last, (options.kind, options.job), options.last)
        scarce = 1
        for q in range(kinds):
            ends = np.bincount(last[q], gpus[q], horizon + 1)
            wanted = ends[::-1].cumsum()[::-1][1:]  # GPUs of the jobs whose last deadline is after the lease
            scarce = max(scarce, int(np.flatnonzero(wanted > capacity[q]).max(initial=0)) + 1)
        return cls(options, scarce, horizon)

    @property
    def reduced(self) -> Options:
        """Return the options restricted to the leases before the tail; a need may become zero."""
        options = self.options
        late = np.minimum(np.maximum(options.last - self.scarce, 0), options.need)
        return replace(options, need=options.need - late, last=np.minimum(options.last, self.scarce))

    def origin(self, reduced: Options, capacity: Ints, draft: Draft) -> Draft:
        """Restrict a plan of the options to the reduced options."""
        result, jobs = Draft(reduced, capacity[:, : self.scarce]), np.flatnonzero(draft.row >= 0)
        rows, leases = draft.row[jobs], draft.taken[jobs, : self.scarce]
        result.put_all(rows, leases & (np.cumsum(leases, axis=1) <= reduced.need[rows][:, None]))
        return result

    def early(self, capacity: Ints) -> Ints:
        """Return the GPUs of the leases before the tail."""
        return capacity[:, : self.scarce]

    def prices(self, price: Floats) -> Floats:
        """Extend the prices of leases before the tail to all leases; the tail's prices are zero."""
        return np.pad(price, ((0, 0), (0, self.horizon - self.scarce)))

    def leases(self, row: Ints, early: Bools) -> Bools:
        """Extend leases before the tail to all leases; leases in the tail are as late as possible."""
        leases = np.pad(early, ((0, 0), (0, self.horizon - self.scarce)))
        jobs = np.flatnonzero(row >= 0)
        need, last = self.options.need[row[jobs]], self.options.last[row[jobs]]
        late = need - early[jobs].sum(axis=1)
        at = np.arange(self.horizon)[None, :]
        leases[jobs] |= (at >= (last - late)[:, None]) & (at < last[:, None])
        return leases
