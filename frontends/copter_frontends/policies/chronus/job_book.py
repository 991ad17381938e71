"""The SLO jobs under consideration: rewards, promises and leases (docs/papers/chronus.md, C2 to C4)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from itertools import chain

import numpy as np

from copter_frontends.policies.chronus.draft import Draft
from copter_frontends.policies.chronus.lease_grid import SAME_S, LeaseGrid
from copter_frontends.policies.chronus.mode import Mode
from copter_frontends.policies.chronus.mode_times import ModeTimes
from copter_frontends.policies.chronus.options import Bools, Floats, Ints, Options, jobs_and_leases
from copter_frontends.policies.chronus.promised_gpus import PromisedGpus
from copter_frontends.policy_kit.deadlines import StepReward
from copter_frontends.vocabulary import InvalidJobError, Job

NO_LEASES: Ints = np.zeros(0, dtype=np.int64)
NEARLY = 0.999
"""A job with no less of its time over in some mode may have ended; no other has, unless its work is very short."""


class Standing(str, Enum):
    """Last answer to the user of an SLO job."""

    WAITING = "waiting"  # not decided yet
    GUARANTEED = "guaranteed"
    UNGUARANTEED = "unguaranteed"  # no leases for any of its deadlines: treated as best effort
    DEMOTED = "demoted"  # lost its guarantee, because GPUs were lost or it was slower than estimated


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


@dataclass(slots=True)
class SloRecord:
    """An SLO job.

    Attributes
    ----------
    times : ModeTimes
    done : float64 array (modes,)
        Share of the job's time that has passed, in each mode.
    promised : int
        Number of the promised deadline, -1 before a promise.
    mode : int
        Mode in which it uses its leases.
    step : int
        Number of the deadline that it meets with its leases.
    leases : int64 array
        Absolute numbers of its leases, ascending.
    reach : int
        With any choice of as many leases before this absolute number, it meets the deadline.
    joined_s : float
        Time at which it joined the lease that was running at its arrival; minus infinity if it did not join.
    table : float64 array (modes x deadlines, 8)
        Mode, GPU type, GPUs taken, seconds for the whole work, number, time and reward (above the floor) of the
        deadline, and the mode's restart time. Options are built from these rows.
    last_s : float
        Its last deadline.
    """

    job: Job
    reward: StepReward
    modes: tuple[Mode, ...]
    times: ModeTimes
    done: Floats
    standing: Standing = Standing.WAITING
    promised: int = -1
    mode: int = -1
    step: int = -1
    leases: Ints = field(default_factory=lambda: NO_LEASES)
    reach: int = 0
    joined_s: float = -np.inf
    table: Floats = field(init=False, repr=False)
    last_s: float = field(init=False, repr=False)

    @classmethod
    def of(
        cls,
        job: Job,
        reward: StepReward,
        modes: tuple[Mode, ...],
        times: ModeTimes | None = None,
        progress: float = 0.0,
    ) -> SloRecord:
        """Build the record of a job of which this share of the work is done."""
        times = ModeTimes.even(len(modes)) if times is None else times
        return cls.of_many([(job, reward, modes, times, progress)])[0]

    @classmethod
    def of_many(cls, records: Sequence[tuple[Job, StepReward, tuple[Mode, ...], ModeTimes, float]]) -> list[SloRecord]:
        """Build records from what :meth:`of` is given."""
        fresh = dict[int, Floats]()  # what is over of jobs alike of which nothing is done: one array for all
        made = []
        for job, reward, modes, times, progress in records:
            if progress > 0.0:
                done = times.done(progress)
            else:
                own = fresh.get(id(times))
                done = fresh[id(times)] = times.done(progress) if own is None else own
            made.append(cls(job, reward, modes, times, done))
        many = np.array([len(record.modes) for record in made], dtype=np.int64)
        each = np.array([len(record.reward.steps) for record in made], dtype=np.int64)
        flat = chain.from_iterable(chain.from_iterable([record.modes for record in made]))
        mode_table = np.fromiter(flat, np.float64).reshape(-1, len(Mode._fields))
        flat = chain.from_iterable(chain.from_iterable([record.reward.steps for record in made]))
        time_s, value = np.fromiter(flat, np.float64).reshape(-1, 2).T
        job_of = np.repeat(np.arange(len(made)), each)
        time_s = np.array([record.job.submit_s for record in made])[job_of] + time_s
        value = value - np.array([record.reward.floor for record in made])[job_of]
        steps = np.column_stack((np.arange(len(job_of)) - (np.cumsum(each) - each)[job_of], time_s, value))
        ends = np.cumsum(many * each)
        owner = np.repeat(np.arange(len(made)), many * each)
        within = np.arange(len(owner)) - np.repeat(ends - many * each, many * each)
        number = within // each[owner]
        mode = mode_table[(np.cumsum(many) - many)[owner] + number]
        step = steps[(np.cumsum(each) - each)[owner] + within % each[owner]]
        kind, _, taken, total_s, restart_s = mode.T
        table = np.column_stack((number, kind, taken, total_s, step, restart_s))
        begin = 0
        for record, end in zip(made, ends.tolist(), strict=True):
            record.table, begin = table[begin:end], end
        return made

    def __post_init__(self) -> None:
        self.last_s = self.job.submit_s + self.reward.last_s

    @property
    def time_done(self) -> float:
        """Return the share of the job's time that has passed in the mode of its leases, or in its first mode."""
        return float(self.done[max(self.mode, 0)]) if len(self.done) else 0.0

    @property
    def best(self) -> float:
        """Return the reward, above the floor, of the job's first deadline."""
        return self.reward.steps[0][1] - self.reward.floor

    @property
    def value(self) -> float:
        """Return the reward, above the floor, of the deadline that the job's leases meet; 0 without leases."""
        return self.reward.steps[self.step][1] - self.reward.floor if self.step >= 0 else 0.0

    def has_lease(self, lease: int) -> bool:
        """Return whether the job has a lease, given by its absolute number."""
        leases = self.leases
        if not len(leases) or leases[0] >= lease:
            return bool(len(leases) and leases[0] == lease)
        at = leases.searchsorted(lease)
        return bool(at < len(leases) and leases[at] == lease)


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
    free : int64 array (types,)
        GPUs of the lease that are not promised to any job, at most those of the largest job that fits consolidated.
    """

    lease: int
    begins_s: float
    seconds: float
    free: Ints


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
    version : (int, int)
        Number of plans stored, and of changes to promised jobs' leases since the last plan.
    """

    def __init__(self, grid: LeaseGrid) -> None:
        self.grid = grid
        self.records: dict[str, SloRecord] = {}
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

    def consider(self, record: SloRecord) -> None:
        """Add a job; the next cycle decides about it."""
        self.records[record.job.id] = record
        self.progressed(record, record.done)

    def remove(self, job_id: str) -> None:
        """Delete a job, if known, and free its leases."""
        record = self.records.pop(job_id, None)
        self._nearly.pop(job_id, None)
        if record is not None and record.promised >= 0:
            self._changed.append(job_id)
            self._note(record, record.leases, -1)

    def progressed(self, record: SloRecord, done: Floats) -> None:
        """Store how much of a job's time is over in each mode."""
        record.done = done
        short_s = min([mode.total_s for mode in record.modes], default=np.inf)
        self._note_nearly(record, (len(done) and done.max() >= NEARLY) or short_s * (1.0 - NEARLY) <= SAME_S)

    def _note_nearly(self, record: SloRecord, nearly: bool) -> None:
        """Note whether a job may have ended; one that is not here any more is left out."""
        if nearly and self.records.get(record.job.id) is record:
            self._nearly[record.job.id] = None
        else:
            self._nearly.pop(record.job.id, None)

    def progress_of(self, progress: Mapping[str, float]) -> None:
        """Store how much of their time is over for jobs with this progress; jobs that are not here are left out."""
        known = self.records.get
        alike: dict[int, tuple[list[SloRecord], list[float]]] = {}
        for job_id, share in progress.items():
            record = known(job_id)
            if record is not None:
                group = alike.get(id(record.times))
                if group is None:
                    group = alike[id(record.times)] = [], []
                group[0].append(record)
                group[1].append(share)
        for records, shares in alike.values():
            done = records[0].times.done_of(np.array(shares))
            for record, own in zip(records, done, strict=True):
                record.done = own
            for at in np.flatnonzero((done >= NEARLY).any(axis=1)).tolist():
                self._nearly[records[at].job.id] = None

    def holders(self, lease: int) -> list[SloRecord]:
        """Return the jobs that have a lease."""
        found = []
        for record in self.records.values():
            leases = record.leases
            if len(leases):
                first = leases.item(0)
                if first == lease or (first < lease and record.has_lease(lease)):
                    found.append(record)
        return found

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
        last_s = max([r.last_s for r in self.records.values()], default=-np.inf)
        return self.horizon(last_s, first) if last_s > -np.inf else 1

    @property
    def end(self) -> int:
        """Return the number after the last lease that any job has; 0 without leases."""
        return max([int(r.leases[-1]) + 1 for r in self.records.values() if len(r.leases)], default=0)

    def horizon(self, last_s: float, first: int) -> int:
        """Return the number of leases from `first` to the lease that contains a time."""
        return max(self.grid.ended_by(last_s) + 1 - first, 1)

    def lose(self, record: SloRecord, lease: int) -> None:
        """Remove one lease from a job."""
        self._changed.append(record.job.id)
        self._note(record, record.leases[record.leases == lease], -1)
        record.leases = record.leases[record.leases != lease]

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
            self._changed.append(record.job.id)
            self._note(record, record.leases[record.leases >= first], -1)
            record.leases = record.leases[record.leases < first]

    def planned(self, first: int, begins: bool, ending: Iterable[SloRecord]) -> list[SloRecord]:
        """Return the jobs that need leases from `first` on.

        Jobs whose work is done (`ending`) need none, nor do jobs whose last lease is the one before `first`.
        """
        over = {record.job.id for record in ending}
        records = [record for job_id, record in self.records.items() if job_id not in over]
        if begins:
            return records
        return [r for r in records if not len(r.leases) or r.leases.item(-1) >= first or not r.has_lease(first - 1)]

    def options(
        self, records: Sequence[SloRecord], first: int, horizon: int, begins: bool, now: Now | None = None
    ) -> Options:
        """Return all options of some jobs.

        Within a lease (not `begins`), jobs that hold it need the other leases that they hold, and the need of other
        jobs follows from their progress. With `now`, all these jobs may also use the rest of the current lease, in
        modes for which GPUs are free.
        """
        promised = np.array([record.promised for record in records], dtype=np.int64)
        if not records:
            return Options.of((), ())
        job = np.repeat(np.arange(len(records)), [len(record.table) for record in records])
        table = np.concatenate([record.table for record in records])
        if now is not None:
            fits = now.free[table[:, 1].astype(np.int64)] >= table[:, 2]
            job, table = job[fits], table[fits]
        modes = np.array([len(record.modes) for record in records])
        begins_at = np.cumsum(modes) - modes
        left = 1.0 - np.concatenate([record.done for record in records])
        mode, kind, gpus, step = (table[:, at].astype(np.int64) for at in (0, 1, 2, 4))
        restart_s, left_s = np.maximum(table[:, 7], self.grid.restart_s), table[:, 3] * left[begins_at[job] + mode]
        possible = (promised[job] < 0) | (step <= promised[job])
        if now is not None:
            ends_s = now.begins_s + restart_s + left_s
            possible &= (restart_s < now.seconds) & (table[:, 5] >= np.minimum(ends_s, now.begins_s + now.seconds))
            left_s = np.maximum(left_s - (now.seconds - restart_s), 0.0)
        need = self.grid.needed_by(left_s, restart_s, least=int(now is None))
        last = self.grid.ends_by(table[:, 5], left_s, need, restart_s)
        if not begins:
            lease, owner = leases_of(records)
            holds = np.bincount(owner[lease == first - 1], minlength=len(records)) > 0
        if not begins and holds.any():
            own = np.array([record.mode for record in records])
            ahead = np.bincount(owner[lease >= first], minlength=len(records))
            need = np.where(holds[job], ahead[job], need)
            possible &= ~holds[job] | (mode == own[job])
            had = np.array([record.step for record in records]), np.array([record.reach for record in records])
            # the progress that the current lease gives a job is not known yet
            whole = self.grid.ended_by_all(table[:, 5])
            last = np.where(holds[job], np.where(step == had[0][job], had[1][job], whole), last)
        last = np.minimum(np.maximum(last - first, -1 if now is None else 0), horizon)
        keep = np.flatnonzero(possible & (need >= int(now is None)) & (need <= last))
        job, mode, kind, gpus, need, last, step = (each[keep] for each in (job, mode, kind, gpus, need, last, step))
        return Options(job, mode, kind, gpus, need, last, step, table[keep, 6].copy(), promised >= 0)

    @staticmethod
    def incumbent(records: Sequence[SloRecord], options: Options, first: int, horizon: int) -> tuple[Ints, Ints, Ints]:
        """Return promised jobs' needed leases from `first` on, as arguments of :meth:`.Draft.put_leases`."""
        jobs = np.flatnonzero(options.must)
        mode, step = np.full(options.jobs, -1), np.full(options.jobs, -1)
        mode[jobs] = [records[job].mode for job in jobs.tolist()]
        step[jobs] = [records[job].step for job in jobs.tolist()]
        rows = np.flatnonzero((options.mode == mode[options.job]) & (options.step == step[options.job]))
        mine = [records[job].leases for job in options.job[rows].tolist()]
        at = np.repeat(np.arange(len(rows)), [len(each) for each in mine])
        lease = np.concatenate([NO_LEASES, *mine]) - first
        ahead = (lease >= 0) & (lease < horizon)
        at, lease = at[ahead], lease[ahead]
        count = np.bincount(at, minlength=len(rows))
        number = np.arange(len(at)) - np.repeat(np.cumsum(count) - count, count)
        needed = number < options.need[rows][at]
        return rows, at[needed], lease[needed]

    def give(self, records: Sequence[SloRecord], draft: Draft, first: int, keep: bool) -> None:
        """Store a draft's assignments in the jobs; with `keep`, their leases before `first` stay."""
        self._plans, self._changed = self._plans + 1, []
        number, lease = jobs_and_leases(draft.taken)
        self._promised, row = PromisedGpus(first), draft.row[number]
        if len(number):
            self._promised.add(draft.options.kind[row], lease + first, draft.options.gpus[row])
        lease += first
        if keep:
            had, owner = leases_of(records)
            had, owner = had[had < first], owner[had < first]
            number, lease = np.concatenate((owner, number)), np.concatenate((had, lease))
            order = np.argsort(number, kind="stable")
            number, lease = number[order], lease[order]
        ends = np.searchsorted(number, np.arange(1, len(records) + 1)).tolist()
        rows, has = draft.row, draft.row >= 0
        modes, steps, reach = (
            np.where(has, column[rows] if len(column) else -1, -1).tolist()
            for column in (draft.options.mode, draft.options.step, draft.options.last + first)
        )
        begin = 0
        for record, end, mode, step, last in zip(records, ends, modes, steps, reach, strict=True):
            record.leases, begin = lease[begin:end], end
            if mode >= 0:
                record.mode, record.step, record.reach = mode, step, last

    def give_one(self, record: SloRecord, draft: Draft, number: int, first: int) -> None:
        """Do :meth:`give` for one job by its number in the draft; its leases before `first` stay."""
        self._changed.append(record.job.id)
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
            self._changed.append(record.job.id)
            record.leases, record.mode, record.step, record.reach = own, mode, step, reach

    def give_rest(self, record: SloRecord, now: Now) -> None:
        """Give a job the rest of the current lease, before its other leases."""
        rest = np.array([now.lease], dtype=np.int64)
        record.leases, record.joined_s = np.append(rest, record.leases), now.begins_s
        self._note(record, rest)


def leases_of(records: Sequence[SloRecord]) -> tuple[Ints, Ints]:
    """Return the leases of jobs, one job after the other, and for each lease the number of its job."""
    every = [record.leases for record in records]
    count = np.fromiter(map(len, every), dtype=np.int64, count=len(every))
    return np.concatenate([NO_LEASES, *every]), np.repeat(np.arange(len(every)), count)
