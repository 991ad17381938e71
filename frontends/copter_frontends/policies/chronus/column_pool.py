"""Whole lease sets of jobs, kept from cycle to cycle: the columns of the lease model (docs/papers/chronus.md, C13)."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import cast

import numpy as np

from copter_frontends.policies.chronus.options import Bools, Floats, Ints, Options


class ColumnPool:
    """Columns of jobs; each is an option with its leases.

    A lease set remains a column as long as it has exactly as many future leases as the job's remaining work needs. A
    job that ran in the past lease therefore keeps the columns with that lease; a job that did not run in it keeps the
    columns without it.

    Attributes
    ----------
    names : list of job ids
        Jobs of the options; the columns refer to them by position.
    number : dict of job id to int
        Their positions.
    first : int
        Absolute number of the first lease.
    job, row, uid : int64 arrays (columns,)
        Numbers of the column's job and option, and a unique number of the column that is never used again.
    leases : bool array (columns, leases)
    resting : bool array (columns,)
        Columns without a share in the last solution; they are dropped when their job is added to the model again.
    """

    def __init__(self) -> None:
        self.names: list[Hashable] = []
        self.number: dict[Hashable, int] = {}
        self.first = 0
        self.job, self.row, self.uid = (np.zeros(0, dtype=np.int64) for _ in range(3))
        self.leases: Bools = np.zeros((0, 1), dtype=bool)
        self.resting: Bools = np.zeros(0, dtype=bool)
        self._made = 0
        self._meant: Ints = np.zeros((0, 4), dtype=np.int64)  # mode, step, type, GPUs of each column
        self._value: Floats = np.zeros(0)  # reward of the option for which each column was made
        self._seen: set[bytes] = set()

    def __len__(self) -> int:
        return len(self.job)

    def move_to(self, options: Options, names: Sequence[Hashable], first: int, horizon: int) -> None:
        """Move to the options of a later lease `first`; keep the columns that are still options with the same
        reward.
        """
        self.number = dict(zip(names, range(len(names)), strict=True))
        number = np.array([self.number.get(name, -1) for name in self.names], dtype=np.int64)
        job = number[self.job] if len(self.job) else self.job
        past = first - self.first
        leases = np.zeros((len(job), horizon), dtype=bool)
        if 0 <= past < self.leases.shape[1]:
            width = min(self.leases.shape[1] - past, horizon)
            leases[:, :width] = self.leases[:, past : past + width]
        row = _rows_like(options, job, self._meant)
        sound = (row >= 0) & (past >= 0)
        at = np.flatnonzero(sound)
        sound[at] = options.value[row[at]] == self._value[at]  # another job may have arrived under the same name
        at = np.flatnonzero(sound)
        count, ends = leases[at].sum(axis=1), _ends(leases[at])
        sound[at] = (count == options.need[row[at]]) & (ends <= options.last[row[at]])
        at = np.flatnonzero(sound)
        self.names, self.first = list(names), first
        self.job, self.row, self.uid, self.leases = job[at], row[at], self.uid[at], leases[at]
        self.resting, self._meant, self._value = self.resting[at], self._meant[at], self._value[at]
        self._note()

    def add(self, options: Options, row: Ints, leases: Bools) -> None:
        """Add columns, given by option (k,) and leases (k, leases), except duplicates and columns with a wrong number
        of leases.
        """
        sound = (leases.sum(axis=1) == options.need[row]) & (_ends(leases) <= options.last[row])
        keys, fresh = _keys(row, leases), []
        for at in np.flatnonzero(sound).tolist():
            if keys[at] not in self._seen:
                self._seen.add(keys[at])
                fresh.append(at)
        new = row[fresh]
        self.job, self.row = np.append(self.job, options.job[new]), np.append(self.row, new)
        self.leases = np.concatenate((self.leases, leases[fresh]))
        self.uid = np.append(self.uid, self._made + np.arange(len(fresh)))
        self.resting = np.append(self.resting, np.zeros(len(fresh), dtype=bool))
        meant = np.stack((options.mode[new], options.step[new], options.kind[new], options.gpus[new]), axis=1)
        self._meant = np.concatenate((self._meant, meant))
        self._value = np.append(self._value, options.value[new])
        self._made += len(fresh)

    def drop(self, columns: Bools) -> None:
        """Remove columns."""
        keep = ~columns
        self.job, self.row, self.uid, self.leases = (
            self.job[keep],
            self.row[keep],
            self.uid[keep],
            self.leases[keep],
        )
        self.resting, self._meant, self._value = self.resting[keep], self._meant[keep], self._value[keep]
        self._note()

    def by_job(self, jobs: int) -> tuple[Ints, Ints]:
        """Return columns sorted by job, and the start of each job's columns, (jobs + 1,)."""
        order = np.argsort(self.job, kind="stable")
        return order, np.searchsorted(self.job[order], np.arange(jobs + 1))

    def _note(self) -> None:
        self._seen = set(_keys(self.row, self.leases))


def _keys(row: Ints, leases: Bools) -> list[bytes]:
    """Return a key for each option with its leases: the option number's bytes and the leases' bits."""
    number = np.ascontiguousarray(row).view(np.uint8).reshape(len(row), row.itemsize)
    parts = np.concatenate((number, np.packbits(leases, axis=1)), axis=1)
    return cast("list[bytes]", parts.view(np.dtype((np.void, parts.shape[1]))).ravel().tolist())


def _ends(leases: Bools) -> Ints:
    """Return one past the last lease of each row; 0 for rows without leases."""
    horizon = leases.shape[1]
    return np.asarray(np.where(leases.any(axis=1), horizon - np.argmax(leases[:, ::-1], axis=1), 0))


def _rows_like(options: Options, job: Ints, meant: Ints) -> Ints:
    """Return each job's option with this mode, step, GPU type and GPUs; -1 if there is none."""
    if not len(options.job) or not len(job):
        return np.full(len(job), -1, dtype=np.int64)
    modes = int(max(options.mode.max(), meant[:, 0].max())) + 1
    steps = int(max(options.step.max(), meant[:, 1].max())) + 1
    key = (options.job * modes + options.mode) * steps + options.step
    order = np.argsort(key, kind="stable")
    wanted = (np.maximum(job, 0) * modes + meant[:, 0]) * steps + meant[:, 1]
    at = order[np.minimum(np.searchsorted(key[order], wanted), len(key) - 1)]
    same = (key[at] == wanted) & (job >= 0)
    same &= (options.kind[at] == meant[:, 2]) & (options.gpus[at] == meant[:, 3])
    return np.asarray(np.where(same, at, -1))
