"""From the LP's solution to whole configurations: round, fill, and never do worse than keeping the plan (S6-S8)."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from copter_frontends.sia.formulation import SiaFormulation
from copter_frontends.sia.job_book import IDLE
from copter_frontends.sia.relaxed_solution import RelaxedSolution

WORTH_GROWING = 1e-3  # share of the bound below which a plan is left as it is
WHOLE = 1 - 1e-6  # a column at least this large is taken as it is


class Assignment:
    """Jobs' columns, and the GPUs of each type that are left."""

    def __init__(self, formulation: SiaFormulation) -> None:
        self.formulation = formulation
        self.left: NDArray[np.int64] = np.array(
            [int(formulation.model.count(name)) for name in formulation.types], dtype=np.int64
        )
        self.spare: list[float] = [float(formulation.model.count(row.key)) for row in formulation.rows]
        self.column: dict[str, int] = {}
        self.refused: dict[str, set[int]] = {}
        self.objective = 0.0

    def fits(self, job_id: str, column: int) -> bool:
        """Whether enough of all that the column takes is left."""
        if self.formulation.gpus[column] > self.left[self.formulation.kind[column]]:
            return False
        rows = self.formulation.rows
        return all(rows[at].usage[column] <= self.spare[at] for at in self.formulation.jobs[job_id].rows)

    def take(self, job_id: str, column: int) -> None:
        """Give a job its configuration."""
        self._change_left(job_id, column, -1)
        self.column[job_id] = column

    def give_back(self, job_id: str) -> int:
        """Take a job's GPUs back; return the column it had."""
        column = self.column.pop(job_id)
        self._change_left(job_id, column, 1)
        return column

    def _change_left(self, job_id: str, column: int, sign: int) -> None:
        self.left[self.formulation.kind[column]] += sign * self.formulation.gpus[column]
        for at in self.formulation.jobs[job_id].rows:
            self.spare[at] += sign * float(self.formulation.rows[at].usage[column])

    def refuse(self, job_id: str) -> None:
        """Take a job's GPUs back and do not offer the configuration again: no node has room for it."""
        self.refused.setdefault(job_id, set()).add(self.give_back(job_id))

    def evaluate(self) -> float:
        """Write down, and return, the sum of the values of all assigned jobs."""
        value = self.formulation.value
        self.objective = sum(value(job_id, column) for job_id, column in self.column.items())
        return self.objective


def integer_assignment(formulation: SiaFormulation, solution: RelaxedSolution) -> tuple[Assignment, int]:
    """Whole configurations for every job, within capacity.

    Returns
    -------
    Assignment
        The better of the rounded LP solution and the previous plan, both filled up with the GPUs left.
    int
        Number of jobs that were fractional in the LP's solution.
    """
    rounded, fractional = round_solution(formulation, solution)
    complete(rounded, solution.bound)
    kept = keep_previous(formulation)
    if kept.evaluate() > rounded.objective or solution.bound - rounded.objective > WORTH_GROWING * abs(solution.bound):
        complete(kept, solution.bound)
    return (kept if kept.objective > rounded.objective else rounded), fractional


def round_solution(formulation: SiaFormulation, solution: RelaxedSolution) -> tuple[Assignment, int]:
    """Pinned jobs, then whole columns, then each fractional job's columns by weight where they fit (thesis 4.4.1)."""
    result = Assignment(formulation)
    for job_id, state in formulation.jobs.items():
        if state.pinned != IDLE:
            result.take(job_id, state.pinned)
    partial: list[tuple[float, float, str, int]] = []
    fractional = 0
    for request, columns, values in solution.by_request():
        job_id = str(request)
        if job_id in result.column:
            continue
        columns = formulation.jobs[job_id].columns[columns]
        at = int(np.argmax(values)) if len(values) else 0
        if len(values) and values[at] >= WHOLE and result.fits(job_id, int(columns[at])):
            result.take(job_id, int(columns[at]))
            continue
        support = values > 1e-9
        fractional += bool(support.any())
        partial += [
            (-float(x), -formulation.value(job_id, int(j)), job_id, int(j))
            for j, x in zip(columns[support], values[support], strict=True)
        ]
    for _, _, job_id, column in sorted(partial):
        if job_id not in result.column and result.fits(job_id, column):
            result.take(job_id, column)
    return result, fractional


def keep_previous(formulation: SiaFormulation) -> Assignment:
    """The plan that every job already has, as far as capacity still allows it; pinned jobs first."""
    result = Assignment(formulation)
    for pinned in (True, False):
        for job_id, state in formulation.jobs.items():
            column = state.pinned if pinned else state.column
            if (
                column != IDLE
                and job_id not in result.column
                and (state.pinned != IDLE) == pinned
                and result.fits(job_id, column)
            ):
                result.take(job_id, column)
    return result


def complete(assignment: Assignment, bound: float) -> None:
    """Fill up idle jobs, and let running ones grow where that can still matter."""
    fill(assignment)
    if bound - assignment.evaluate() > WORTH_GROWING * abs(bound):
        upgrade(assignment)
        assignment.evaluate()


def fill(assignment: Assignment) -> None:
    """Give idle jobs the best configuration that the GPUs left allow, most value per GPU first (S7)."""
    formulation = assignment.formulation
    usable = np.flatnonzero(formulation.gpus <= assignment.left[formulation.kind])
    if len(usable) == 0:
        return
    offers: list[tuple[float, str, NDArray[np.int64]]] = []
    seen: dict[tuple[int, float, float], tuple[float, NDArray[np.int64]]] = {}
    for job_id, state in formulation.jobs.items():
        if job_id in assignment.column or state.pinned != IDLE:
            continue
        # Idle jobs have no restart factor, so that those with one base, weight and bonus have one offer.
        alone = state.column != IDLE or job_id in assignment.refused
        like = (id(state.base), state.worth, state.bonus)
        known = None if alone else seen.get(like)
        if known is None:
            values = formulation.values(job_id)[usable]
            order = np.argsort(-values, kind="stable")
            order = usable[order[values[order] > 0]]
            order = order[~np.isin(order, list(assignment.refused.get(job_id, ())))]
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
    """Let running jobs grow into GPUs that no other job can use, best gain first (S8)."""
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
    configurations = assignment.formulation.configurations
    return {
        job_id: (configurations[column].gpu_type, configurations[column].gpus)
        for job_id, column in assignment.column.items()
    }
