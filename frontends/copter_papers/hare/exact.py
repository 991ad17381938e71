"""Hare_Sched, the paper's (4) to (8), as a MILP for small instances (docs/papers/hare.md, HR21)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp

from copter import LinearProgram
from copter_frontends.policies.hare.instance import Floats, HareInstance, Ints
from copter_frontends.policies.hare.schedule import gpu_type_of
from copter_frontends.vocabulary import InvalidJobError

MOST_TASKS = 64  # largest number of tasks of the exact program (HR21)


@dataclass(frozen=True, slots=True, eq=False)
class TaskTable:
    """All tasks of an instance; the rounds of a job are in order.

    Attributes
    ----------
    job, round : ndarray (T,) of int
    train, sync : ndarray (T, M)
        T^c and T^s of each task on every GPU; infinite and zero if it cannot run there.
    """

    job: Ints
    round: Ints
    train: Floats
    sync: Floats

    @classmethod
    def of(cls, instance: HareInstance) -> TaskTable:
        """Return an instance's tasks; raises InvalidJobError for more than :data:`MOST_TASKS`."""
        total = int(instance.work.sum())
        if total > MOST_TASKS:
            raise InvalidJobError(f"there are {total} tasks: the exact program is for at most {MOST_TASKS}")
        job = np.repeat(np.arange(instance.n_jobs), instance.work)
        within = np.concatenate([np.arange(work) for work in instance.work.tolist()] or [np.zeros(0, dtype=np.int64)])
        kind = gpu_type_of(instance)
        return cls(job, within // instance.tasks[job], instance.train_s[job][:, kind], instance.sync_s[job][:, kind])


class _Rows:
    """Collects the rows of a program."""

    def __init__(self, columns: int) -> None:
        self.columns = columns
        self.at: list[int] = []
        self.column: list[int] = []
        self.value: list[float] = []
        self.lower: list[float] = []
        self.upper: list[float] = []

    def add(self, entries: list[tuple[int, float]], lower: float, upper: float = np.inf) -> None:
        for column, value in entries:
            self.at.append(len(self.lower))
            self.column.append(column)
            self.value.append(value)
        self.lower.append(lower)
        self.upper.append(upper)

    def program(self, cost: Floats, low: Floats, high: Floats, whole: Ints) -> LinearProgram:
        matrix = sp.csc_array((self.value, (self.at, self.column)), shape=(len(self.lower), self.columns))
        return LinearProgram(cost, matrix, self.lower, self.upper, low, high, whole)


def hare_sched(instance: HareInstance, sequencing: bool = True) -> LinearProgram:
    """Return the program with columns for starts x (T,), assignments y (T, M), completions C (N,) and orders of pairs.

    Rows (8), which forbid tasks on one GPU to overlap, use a big constant and a binary order for each pair of tasks
    that may share a GPU; tasks of different rounds of a job are ordered by (7). Without `sequencing`, rows (8) are left
    out, as in the paper's relaxation.
    """
    tasks = TaskTable.of(instance)
    count, gpus = tasks.train.shape
    usable = np.isfinite(tasks.train)
    longest = np.where(usable, tasks.train + tasks.sync, 0.0).max(axis=1)
    big = float(instance.arrival_s.max(initial=0.0)) + float(longest.sum())
    pairs = [(i, j) for i in range(count) for j in range(i) if tasks.job[i] != tasks.job[j] or _same(tasks, i, j)]
    pairs = pairs if sequencing else []
    first_c = count + count * gpus
    rows = _Rows(first_c + instance.n_jobs + len(pairs))

    def y(i: int, m: int) -> int:
        return int(count + i * gpus + m)

    for i in range(count):
        rows.add([(y(i, m), 1.0) for m in range(gpus) if usable[i, m]], 1.0, 1.0)
        spent = [(y(i, m), -float(tasks.train[i, m] + tasks.sync[i, m])) for m in range(gpus) if usable[i, m]]
        rows.add([(first_c + int(tasks.job[i]), 1.0), (i, -1.0), *spent], 0.0)
        for j in np.flatnonzero((tasks.job == tasks.job[i]) & (tasks.round == tasks.round[i] + 1)).tolist():
            rows.add([(j, 1.0), (i, -1.0), *spent], 0.0)
    for at, (i, j) in enumerate(pairs):
        order = first_c + instance.n_jobs + at  # 1 if task i runs before task j
        for m in np.flatnonzero(usable[i] & usable[j]).tolist():
            both = [(y(i, m), -big), (y(j, m), -big)]
            rows.add([(j, 1.0), (i, -1.0), (order, -big), *both], float(tasks.train[i, m]) - 3.0 * big)
            rows.add([(i, 1.0), (j, -1.0), (order, big), *both], float(tasks.train[j, m]) - 2.0 * big)
    low, high = np.zeros(rows.columns), np.full(rows.columns, 2.0 * big)
    low[:count] = instance.arrival_s[tasks.job]
    high[count:first_c] = usable.ravel()
    high[first_c + instance.n_jobs :] = 1.0
    whole = np.zeros(rows.columns, dtype=np.int64)
    whole[count:first_c] = whole[first_c + instance.n_jobs :] = 1
    cost = np.zeros(rows.columns)
    cost[first_c : first_c + instance.n_jobs] = instance.weight
    return rows.program(cost, low, high, whole)


def _same(tasks: TaskTable, i: int, j: int) -> bool:
    return bool(tasks.job[i] == tasks.job[j] and tasks.round[i] == tasks.round[j])
