"""The spot cluster: best-effort jobs in the GPUs not used by leases and profiling (section 3.3.3)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from copter_frontends.policies.chronus.job_modes import JobModes
from copter_frontends.policies.chronus.options import Bools, Floats, Ints
from copter_frontends.policy_kit import Wanted
from copter_frontends.vocabulary import Allocation, Job

FIRST_LOOK = 1024  # jobs looked at together at first; then twice as many each time
NO_ROWS: Ints = np.zeros(0, dtype=np.int64)
NEVER = np.iinfo(np.int64).max
MOSTLY_GONE = 0.5  # the arrays are made anew once this share of their rows is of jobs that have left


class SpotCluster:
    """Orders jobs by shortest remaining time, SLO jobs without a promise that may still meet a deadline first.

    Guaranteed jobs that wait for their leases come last. What a job needs is kept in arrays, which are changed only for
    jobs that come, go or progress: most jobs of a long queue do not.

    Parameters
    ----------
    modes : JobModes
    """

    def __init__(self, modes: JobModes) -> None:
        self.modes = modes
        self._jobs: list[Job | None] = []  # by row, None for one that has left
        self._row: dict[str, int] = {}
        kinds = len(modes.nodes.types)
        # by row: seconds left, seconds of a start, last deadline (minus infinity for none), submission, progress, and
        # seconds of the whole work
        self._times: Floats = np.zeros((0, 6))
        self._least: Ints = np.zeros((0, kinds), dtype=np.int64)  # GPUs needed by type; NEVER where it cannot run

    def add(self, jobs: Sequence[Job]) -> None:
        """Add jobs without progress."""
        if not jobs:
            return
        while len(self._jobs) + len(jobs) > len(self._times):
            self._grow()
        kinds, begin = self.modes.nodes.types, len(self._jobs)
        times, least = [], []
        for job in jobs:
            speeds = self.modes.speeds(job)
            whole_s = self.modes.remaining_s(job, 0.0)
            times.append((whole_s, self.modes.restart_s(job), -np.inf, job.submit_s, 0.0, whole_s))
            least.append([speeds.gpus if kind in speeds.rates else NEVER for kind in kinds])
        self._times[begin : begin + len(jobs)], self._least[begin : begin + len(jobs)] = times, least
        self._row.update((job.id, begin + at) for at, job in enumerate(jobs))
        self._jobs.extend(jobs)

    def progressed(self, job_id: str, progress: float) -> None:
        """Note a job's progress."""
        row = self._row[job_id]
        job = self._jobs[row]
        if job is not None:
            self._times[row, 0], self._times[row, 4] = self.modes.remaining_s(job, progress), progress

    def progress_of(self, progress: Mapping[str, float]) -> None:
        """Note the progress of many jobs."""
        if len(self.modes.seen):  # measured times may have changed
            for job_id, done in progress.items():
                self.progressed(job_id, done)
            return
        rows = np.array([self._row[job_id] for job_id in progress], dtype=np.int64)
        share, whole_s = np.array(list(progress.values())), self._times[rows, 5]
        runs = whole_s < np.inf
        self._times[rows, 4] = share
        self._times[rows[runs], 0] = (1.0 - share[runs]) * whole_s[runs]

    def due(self, job_id: str, until_s: float) -> None:
        """Note a job's last deadline."""
        self._times[self._row[job_id], 2] = until_s

    def remove(self, job_id: str) -> None:
        """Delete a job."""
        self._jobs[self._row.pop(job_id)] = None

    def wanted(
        self,
        taken: Iterable[str],
        promised: Iterable[str],
        left: dict[str, int],
        held: Mapping[str, Allocation],
        now_s: float,
    ) -> Wanted:
        """Return GPU type and GPUs of best-effort jobs: the fastest type with room, and the current type among equals.

        Parameters
        ----------
        taken : iterable of str
            Jobs that have GPUs already.
        promised : iterable of str
            Jobs that have future leases.
        left : dict of GPU type to int
            Remaining GPUs; assigned GPUs are subtracted.
        held : mapping of job id to Allocation
        now_s : float
        """
        chosen: Wanted = {}
        kinds, look, at = self.modes.nodes.types, FIRST_LOOK, 0
        order = self._order(taken, promised, now_s) if any(left.values()) else NO_ROWS
        while at < len(order) and any(left.values()):
            rows = order[at : at + look]
            able = (self._least[rows] <= np.array([left[kind] for kind in kinds])).any(axis=1)
            at, look = at + look, 2 * look
            for row in rows[able].tolist():
                job = self._jobs[row]
                assert job is not None
                had, speeds = held.get(job.id), self.modes.speeds(job)
                gpus, same = speeds.gpus, None if had is None else had.gpu_type
                room = [(rate, kind == same, kind) for kind, rate in speeds.rates.items() if gpus <= left[kind]]
                if room:
                    best = max(room, key=lambda each: each[:2])[2]
                    chosen[job.id] = (best, gpus)
                    left[best] -= gpus
        return chosen

    def _order(self, taken: Iterable[str], promised: Iterable[str], now_s: float) -> Ints:
        """Return the rows of the other jobs in the order of their turns."""
        count = len(self._jobs)
        if len(self.modes.seen):  # measured times may have changed since
            for job_id, row in self._row.items():
                self.progressed(job_id, float(self._times[row, 4]))
        left_s, restart_s, due_s, submit_s = self._times[:count, :4].T
        waits: Bools = np.zeros(count, dtype=bool)
        waits[list(self._row.values())] = True
        waits[[self._row[job_id] for job_id in taken]] = False
        rank = np.where(left_s + restart_s > due_s - now_s, 1, 0)
        rank[[self._row[job_id] for job_id in promised]] = 2
        rows = np.flatnonzero(waits)
        order = np.lexsort((submit_s[rows], left_s[rows], rank[rows]))
        return np.asarray(rows[order])

    def _grow(self) -> None:
        """Make room for as many jobs again, and drop the rows of jobs that have left if they are most of them."""
        if len(self._row) < MOSTLY_GONE * len(self._jobs):
            kept = sorted(self._row.values())
            self._jobs = [self._jobs[row] for row in kept]
            self._times[: len(kept)], self._least[: len(kept)] = self._times[kept], self._least[kept]
            self._row = {job.id: row for row, job in enumerate(self._jobs) if job is not None}
            return
        more = max(len(self._jobs), FIRST_LOOK)
        self._times = np.concatenate((self._times, np.zeros((more, self._times.shape[1]))))
        self._least = np.concatenate((self._least, np.zeros((more, self._least.shape[1]), dtype=np.int64)))
