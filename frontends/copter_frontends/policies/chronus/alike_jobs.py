"""Jobs that arrive together, as arrays: what jobs alike share is looked up once."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from copter_frontends.policies.chronus.job_modes import Alike, JobModes
from copter_frontends.policies.chronus.options import Floats, Ints
from copter_frontends.vocabulary import Job


class AlikeJobs:
    """Jobs that arrive together.

    Parameters
    ----------
    jobs : sequence of Job
    modes : JobModes

    Attributes
    ----------
    jobs : sequence of Job
    work : list of float
        Of each job.
    alike : list of Alike
        Of each job.
    groups : list of Alike
    group : int64 array (jobs,)
        Number of each job's group.

    Raises
    ------
    InvalidJobError
        If a job's application is unknown, or one of its rates is negative or not finite.
    """

    def __init__(self, jobs: Sequence[Job], modes: JobModes) -> None:
        self.jobs = jobs
        self.work = modes.work_of(jobs)
        self.alike = modes.alike_of(jobs)
        self.groups: list[Alike] = list(dict.fromkeys(self.alike))
        number = {each: at for at, each in enumerate(self.groups)}
        self.group: Ints = np.array(list(map(number.__getitem__, self.alike)), dtype=np.int64)

    def whole_s(self) -> Floats:
        """Return the seconds of each job's work on its fastest type, infinite if none can run it, (jobs,)."""
        fastest = np.array([max(each.rates.values(), default=0.0) for each in self.groups])[self.group]
        runs, result = fastest > 0, np.full(len(self.jobs), np.inf)
        result[runs] = np.array(self.work)[runs] / fastest[runs]
        return result
