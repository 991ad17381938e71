"""The time that a job's work takes in each of its modes: phases differ in speed (docs/papers/chronus.md, C5)."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from copter_frontends.policies.chronus.options import Floats


@dataclass(frozen=True, slots=True, eq=False)
class ModeTimes:
    """Shares of a job's time at shares of its work, for every mode; linear between these points.

    Two modes differ in these shares, so that a job that changes its mode has another share of its time left.

    Attributes
    ----------
    work : list of float
        Shares of the work, ascending from 0 to 1.
    time : float64 array (modes, points)
    """

    work: list[float]
    time: Floats

    @classmethod
    def even(cls, modes: int) -> ModeTimes:
        """Return the times of a job whose work goes on at one rate."""
        return cls([0.0, 1.0], np.repeat([[0.0, 1.0]], modes, axis=0))

    @classmethod
    def of(cls, courses: Sequence[tuple[list[float], list[float]]]) -> ModeTimes:
        """Return the times of modes with these shares of work and of time."""
        work = np.unique(np.concatenate([each for each, _ in courses]))
        return cls(work.tolist(), np.array([np.interp(work, *course) for course in courses]))

    def done(self, progress: float) -> Floats:
        """Return the share of each mode's time that has passed at a share of the work."""
        if progress <= 0.0 or progress >= 1.0:
            return np.full(len(self.time), min(max(progress, 0.0), 1.0))
        k = bisect_left(self.work, progress)
        share = (progress - self.work[k - 1]) / (self.work[k] - self.work[k - 1])
        return np.asarray(self.time[:, k - 1] + share * (self.time[:, k] - self.time[:, k - 1]))

    def done_of(self, progress: Floats) -> Floats:
        """Return :meth:`done` for each share of the work, (shares, modes)."""
        work = np.array(self.work)
        k = np.clip(np.searchsorted(work, progress), 1, len(work) - 1)
        share = (progress - work[k - 1]) / (work[k] - work[k - 1])
        done = (self.time[:, k - 1] + share * (self.time[:, k] - self.time[:, k - 1])).T
        ends = (progress <= 0.0) | (progress >= 1.0)
        done[ends] = np.clip(progress[ends], 0.0, 1.0)[:, None]
        return np.ascontiguousarray(done)

    def after(self, mode: int, share: float) -> Floats:
        """Return the share of each mode's time at the work at which this share of one mode's time has passed."""
        done = self.done(float(np.interp(share, self.time[mode], self.work)))
        done[mode] = share
        return done
