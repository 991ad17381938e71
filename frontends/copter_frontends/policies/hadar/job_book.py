"""The jobs that a Hadar policy knows, one array per field."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import inf
from typing import Any, Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from copter_frontends.goodput.job_facts import check_facts
from copter_frontends.vocabulary import DuplicateJobError, InvalidJobError, Job, UnknownJobError

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

FIRST_ROOM = 64  # size of the first arrays, in jobs; full arrays are doubled


Scalar = TypeVar("Scalar", bound=np.generic)


class _Rows(Generic[Scalar]):
    """An array of the book, restricted to the rows in use."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __get__(self, book: JobBook, _: type | None = None) -> NDArray[Scalar]:
        return book._arrays[self.name][: len(book.jobs)]


class JobBook:
    """Arrays over the current jobs; a removed job's row is filled with the last one.

    Attributes
    ----------
    jobs : list of Job
    ids : list of str
        Ids of the jobs.
    gpus : int64 array (n,)
        W_j, the GPUs of each job: it runs on all of them or on none.
    submit_s, total, progress : float64 arrays (n,)
        Submission in seconds; total iterations, E_j N_j; completed fraction of them.
    rates : float64 array (n, types)
        Iterations per second of the whole job if all its tasks were on GPUs of the type, W_j X_j^r; 0: cannot run.
    known : bool array (n, types)
        Whether a rate is given or measured (not estimated).
    restart_s : float64 array (n,)
        Seconds of a change of GPUs; NaN: the round's common value.
    held : int64 array (n, types)
        Current GPUs of each type.
    pinned : bool array (n,)
        Whether the job must keep exactly its current GPUs.
    spread : bool array (n,)
        Whether the current GPUs are on more servers than necessary.
    sent : float64 array (n, types)
        Costs in the model; NaN for jobs outside the model.
    """

    gpus = _Rows[np.int64]("gpus")
    submit_s = _Rows[np.float64]("submit_s")
    total = _Rows[np.float64]("total")
    progress = _Rows[np.float64]("progress")
    rates = _Rows[np.float64]("rates")
    known = _Rows[np.bool_]("known")
    restart_s = _Rows[np.float64]("restart_s")
    held = _Rows[np.int64]("held")
    pinned = _Rows[np.bool_]("pinned")
    spread = _Rows[np.bool_]("spread")
    sent = _Rows[np.float64]("sent")

    def __init__(self, types: Sequence[str]) -> None:
        self.types = tuple(types)
        self.jobs: list[Job] = []
        self.ids: list[str] = []
        self.index: dict[str, int] = {}
        room, kinds = FIRST_ROOM, len(self.types)
        self._arrays: dict[str, NDArray[Any]] = {
            "gpus": np.zeros(room, dtype=np.int64),
            "submit_s": np.zeros(room),
            "total": np.zeros(room),
            "progress": np.zeros(room),
            "rates": np.zeros((room, kinds)),
            "known": np.zeros((room, kinds), dtype=bool),
            "restart_s": np.full(room, np.nan),
            "held": np.zeros((room, kinds), dtype=np.int64),
            "pinned": np.zeros(room, dtype=bool),
            "spread": np.zeros(room, dtype=bool),
            "sent": np.zeros((room, kinds)),
        }

    def __len__(self) -> int:
        return len(self.jobs)

    def add(self, job: Job, gpus: int, total: float, rates: Floats) -> int:
        """Add a job and return its row; errors as of :meth:`add_many`."""
        self.add_many([job], [gpus], [total], [rates.tolist()], [np.nan])
        return len(self.jobs) - 1

    def add_many(
        self,
        jobs: Sequence[Job],
        gpus: Sequence[int],
        totals: Sequence[float],
        rates: Sequence[list[float]],
        restarts_s: Sequence[float],
    ) -> None:
        """Add jobs in the rows after the last, with a rate for every type; NaN marks unknown rates and restarts.

        Raises
        ------
        DuplicateJobError, InvalidJobError
            If an id is known; if no rate of a job can be positive, or one is negative or infinite. None is added then.
        """
        fresh, checked = dict[str, int](), set[int]()  # rows; lists of rates, which jobs alike share
        first = len(self.jobs)
        for row, (job, each) in enumerate(zip(jobs, rates, strict=True), first):
            if job.id in self.index or job.id in fresh:
                raise DuplicateJobError(f"job {job.id!r} is known already; remove it first")
            if id(each) not in checked:
                self._check_rates(job.id, each)
                checked.add(id(each))
            fresh[job.id] = row
        if not fresh:
            return
        last = first + len(fresh)
        while last > len(self._arrays["gpus"]):
            self._arrays = {name: np.concatenate([array, np.zeros_like(array)]) for name, array in self._arrays.items()}
        self.jobs += jobs
        self.ids += fresh
        self.index.update(fresh)
        table, submits_s = np.array(rates, dtype=np.float64), [job.submit_s for job in jobs]
        values = (gpus, submits_s, totals, 0.0, table, ~np.isnan(table), restarts_s, 0, False, False, np.nan)
        for array, value in zip(self._arrays.values(), values, strict=True):
            array[first:last] = value

    def note_progress(self, progress: Mapping[str, float]) -> None:
        """Set the jobs' progress, as fractions; on an error nothing changes.

        Raises
        ------
        UnknownJobError
        InvalidDataError
            For a progress outside 0 to 1.
        """
        try:
            rows = [self.index[job_id] for job_id in progress]
        except KeyError:
            rows = [self.row(job_id) for job_id in progress]
        done = np.fromiter(progress.values(), dtype=np.float64, count=len(rows))
        wrong = np.flatnonzero(~((done >= 0.0) & (done <= 1.0)))
        if len(wrong):
            check_facts(self.ids[rows[int(wrong[0])]], {"progress": float(done[wrong[0]])})
        self._arrays["progress"][rows] = done

    def remove_many(self, job_ids: Sequence[str]) -> None:
        """Delete jobs, one after the other; UnknownJobError, and nothing is deleted, if an id is unknown."""
        if len(set(job_ids)) < len(job_ids):
            raise UnknownJobError(f"of {len(job_ids)} jobs to be removed some are named twice")
        for job_id in job_ids:
            self.row(job_id)
        jobs, ids, index = self.jobs, self.ids, self.index
        came = dict[int, int]()  # of rows that are filled from others: the row that their job was in at first
        for job_id in job_ids:
            row, last = index.pop(job_id), len(ids) - 1
            job, own = jobs.pop(), ids.pop()
            origin = came.pop(last, last)
            if row != last:
                jobs[row], ids[row], index[own], came[row] = job, own, row, origin
        if came:
            to, origins = list(came), list(came.values())
            for array in self._arrays.values():
                array[to] = array[origins]

    def row(self, job_id: str) -> int:
        """Return the row of a job; raises UnknownJobError."""
        try:
            return self.index[job_id]
        except KeyError:
            raise UnknownJobError(f"unknown job {job_id!r}: never added, or already removed") from None

    def ids_at(self, rows: NDArray[np.integer]) -> list[str]:
        """Return the ids of the jobs in these rows."""
        return list(map(self.ids.__getitem__, rows.tolist()))

    def set_rates(self, job_id: str, rates: dict[str, float]) -> None:
        """Set measured rates of a job by type, in iterations per second; on an error nothing changes.

        Raises
        ------
        UnknownJobError, InvalidJobError
        """
        row, after = self.row(job_id), self.check_told(job_id, rates)
        given = ~np.isnan(after)
        self.rates[row, given], self.known[row] = after[given], given

    def check_told(self, job_id: str, rates: dict[str, float]) -> Floats:
        """Return the job's rates after an update, without storing them; raises like :meth:`set_rates`."""
        row = self.row(job_id)
        foreign = [name for name in rates if name not in self.types]
        if foreign:
            raise InvalidJobError(
                f"job {job_id!r}: a rate is given for GPU type {foreign[0]!r}; the cluster has {', '.join(self.types)}"
            )
        after = np.where(self.known[row], self.rates[row], np.nan)
        for name, value in rates.items():
            after[self.types.index(name)] = value
        self._check_rates(job_id, after.tolist())
        return np.asarray(after)

    def _check_rates(self, job_id: str, each: list[float]) -> None:
        """Raise InvalidJobError unless rates are >= 0 or unknown and one of them may be positive."""
        if not all(0.0 <= rate < inf or rate != rate for rate in each):
            raise InvalidJobError(f"job {job_id!r}: throughputs are {each}, must be finite and >= 0")
        if not any(each):  # NaN, an unknown rate, counts as possibly positive
            raise InvalidJobError(
                f"job {job_id!r} fits nowhere: its throughput is zero on every GPU type "
                f"({', '.join(self.types)}); give a positive one for at least one type"
            )
