"""The shim from the LP's solution to whole configurations: round, fill, never worse than the previous plan
(S11-S13).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import compress
from math import fsum
from typing import cast

import numpy as np
from numpy.typing import NDArray

from copter_frontends.policies.sia.formulation import SiaFormulation
from copter_frontends.policies.sia.job_book import IDLE
from copter_frontends.policies.sia.relaxed_solution import RelaxedSolution

WORTH_GROWING = 1e-3  # running jobs may grow if the plan is at least this far from the bound, relatively (S13)
WHOLE = 1 - 1e-6  # a column of at least this value counts as whole
SUPPORT = 1e-9  # smaller columns count as zero


class Assignment:
    """The jobs' columns, and the remaining GPUs of each type.

    Attributes
    ----------
    by_row : int64 array (rows,)
        Column of each row of the job book; IDLE for jobs without GPUs, and rows without a job.
    full : bool array (n,)
        Configurations for which no node has room.
    """

    def __init__(self, formulation: SiaFormulation) -> None:
        self.formulation = formulation
        self.left: NDArray[np.int64] = np.array(
            [int(formulation.model.count(name)) for name in formulation.types], dtype=np.int64
        )
        self.spare: list[float] = [float(formulation.model.count(row.key)) for row in formulation.rows]
        self.by_row: NDArray[np.int64] = np.full(len(formulation.jobs.numbers), IDLE, dtype=np.int64)
        self.full = np.zeros(len(formulation.gpus), dtype=bool)
        self.objective = 0.0

    @property
    def column(self) -> dict[str, int]:
        """Columns by job id, of the jobs with GPUs."""
        jobs = self.formulation.jobs
        columns = self.by_row[jobs.rows()]
        having = columns != IDLE
        return dict(zip(compress(jobs, having.tolist()), columns[having].tolist(), strict=True))

    def has(self, job_id: str) -> bool:
        """Whether a job has GPUs."""
        return bool(self.by_row[self.formulation.jobs[job_id].row] != IDLE)

    def changed(self) -> dict[str, int]:
        """Return the columns, by job id, of jobs whose column is not their present one."""
        jobs = self.formulation.jobs
        rows = jobs.rows()
        columns = self.by_row[rows]
        other = columns != jobs.numbers["column"][rows]
        return dict(zip(compress(jobs, other.tolist()), columns[other].tolist(), strict=True))

    def fits(self, job_id: str, column: int) -> bool:
        """Whether every resource has enough units left for the column."""
        if self.formulation.gpus[column] > self.left[self.formulation.kind[column]]:
            return False
        rows = self.formulation.rows
        return all(rows[at].usage[column] <= self.spare[at] for at in self.formulation.jobs[job_id].rows)

    def take(self, job_id: str, column: int) -> None:
        """Give a job a configuration."""
        self._change_left(job_id, column, -1)
        self.by_row[self.formulation.jobs[job_id].row] = column

    def take_all(self, rows: NDArray[np.int64], chosen: NDArray[np.int64]) -> bool:
        """Give the jobs of many rows their configurations if all fit together; otherwise return False and change
        nothing.
        """
        form = self.formulation
        used = np.bincount(form.kind[chosen], weights=form.gpus[chosen], minlength=len(self.left))
        if (used > self.left).any():
            return False
        if self.spare:
            spare = list(self.spare)
            for state, column in zip(form.jobs.states_at(rows), chosen.tolist(), strict=True):
                for at in state.rows:
                    spare[at] -= float(form.rows[at].usage[column])
            if min(spare) < 0:
                return False
            self.spare = spare
        self.left -= used.astype(np.int64)
        self.by_row[rows] = chosen
        return True

    def give_back(self, job_id: str) -> int:
        """Release a job's GPUs; returns its previous column."""
        row = self.formulation.jobs[job_id].row
        column, self.by_row[row] = int(self.by_row[row]), IDLE
        self._change_left(job_id, column, 1)
        return column

    def _change_left(self, job_id: str, column: int, sign: int) -> None:
        self.left[self.formulation.kind[column]] += sign * self.formulation.gpus[column]
        for at in self.formulation.jobs[job_id].rows:
            self.spare[at] += sign * float(self.formulation.rows[at].usage[column])

    def refuse(self, job_id: str) -> None:
        """Release a job's GPUs, because no node has room for them.

        The configuration is not offered again, to no job, nor is a larger one of the type: another job would find no
        more room (S12).
        """
        form, column = self.formulation, self.give_back(job_id)
        self.full |= (form.kind == form.kind[column]) & (form.gpus >= form.gpus[column])

    def evaluate(self) -> float:
        """Write down, and return, the sum of the values of all assigned jobs."""
        jobs, book = self.formulation.jobs, self.formulation.jobs.numbers
        every = jobs.rows()
        columns = self.by_row[every]
        kept = (columns != IDLE) & (book["column"][every] == columns) & ~book["stale"][every]
        values = book["own_value"][every[kept]].tolist()
        others = (columns != IDLE) & ~kept
        values += self.formulation.values_of(list(compress(jobs, others.tolist())), columns[others]).tolist()
        self.objective = fsum(values)  # exact, so that equal plans have equal values in any order
        return self.objective


def integer_assignment(formulation: SiaFormulation, solution: RelaxedSolution) -> tuple[Assignment, int]:
    """Assign whole configurations to the jobs, within capacity.

    Returns
    -------
    Assignment
        The better of the rounded LP solution and the previous plan, both filled up with the remaining GPUs.
    int
        Number of jobs that were fractional in the LP's solution.
    """
    rounded, fractional = round_solution(formulation, solution)
    complete(rounded, solution.bound)
    near, kept_value = (
        solution.bound - rounded.objective <= WORTH_GROWING * abs(solution.bound),
        value_kept(formulation),
    )
    if near and kept_value is not None and kept_value <= rounded.objective:
        return rounded, fractional
    kept = keep_previous(formulation)
    if kept.evaluate() > rounded.objective or solution.bound - rounded.objective > WORTH_GROWING * abs(solution.bound):
        complete(kept, solution.bound)
    return (kept if kept.objective > rounded.objective else rounded), fractional


def round_solution(formulation: SiaFormulation, solution: RelaxedSolution) -> tuple[Assignment, int]:
    """Assign pinned jobs, whole columns, then for each fractional job its heaviest column that fits (thesis 4.4.1)."""
    result, jobs = Assignment(formulation), formulation.jobs
    names, owner, local, values = solution.by_column()
    requests = cast("list[str]", names)
    book, every = jobs.numbers, jobs.rows()
    some = values > SUPPORT
    owner, local, values = owner[some], local[some], values[some]
    used = np.zeros(len(requests), dtype=bool)
    used[owner] = True  # jobs that get nothing are not looked up
    rows = np.full(len(requests), IDLE, dtype=np.int64)
    rows[used] = jobs.rows_of(list(compress(requests, used.tolist())))
    pinned = book["pinned"][every] != IDLE
    for job_id, column in zip(compress(jobs, pinned.tolist()), book["pinned"][every[pinned]].tolist(), strict=True):
        result.take(job_id, column)
    free = used & (book["pinned"][rows] == IDLE)
    whole = np.flatnonzero((values >= WHOLE) & free[owner])
    having = rows[owner[whole]]
    chosen = book["column"][having]
    for at in np.flatnonzero(book["own_local"][having] != local[whole]).tolist():  # columns that the jobs do not have
        chosen[at] = jobs[requests[owner[whole[at]]]].columns[local[whole[at]]]
    if not result.take_all(having, chosen):
        for at, column in zip(owner[whole].tolist(), chosen.tolist(), strict=True):
            job_id = requests[at]
            if result.fits(job_id, column):
                result.take(job_id, column)
    free &= result.by_row[rows] == IDLE
    partial: list[tuple[float, float, str, int]] = []
    support = np.flatnonzero(free[owner])
    for job, at, value in zip(owner[support].tolist(), local[support].tolist(), values[support].tolist(), strict=True):
        job_id = requests[job]
        column = int(jobs[job_id].columns[at])
        partial.append((-value, -formulation.value(job_id, column), job_id, column))
    for _, _, job_id, column in sorted(partial):
        if not result.has(job_id) and result.fits(job_id, column):
            result.take(job_id, column)
    return result, len(np.unique(owner[support]))


def value_kept(formulation: SiaFormulation) -> float | None:
    """Return the value of :meth:`keep_previous`'s assignment; None if some job cannot keep its configuration."""
    if formulation.rows:
        return None
    book, rows = formulation.jobs.numbers, formulation.jobs.rows()
    column, pinned = book["column"][rows], book["pinned"][rows]
    at = np.flatnonzero(column != IDLE)
    if ((pinned != IDLE) & (pinned != column)).any() or book["stale"][rows[at]].any():
        return None
    chosen = column[at]
    used = np.bincount(formulation.kind[chosen], weights=formulation.gpus[chosen], minlength=len(formulation.types))
    if any(gpus > formulation.model.count(name) for name, gpus in zip(formulation.types, used.tolist(), strict=True)):
        return None
    return fsum(book["own_value"][rows[at]].tolist())


def keep_previous(formulation: SiaFormulation) -> Assignment:
    """Return the current plan as far as capacity allows, pinned jobs first."""
    result, jobs = Assignment(formulation), formulation.jobs
    book, rows = jobs.numbers, jobs.rows()
    pinned = book["pinned"][rows]
    columns = np.where(pinned != IDLE, pinned, book["column"][rows])
    having = np.flatnonzero(columns != IDLE)
    if not result.take_all(rows[having], columns[having]):
        ids = list(jobs)
        for at in having[np.argsort(pinned[having] == IDLE, kind="stable")].tolist():
            if result.fits(ids[at], int(columns[at])):
                result.take(ids[at], int(columns[at]))
    return result


def complete(assignment: Assignment, bound: float) -> None:
    """Give GPUs to idle jobs, and let running ones grow if that can still improve the plan."""
    fill(assignment)
    if bound - assignment.evaluate() > WORTH_GROWING * abs(bound):
        upgrade(assignment)
        assignment.evaluate()


def fill(assignment: Assignment) -> None:
    """Give idle jobs the best configuration that the remaining GPUs allow, most value per GPU first (S12)."""
    formulation = assignment.formulation
    usable = np.flatnonzero((formulation.gpus <= assignment.left[formulation.kind]) & ~assignment.full)
    if len(usable) == 0:
        return
    offers: list[tuple[float, str, NDArray[np.int64]]] = []
    seen: dict[tuple[int, float, float], tuple[float, NDArray[np.int64]]] = {}
    idle = assignment.by_row[formulation.jobs.rows()] == IDLE
    for job_id in compress(formulation.jobs, idle.tolist()):
        state = formulation.jobs[job_id]
        if state.pinned != IDLE:
            continue
        # Idle jobs have no restart factor, so jobs with equal base, weight and bonus have the same offer.
        alone = state.column != IDLE
        numbers = formulation.jobs.numbers[state.row]
        like = (id(state.base), float(numbers["worth"]), float(numbers["bonus"]))
        known = None if alone else seen.get(like)
        if known is None:
            values = formulation.values(job_id)[usable]
            order = np.argsort(-values, kind="stable")
            order = usable[order[values[order] > 0]]
            best = float((values / formulation.gpus[usable]).max())
            known = (best, order)
            if not alone:
                seen[like] = known
        offers.append((-known[0], job_id, known[1]))
    for _, job_id, order in sorted(offers, key=lambda offer: offer[:2]):
        if not assignment.left.any():
            return
        for column in order:
            if assignment.fits(job_id, int(column)):
                assignment.take(job_id, int(column))
                break


def upgrade(assignment: Assignment) -> None:
    """Let running jobs grow into GPUs that no other job can use, best gain first (S13)."""
    formulation = assignment.formulation
    if not assignment.left.any():
        return
    offers: list[tuple[float, str, int]] = []
    for job_id, column in assignment.column.items():
        state = formulation.jobs[job_id]
        if state.pinned != IDLE:
            continue
        room = assignment.left.copy()
        room[formulation.kind[column]] += formulation.gpus[column]
        usable = np.flatnonzero(formulation.gpus <= room[formulation.kind])
        values = formulation.values(job_id)
        best = int(usable[np.argmax(values[usable])])
        gain = float(values[best]) - formulation.value(job_id, column)
        if gain > 0 and best != column:
            offers.append((-gain, job_id, best))
    for _, job_id, best in sorted(offers):
        before = assignment.give_back(job_id)
        assignment.take(job_id, best if assignment.fits(job_id, best) else before)


def as_plan(assignment: Assignment) -> Mapping[str, tuple[str, int]]:
    """{job: (GPU type, GPUs)} of an assignment."""
    sizes = assignment.formulation.sizes
    return {job_id: sizes[column] for job_id, column in assignment.column.items()}


def as_changes(assignment: Assignment, others: Iterable[str]) -> dict[str, tuple[str, int] | None]:
    """{job: (GPU type, GPUs), or None} of the jobs whose configuration is not the present one, and of `others`."""
    sizes, jobs = assignment.formulation.sizes, assignment.formulation.jobs
    columns = assignment.changed()
    for job_id in others:
        columns[job_id] = int(assignment.by_row[jobs[job_id].row]) if job_id in jobs else IDLE
    return {job_id: sizes[column] if column != IDLE else None for job_id, column in columns.items()}
