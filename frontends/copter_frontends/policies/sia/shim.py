"""The shim from the LP's solution to whole configurations: round, fill, never worse than the previous plan
(S11-S13).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import filterfalse
from math import fsum

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
    full : bool array (n,)
        Configurations for which no node has room.
    """

    def __init__(self, formulation: SiaFormulation) -> None:
        self.formulation = formulation
        self.left: NDArray[np.int64] = np.array(
            [int(formulation.model.count(name)) for name in formulation.types], dtype=np.int64
        )
        self.spare: list[float] = [float(formulation.model.count(row.key)) for row in formulation.rows]
        self.column: dict[str, int] = {}
        self.full = np.zeros(len(formulation.gpus), dtype=bool)
        self.objective = 0.0

    def fits(self, job_id: str, column: int) -> bool:
        """Whether every resource has enough units left for the column."""
        if self.formulation.gpus[column] > self.left[self.formulation.kind[column]]:
            return False
        rows = self.formulation.rows
        return all(rows[at].usage[column] <= self.spare[at] for at in self.formulation.jobs[job_id].rows)

    def take(self, job_id: str, column: int) -> None:
        """Give a job a configuration."""
        self._change_left(job_id, column, -1)
        self.column[job_id] = column

    def take_all(self, job_ids: Sequence[str], columns: Sequence[int]) -> bool:
        """Give many jobs their configurations if all fit together; otherwise return False and change nothing."""
        form, chosen = self.formulation, np.array(columns, dtype=np.int64)
        used = np.bincount(form.kind[chosen], weights=form.gpus[chosen], minlength=len(self.left))
        if (used > self.left).any():
            return False
        if self.spare:
            spare = list(self.spare)
            for job_id, column in zip(job_ids, columns, strict=True):
                for at in form.jobs[job_id].rows:
                    spare[at] -= float(form.rows[at].usage[column])
            if min(spare) < 0:
                return False
            self.spare = spare
        self.left -= used.astype(np.int64)
        self.column.update(zip(job_ids, columns, strict=True))
        return True

    def give_back(self, job_id: str) -> int:
        """Release a job's GPUs; returns its previous column."""
        column = self.column.pop(job_id)
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
        column = np.fromiter(self.column.values(), dtype=np.int64, count=len(self.column))
        rows = jobs.rows_of(self.column)
        kept = (book["column"][rows] == column) & ~book["stale"][rows]
        values, ids = book["own_value"][rows[kept]].tolist(), list(self.column)
        others = np.flatnonzero(~kept)
        values += self.formulation.values_of([ids[at] for at in others.tolist()], column[others]).tolist()
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
    requests, owner, local, values = solution.by_column()
    book = jobs.numbers
    if (book["pinned"][jobs.rows()] == IDLE).all():  # jobs that get nothing are not looked up
        some = np.flatnonzero(values > SUPPORT)
        used, owner = np.unique(owner[some], return_inverse=True)
        local, values, requests = local[some], values[some], [requests[at] for at in used.tolist()]
    names = list(map(str, requests))
    rows = jobs.rows_of(names)
    free = book["pinned"][rows] == IDLE
    for at in np.flatnonzero(~free).tolist():
        result.take(names[at], int(book["pinned"][rows[at]]))
    whole = np.flatnonzero((values >= WHOLE) & free[owner])
    having = rows[owner[whole]]
    ids, chosen = [names[at] for at in owner[whole].tolist()], book["column"][having]
    for at in np.flatnonzero(book["own_local"][having] != local[whole]).tolist():  # columns that the jobs do not have
        chosen[at] = jobs[ids[at]].columns[local[whole[at]]]
    if result.take_all(ids, chosen.tolist()):
        free[owner[whole]] = False
    else:
        for job_id, column in zip(ids, chosen.tolist(), strict=True):
            if result.fits(job_id, column):
                result.take(job_id, column)
        free = np.array([name not in result.column for name in names], dtype=bool)
    partial: list[tuple[float, float, str, int]] = []
    support = np.flatnonzero((values > SUPPORT) & free[owner])
    for job, at, value in zip(owner[support].tolist(), local[support].tolist(), values[support].tolist(), strict=True):
        column = int(jobs[names[job]].columns[at])
        partial.append((-value, -formulation.value(names[job], column), names[job], column))
    for _, _, job_id, column in sorted(partial):
        if job_id not in result.column and result.fits(job_id, column):
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
    result = Assignment(formulation)
    had = [(job_id, state.pinned) for job_id, state in formulation.jobs.items() if state.pinned != IDLE]
    had += [
        (job_id, state.column)
        for job_id, state in formulation.jobs.items()
        if state.pinned == IDLE and state.column != IDLE
    ]
    if had and not result.take_all(*(list(each) for each in zip(*had, strict=True))):
        for job_id, column in had:
            if result.fits(job_id, column):
                result.take(job_id, column)
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
    for job_id in filterfalse(assignment.column.__contains__, formulation.jobs):
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
