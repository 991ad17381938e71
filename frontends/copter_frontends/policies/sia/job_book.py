"""Data of the jobs in Sia's formulation: a record each, and rows of numbers for vectorised rounds."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from copter_frontends.goodput.hints import TrainingHints
from copter_frontends.vocabulary import DuplicateJobError, Job, UnknownJobError

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

IDLE = -1  # column of a job without GPUs

NUMBERS = np.dtype(
    [
        ("submit_s", "f8"),
        ("restarts", "f8"),
        ("restart_cost_s", "f8"),
        ("factor", "f8"),  # restart factor (S3) of the last refresh
        ("smallest", "f8"),  # smallest usable entry of the base
        ("scale", "f8"),  # scale; with the offset it gives the values at this round's restart factor
        ("offset", "f8"),
        ("own_base", "f8"),  # base of the configuration that the job has; 0 without GPUs
        ("own_value", "f8"),  # value of that configuration
        ("bonus", "f8"),  # what time sharing adds to the job's values (S6)
        ("worth", "f8"),  # weight times priority class (S9): a factor of all values
        ("tie_scale", "f8"),  # factor of the steps between ties
        ("column", "i8"),  # configuration that the job has, or IDLE
        ("pinned", "i8"),  # configuration that it is held on, or IDLE
        ("own_local", "i8"),  # the job's own column of that configuration
        ("clamped", "?"),  # the model holds a whole array of values, not a base and its scale
        ("holed", "?"),  # some entries of the base are NaN
        ("rebased", "?"),  # the model does not hold the present base
        ("stale", "?"),  # base, configuration or bonus have changed since the last refresh
        ("unused", "i4"),  # makes the record a whole number of words, also when saved
    ]
)
LEAST_ROWS = 64  # rows of an empty book


@dataclass(slots=True)
class JobState:
    """State of a job in the formulation, in addition to its row of numbers.

    Attributes
    ----------
    job : Job
    row : int
        Row of its numbers in :attr:`JobBook.numbers`.
    base : ndarray (configurations,)
        Base of its values (S1, S2); NaN for configurations on which it cannot run.
    columns : ndarray (n,)
        Configurations with a column.
    live_base : ndarray (n,)
        Base of these configurations.
    local : ndarray (configurations,)
        The job's own column of each configuration, or -1.
    limits : tuple
        Key of the configurations on which it can run and its goodput; jobs with equal limits and phase have equal
        bases.
    rows : tuple of int
        Numbers of the shared rows in which it counts.
    hints : TrainingHints or None
    progress : float
        Fraction of training done.
    phase : int
        Phase of the goodput model at this progress.
    ends : list of float
        Fractions of training at which its phases end, without the last one's.
    column, pinned : int
        Present configuration, and configuration to which the job is fixed; IDLE for none.
    most_gpus : int
        Most GPUs that it has had.
    """

    job: Job
    row: int
    base: Floats
    columns: Ints
    live_base: Floats
    local: NDArray[np.int32]
    limits: int = -1
    rows: tuple[int, ...] = ()
    hints: TrainingHints | None = None
    progress: float = 0.0
    phase: int = 0
    ends: list[float] = field(default_factory=list)
    column: int = IDLE
    pinned: int = IDLE
    most_gpus: int = 0


class JobBook(dict[str, JobState]):
    """States by job id, in the order of arrival.

    Rows of removed jobs are reused.
    """

    def __init__(self) -> None:
        super().__init__()
        self._row_of: dict[str, int] = {}  # of every job, in the order of arrival
        self._at: list[JobState | None] = [None] * LEAST_ROWS  # by row
        self._rows: Ints = np.zeros(0, dtype=np.int64)  # its values, but for those that came or went since
        self._came: list[int] = []
        self._gone: list[int] = []
        self._numbers = np.zeros(LEAST_ROWS, dtype=NUMBERS)
        self._restarts: dict[int, int] = {}  # by row, not yet in the numbers
        self._rebased: dict[int, tuple[float, float, bool]] = {}  # by row: smallest, own_base, holed; not yet in them
        self._free = list(range(LEAST_ROWS - 1, -1, -1))

    @property
    def numbers(self) -> NDArray[Any]:
        """Writable structured array of all jobs' numbers, (rows,), of dtype :data:`NUMBERS`."""
        if self._restarts:
            self._numbers["restarts"][list(self._restarts)] = list(self._restarts.values())
            self._restarts = {}
        if self._rebased:
            rows, many = list(self._rebased), 3 * len(self._rebased)
            values = np.fromiter(chain.from_iterable(self._rebased.values()), dtype=np.float64, count=many)
            for name, each in zip(("smallest", "own_base", "holed"), values.reshape(-1, 3).T, strict=True):
                self._numbers[name][rows] = each
            self._numbers["rebased"][rows] = self._numbers["stale"][rows] = True
            self._rebased = {}
        return self._numbers

    def rebase(self, row: int, smallest: float, own_base: float, holed: bool) -> None:
        """Take a job's new base in; the numbers get it when they are looked at."""
        self._rebased[row] = (smallest, own_base, holed)

    def rebase_all(
        self, rows: Sequence[int], smallest: Sequence[float], own_base: Floats, holed: Sequence[bool]
    ) -> None:
        """Do :meth:`rebase` for many jobs, each of these (jobs,)."""
        numbers = self.numbers
        numbers["smallest"][rows], numbers["own_base"][rows], numbers["holed"][rows] = smallest, own_base, holed
        numbers["rebased"][rows] = numbers["stale"][rows] = True

    def restarted(self, row: int, restarts: int) -> None:
        """Record how often a job has restarted; written to the numbers like :meth:`rebase`."""
        self._restarts[row] = restarts

    def state(self, job_id: str) -> JobState:
        """Return a job's state; raises UnknownJobError."""
        try:
            return self[job_id]
        except KeyError:
            raise UnknownJobError(f"unknown job {job_id!r}: never added, or already removed") from None

    def states(self, job_ids: Collection[str]) -> list[JobState]:
        """Return many jobs' states; raises UnknownJobError."""
        try:
            return list(map(self.__getitem__, job_ids))
        except KeyError:
            return [self.state(job_id) for job_id in job_ids]

    def require_new_all(self, job_ids: Sequence[str]) -> None:
        """Raise DuplicateJobError if an id is known, or there twice."""
        if len(set(job_ids)) == len(job_ids) and self.keys().isdisjoint(job_ids):
            return
        known = next(each for at, each in enumerate(job_ids) if each in self or each in job_ids[:at])
        raise DuplicateJobError(f"job {known!r} is known already; remove it first")

    def new_rows(self, count: int) -> list[int]:
        """Return rows for new jobs, which stay free until :meth:`keep_all`."""
        while len(self._free) < count:
            many = len(self._numbers)
            self._numbers = np.concatenate((self._numbers, np.zeros(many, dtype=NUMBERS)))
            self._at += [None] * many
            self._free = [*range(2 * many - 1, many - 1, -1), *self._free]
        return self._free[: -count - 1 : -1]

    def keep_all(self, states: Sequence[JobState], numbers: NDArray[Any]) -> None:
        """Store jobs, with the rows from :meth:`new_rows` and their numbers, (jobs,)."""
        rows = [state.row for state in states]
        if rows != self.new_rows(len(rows)):
            raise ValueError(f"rows {rows} are not those that were given last")
        del self._free[len(self._free) - len(rows) :]
        for row, state in zip(rows, states, strict=True):
            self._rebased.pop(row, None)
            self._restarts.pop(row, None)
            self._at[row] = state
        words(self._numbers)[rows] = words(numbers)
        ids = [state.job.id for state in states]
        self.update(zip(ids, states, strict=True))
        self._row_of.update(zip(ids, rows, strict=True))
        if self._gone:  # their rows may be among these
            self.rows()
        self._came += rows

    def forget(self, job_id: str) -> None:
        """Delete a job and free its row."""
        del self[job_id]
        row = self._row_of.pop(job_id)
        if self._came:
            self.rows()
        self._at[row] = None
        self._free.append(row)
        self._gone.append(row)

    def rows(self) -> Ints:
        """Return the rows of all jobs in the order of arrival; not to be changed."""
        if self._gone:
            gone = np.zeros(len(self._numbers), dtype=bool)
            gone[self._gone] = True
            self._rows, self._gone = self._rows[~gone[self._rows]], []
        if self._came:
            self._rows, self._came = np.concatenate((self._rows, np.array(self._came, dtype=np.int64))), []
        return self._rows

    def numbers_of(self, rows: Ints) -> NDArray[Any]:
        """Return a copy of the numbers of some rows, (k,), of dtype :data:`NUMBERS`."""
        return np.take(words(self.numbers), rows, axis=0).view(NUMBERS)[:, 0]

    def put(self, rows: Ints, numbers: NDArray[Any]) -> None:
        """Write the numbers of some rows, as :meth:`numbers_of` returns them."""
        words(self.numbers)[rows] = words(numbers)

    def states_at(self, rows: Ints) -> list[JobState]:
        """Return the states of the jobs of some rows."""
        return cast("list[JobState]", list(map(self._at.__getitem__, rows.tolist())))

    def rows_of(self, job_ids: Collection[str]) -> Ints:
        """Return the rows of some jobs."""
        return np.fromiter(map(self._row_of.__getitem__, job_ids), dtype=np.int64, count=len(job_ids))


def words(numbers: NDArray[Any]) -> NDArray[np.uint64]:
    """Return the same memory as rows of plain words, which NumPy copies several times as fast as records."""
    return numbers.view(np.uint64).reshape(len(numbers), -1)
