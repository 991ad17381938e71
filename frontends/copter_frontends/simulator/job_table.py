"""The state of every job of a simulation, one array per field."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from copter_frontends.vocabulary import Job

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


ANY = np.iinfo(np.int64).max  # GPUs of a job without a largest number


class JobTable:
    """Struct of arrays over all jobs, in order of submission.

    Attributes
    ----------
    jobs : list of Job
    ids : list of str
    least, most : int64 arrays
        Numbers of GPUs on which a job runs.
    index : dict of job id to row
    submit_s, first_start_s, completion_s : float64 arrays
        Seconds from the start of the simulation; NaN for events that have not happened.
    progress : float64 array
        Fraction of the work done, 0 to 1.
    work_samples : float64 array
    application, phase, curve : int64 arrays
        Numbers of the application, of its phase, and of the rate curve of the present allocation (-1: none).
    resume_s : float64 array
        Time at which the last start or restart ends and training goes on.
    gpus : int64 array
        GPUs held at present.
    gpu_seconds, queue_s : float64 arrays
        GPU-seconds held so far; seconds without GPUs since submission.
    restarts : int64 array
    last_held_s : float64 array
        Time at which the last GPUs were given up; NaN for a job that never gave up any.
    """

    def __init__(self, jobs: Sequence[Job], applications: Sequence[str], work_samples: Sequence[float]) -> None:
        n = len(jobs)
        number = {name: i for i, name in enumerate(applications)}
        self.jobs = list(jobs)
        self.ids = [job.id for job in self.jobs]
        self.index = {job.id: i for i, job in enumerate(self.jobs)}
        self.submit_s: Floats = np.array([job.submit_s for job in self.jobs], dtype=np.float64)
        self.application: Ints = np.array([number[job.application] for job in self.jobs], dtype=np.int64)
        self.work_samples: Floats = np.array(work_samples, dtype=np.float64)
        self.progress: Floats = np.zeros(n)
        self.phase: Ints = np.zeros(n, dtype=np.int64)
        self.curve: Ints = np.full(n, -1, dtype=np.int64)
        self.resume_s: Floats = np.zeros(n)
        self.gpus: Ints = np.zeros(n, dtype=np.int64)
        self.least: Ints = np.array([job.gpus or job.min_gpus for job in self.jobs], dtype=np.int64)
        # a fixed number may be rounded up to a configuration
        most = [ANY if job.gpus else job.max_gpus or ANY for job in self.jobs]
        self.most: Ints = np.array(most, dtype=np.int64)
        self.gpu_seconds: Floats = np.zeros(n)
        self.queue_s: Floats = np.zeros(n)
        self.restarts: Ints = np.zeros(n, dtype=np.int64)
        self.last_held_s: Floats = np.full(n, np.nan)
        self.first_start_s: Floats = np.full(n, np.nan)
        self.completion_s: Floats = np.full(n, np.nan)

    def __len__(self) -> int:
        return len(self.jobs)
