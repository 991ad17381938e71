"""The spot cluster: best-effort jobs in the GPUs not used by leases and profiling (section 3.3.3)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

import numpy as np

from copter_frontends.policies.chronus.alike_jobs import AlikeJobs
from copter_frontends.policies.chronus.job_modes import Alike, JobModes
from copter_frontends.policies.chronus.options import Bools, Floats, Ints
from copter_frontends.policy_kit import Wanted
from copter_frontends.vocabulary import Allocation, Job
from copter_frontends.vocabulary.compilation import compiled

FIRST_ROWS = 1024  # rows of the first arrays
FIRST_TURNS, MORE_TURNS = 4096, 4  # jobs that are sorted at first, and how many times as many then, while GPUs are left
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
        # by field and row: seconds left, seconds of a start, last deadline (minus infinity for none), submission,
        # progress, and seconds of the whole work
        self._times: Floats = np.zeros((6, 0))
        self._group: Ints = np.zeros(0, dtype=np.int64)  # number of what the job shares with jobs like it
        self._groups: list[Alike] = []
        self._number: dict[int, int] = {}  # of each group, by its identity
        self._least: Ints = np.zeros((0, kinds), dtype=np.int64)  # by group: GPUs by type; NEVER where it cannot run
        self._rate: Floats = np.zeros((0, kinds))  # by group: rates on them
        self._there: Bools = np.zeros(0, dtype=np.bool_)  # rows of jobs that have not left

    def add(self, known: AlikeJobs) -> None:
        """Add jobs without progress."""
        jobs = known.jobs
        if not jobs:
            return
        while len(self._jobs) + len(jobs) > self._times.shape[1]:
            self._grow()
        begin, groups = len(self._jobs), known.groups
        own = slice(begin, begin + len(jobs))
        if len(self.modes.seen):
            whole_s = np.array([self.modes.remaining_s(job, 0.0) for job in jobs])
        else:
            whole_s = known.whole_s()
        restart_s = np.array([each.restart_s for each in groups])[known.group]
        submit_s = np.array([job.submit_s for job in jobs])
        never, none = np.full(len(jobs), -np.inf), np.zeros(len(jobs))
        self._times[:, own] = whole_s, restart_s, never, submit_s, none, whole_s
        self._group[own], self._there[own] = self._numbers(groups)[known.group], True
        self._row.update((job.id, begin + at) for at, job in enumerate(jobs))
        self._jobs.extend(jobs)

    def _numbers(self, groups: Sequence[Alike]) -> Ints:
        """Return the numbers of groups, with rows in the tables."""
        kinds = self.modes.nodes.types
        if any(self._of(each) is None for each in groups):
            known = {id(each) for each in self._groups}
            fresh = [each for each in groups if id(each) not in known]
            self._number = {id(each): at for at, each in enumerate((*self._groups, *fresh))}
            self._groups += fresh
            least = [[each.gpus if kind in each.rates else NEVER for kind in kinds] for each in fresh]
            rate = [[each.rates.get(kind, 0.0) for kind in kinds] for each in fresh]
            self._least = np.concatenate((self._least, np.array(least, dtype=np.int64).reshape(-1, len(kinds))))
            self._rate = np.concatenate((self._rate, np.array(rate, dtype=np.float64).reshape(-1, len(kinds))))
        return np.array([self._number[id(each)] for each in groups], dtype=np.int64)

    def _of(self, group: Alike) -> int | None:
        """Return a group's number; identities are others in a run that was loaded."""
        at = self._number.get(id(group))
        return at if at is not None and self._groups[at] is group else None

    def progressed(self, job_id: str, progress: float) -> None:
        """Note a job's progress."""
        row = self._row[job_id]
        job = self._jobs[row]
        if job is not None:
            self._times[0, row], self._times[4, row] = self.modes.remaining_s(job, progress), progress

    def progress_of(self, progress: Mapping[str, float]) -> None:
        """Note the progress of many jobs."""
        if len(self.modes.seen):  # measured times may have changed
            for job_id, done in progress.items():
                self.progressed(job_id, done)
            return
        rows = self._rows(progress)
        share, whole_s = np.array(list(progress.values())), self._times[5, rows]
        runs = whole_s < np.inf
        self._times[4, rows] = share
        self._times[0, rows[runs]] = (1.0 - share[runs]) * whole_s[runs]

    def due(self, until_s: Mapping[str, float]) -> None:
        """Note jobs' last deadlines, in seconds."""
        self._times[2, self._rows(until_s)] = list(until_s.values())

    def remove(self, job_id: str) -> None:
        """Delete a job."""
        row = self._row.pop(job_id)
        self._jobs[row], self._there[row] = None, False

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
        if not any(left.values()):
            return chosen
        kinds = self.modes.nodes.types
        number = {kind: at for at, kind in enumerate(kinds)}
        had = np.full(len(self._jobs), -1, dtype=np.int64)
        had[self._rows(held)] = [number[allocation.gpu_type] for allocation in held.values()]
        room = np.array([left[kind] for kind in kinds], dtype=np.int64)
        for order in self._turns(taken, promised, now_s):
            given = fastest_with_room(order, self._group, self._least, self._rate, had, room)
            at = np.flatnonzero(given >= 0)
            for row, kind in zip(order[at].tolist(), given[at].tolist(), strict=True):
                job = self._jobs[row]
                assert job is not None
                chosen[job.id] = (kinds[kind], int(self._least[self._group[row], kind]))
            if not room.any():
                break
        left.update(zip(kinds, room.tolist(), strict=True))
        return chosen

    def _turns(self, taken: Iterable[str], promised: Iterable[str], now_s: float) -> Iterator[Ints]:
        """Yield the rows of the other jobs in the order of their turns, in parts: the first ones take most GPUs."""
        count = len(self._jobs)
        if len(self.modes.seen):  # measured times may have changed since
            for job_id, row in self._row.items():
                self.progressed(job_id, float(self._times[4, row]))
        left_s, restart_s, due_s, submit_s = self._times[:4, :count]
        waits = self._there[:count].copy()
        waits[self._rows(taken)] = False
        late = np.zeros(count, dtype=np.bool_)
        late[self._rows(promised)] = True
        soon = left_s + restart_s <= due_s - now_s
        for rank in (soon & ~late, ~soon & ~late, late):
            rows, most = np.flatnonzero(waits & rank), FIRST_TURNS
            while len(rows):
                mine = left_s[rows]
                now = mine <= np.partition(mine, most)[most] if len(rows) > most else np.ones(len(rows), dtype=np.bool_)
                part, rows, most = rows[now], rows[~now], MORE_TURNS * most
                yield part[np.lexsort((submit_s[part], left_s[part]))]

    def _rows(self, job_ids: Iterable[str]) -> Ints:
        """Return the rows of these jobs."""
        return np.fromiter(map(self._row.__getitem__, job_ids), dtype=np.int64)

    def _grow(self) -> None:
        """Make room for as many jobs again, and drop the rows of jobs that have left if they are most of them."""
        if len(self._row) < MOSTLY_GONE * len(self._jobs):
            kept = np.flatnonzero(self._there)
            self._jobs = [self._jobs[row] for row in kept.tolist()]
            self._times[:, : len(kept)] = self._times[:, kept]
            for array in (self._group, self._there):
                array[: len(kept)] = array[kept]
            self._there[len(kept) :] = False
            self._row = {job.id: row for row, job in enumerate(self._jobs) if job is not None}
            self._drop_groups()
            return
        more = max(len(self._jobs), FIRST_ROWS)
        self._times, self._group, self._there = (
            np.concatenate((each, np.zeros((*each.shape[:-1], more), dtype=each.dtype)), axis=-1)
            for each in (self._times, self._group, self._there)
        )

    def _drop_groups(self) -> None:
        """Drop the groups that no job is of."""
        count = len(self._jobs)
        used, self._group[:count] = np.unique(self._group[:count], return_inverse=True)
        self._groups = [self._groups[at] for at in used.tolist()]
        self._number = {id(each): at for at, each in enumerate(self._groups)}
        self._least, self._rate = self._least[used], self._rate[used]


@compiled
def fastest_with_room(order: Ints, group: Ints, least: Ints, rate: Floats, had: Ints, room: Ints) -> Ints:
    """Return the GPU type of each row of `order` in turn, the fastest with room, among equals the one that it has; -1
    without room.

    Parameters
    ----------
    order : int64 array (waiting,)
    group : int64 array (rows,)
    least : int64 array (groups, types)
        GPUs that a job of the group needs.
    rate : float64 array (groups, types)
    had : int64 array (rows,)
        GPU type of the job at present, -1 for none.
    room : int64 array (types,)
        Free GPUs; what is given is subtracted.
    """
    given, left = np.full(len(order), -1, dtype=np.int64), room.sum()
    for at in range(len(order)):
        if left == 0:
            break
        row, own, best = order[at], group[order[at]], -1
        for kind in range(len(room)):
            if least[own, kind] > room[kind]:
                continue
            same = best >= 0 and rate[own, kind] == rate[own, best] and kind == had[row]
            if best < 0 or rate[own, kind] > rate[own, best] or same:
                best = kind
        if best >= 0:
            given[at] = best
            room[best] -= least[own, best]
            left -= least[own, best]
    return given
