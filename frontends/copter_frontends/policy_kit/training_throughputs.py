"""Rates in wall-clock time, with slowdown, phases and starts, for policies that promise completion times."""

from __future__ import annotations

from bisect import bisect_left
from itertools import pairwise
from math import inf
from typing import Protocol, runtime_checkable

from copter_frontends.policy_kit.throughputs import GoodputThroughputs, Unit
from copter_frontends.simulator.goodput_source import GoodputSource, slowdown_of
from copter_frontends.vocabulary import Cluster, Job, Shape

Course = tuple[list[float], list[float]]
"""Fractions of the work, and of the time, at which phases end; both begin with 0."""


@runtime_checkable
class TimedThroughputs(Protocol):
    """Interface: throughputs with the distribution of time over a job's work, and the cost of a start."""

    def time_done(self, job: Job, gpu_type: str, gpus: int, progress: float) -> float:
        """Return the fraction of a job's whole time on these GPUs that has passed when this fraction of its work is
        done.
        """

    def course(self, job: Job, gpu_type: str, gpus: int) -> Course:
        """Return how a job's time is distributed over its work, on GPUs on which it runs."""

    def restart_s(self, job: Job) -> float:
        """Return the seconds of a start or a change of GPUs."""


class TrainingThroughputs(GoodputThroughputs):
    """:class:`.GoodputThroughputs` in wall-clock time: work divided by rate is a job's run time (C5).

    A rate is the mean over the rest of a job: each phase has its own rate, which is the modelled one divided by the
    application's slowdown. It is a :class:`TimedThroughputs` too.
    """

    def __init__(self, cluster: Cluster, model: GoodputSource, unit: Unit = "samples") -> None:
        super().__init__(cluster, model, unit)
        self._courses: dict[tuple[Shape, str, int], tuple[float, Course]] = {}

    def rate(self, job: Job, gpu_type: str, gpus: int, progress: float = 0.0) -> float:
        """Return mean units per second from `progress` on, in wall-clock time; 0 if the job cannot run."""
        whole_s, course = self._timed(job, gpu_type, gpus)
        if whole_s == inf:
            return 0.0
        if progress <= 0.0:
            return self.work(job) / whole_s
        left = 1.0 - min(progress, 1.0 - 1e-9)
        return self.work(job) * left / (whole_s * (1.0 - share_of_time(course, 1.0 - left)))

    def time_done(self, job: Job, gpu_type: str, gpus: int, progress: float) -> float:
        """Return the share of a job's time that has passed at a progress; `progress` itself if the job cannot run."""
        whole_s, course = self._timed(job, gpu_type, gpus)
        return progress if whole_s == inf else share_of_time(course, progress)

    def course(self, job: Job, gpu_type: str, gpus: int) -> Course:
        """See :class:`TimedThroughputs`."""
        return self._timed(job, gpu_type, gpus)[1]

    def restart_s(self, job: Job) -> float:
        """Return the seconds of a start; 0 for a job with its own goodput."""
        return 0.0 if job.own_goodput is not None else float(self._facts(job).restart_s)

    def _timed(self, job: Job, gpu_type: str, gpus: int) -> tuple[float, Course]:
        """Return (seconds of the whole job, infinite if it cannot run; its course), cached for similar jobs."""
        key = job.shape, gpu_type, gpus
        known = self._courses.get(key)
        if known is None:
            known = self._courses[key] = self._new_course(job, gpu_type, gpus)
        per_unit_s, course = known
        return per_unit_s * self.work(job), course

    def _new_course(self, job: Job, gpu_type: str, gpus: int) -> tuple[float, Course]:
        """Return the mean seconds per unit of work, and the course."""
        self._facts(job)
        model, work, ends = self._model, [0.0], [0.0]
        while work[-1] < 1.0:
            work.append(min(float(model.phase_end(job.application, len(work) - 1)), 1.0))
        for begin, end in pairwise(work):
            rate = super().rate(job, gpu_type, gpus, 0.5 * (begin + end))
            if not rate > 0:
                return inf, (work, work)
            ends.append(ends[-1] + (end - begin) / rate)
        whole = ends[-1]
        return whole * slowdown_of(model, job), (work, [end / whole for end in ends])


def share_of_time(course: Course, value: float) -> float:
    """Return the fraction of the time at a fraction of the work, interpolated linearly."""
    given, wanted = course
    if value <= 0.0:
        return 0.0
    if value >= 1.0:
        return 1.0
    k = bisect_left(given, value)
    share = (value - given[k - 1]) / (given[k] - given[k - 1])
    return wanted[k - 1] + share * (wanted[k] - wanted[k - 1])
