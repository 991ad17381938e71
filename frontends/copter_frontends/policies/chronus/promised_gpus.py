"""GPUs promised in each lease, updated with each change of a lease (docs/papers/chronus.md, C4)."""

from __future__ import annotations

import numpy as np

from copter_frontends.policies.chronus.options import Ints


class PromisedGpus:
    """Promised GPUs by GPU type and lease.

    Parameters
    ----------
    first : int
        Absolute number of the first lease that is counted.

    Attributes
    ----------
    first : int
    """

    def __init__(self, first: int) -> None:
        self.first = first
        self._total: Ints = np.zeros((0, 0), dtype=np.int64)

    def add(self, kinds: Ints | int, leases: Ints, gpus: Ints | int) -> None:
        """Promise GPUs of a type in each of these leases; negative numbers withdraw a promise."""
        ahead = leases >= self.first
        if not ahead.any():
            return
        at, kind, count = leases - self.first, np.asarray(kinds), np.asarray(gpus)
        if not ahead.all():
            at = at[ahead]
            kind, count = (each if each.ndim == 0 else each[ahead] for each in (kind, count))
        self._grow(int(kind.max()) + 1, int(at.max()) + 1)
        if kind.ndim == 0:
            self._total[int(kind), at] += count  # a job's leases are distinct
        else:
            np.add.at(self._total, (kind, at), count)

    def ahead(self, kinds: int, first: int, horizon: int) -> Ints:
        """Return GPUs of each type in each lease from `first` on, (kinds, horizon); `first` must be in the table."""
        result = np.zeros((kinds, horizon), dtype=np.int64)
        known = self._total[:kinds, first - self.first : first - self.first + horizon]
        result[: known.shape[0], : known.shape[1]] = known
        return result

    def most(self, kinds: int, first: int) -> Ints:
        """Return the most GPUs of each type in one lease from `first` on, (kinds,); `first` must be in the table."""
        result = np.zeros(kinds, dtype=np.int64)
        known = self._total[:kinds, first - self.first :]
        result[: len(known)] = known.max(axis=1, initial=0)
        return result

    def _grow(self, kinds: int, leases: int) -> None:
        rows, columns = self._total.shape
        if kinds > rows or leases > columns:
            more = ((0, max(kinds - rows, 0)), (0, max(leases - columns, 0)))
            self._total = np.pad(self._total, more)
