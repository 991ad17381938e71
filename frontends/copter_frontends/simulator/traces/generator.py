"""A generated day of jobs, from statistics of the Philly log (docs/method/goodput.md)."""

from __future__ import annotations

from typing import Literal

import numpy as np

from copter_frontends.simulator.traces.arrivals import BINS_A_DAY, ArrivalProfile
from copter_frontends.simulator.traces.classes import check_day, check_work, draw_applications, named_jobs
from copter_frontends.simulator.traces.durations import work_of_durations
from copter_frontends.vocabulary import Job

# Jobs in each hour of Thursday 2017-10-12, the log's busiest weekday that no single burst dominates.
HOURLY_JOBS = (
    *(144, 156, 6, 0, 0, 36, 204, 389, 370, 205, 179, 112),
    *(184, 4, 4, 12, 34, 92, 33, 3, 159, 168, 114, 379),
)
BURSTINESS = 0.734  # coefficient of variation of ten-minute counts around their hour's mean, weighted by jobs

# Share of jobs with under 1 GPU hour, under 10, under 100, and the rest.
CLASS_SHARES = (0.7458, 0.1855, 0.0480, 0.0207)

# Requested GPUs and the number of the log's jobs with this request, class by class.
GPU_COUNTS: tuple[dict[int, int], ...] = (
    {1: 54695, 2: 148, 4: 433, 8: 214, 12: 1, 16: 17},
    {1: 13175, 2: 29, 4: 282, 8: 272, 12: 5, 16: 26, 24: 6, 32: 12},
    {1: 2308, 2: 185, 4: 633, 8: 402, 12: 1, 16: 26, 32: 17, 64: 3},
    {1: 269, 2: 99, 4: 441, 8: 618, 16: 75, 32: 33, 64: 1, 128: 2},
)


# Deciles of the GPU hours of the log's jobs in each class, from least to largest.
GPU_HOUR_DECILES = (
    (0.0167, 0.0192, 0.0242, 0.0586, 0.139, 0.217, 0.326, 0.436, 0.573, 0.716, 1.0),
    (1.0, 1.12, 1.26, 1.46, 1.58, 1.7, 2.34, 2.89, 3.61, 5.44, 9.98),
    (10.0, 12.4, 14.5, 16.7, 19.6, 24.7, 30.1, 38.1, 50.3, 73.0, 99.9),
    (100.0, 112.0, 132.0, 161.0, 202.0, 237.0, 307.0, 398.0, 488.0, 635.0, 999.0),
)


def generate_day(jobs: int, hours: float = 24.0, seed: int = 0, work: Literal["full", "trace"] = "full") -> list[Job]:
    """Generate `jobs` jobs over `hours`, with the arrivals, classes, sizes and durations of the Philly log.

    The day's hourly rates are fixed; within an hour the rate of each ten minutes is drawn from a gamma distribution of
    the log's burstiness.

    Parameters
    ----------
    jobs : int
        Number of jobs, >= 1.
    hours : float
        Length of the window: up to 24 hours the day's busiest window of that length; for longer ones the day repeats.
    seed : int
        The same seed gives the same jobs.
    work : {"full", "trace"}
        See :func:`~copter_frontends.simulator.traces.sample_day`: the application's full run, or the drawn duration.

    Returns
    -------
    list of Job
        Jobs by submission time. Requests above 64 GPUs are reduced to 64.

    Raises
    ------
    SettingsError
        If `jobs`, `hours` or `work` is out of range.
    """
    check_day(jobs, hours)
    check_work(work)
    rng = np.random.default_rng(seed)
    hourly = np.repeat(np.array(HOURLY_JOBS, dtype=np.float64), BINS_A_DAY // len(HOURLY_JOBS))
    profile = ArrivalProfile.of(hourly * rng.gamma(BURSTINESS**-2, BURSTINESS**2, size=BINS_A_DAY))
    times = profile.sample(jobs, hours, rng)
    classes = rng.choice(len(CLASS_SHARES), size=jobs, p=np.array(CLASS_SHARES) / sum(CLASS_SHARES))
    gpus = np.empty(jobs, dtype=np.int64)
    for index, counts in enumerate(GPU_COUNTS):
        members = classes == index
        weights = np.array(list(counts.values()), dtype=np.float64)
        gpus[members] = rng.choice(list(counts), size=int(members.sum()), p=weights / weights.sum())
    applications = draw_applications(classes, rng)
    if work == "full":
        return named_jobs(applications, times, gpus)
    quantiles, tenths = rng.uniform(size=jobs), np.linspace(0.0, 1.0, len(GPU_HOUR_DECILES[0]))
    logs = [np.interp(q, tenths, np.log(GPU_HOUR_DECILES[k])) for q, k in zip(quantiles, classes, strict=True)]
    durations_s = 3600.0 * np.exp(logs) / gpus
    return named_jobs(applications, times, gpus, work_of_durations(applications, gpus, durations_s))
