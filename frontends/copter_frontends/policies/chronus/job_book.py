"""The SLO jobs under consideration: rewards, promises and leases (docs/papers/chronus.md, C2 to C4)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from copter_frontends.policies.chronus.draft import Draft
from copter_frontends.policies.chronus.lease_grid import SAME_S, LeaseGrid
from copter_frontends.policies.chronus.lease_room import LeaseRoom
from copter_frontends.policies.chronus.option_kernel import PlanTime, options_in_time
from copter_frontends.policies.chronus.options import Bools, Floats, Ints, Options, jobs_and_leases
from copter_frontends.policies.chronus.promised_gpus import PromisedGpus
from copter_frontends.policies.chronus.record_table import (
    MODE,
    OPTION,
    OPTIONS,
    PROMISED,
    REACH,
    SHARE,
    STEP,
    RecordTable,
)
from copter_frontends.policies.chronus.slo_record import NO_LEASES, SloRecord, Standing
from copter_frontends.policy_kit.deadlines import StepReward
from copter_frontends.vocabulary import InvalidJobError, Job

NEARLY = 0.999
"""A job with no less of its time over in some mode may have ended; no other has, unless its work is very short."""


@dataclass(frozen=True, slots=True)
class Notice:
    """A message to a job's user; `step` is the number of the promised deadline, -1 for none."""

    time_s: float
    job_id: str
    standing: Standing
    step: int
    reason: str


@dataclass(frozen=True, slots=True)
class Admission:
    """Answer to a job on its arrival.

    Attributes
    ----------
    job_id : str
    standing : Standing
        GUARANTEED, or WAITING if only the plan of the next lease can decide.
    step : int
        Number of the promised deadline, -1 for none.
    leases : tuple of int
        Absolute numbers of the job's leases.
    moves : tuple of (job id, lease, its new lease)
        Leases of other promised jobs that were moved to make room; these jobs keep their deadlines.
    """

    job_id: str
    standing: Standing
    step: int = -1
    leases: tuple[int, ...] = ()
    moves: tuple[tuple[str, int, int], ...] = ()


def require_ahead(job: Job, reward: StepReward, now_s: float) -> None:
    """Raise InvalidJobError if a job's last deadline has passed."""
    ends_s = job.submit_s + reward.last_s
    if ends_s <= now_s:
        raise InvalidJobError(
            f"job {job.id!r}: its last deadline, at {ends_s:g} s, is over at {now_s:g} s; give a later one, "
            "or no reward"
        )


@dataclass(frozen=True, slots=True)
class Now:
    """The part of the current lease that begins with the next plan.

    Attributes
    ----------
    lease : int
    begins_s : float
        Time of the next plan.
    seconds : float
        Seconds from that time to the end of the lease.
    left : int64 array (types,)
        GPUs of the lease that are not promised to any job.
    room : LeaseRoom
        Where they are.
    """

    lease: int
    begins_s: float
    seconds: float
    left: Ints
    room: LeaseRoom

    @property
    def free(self) -> Ints:
        """Return the GPUs of each type for one job, which must fit consolidated, (types,)."""
        largest = [self.room.largest(kind) for kind in range(len(self.left))]
        return np.minimum(self.left, np.array(largest, dtype=np.int64))


@dataclass(frozen=True, slots=True)
class GivenLeases:
    """Leases given to some jobs.

    Attributes
    ----------
    records : list of SloRecord
    mode, kind, gpus, step, last : int64 arrays (records,)
        Each job's option, as in :class:`.Options`.
    taken : bool array (records, leases)
    """

    records: list[SloRecord]
    mode: Ints
    kind: Ints
    gpus: Ints
    step: Ints
    last: Ints
    taken: Bools


class SloBook:
    """SLO jobs that have a promise or may still get one.

    Parameters
    ----------
    grid : LeaseGrid

    Attributes
    ----------
    records : dict of job id to SloRecord
        In order of arrival.
    table : RecordTable
        What each round reads of them, as arrays.
    version : (int, int)
        Number of plans stored, and of changes to promised jobs' leases since the last plan.
    """

    def __init__(self, grid: LeaseGrid) -> None:
        self.grid = grid
        self.records: dict[str, SloRecord] = {}
        self.table = RecordTable()
        self._plans = 0
        self._changed: list[str] = []  # jobs whose leases have changed since the last plan was stored
        self._nearly: dict[str, None] = {}  # jobs of which nearly all is over in some mode
        self._promised: PromisedGpus | None = None  # totals of the records' leases

    @property
    def version(self) -> tuple[int, int]:
        """Return a value that changes with each change of promised jobs' leases."""
        return self._plans, len(self._changed)

    def changed_since(self, version: tuple[int, int]) -> dict[str, None] | None:
        """Return the jobs whose leases changed since a version, in order; None if a whole plan was stored."""
        plans, count = version
        return dict.fromkeys(self._changed[count:]) if plans == self._plans else None

    def consider(self, records: Sequence[SloRecord]) -> None:
        """Add jobs; the next cycle decides about them."""
        for record in records:
            self.records.pop(record.job.id, None)
            self.records[record.job.id] = record
        self.table.add(records)
        for row in self.table.nearly(records, NEARLY, SAME_S):
            self._note_nearly(records[row])

    def remove(self, job_id: str) -> None:
        """Delete a job, if known, and free its leases."""
        record = self.records.pop(job_id, None)
        self._nearly.pop(job_id, None)
        if record is None:
            return
        self.table.remove(job_id)
        if record.promised >= 0:
            self._changed.append(job_id)
            self._note(record, record.leases, -1)

    def progressed(self, record: SloRecord, done: Floats) -> None:
        """Store how much of a job's time is over in each mode."""
        record.done = done
        self.table.progressed(record)
        self._note_nearly(record)

    def promised(self, record: SloRecord) -> None:
        """Promise a job the deadline that its leases meet."""
        record.promised = record.step
        self.table.changed(record.job.id)

    def _note_nearly(self, record: SloRecord) -> None:
        """Note whether a job may have ended; one that is not here any more is left out."""
        done, short_s = record.done, min([mode.total_s for mode in record.modes], default=np.inf)
        nearly = (len(done) and done.max() >= NEARLY) or short_s * (1.0 - NEARLY) <= SAME_S
        if nearly and self.records.get(record.job.id) is record:
            self._nearly[record.job.id] = None
        else:
            self._nearly.pop(record.job.id, None)

    def progress_of(self, progress: Mapping[str, float]) -> None:
        """Store how much of their time is over for jobs with this progress; jobs that are not here are left out."""
        rows = np.array([row for row in map(self.table.rows.get, progress) if row is not None], dtype=np.int64)
        if not len(rows):
            return
        here = self.table.rows.__contains__
        share = np.array([done for job_id, done in progress.items() if here(job_id)])
        for own, times in self.table.alike(rows):
            done = times.done_of(share[own])
            records = self.table.at(rows[own])
            for record, each in zip(records, done, strict=True):
                record.done = each
            self.table.put_shares(rows[own], done)
            for at in np.flatnonzero((done >= NEARLY).any(axis=1)).tolist():
                self._nearly[records[at].job.id] = None

    def holders(self, lease: int) -> list[SloRecord]:
        """Return the jobs that have a lease."""
        return self.table.at(self.table.holders(lease))

    def promised_jobs(self) -> list[str]:
        """Return the ids of the jobs that have a promise, in order of arrival."""
        rows = self.table.every
        return [record.job.id for record in self.table.at(rows[self.table.numbers(rows)[PROMISED] >= 0])]

    def promised_gpus(self, kinds: int, first: int, horizon: int) -> Ints:
        """Return the promised GPUs in each lease from `first` on, (types, leases)."""
        return self._totals(first).ahead(kinds, first, horizon)

    def most_in_one_lease(self, kinds: int, first: int) -> Ints:
        """Return the most GPUs of each type promised in one lease from `first` on, (types,)."""
        return self._totals(first).most(kinds, first)

    def _totals(self, first: int) -> PromisedGpus:
        """Return the GPUs promised in each lease, from `first` or an earlier lease on."""
        if self._promised is None or first < self._promised.first:
            self._promised = PromisedGpus(first)
            for record in self.records.values():
                self._note(record, record.leases)
        return self._promised

    def _note(self, record: SloRecord, leases: Ints, sign: int = 1) -> None:
        """Add a job's leases to the counts, or subtract them."""
        if self._promised is not None and record.mode >= 0 and len(leases):
            mode = record.modes[record.mode]
            self._promised.add(mode.kind, leases, sign * mode.taken)

    def most_leases(self, first: int) -> int:
        """Return the number of leases from `first` to the lease of the last deadline of all jobs."""
        last_s = float(self.table.last_s(self.table.every).max(initial=-np.inf))
        return self.horizon(last_s, first) if last_s > -np.inf else 1

    @property
    def end(self) -> int:
        """Return the number after the last lease that any job has; 0 without leases."""
        return self.table.end

    def horizon(self, last_s: float, first: int) -> int:
        """Return the number of leases from `first` to the lease that contains a time."""
        return max(self.grid.ended_by(last_s) + 1 - first, 1)

    def lose(self, record: SloRecord, lease: int) -> None:
        """Remove one lease from a job."""
        self._note_change(record)
        self._note(record, record.leases[record.leases == lease], -1)
        record.leases = record.leases[record.leases != lease]

    def _note_change(self, record: SloRecord) -> None:
        """Note that a job's leases change."""
        self._changed.append(record.job.id)
        self.table.changed(record.job.id)

    def only_ends(self, record: SloRecord) -> bool:
        """Return whether a promised job has reported that its work is done, so that it needs no leases."""
        return bool(self._ends((record,)))

    def ending(self) -> list[SloRecord]:
        """Return the promised jobs whose work is done, in order of arrival; only those that may be are looked at."""
        found = self._ends(map(self.records.__getitem__, self._nearly))
        if len(found) < 2:
            return found
        over = {record.job.id for record in found}
        return [self.records[job_id] for job_id in filter(over.__contains__, self.records)]

    def _ends(self, records: Iterable[SloRecord]) -> list[SloRecord]:
        """Return those of the jobs that :meth:`only_ends` is true of."""
        promised = [record for record in records if record.promised >= 0]
        return [r for r in promised if (1.0 - r.done.item(r.mode)) * r.modes[r.mode].total_s <= SAME_S]

    def free_ahead(self, record: SloRecord, first: int) -> None:
        """Remove all leases from `first` on from a job."""
        if len(record.leases) and record.leases[-1] >= first:
            self._note_change(record)
            self._note(record, record.leases[record.leases >= first], -1)
            record.leases = record.leases[record.leases < first]

    def planned(self, first: int, begins: bool, ending: Iterable[SloRecord]) -> Ints:
        """Return the rows of the jobs that need leases from `first` on.

        Jobs whose work is done (`ending`) need none, nor do jobs whose last lease is the one before `first`.
        """
        rows = self.table.every
        over = [self.table.rows.get(record.job.id, -1) for record in ending]  # a job told that it was late has gone
        rows = rows[~np.isin(rows, over)] if over else rows
        if begins:
            return rows
        lease, owner = self.table.leases(rows)
        last = np.zeros(len(rows), dtype=np.bool_)
        last[owner[lease == first - 1]] = True
        last[owner[lease >= first]] = False
        return rows[~last]

    def options(
        self, records: Sequence[SloRecord], first: int, horizon: int, begins: bool, now: Now | None = None
    ) -> Options:
        """Return all options of some jobs.

        Within a lease (not `begins`), jobs that hold it need the other leases that they hold, and the need of other
        jobs follows from their progress. With `now`, all these jobs may also use the rest of the current lease, in
        modes for which GPUs are free.
        """
        if not records:
            return Options.of((), ())
        facts = [(record.promised, record.mode, record.step, record.reach) for record in records]
        sizes = np.array([(len(record.table), len(record.modes)) for record in records], dtype=np.int64).T
        begin, shares_at = (np.cumsum(each) - each for each in sizes)
        return self._options(
            PlanTime(first, horizon, self.grid.lease_s, self.grid.restart_s, *_rest_of(now)),
            NO_LEASES if now is None else now.free,
            (begin, sizes[0], np.concatenate([record.table for record in records])),
            (shares_at, np.concatenate([record.done for record in records])),
            np.array(facts, dtype=np.int64).T,
            None if begins else leases_of(records),
        )

    def options_of_rows(self, rows: Ints, first: int, horizon: int, begins: bool) -> Options:
        """Do :meth:`options` for the jobs in these rows of the table, in order of arrival."""
        numbers, table = self.table.numbers(rows), self.table
        return self._options(
            PlanTime(first, horizon, self.grid.lease_s, self.grid.restart_s, *_rest_of(None)),
            NO_LEASES,
            (numbers[OPTION], numbers[OPTIONS], table.options),
            (numbers[SHARE], table.shares),
            numbers[PROMISED : REACH + 1],
            None if begins else table.leases(rows),
        )

    @staticmethod
    def _options(
        when: PlanTime,
        free: Ints,
        table: tuple[Ints, Ints, Floats],
        shares: tuple[Ints, Floats],
        told: Ints,
        leases: tuple[Ints, Ints] | None,
    ) -> Options:
        """Return the options of jobs from their arrays, as :func:`.options_in_time` takes them."""
        jobs = told.shape[1]
        holds, ahead = np.zeros(jobs, dtype=np.bool_), np.zeros(jobs, dtype=np.int64)
        if leases is not None:
            lease, owner = leases
            holds[owner[lease == when.first - 1]] = True
            ahead = np.bincount(owner[lease >= when.first], minlength=jobs)
        columns, value = options_in_time(when, free, *table, *shares, *np.ascontiguousarray(told), holds, ahead)
        job, mode, kind, gpus, need, last, step = columns
        return Options(job, mode, kind, gpus, need, last, step, value, told[PROMISED] >= 0)

    def incumbent(self, rows: Ints, options: Options, first: int, horizon: int) -> tuple[Ints, Ints, Ints]:
        """Return promised jobs' needed leases from `first` on, as arguments of :meth:`.Draft.put_leases`."""
        numbers = self.table.numbers(rows)
        mode, step = (np.where(options.must, numbers[each], -1)[options.job] for each in (MODE, STEP))
        chosen = np.flatnonzero((options.mode == mode) & (options.step == step))
        place = np.full(options.jobs, -1, dtype=np.int64)
        place[options.job[chosen]] = np.arange(len(chosen))
        lease, owner = self.table.leases(rows)
        at, lease = place[owner], lease - first
        ahead = (at >= 0) & (lease >= 0) & (lease < horizon)
        at, lease = at[ahead], lease[ahead]
        count = np.bincount(at, minlength=len(chosen))
        number = np.arange(len(at)) - np.repeat(np.cumsum(count) - count, count)
        needed = number < options.need[chosen][at]
        return chosen, at[needed], lease[needed]

    def give(self, rows: Ints, draft: Draft, first: int, keep: bool) -> None:
        """Store a draft's assignments in the jobs; with `keep`, their leases before `first` stay."""
        self._plans, self._changed = self._plans + 1, []
        number, lease = jobs_and_leases(draft.taken)
        self._promised, row = PromisedGpus(first), draft.row[number]
        if len(number):
            self._promised.add(draft.options.kind[row], lease + first, draft.options.gpus[row])
        lease += first
        if keep:
            had, owner = self.table.leases(rows)
            had, owner = had[had < first], owner[had < first]
            number, lease = np.concatenate((owner, number)), np.concatenate((had, lease))
            order = np.argsort(number, kind="stable")
            number, lease = number[order], lease[order]
        options, own = draft.options, draft.row
        columns = (options.mode, options.step, options.last + first)
        plan = [np.where(own >= 0, each[own] if len(each) else -1, -1) for each in columns]
        self.table.give(rows, lease, number, np.array(plan, dtype=np.int64).reshape(3, -1))

    def give_one(self, record: SloRecord, draft: Draft, number: int, first: int) -> None:
        """Do :meth:`give` for one job by its number in the draft; its leases before `first` stay."""
        self._note_change(record)
        row = int(draft.row[number])
        before, given = record.leases[record.leases < first], np.flatnonzero(draft.taken[number]) + first
        self._note(record, record.leases[record.leases >= first], -1)
        record.leases = np.concatenate([before, given])
        record.mode, record.step = int(draft.options.mode[row]), int(draft.options.step[row])
        record.reach = int(draft.options.last[row]) + first
        self._note(record, given)

    def give_new(self, given: GivenLeases, first: int) -> None:
        """Store leases of jobs that had none."""
        if not given.records:
            return
        number, lease = jobs_and_leases(given.taken)
        lease += first
        self._totals(first).add(given.kind[number], lease, given.gpus[number])
        parts = np.split(lease, np.cumsum(given.taken.sum(axis=1))[:-1])
        columns = (given.mode.tolist(), given.step.tolist(), (given.last + first).tolist())
        for record, own, mode, step, reach in zip(given.records, parts, *columns, strict=True):
            self._note_change(record)
            record.leases, record.mode, record.step, record.reach = own, mode, step, reach

    def give_rest(self, record: SloRecord, now: Now) -> None:
        """Give a job the rest of the current lease, before its other leases."""
        rest = np.array([now.lease], dtype=np.int64)
        record.leases, record.joined_s = np.append(rest, record.leases), now.begins_s
        self.table.changed(record.job.id)
        self._note(record, rest)


def _rest_of(now: Now | None) -> tuple[bool, float, float]:
    """Return whether jobs use the rest of a lease, when it begins, and its seconds."""
    return (False, 0.0, 0.0) if now is None else (True, now.begins_s, now.seconds)


def leases_of(records: Sequence[SloRecord]) -> tuple[Ints, Ints]:
    """Return the leases of jobs, one job after the other, and for each lease the number of its job."""
    every = [record.leases for record in records]
    count = np.fromiter(map(len, every), dtype=np.int64, count=len(every))
    return np.concatenate([NO_LEASES, *every]), np.repeat(np.arange(len(every)), count)
