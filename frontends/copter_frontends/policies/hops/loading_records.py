"""Data loads of running jobs, and repeated fits of the two loading states (sections 3.2 and 3.5; HP11)."""

from __future__ import annotations

from array import array
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from math import isfinite, nan

import numpy as np

from copter_frontends.policies.hops.data_loading import DataLoading, Floats, fit_loading
from copter_frontends.policies.hops.errors import ThroughputError
from copter_frontends.policies.hops.estimator import ThroughputEstimator
from copter_frontends.policies.hops.iteration_time import IterationTimes
from copter_frontends.vocabulary import Job

WINDOW = 1000  # number of latest loads kept for a job (or application) on a GPU type
FIRST_FIT = 40  # number of loads at which a fit is as good as a profiling run of 10 to 50 iterations
MOST_KEYS = 4096  # most windows kept; the one without a load for the longest time is dropped first


@dataclass(slots=True)
class _Window:
    """The latest loads with their waits (NaN on one GPU), and the number of loads since the last fit."""

    loads: array[float] = field(default_factory=lambda: array("d"))
    waits: array[float] = field(default_factory=lambda: array("d"))
    fresh: int = 0
    fitted: int = 0

    def add(self, loads: Sequence[float], waits: Sequence[float]) -> None:
        """Add loads and drop the oldest beyond WINDOW."""
        for kept, new in ((self.loads, loads), (self.waits, waits)):
            kept.extend(new)
            del kept[: max(0, len(kept) - WINDOW)]
        self.fresh += len(loads)


class LoadingRecords:
    """T_d and T_w of running jobs by job (or application) and GPU type, in windows of bounded length.

    A fit is due at 40 loads, then whenever their number has doubled, and later once per window.
    """

    def __init__(self) -> None:
        self._windows: OrderedDict[tuple[str, str], _Window] = OrderedDict()

    def __len__(self) -> int:
        """Number of windows kept."""
        return len(self._windows)

    def count(self, key: str, gpu_type: str) -> int:
        """Return the number of loads in the window of a job (or application) on a GPU type."""
        window = self._windows.get((key, gpu_type))
        return 0 if window is None else len(window.loads)

    def add(self, key: str, gpu_type: str, loads: Sequence[float], waits: Sequence[float] | None = None) -> bool:
        """Add loading times (seconds) of a job on a GPU type, and return whether a fit is due.

        `waits` are the seconds of waiting for slower processes after each load; None for a job on one GPU.

        Raises
        ------
        ThroughputError
            If a time is negative or not finite, or the numbers of waits and loads differ; nothing is stored then.
        """
        also = [nan] * len(loads) if waits is None else list(waits)
        if len(also) != len(loads):
            raise ThroughputError(f"job {key!r}: {len(loads)} data loads and {len(also)} waits; there must be as many")
        if not all(isfinite(each) and each >= 0 for each in (*loads, *(waits or ()))):
            raise ThroughputError(f"job {key!r}: data loads and waits must be finite and >= 0 seconds")
        at = (key, gpu_type)
        window = self._windows.setdefault(at, _Window())
        self._windows.move_to_end(at)
        if len(self._windows) > MOST_KEYS:
            self._windows.popitem(last=False)
        window.add(loads, also)
        return window.fresh >= min(max(FIRST_FIT, window.fitted), WINDOW)

    def refit(self, key: str, gpu_type: str, known: IterationTimes) -> IterationTimes:
        """Return `known` with loading states fitted to the window; unchanged without loads.

        A load on one GPU has no wait; it gets the wait of the known state with the nearer mean.
        """
        window = self._windows.get((key, gpu_type))
        if window is None or not window.loads:
            return known
        loads, waits = np.array(window.loads), np.array(window.waits)
        waits = np.where(np.isnan(waits), _known_waits(known.loading, loads), waits)
        window.fresh, window.fitted = 0, len(loads)
        return replace(known, loading=fit_loading(loads, waits))


def _known_waits(loading: DataLoading, loads: Floats) -> Floats:
    cached, slow = loading.cached, loading.slow
    nearer_slow = np.abs(loads - slow.mean_s) < np.abs(loads - cached.mean_s)
    return np.asarray(np.where(nearer_slow, slow.wait_s, cached.wait_s))


class LearnedLoading:
    """Refits the data loading of an estimator's theory from loads of running jobs (HP11).

    Parameters
    ----------
    estimator : ThroughputEstimator
        Estimator whose theory is updated when a fit is due; the layers above stay the same.
    """

    def __init__(self, estimator: ThroughputEstimator) -> None:
        self.estimator, self.records = estimator, LoadingRecords()

    def observe(self, job: Job, gpu_type: str, loads: Sequence[float], waits: Sequence[float] | None = None) -> None:
        """Record loads of a job on a GPU type; ignored if the job was never profiled there."""
        key = str(self.estimator.key(job))
        if self.records.add(key, gpu_type, loads, waits):
            known = self.estimator.database.theory(key, gpu_type)
            if known is not None:
                self.estimator.profile(job, {gpu_type: self.records.refit(key, gpu_type, known)})
