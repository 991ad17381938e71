"""The leases of all promised jobs as arrays, kept between admissions (docs/papers/chronus.md, C4)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from copter_frontends.policies.chronus.draft import Draft
from copter_frontends.policies.chronus.job_book import SloBook, leases_of
from copter_frontends.policies.chronus.options import Bools, Floats, Ints, Options
from copter_frontends.policies.chronus.slo_record import SloRecord

MORE_ROWS = 8  # one row in so many is kept for records to come


@dataclass(slots=True)
class HeldLeases:
    """Leases of promised jobs from `first` on. Changes are made in place.

    Attributes
    ----------
    version : (int, int)
        Version of the book that was read.
    first : int
        Absolute number of the first lease.
    records : list of SloRecord
        A job whose leases have changed has a second entry; the first one keeps no leases.
    table : int64 array (records, 6)
        The option of each job: mode, GPU type, GPUs taken, number of the deadline, absolute number of the first lease
        after the deadline, and number of leases.
    value : float64 array (records,)
        Reward of that option above the floor.
    horizon : int
        Leases that are looked at.
    """

    version: tuple[int, int]
    first: int
    records: list[SloRecord]
    table: Ints
    value: Floats
    horizon: int
    _rows: Bools = field(repr=False)  # the jobs' leases, with room for more jobs and leases, which are false
    _place: dict[str, int] = field(default_factory=dict, repr=False)

    @property
    def taken(self) -> Bools:
        """The leases of each job, (records, horizon); a view."""
        return self._rows[: len(self.records), : self.horizon]

    @property
    def place(self) -> dict[str, int]:
        """The last entry of each job."""
        if not self._place:
            self._place.update((record.job.id, at) for at, record in enumerate(self.records))
        return self._place

    @classmethod
    def of(cls, book: SloBook, first: int) -> HeldLeases:
        """Read the leases of all promised jobs from the book."""
        return cls.of_records([record for record in book.records.values() if has_ahead(record, first)], book, first)

    @classmethod
    def of_records(cls, records: Sequence[SloRecord], book: SloBook, first: int) -> HeldLeases:
        """Read the leases of these records."""
        rows = np.array([r.table[r.mode * len(r.reward.steps) + r.step] for r in records]).reshape(-1, 8)
        reach = np.array([record.reach for record in records], dtype=np.int64)
        taken = np.zeros((len(records), max(int(reach.max(initial=first)) - first, 1)), dtype=bool)
        lease, owner = leases_of(records)
        lease = lease - first
        taken[owner[lease >= 0], lease[lease >= 0]] = True
        table = np.column_stack((rows[:, (0, 1, 2, 4)].astype(np.int64), reach, taken.sum(axis=1)))
        return cls(book.version, first, list(records), table, rows[:, 6].copy(), taken.shape[1], taken)

    @classmethod
    def of_draft(cls, records: Sequence[SloRecord], draft: Draft, book: SloBook, first: int) -> HeldLeases:
        """Return the leases that a draft has assigned to these records."""
        at = np.flatnonzero(draft.row >= 0)
        options, row = draft.options, draft.row[at]
        columns = (options.mode, options.kind, options.gpus, options.step)
        reach, count = options.last[row] + first, options.need[row]  # a draft gives a job no more and no fewer
        table = np.column_stack((*(each[row] for each in columns), reach, count))
        own = [records[k] for k in at.tolist()]
        taken = draft.taken if len(at) == len(draft.taken) else draft.taken[at]
        return cls(book.version, first, own, table, options.value[row], taken.shape[1], taken)

    def now(self, book: SloBook, first: int) -> HeldLeases:
        """Return the book's current leases from lease `first` on; only changes are read again, in place."""
        if (self.version, self.first) == (book.version, first):
            return self
        changed = book.changed_since(self.version)
        if first != self.first or changed is None:
            return HeldLeases.of(book, first)
        gone = [self.place[job_id] for job_id in changed if job_id in self.place]
        self.taken[gone], self.table[gone, 5] = False, 0
        there = [book.records[job_id] for job_id in changed if job_id in book.records]
        others = [record for record in there if has_ahead(record, first)]
        if others:
            self._add(HeldLeases.of_records(others, book, first))
        self.version = book.version
        return self

    def _add(self, other: HeldLeases) -> None:
        """Add other leases of the same book and first lease."""
        count = len(self.records)
        self._make_room(count + len(other.records), max(self.horizon, other.horizon))
        self._rows[count : count + len(other.records), : other.horizon] = other.taken
        self.horizon = max(self.horizon, other.horizon)
        self._note(other.records, other.table, other.value)

    def _note(self, records: Sequence[SloRecord], table: Ints, value: Floats) -> None:
        """Add jobs whose leases are in their rows already."""
        if self._place:
            self._place.update((record.job.id, len(self.records) + at) for at, record in enumerate(records))
        self.records.extend(records)
        self.table, self.value = np.concatenate((self.table, table)), np.concatenate((self.value, value))

    def _make_room(self, rows: int, leases: int) -> None:
        """Have at least this many rows and leases; what is not used is false."""
        if rows > len(self._rows) or leases > self._rows.shape[1]:
            had = self.taken
            self._rows = np.zeros((rows + rows // MORE_ROWS, leases + leases // MORE_ROWS), dtype=bool)
            self._rows[: len(had), : had.shape[1]] = had

    def with_one_more(self, record: SloRecord, book: SloBook, horizon: int) -> tuple[Options, Bools]:
        """Return the options and taken leases: one option per promised job, then all options of one more job.

        At least `horizon` leases are covered, and more if a deadline needs more. The leases are a view of this object's
        own, with a last row for the one more job, which has none: a plan that is not kept must leave them as they are.
        """
        horizon, count = max(self.horizon, horizon), len(self.records)
        self._make_room(count + 1, horizon)
        taken = self._rows[: count + 1, :horizon]
        own = book.options([record], self.first, horizon, begins=False)
        mode, kind, gpus, step, end, need = self.table.T
        held = (np.arange(count), mode, kind, gpus, need, end - self.first, step)
        more = (own.job + count, own.mode, own.kind, own.gpus, own.need, own.last, own.step)
        job, mode, kind, gpus, need, last, step = (np.concatenate(pair) for pair in zip(held, more, strict=True))
        must = np.append(np.ones(count, dtype=bool), False)
        return Options(job, mode, kind, gpus, need, last, step, np.concatenate((self.value, own.value)), must), taken

    def admit(self, record: SloRecord, draft: Draft, version: tuple[int, int]) -> None:
        """Keep a plan of :meth:`with_one_more`: its leases are here already."""
        options, row = draft.options, int(draft.row[-1])
        own = (options.mode, options.kind, options.gpus, options.step, options.last + self.first, options.need)
        self._note([record], np.array([[each[row] for each in own]]), options.value[[row]])
        self.version, self.horizon = version, draft.horizon


def has_ahead(record: SloRecord, first: int) -> bool:
    """Return whether a job has a promise and a lease from `first` on."""
    return record.promised >= 0 and bool(len(record.leases)) and bool(record.leases[-1] >= first)
