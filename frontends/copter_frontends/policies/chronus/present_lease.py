"""The current lease: which guaranteed jobs hold it, and the progress it gives them (C3)."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from operator import is_

import numpy as np

from copter_frontends.policies.chronus.job_book import SloBook
from copter_frontends.policies.chronus.lease_grid import SAME_S, LeaseGrid
from copter_frontends.policies.chronus.options import Ints
from copter_frontends.policies.chronus.packing import Parcel
from copter_frontends.policies.chronus.slo_record import SloRecord
from copter_frontends.policy_kit import Wanted
from copter_frontends.vocabulary import Allocation, Job

UNKNOWN_S = 2 * SAME_S  # assumed remaining work, in seconds, of a job that has used all its time and has not ended


class PresentLease:
    """Guaranteed jobs that have the current lease.

    Parameters
    ----------
    grid : LeaseGrid
    book : SloBook
    types : sequence of str
        GPU types, in the numbering of the modes.

    Attributes
    ----------
    number : int
        The last lease at whose beginning all jobs were planned again; -1 before the first.
    records : dict of job id to SloRecord
    used : int64 array (types,)
        GPUs of each type that these jobs take.
    """

    def __init__(self, grid: LeaseGrid, book: SloBook, types: list[str]) -> None:
        self.grid, self.book, self.types = grid, book, types
        self.number = -1
        self.records: dict[str, SloRecord] = {}
        self.used: Ints = np.zeros(len(types), dtype=np.int64)
        self._ended = False
        self._needs: dict[str, tuple[str, int]] = {}  # GPU type and GPUs of each job, in the order of `records`
        self._parcels: dict[str, Parcel] = {}  # of the jobs that were placed in this lease and must not move in it
        self._reported: set[str] = set()  # jobs that have reported progress since the lease began

    def progress_told(self, job_ids: Iterable[str]) -> None:
        """Note that SLO jobs, among these jobs, have reported their progress."""
        self._reported.update(filter(self.book.records.__contains__, job_ids))

    def remove(self, job_id: str) -> None:
        """Delete a job."""
        record = self.records.pop(job_id, None)
        if record is not None:
            mode = record.modes[record.mode]
            self.used[mode.kind] -= mode.taken
            del self._needs[job_id]
        self._reported.discard(job_id)

    def drop_without_gpus(self, held: Mapping[str, Allocation]) -> None:
        """Remove the lease from jobs whose GPUs no longer exist."""
        for job_id in [job_id for job_id in self.records if job_id not in held]:
            self.book.lose(self.records[job_id], self.number)
            self.remove(job_id)

    def end(self, held: Mapping[str, Allocation]) -> None:
        """End the lease: jobs that held it and reported nothing are credited with its time minus a restart (C3).

        Counts only once per lease, even if the plan is interrupted and repeated.
        """
        if self._ended:
            return
        self._ended = True
        for job_id, record in self.records.items():
            if job_id in held and job_id not in self._reported:
                total_s = record.modes[record.mode].total_s
                late_s = max(record.joined_s - self.number * self.grid.lease_s, 0.0)
                restart_s = max(self.grid.restart_s, record.modes[record.mode].restart_s)
                done = max(self.grid.lease_s - late_s - restart_s, 0.0) / total_s
                done = min(record.time_done + done, 1.0 - UNKNOWN_S / total_s)
                self.book.progressed(record, record.times.after(record.mode, done))
        self._reported.clear()

    def begin(self, lease: int) -> None:
        """Begin a lease: read from the book the jobs that have it; within a lease, only if one has lost its promise."""
        if lease == self.number and not self._ended and self._all_known():
            return
        if lease > self.number:
            self._parcels.clear()
        self.number, self._ended = max(self.number, lease), False
        self.records, self._needs = {}, {}
        used = [0] * len(self.types)
        for record in self.book.holders(lease):
            mode, job_id = record.modes[record.mode], record.job.id
            self.records[job_id], self._needs[job_id] = record, (self.types[mode.kind], mode.gpus)
            used[mode.kind] += mode.taken
        self.used[:] = used

    def _all_known(self) -> bool:
        """Return whether the book still has all jobs of the lease."""
        return all(map(is_, map(self.book.records.get, self.records), self.records.values()))

    def join(self, record: SloRecord) -> None:
        """Add a job to the lease."""
        mode = record.modes[record.mode]
        self.records[record.job.id] = record
        self._needs[record.job.id] = self.types[mode.kind], mode.gpus
        self.used[mode.kind] += mode.taken

    def wanted(self, left: dict[str, int], pins: Collection[str]) -> Wanted:
        """Choose the lease's unpinned jobs that fit into the GPUs `left`, and subtract their GPUs from `left`."""
        result: Wanted = {}
        for job_id, need in self._needs.items():
            if job_id not in pins and need[1] <= left[need[0]]:
                result[job_id] = need
                left[need[0]] -= need[1]
        return result

    def parcels(self, wanted: Collection[str], before: Mapping[str, Allocation]) -> list[Parcel]:
        """Return the wanted jobs as parcels for the placer; `before` are the previous allocations.

        Jobs that have GPUs in this lease stay where they are: a further restart would cost time that their promises
        do not allow for.
        """
        parcels, known = dict[str, Parcel](), self._parcels
        for job_id in filter(wanted.__contains__, self.records):
            had, parcel = before.get(job_id), known.get(job_id)
            if parcel is None or parcel.before is not had or not parcel.stays:
                kind, gpus = self._needs[job_id]
                record = self.records[job_id]
                taken = record.modes[record.mode].taken
                parcel = Parcel(job_id, kind, gpus, taken, had, had is not None and parcel is not None)
            parcels[job_id] = parcel
        self._parcels = parcels
        return list(parcels.values())

    def gpus_for_leases(self, total: Ints, held: Mapping[str, Allocation], lasting: Iterable[str]) -> Ints:
        """Return the GPUs of each type, minus those of non-preemptible jobs without a lease."""
        result = total.copy()
        for job_id in lasting:
            if job_id in held and job_id not in self.records:
                result[self.types.index(held[job_id].gpu_type)] -= held[job_id].gpus
        return result

    def pinned_gpus(self, pins: Mapping[str, Allocation], jobs: Mapping[str, Job]) -> Ints:
        """Return the GPUs of each type that pinned preemptible jobs hold."""
        total = np.zeros(len(self.types), dtype=np.int64)
        for job_id, pin in pins.items():
            if jobs[job_id].preemptible:
                total[self.types.index(pin.gpu_type)] += pin.gpus
        return total
