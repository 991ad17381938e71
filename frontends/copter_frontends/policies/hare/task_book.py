"""Data of the jobs for the task scheduler, as arrays that follow arrivals, progress and departures."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from copter_frontends.policies.hare.courses import Courses
from copter_frontends.policies.hare.instance import Floats, Ints
from copter_frontends.policies.hare.job import HareJob
from copter_frontends.policies.hare.task_times import JobTimes
from copter_frontends.vocabulary import Allocation

FIRST_ROWS = 64  # number of jobs for which the first arrays have room; they double when full


class TaskBook:
    """Arrays with a row per job in order of arrival; rows of departed jobs are removed from time to time.

    Parameters
    ----------
    kinds : sequence of str
        GPU types.

    Attributes
    ----------
    times : dict of job id to JobTimes
    train_s, sync_s : float64 arrays (rows, types)
        Seconds of a task, as in :class:`.HareInstance`.
    done, weight, restart_s : float64 arrays (rows,)
        Rounds done, w_n, and the seconds that a change of GPUs costs the job.
    rounds, tasks : int64 arrays (rows,)
        Rounds of the whole job, and tasks per round.
    held : int64 array (rows, types)
        GPUs that the job has.
    course : int64 array (rows,)
        Number of the job's course of time over work, in `_courses`.
    """

    def __init__(self, kinds: Sequence[str]) -> None:
        self.kinds = tuple(kinds)
        self.times: dict[str, JobTimes] = {}
        self._number = {kind: g for g, kind in enumerate(self.kinds)}
        self._row: dict[str, int] = {}
        self._jobs: list[HareJob | None] = []
        self.train_s: Floats = np.full((FIRST_ROWS, len(self.kinds)), np.inf)
        self.sync_s: Floats = np.zeros((FIRST_ROWS, len(self.kinds)))
        self.done, self.weight, self.restart_s = (np.zeros(FIRST_ROWS) for _ in range(3))
        self.rounds, self.tasks = (np.zeros(FIRST_ROWS, dtype=np.int64) for _ in range(2))
        self.course: Ints = np.zeros(FIRST_ROWS, dtype=np.int64)
        self._courses = Courses()
        self.held: Ints = np.zeros((FIRST_ROWS, len(self.kinds)), dtype=np.int64)
        self._there: NDArray[np.bool_] = np.zeros(FIRST_ROWS, dtype=np.bool_)  # rows of jobs that have not departed

    def __contains__(self, job_id: object) -> bool:
        return job_id in self._row

    def add(self, job_id: str, times: JobTimes, tasks: int, weight: float, model: str) -> None:
        """Add a job; raises InvalidJobError for invalid times."""
        self.add_all([HareJob(job_id, times.rounds, tasks, times.train_s, times.sync_s, weight, 0.0, model)], [times])

    def add_all(self, jobs: Sequence[HareJob], times: Sequence[JobTimes]) -> None:
        """Add many jobs with their times."""
        if not jobs:
            return
        begin, end = len(self._jobs), len(self._jobs) + len(jobs)
        while end > len(self.done):
            self._grow()
        own = slice(begin, end)
        self.train_s[own] = [[each.train_s.get(kind, np.inf) for kind in self.kinds] for each in times]
        self.sync_s[own] = [[each.sync_s.get(kind, 0.0) for kind in self.kinds] for each in times]
        courses = {id(each.course): each.course for each in times}  # jobs alike share theirs
        number = {known: self._courses.number(course) for known, course in courses.items()}
        self.course[own] = [number[id(each.course)] for each in times]
        self.restart_s[own] = [each.restart_s for each in times]
        self.done[own], self.weight[own] = 0.0, [job.weight for job in jobs]
        self.rounds[own], self.tasks[own] = [job.rounds for job in jobs], [job.tasks for job in jobs]
        self.held[own], self._there[own] = 0, True
        ids = [job.id for job in jobs]
        self.times.update(zip(ids, times, strict=True))
        self._row.update(zip(ids, range(begin, end), strict=True))
        self._jobs += jobs

    def retime(self, job_id: str, times: JobTimes) -> None:
        """Replace a job's task times; its number of rounds must be the same."""
        row = self._row[job_id]
        self.times[job_id], self.course[row] = times, self._courses.number(times.course)
        self.train_s[row] = [times.train_s.get(kind, np.inf) for kind in self.kinds]
        self.sync_s[row] = [times.sync_s.get(kind, 0.0) for kind in self.kinds]

    def progress(self, job_id: str, progress: float) -> None:
        """Store a job's progress as a fraction of its work."""
        self.done[self._row[job_id]] = self.times[job_id].rounds_done(progress)

    def progress_of(self, progress: Mapping[str, float]) -> None:
        """Store the progress of many jobs; as :meth:`progress`, over all of them at once."""
        rows = np.array([self._row[job_id] for job_id in progress], dtype=np.int64)
        share = np.array(list(progress.values()), dtype=np.float64)
        self.done[rows] = self.rounds[rows] * self._courses.shares(self.course[rows], share)

    def hold(self, job_id: str, allocation: Allocation | None) -> None:
        """Store the GPUs that a job has."""
        row = self._row[job_id]
        self.held[row] = 0
        if allocation is not None:
            for kind, gpus in allocation.by_type.items():
                self.held[row, self._number[kind]] = gpus

    def hold_all(self, given: Mapping[str, Allocation]) -> None:
        """Store the GPUs that many jobs have."""
        one = [(self._row[job_id], held) for job_id, held in given.items() if not held.mixture]
        rows = np.array([row for row, _ in one], dtype=np.int64)
        self.held[rows] = 0
        self.held[rows, [self._number[held.gpu_type] for _, held in one]] = [held.gpus for _, held in one]
        if len(one) < len(given):
            for job_id, held in given.items():
                if held.mixture:
                    self.hold(job_id, held)

    def release_all(self, job_ids: Sequence[str]) -> None:
        """Note that these jobs, as far as they are here, have no GPUs."""
        self.held[[self._row[job_id] for job_id in job_ids if job_id in self._row]] = 0

    def remove(self, job_id: str) -> None:
        """Delete a job."""
        row = self._row.pop(job_id)
        self._jobs[row], self._there[row] = None, False
        del self.times[job_id]
        if len(self._jobs) > 2 * max(len(self._row), FIRST_ROWS):
            self._close()

    def rows(self, without: Collection[str] = ()) -> NDArray[np.intp]:
        """Return the rows of all jobs except some, in order of arrival."""
        there = self._there[: len(self._jobs)].copy()
        there[[self._row[job_id] for job_id in without if job_id in self._row]] = False
        return np.flatnonzero(there)

    def jobs_at(self, rows: NDArray[np.intp]) -> list[HareJob]:
        """Return the jobs of these rows as they were added."""
        return [job for job in map(self._jobs.__getitem__, rows.tolist()) if job is not None]

    def _arrays(self) -> tuple[str, ...]:
        return "train_s", "sync_s", "done", "weight", "restart_s", "rounds", "tasks", "held", "course", "_there"

    def _grow(self) -> None:
        for name in self._arrays():
            had = getattr(self, name)
            setattr(self, name, np.concatenate((had, np.zeros_like(had))))

    def _close(self) -> None:
        """Remove the rows of departed jobs."""
        rows = self.rows()
        for name in self._arrays():
            had = getattr(self, name)
            had[: len(rows)] = had[rows]
        self._there[len(rows) :] = False
        self._jobs = [self._jobs[row] for row in rows.tolist()]
        self._row = {job_id: row for row, job_id in enumerate(self._row)}
