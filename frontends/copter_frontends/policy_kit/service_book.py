"""The service of a policy's jobs, an array a field: a plan adds to all running jobs at once."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
LEAST_ROWS = 64  # rows of an empty book


class BookedService:
    """The service a job has received, for queues by attained service or waiting time: a row of a :class:`ServiceBook`.

    Parameters
    ----------
    book : ServiceBook
    row : int
        Its row there.

    Attributes
    ----------
    progress : float
        Fraction of the job that is done, as last reported to the policy.
    """

    __slots__ = ("_book", "progress", "row")

    def __init__(self, book: ServiceBook, row: int) -> None:
        self._book, self.row, self.progress = book, row, 0.0

    @property
    def executed_s(self) -> float:
        """Seconds with GPUs, measured from plan to plan."""
        return self._book.executed_s.item(self.row)

    @executed_s.setter
    def executed_s(self, seconds: float) -> None:
        self._book.executed_s[self.row] = seconds

    @property
    def gpu_s(self) -> float:
        """GPU-seconds held."""
        return self._book.gpu_s.item(self.row)

    @gpu_s.setter
    def gpu_s(self, seconds: float) -> None:
        self._book.gpu_s[self.row] = seconds

    @property
    def waits_from_s(self) -> float:
        """Time from which the job waits: of the last plan at which it had GPUs, or of its submission."""
        return self._book.waits_from_s.item(self.row)

    @property
    def waiting_s(self) -> float:
        """Seconds, at the last plan, since the job last had GPUs (or was submitted)."""
        return max(self._book.now_s - self.waits_from_s, 0.0)

    @waiting_s.setter
    def waiting_s(self, seconds: float) -> None:
        self._book.waits_from_s[self.row] = self._book.now_s - seconds


class ServiceBook:
    """Service of many jobs; rows of jobs that have gone are used again.

    Attributes
    ----------
    now_s : float
        Time of the last plan.
    submit_s, executed_s, gpu_s, waits_from_s : float64 arrays (rows,)
        See :class:`BookedService`; and the time of submission.
    gpus : int64 array (rows,)
        GPUs that a job has at present.
    planned : int64 array (rows,)
        GPUs that it had after the last plan; what it gets between two plans counts from the next one on.
    """

    def __init__(self) -> None:
        self.now_s = 0.0
        self.submit_s, self.executed_s, self.gpu_s, self.waits_from_s = (np.zeros(LEAST_ROWS) for _ in range(4))
        self.gpus: Ints = np.zeros(LEAST_ROWS, dtype=np.int64)
        self.planned: Ints = np.zeros(LEAST_ROWS, dtype=np.int64)
        self._free = list(range(LEAST_ROWS - 1, -1, -1))

    def enter(self, submit_s: list[float], waits_from_s: list[float]) -> list[BookedService]:
        """Return the services of new jobs, which have had none."""
        many = len(submit_s)
        while len(self._free) < many:
            self._grow()
        rows = [self._free.pop() for _ in range(many)]
        if many > 1:
            self.submit_s[rows], self.waits_from_s[rows] = submit_s, waits_from_s
        else:  # an array of one takes ten times as long
            for row in rows:
                self.submit_s[row], self.waits_from_s[row] = submit_s[0], waits_from_s[0]
        return [BookedService(self, row) for row in rows]

    def leave(self, service: BookedService) -> None:
        """Forget a job; its row is empty for another."""
        row = service.row
        self.gpus[row] = self.planned[row] = 0
        self.executed_s[row] = self.gpu_s[row] = 0.0
        self._free.append(row)

    def serve(self, now_s: float, elapsed_s: float) -> None:
        """Add the time since the last plan to the jobs that have had GPUs all the while."""
        self.now_s = now_s
        rows = np.flatnonzero((self.gpus > 0) & (self.planned > 0))
        self.executed_s[rows] += elapsed_s
        self.gpu_s[rows] += self.gpus[rows] * elapsed_s
        self.waits_from_s[rows] = now_s

    def note_plan(self) -> None:
        """Note that the jobs have GPUs as the present plan gives them."""
        self.planned[:] = self.gpus

    def _grow(self) -> None:
        had = len(self.gpus)
        more = np.zeros(had)
        self.submit_s, self.executed_s, self.gpu_s, self.waits_from_s = (
            np.concatenate((each, more)) for each in (self.submit_s, self.executed_s, self.gpu_s, self.waits_from_s)
        )
        self.gpus, self.planned = (np.concatenate((each, more.astype(np.int64))) for each in (self.gpus, self.planned))
        self._free[:0] = range(2 * had - 1, had - 1, -1)
