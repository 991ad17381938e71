"""Reservations and non-preemptible jobs, which are fixed before the LP is solved (docs/papers/sia.md)."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from copter_frontends.policies.sia.formulation import SiaFormulation
from copter_frontends.policies.sia.job_book import IDLE
from copter_frontends.policies.sia.shim import Assignment
from copter_frontends.vocabulary import Allocation, Cluster, InvalidJobError, Job


class Reservations:
    """Jobs with a reservation, and non-preemptible jobs, which keep their GPUs once they have some.

    Parameters
    ----------
    cluster : Cluster
    formulation : SiaFormulation
        The formulation in which jobs are fixed; replaced when it is rebuilt.

    Attributes
    ----------
    jobs : dict of job id to (GPU type, GPUs) or None
        Reservations; None for a non-preemptible job without one.
    """

    def __init__(self, cluster: Cluster, formulation: SiaFormulation) -> None:
        self.cluster, self.formulation = cluster, formulation
        self.jobs: dict[str, tuple[str, int] | None] = {}

    def check(self, job: Job) -> None:
        """Raise InvalidJobError for a reservation that is not a configuration or exceeds the unreserved capacity."""
        if job.reservation is None:
            return
        kind, gpus = job.reservation
        capacity = self.cluster.capacity(kind)  # raises UnknownGpuTypeError
        taken = sum(held[1] for held in self.jobs.values() if held is not None and held[0] == kind)
        if (kind, gpus) not in self.formulation.column_of:
            raise InvalidJobError(f"job {job.id!r}: its reservation, {gpus} GPUs of {kind!r}, is no configuration")
        quota = self.formulation.quota(job.tenant)
        if quota is not None:
            mine = [each for each in self.jobs if self.formulation.jobs[each].job.tenant == job.tenant]
            theirs = sum(held[1] for each in mine if (held := self.jobs[each]) is not None)
            if theirs + gpus > quota:
                raise InvalidJobError(
                    f"job {job.id!r}: its reservation of {gpus} GPUs does not fit: {theirs} of tenant {job.tenant!r}'s "
                    f"{quota} are reserved already"
                )
        if taken + gpus > capacity:
            raise InvalidJobError(
                f"job {job.id!r}: its reservation of {gpus} GPUs of {kind!r} does not fit: {taken} of {capacity} are "
                "reserved already"
            )

    def add(self, job: Job) -> None:
        """Register an added job; most jobs need nothing here."""
        if job.reservation is not None or not job.preemptible:
            self.jobs[job.id] = job.reservation

    def remove(self, job_id: str) -> None:
        """Delete a job."""
        self.jobs.pop(job_id, None)

    def unpin(self, job_id: str) -> None:
        """End a pin; a job fixed for another reason stays fixed."""
        if job_id not in self.jobs or self.formulation.state(job_id).column == IDLE:
            self.formulation.pin(job_id, IDLE)

    def let_go(self, pins: Collection[str]) -> None:
        """Free all fixed jobs except those in `pins`, before GPUs are removed; :meth:`fix` fixes them again."""
        for job_id in self.jobs.keys() - pins:
            self.formulation.pin(job_id, IDLE)

    def fix(self) -> None:
        """Fix jobs to their reservations, and non-preemptible jobs to their current GPUs.

        A non-preemptible job without GPUs gets its requested GPUs at once, of its best type. Pins of jobs in
        checkpoint-restore take precedence; a reservation waits for them.
        """
        if not self.jobs:
            return
        fixed = Assignment(self.formulation)
        for job_id, state in self.formulation.jobs.items():
            if state.pinned != IDLE:
                fixed.take(job_id, state.pinned)
        waiting = [job_id for job_id in self.jobs if self.formulation.jobs[job_id].pinned == IDLE]
        for job_id in sorted(waiting, key=self._turn):
            column = self._wanted(job_id, fixed)
            if column != IDLE and fixed.fits(job_id, column):
                fixed.take(job_id, column)
                self.formulation.pin(job_id, column)

    def _turn(self, job_id: str) -> int:
        """Return the rank of a fixed job: 0 for GPUs it must not lose, then reservations, then requests."""
        if self.jobs[job_id] is not None:
            return 1
        return 0 if self.formulation.jobs[job_id].column != IDLE else 2

    def _wanted(self, job_id: str, fixed: Assignment) -> int:
        """Return the column to fix a job to: its reservation, its current one, or the best of its request."""
        reserved, state = self.jobs[job_id], self.formulation.jobs[job_id]
        if reserved is not None:
            return self.formulation.column_of.get(reserved, IDLE)
        if state.column != IDLE:
            return state.column
        values = self.formulation.values(job_id)
        there = [int(at) for at in state.columns if values[at] > 0 and fixed.fits(job_id, int(at))]
        return max(there, key=lambda at: float(values[at]), default=IDLE)

    def in_place(self, assignment: Assignment, held: Mapping[str, Allocation], pins: Collection[str]) -> set[str]:
        """Return the jobs that keep exactly their current nodes."""
        keep = set(pins)
        for job_id in self.jobs:
            had, column = held.get(job_id), int(assignment.by_row[self.formulation.jobs[job_id].row])
            if had is not None and column != IDLE:
                place = self.formulation.configurations[column]
                keep |= {job_id} if (place.gpu_type, place.gpus) == (had.gpu_type, had.gpus) else set()
        return keep
