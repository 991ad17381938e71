"""Arrivals of jobs: a day's profile in bins of ten minutes, and submission times drawn from it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

import numpy as np
from numpy.typing import NDArray

from copter.runtime.errors import SettingsError

BIN_S = 600.0  # seconds of a bin of arrivals
BINS_A_DAY = 144  # bins of a day
BURST_SHARE = 0.05  # a day is not used if one bin has more than this share of its jobs


@dataclass(frozen=True, slots=True)
class ArrivalProfile:
    """Relative arrival rates over a day.

    Attributes
    ----------
    weights : ndarray (144,) of float64
        Share of a day's jobs in each ten minutes from midnight; the sum is 1.
    """

    weights: NDArray[np.float64]

    @classmethod
    def of(cls, weights: Sequence[float] | NDArray[np.float64]) -> ArrivalProfile:
        """Make a profile from 144 weights of any scale; raises SettingsError if they are not usable."""
        values = np.asarray(weights, dtype=np.float64)
        if values.shape != (BINS_A_DAY,) or not np.isfinite(values).all() or (values < 0).any() or values.sum() == 0:
            raise SettingsError(f"an arrival profile needs {BINS_A_DAY} finite weights >= 0, not all of them 0")
        return cls(values / values.sum())

    def sample(self, jobs: int, hours: float, rng: np.random.Generator) -> NDArray[np.float64]:
        """Draw `jobs` submission times over `hours`.

        A window of up to 24 hours is the day's busiest of that length; for longer ones the day repeats from midnight.
        Within ten minutes, times are uniform.

        Parameters
        ----------
        jobs : int
        hours : float
        rng : numpy.random.Generator

        Returns
        -------
        ndarray (jobs,) of float64
            Seconds from the window's start, ascending, below 3600 * `hours`.
        """
        window_s = hours * 3600.0
        bins = int(np.ceil(window_s / BIN_S))
        length = np.full(bins, BIN_S)
        length[-1] = window_s - (bins - 1) * BIN_S
        offsets = np.arange(bins)
        first = 0
        if bins < BINS_A_DAY:
            loads = [self.weights[(start + offsets) % BINS_A_DAY] @ length for start in range(BINS_A_DAY)]
            first = int(np.argmax(loads))
        weights = self.weights[(first + offsets) % BINS_A_DAY] * length
        chosen = rng.choice(bins, size=jobs, p=weights / weights.sum())
        return np.sort(chosen * BIN_S + rng.random(jobs) * length[chosen])


def busy_day(submit_s: NDArray[np.float64], start: datetime) -> tuple[datetime, ArrivalProfile]:
    """Choose the day whose arrivals are used: the weekday with the most jobs among those without a dominant burst.

    A real day has bursts that an average would smooth away. A weekday is skipped if ten minutes of it contain more than
    5% of its jobs (one user's script). If all are skipped, the day with the most jobs is chosen.

    Parameters
    ----------
    submit_s : ndarray (n,)
        Submission times in seconds from `start`, a midnight; at least one job.
    start : datetime

    Returns
    -------
    datetime, ArrivalProfile
        The day's midnight and its profile.
    """
    bins = (submit_s // BIN_S).astype(np.int64)
    days = np.bincount(bins, minlength=-(-(bins.max() + 1) // BINS_A_DAY) * BINS_A_DAY).reshape(-1, BINS_A_DAY)
    totals, peaks = days.sum(axis=1), days.max(axis=1)
    weekday = np.array([(start + timedelta(days=i)).weekday() < 5 for i in range(len(days))])
    typical = weekday & (totals > 0) & (peaks <= BURST_SHARE * totals)
    best = int(np.argmax(np.where(typical, totals, -1) if typical.any() else totals))
    return start + timedelta(days=best), ArrivalProfile.of(days[best].astype(np.float64))
