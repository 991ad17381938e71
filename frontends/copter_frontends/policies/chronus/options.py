"""Options of SLO jobs as arrays: one row per (job, GPU type and number, deadline) (papers/chronus.md, C2)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]
OptionRow = tuple[int, int, int, int, int, int, int, float]


@dataclass(frozen=True, slots=True)
class Options:
    """Options in rows sorted by job; a job without rows cannot meet any deadline.

    Attributes
    ----------
    job : int64 array (rows,)
        Number of the job, 0 to jobs - 1.
    mode : int64 array (rows,)
        Number of the job's mode, a pair of GPU type and GPUs.
    kind, gpus : int64 arrays (rows,)
        GPU type, and GPUs taken (rounded up).
    need, last : int64 arrays (rows,)
        Leases that the job needs, and leases from now to the deadline; 1 <= need <= last.
    step : int64 array (rows,)
        Number of the deadline.
    value : float64 array (rows,)
        Reward above the floor.
    must : bool array (jobs,)
        Whether the job has a promise; it then only has options that keep the promise.
    """

    job: Ints
    mode: Ints
    kind: Ints
    gpus: Ints
    need: Ints
    last: Ints
    step: Ints
    value: Floats
    must: Bools

    @classmethod
    def of(cls, rows: Sequence[OptionRow], must: Sequence[bool]) -> Options:
        """Build from tuples (job, mode, kind, gpus, need, last, step, value), sorted by job."""
        if not rows:
            empty = np.zeros(0, dtype=np.int64)
            return cls(empty, empty, empty, empty, empty, empty, empty, np.zeros(0), np.array(must, dtype=bool))
        table = np.array(rows, dtype=np.float64).T
        whole = [column.astype(np.int64) for column in table[:7]]
        job, mode, kind, gpus, need, last, step = whole
        return cls(job, mode, kind, gpus, need, last, step, table[7].copy(), np.array(must, dtype=bool))

    @property
    def jobs(self) -> int:
        """Number of jobs."""
        return len(self.must)

    @property
    def most(self) -> float:
        """Return the reward if every job met its best deadline, which is the bound at zero prices."""
        return float(self.best_of_jobs(self.value, floor=0.0)[1].sum())

    def best_of_jobs(self, worth: Floats, floor: float = 0.0, must: bool = False) -> tuple[Ints, Floats]:
        """Return each job's row of the largest worth (-1 if none is above `floor`) and this worth.

        With `must`, a job with a promise gets its best row whatever its worth.
        """
        best = np.full(self.jobs, -np.inf)
        first = self.rows_of()
        has = np.flatnonzero(np.diff(first) > 0)
        if len(has):
            best[has] = np.maximum.reduceat(worth, first[has])
        row = np.full(self.jobs, -1, dtype=np.int64)
        at = np.flatnonzero(worth >= best[self.job])[::-1]
        row[self.job[at]] = at  # among equals the first is written last and so kept
        none = best <= floor
        if must:
            none &= ~(self.must & np.isfinite(best))
        row[none] = -1
        return row, np.where(row >= 0, best, 0.0)

    def rows_of(self) -> Ints:
        """Return the first row of each job, (jobs + 1,)."""
        first = np.zeros(self.jobs + 1, dtype=np.int64)
        np.cumsum(np.bincount(self.job, minlength=self.jobs), out=first[1:])
        return first

    @property
    def size(self) -> Ints:
        """Return the GPUs of each job's largest option, (jobs,); 0 without options."""
        size, first = np.zeros(self.jobs, dtype=np.int64), self.rows_of()
        has = np.flatnonzero(np.diff(first) > 0)
        if len(has):
            size[has] = np.maximum.reduceat(self.gpus, first[has])
        return size


def jobs_and_leases(taken: Bools) -> tuple[Ints, Ints]:
    """Return where a (jobs, leases) array is true, as numbers of jobs and of leases.

    As ``np.nonzero``, which takes ten times as long where few entries are true.
    """
    job, lease = np.divmod(np.flatnonzero(taken), max(taken.shape[1], 1))
    return job, lease
