"""The leases of all promised jobs as arrays, kept from one admission to the next (docs/chronus.md, C4)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from copter_frontends.chronus.draft import Draft
from copter_frontends.chronus.job_book import NO_LEASES, SloBook, SloRecord
from copter_frontends.chronus.options import Bools, Floats, Ints, Options


@dataclass(frozen=True, slots=True)
class HeldLeases:
    """What promised jobs have from a lease on.

    Attributes
    ----------
    version : int
        Of the book that it was read from.
    first : int
        Absolute number of the first lease.
    records : list of SloRecord
    table : float64 array (records, 7)
        The option that each has, as in :attr:`.SloRecord.table`.
    taken : bool array (records, leases)
    """

    version: int
    first: int
    records: Sequence[SloRecord]
    table: Floats
    taken: Bools

    @classmethod
    def of(cls, book: SloBook, first: int) -> HeldLeases:
        """Read the leases of all promised jobs from the book."""
        records = [r for r in book.records.values() if r.promised >= 0 and len(r.leases) and r.leases[-1] >= first]
        table = np.array([r.table[r.mode * len(r.reward.steps) + r.step] for r in records]).reshape(-1, 7)
        horizon = max(int(book.grid.ended_by_all(table[:, 5]).max(initial=first)) - first, 1)
        taken = np.zeros((len(records), horizon), dtype=bool)
        lease = np.concatenate([NO_LEASES, *(r.leases for r in records)]) - first
        owner = np.repeat(np.arange(len(records)), [len(r.leases) for r in records])
        taken[owner[lease >= 0], lease[lease >= 0]] = True
        return cls(book.version, first, records, table, taken)

    def is_of(self, book: SloBook, first: int) -> bool:
        """Whether it is still what the book says."""
        return self.version == book.version and self.first == first

    def with_one_more(self, record: SloRecord, book: SloBook) -> tuple[Options, Bools]:
        """One option per promised job, in the order of the jobs, then all options of one more job; leases taken."""
        ends = int(book.grid.ended_by_all(record.table[:, 5]).max(initial=self.first)) - self.first
        horizon = max(self.taken.shape[1], ends)
        taken = np.pad(self.taken, ((0, 0), (0, horizon - self.taken.shape[1])))
        own = book.options([record], self.first, horizon, begins=False)
        count = len(self.records)
        mode, kind, gpus, step = (self.table[:, at].astype(np.int64) for at in (0, 1, 2, 4))
        last = book.grid.ended_by_all(self.table[:, 5]) - self.first
        held = (np.arange(count), mode, kind, gpus, taken.sum(axis=1), last, step)
        more = (own.job + count, own.mode, own.kind, own.gpus, own.need, own.last, own.step)
        whole = [np.concatenate(pair) for pair in zip(held, more, strict=True)]
        must = np.append(np.ones(count, dtype=bool), False)
        job, mode, kind, gpus, need, last, step = whole
        return Options(
            job, mode, kind, gpus, need, last, step, np.concatenate((self.table[:, 6], own.value)), must
        ), taken

    def admitted(self, record: SloRecord, draft: Draft, version: int) -> HeldLeases:
        """The same with one more job; the draft has its leases, and those of others that were moved for it."""
        row: Ints = record.table[record.mode * len(record.reward.steps) + record.step]
        return HeldLeases(
            version, self.first, [*self.records, record], np.concatenate((self.table, row[None, :])), draft.taken
        )
