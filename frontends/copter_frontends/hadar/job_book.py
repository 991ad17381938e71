"""The jobs that a Hadar policy knows, one array per field."""

from __future__ import annotations

from collections.abc import Sequence
from math import inf

import numpy as np
from numpy.typing import NDArray

from copter_frontends.vocabulary import DuplicateJobError, InvalidJobError, Job, UnknownJobError

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

FIRST_ROOM = 64  # jobs that the first arrays have room for; they double when full


class JobBook:
    """Struct of arrays over the jobs present; a removed job's place is taken by the last one.

    Attributes
    ----------
    jobs : list of Job
    gpus : int64 array (n,)
        W_j, GPUs that the job runs on: all of them or none.
    submit_s, total, progress : float64 arrays (n,)
        Submission in seconds; iterations to do, E_j N_j; fraction of them done.
    rates : float64 array (n, types)
        Iterations per second of the whole job if all its tasks were on GPUs of the type, W_j X_j^r; 0: cannot run.
    known : bool array (n, types)
        Whether a rate is given or measured, and not estimated.
    restart_s : float64 array (n,)
        Seconds that a change of GPUs costs the job; NaN: what the round says.
    held : int64 array (n, types)
        GPUs of each type that the job has now.
    pinned : bool array (n,)
        Whether it must keep exactly those.
    spread : bool array (n,)
        Whether they are on more servers than they need be.
    sent : float64 array (n, types)
        Costs that the model holds; NaN for a job that it does not have.
    """

    FIELDS = (
        "gpus",
        "submit_s",
        "total",
        "progress",
        "rates",
        "known",
        "restart_s",
        "held",
        "pinned",
        "spread",
        "sent",
    )

    def __init__(self, types: Sequence[str]) -> None:
        self.types = tuple(types)
        self.jobs: list[Job] = []
        self.index: dict[str, int] = {}
        room, kinds = FIRST_ROOM, len(self.types)
        self._arrays: dict[str, NDArray[np.generic]] = {
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
        self._show()

    def __len__(self) -> int:
        return len(self.jobs)

    def add(self, job: Job, gpus: int, total: float, rates: Floats) -> int:
        """Write a job down and return its row; rates that are NaN are not known yet.

        Raises
        ------
        DuplicateJobError, InvalidJobError
            If the id is known; if no rate can be positive, or one is negative or infinite.
        """
        if job.id in self.index:
            raise DuplicateJobError(f"job {job.id!r} is known already; remove it first")
        self._check_rates(job.id, rates)
        row = len(self.jobs)
        if row == len(self._arrays["gpus"]):
            self._arrays = {name: np.concatenate([array, np.zeros_like(array)]) for name, array in self._arrays.items()}
        self.jobs.append(job)
        self.index[job.id] = row
        self._show()
        self.gpus[row], self.submit_s[row], self.total[row], self.progress[row] = gpus, job.submit_s, total, 0.0
        self.known[row] = ~np.isnan(rates)
        self.rates[row], self.restart_s[row] = rates, np.nan
        self.held[row], self.pinned[row], self.spread[row], self.sent[row] = 0, False, False, np.nan
        return row

    def remove(self, job_id: str) -> None:
        """Forget a job; UnknownJobError."""
        row, last = self.row(job_id), len(self.jobs) - 1
        if row != last:
            for array in self._arrays.values():
                array[row] = array[last]
            self.jobs[row] = self.jobs[last]
            self.index[self.jobs[row].id] = row
        self.jobs.pop()
        del self.index[job_id]
        self._show()

    def row(self, job_id: str) -> int:
        """Row of a job; UnknownJobError."""
        try:
            return self.index[job_id]
        except KeyError:
            raise UnknownJobError(f"unknown job {job_id!r}: never added, or already removed") from None

    def set_rates(self, job_id: str, rates: dict[str, float]) -> None:
        """Take in measured rates, iterations per second of the whole job, by type; all or none.

        Raises
        ------
        UnknownJobError, InvalidJobError
        """
        row, after = self.row(job_id), self.check_told(job_id, rates)
        given = ~np.isnan(after)
        self.rates[row, given], self.known[row] = after[given], given

    def check_told(self, job_id: str, rates: dict[str, float]) -> Floats:
        """What would be known of a job's rates with these; raises as :meth:`set_rates`, and writes nothing down."""
        row = self.row(job_id)
        foreign = [name for name in rates if name not in self.types]
        if foreign:
            raise InvalidJobError(
                f"job {job_id!r}: a rate is given for GPU type {foreign[0]!r}; the cluster has {', '.join(self.types)}"
            )
        after = np.where(self.known[row], self.rates[row], np.nan)
        for name, value in rates.items():
            after[self.types.index(name)] = value
        self._check_rates(job_id, after)
        return np.asarray(after)

    def _check_rates(self, job_id: str, rates: Floats) -> None:
        """InvalidJobError unless rates are >= 0 or unknown, and one of them may be positive."""
        each = rates.tolist()
        if not all(0.0 <= rate < inf or rate != rate for rate in each):
            raise InvalidJobError(f"job {job_id!r}: throughputs are {each}, must be finite and >= 0")
        if not any(each):  # NaN, which is not known yet, counts as something
            raise InvalidJobError(
                f"job {job_id!r} fits nowhere: its throughput is zero on every GPU type "
                f"({', '.join(self.types)}); give a positive one for at least one type"
            )

    def _show(self) -> None:
        """Let the attributes show the rows in use."""
        for name in self.FIELDS:
            setattr(self, name, self._arrays[name][: len(self.jobs)])

    gpus: Ints
    submit_s: Floats
    total: Floats
    progress: Floats
    rates: Floats
    known: NDArray[np.bool_]
    restart_s: Floats
    held: Ints
    pinned: NDArray[np.bool_]
    spread: NDArray[np.bool_]
    sent: Floats
