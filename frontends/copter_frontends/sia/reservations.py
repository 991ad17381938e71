"""Reservations, and jobs that may not be preempted (docs/sia.md): what is fixed before the LP is solved."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from copter_frontends.sia.formulation import SiaFormulation
from copter_frontends.sia.job_book import IDLE
from copter_frontends.vocabulary import Allocation, Cluster, InvalidJobError, Job


class Reservations:
    """Jobs with a reservation, and jobs that keep what they have once they have something.

    Parameters
    ----------
    cluster : Cluster
    formulation : SiaFormulation
        Whose columns the jobs are fixed on; replaced when it is rebuilt.

    Attributes
    ----------
    jobs : dict of job id to (GPU type, GPUs) or None
        What is reserved; None for a job that may not be preempted.
    """

    def __init__(self, cluster: Cluster, formulation: SiaFormulation) -> None:
        self.cluster, self.formulation = cluster, formulation
        self.jobs: dict[str, tuple[str, int] | None] = {}

    def check(self, job: Job) -> None:
        """InvalidJobError for a reservation of what is no configuration, or of more than other reservations leave."""
        if job.reservation is None:
            return
        kind, gpus = job.reservation
        capacity = self.cluster.capacity(kind)  # UnknownGpuTypeError
        taken = sum(held[1] for held in self.jobs.values() if held is not None and held[0] == kind)
        if (kind, gpus) not in self.formulation.column_of:
            raise InvalidJobError(f"job {job.id!r}: its reservation, {gpus} GPUs of {kind!r}, is no configuration")
        if taken + gpus > capacity:
            raise InvalidJobError(
                f"job {job.id!r}: its reservation of {gpus} GPUs of {kind!r} does not fit: {taken} of {capacity} are "
                "reserved already"
            )

    def add(self, job: Job) -> None:
        """Take in a job that has been checked and added; most jobs need nothing here."""
        if job.reservation is not None or not job.preemptible:
            self.jobs[job.id] = job.reservation

    def remove(self, job_id: str) -> None:
        """Forget a job."""
        self.jobs.pop(job_id, None)

    def unpin(self, job_id: str) -> None:
        """End a pin that the policy was given; a job that is fixed for another reason stays where it is."""
        if job_id not in self.jobs or self.formulation.state(job_id).column == IDLE:
            self.formulation.pin(job_id, IDLE)

    def let_go(self, pins: Collection[str]) -> None:
        """Free all fixed jobs but those in `pins`, before GPUs are removed; :meth:`fix` fixes them again."""
        for job_id in self.jobs.keys() - pins:
            self.formulation.pin(job_id, IDLE)

    def fix(self) -> None:
        """Fix jobs to what is reserved for them, and jobs that may not be preempted to what they have.

        What jobs in checkpoint-restore are pinned to comes first; a reservation waits for them.
        """
        left = {kind: self.cluster.capacity(kind) for kind in self.cluster.types}
        for state in self.formulation.jobs.values():
            if state.pinned != IDLE:
                chosen = self.formulation.configurations[state.pinned]
                left[chosen.gpu_type] -= chosen.gpus
        for job_id, wanted in self.jobs.items():
            state = self.formulation.jobs[job_id]
            column = self.formulation.column_of.get(wanted, IDLE) if wanted is not None else state.column
            if state.pinned != IDLE or column == IDLE:
                continue
            place = self.formulation.configurations[column]
            if left[place.gpu_type] >= place.gpus:
                left[place.gpu_type] -= place.gpus
                self.formulation.pin(job_id, column)

    def in_place(self, column_of: Mapping[str, int], held: Mapping[str, Allocation], pins: Collection[str]) -> set[str]:
        """Jobs that keep the very nodes that they have."""
        keep = set(pins)
        for job_id in self.jobs:
            had, column = held.get(job_id), column_of.get(job_id)
            if had is not None and column is not None:
                place = self.formulation.configurations[column]
                keep |= {job_id} if (place.gpu_type, place.gpus) == (had.gpu_type, had.gpus) else set()
        return keep
