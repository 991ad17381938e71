"""The courses of time over work of many jobs, as arrays, so that their progress is stored in one pass."""

from __future__ import annotations

import numpy as np

from copter_frontends.policies.hare.instance import Floats, Ints
from copter_frontends.policy_kit import Course

EVEN: Course = ([0.0, 1.0], [0.0, 1.0])


class Courses:
    """Different courses by number; most jobs share theirs with others."""

    def __init__(self) -> None:
        self._number: dict[tuple[tuple[float, ...], tuple[float, ...]], int] = {}
        self._work: Floats = np.zeros((0, 2))  # shares of the work by course, then infinity
        self._time: Floats = np.zeros((0, 2))

    def number(self, course: Course | None) -> int:
        """Return the number of a course; None is an even one."""
        work, time = EVEN if course is None else course
        key = tuple(work), tuple(time)
        known = self._number.get(key)
        if known is None:
            known = self._number[key] = len(self._number)
            width = max(self._work.shape[1], len(work))
            self._work = _with_row(self._work, width, work, np.inf)
            self._time = _with_row(self._time, width, time, 1.0)
        return known

    def shares(self, course: Ints, progress: Floats) -> Floats:
        """Return the share of the time of each job at its progress, as :func:`.share_of_time` does, (jobs,).

        Parameters
        ----------
        course : int64 array (jobs,)
            Numbers of courses.
        progress : float64 array (jobs,)
            Fractions of the work, from 0 to 1.
        """
        inside = (progress > 0.0) & (progress < 1.0)
        result = np.where(progress >= 1.0, 1.0, 0.0)
        course, value = course[inside], progress[inside]
        k = (self._work[course] < value[:, None]).sum(axis=1)
        work, time = self._work[course, k - 1], self._time[course, k - 1]
        share = (value - work) / (self._work[course, k] - work)
        result[inside] = time + share * (self._time[course, k] - time)
        return result


def _with_row(table: Floats, width: int, row: list[float], rest: float) -> Floats:
    """Return the table with one more row, at this width."""
    wider: Floats = np.full((len(table) + 1, width), rest)
    wider[:-1, : table.shape[1]] = table
    wider[-1, : len(row)] = row
    return wider
