"""Jobs that arrive together, as arrays, and the answers of a pass over them (docs/papers/chronus.md, C4)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from copter_frontends.policies.chronus.arrival_kernel import (
    AT_ONCE,
    GPUS,
    PLACED,
    WAITS,
    Answers,
    Arrived,
    Demand,
    Known,
    Leases,
    Offers,
    answer_in_turn,
)
from copter_frontends.policies.chronus.expected_demand import ExpectedDemand
from copter_frontends.policies.chronus.job_book import GivenLeases, Now, SloBook
from copter_frontends.policies.chronus.options import Bools, Ints, Options
from copter_frontends.policies.chronus.slo_record import SloRecord

NO_DEMAND = np.zeros((3, 1, 1)), np.ones(2), 0.0, 1.0


class ArrivedJobs:
    """Options of jobs that arrive together, and what each is answered.

    Parameters
    ----------
    records : sequence of SloRecord
        Jobs without leases, in the order of their turns.
    book : SloBook
    first : int
        Absolute number of the first lease to give.
    now : Now, optional
        The rest of the current lease.

    Attributes
    ----------
    horizon : int
        Leases from `first` to the last deadline of all of them.
    reach : int64 array (jobs,)
        Leases to the last deadline of each.
    answers : int64 array (jobs,)
        See :mod:`.arrival_kernel`.
    taken : bool array (jobs, leases)
        Leases that each has got.
    now : Now or None
    """

    def __init__(self, records: Sequence[SloRecord], book: SloBook, first: int, now: Now | None) -> None:
        self.records, self.now = records, now
        self.reach: Ints = np.array([book.horizon(record.last_s, first) for record in records], dtype=np.int64)
        self.horizon = int(self.reach.max())
        self._options = book.options(records, first, self.horizon, begins=False)
        self._at_once = self._options if now is None else book.options(records, first, self.horizon, False, now)
        self.answers: Ints = np.full(len(records), WAITS, dtype=np.int64)
        self._known: Known | None = None
        self._row: Ints = np.full(len(records), -1, dtype=np.int64)
        self.taken: Bools = np.zeros((len(records), self.horizon), dtype=bool)
        later, at_once = (Offers(each.rows_of(), _table(each), each.value) for each in (self._options, self._at_once))
        if now is None:
            at_once = at_once._replace(first=np.zeros(len(records) + 1, dtype=np.int64))
        self._asked = Arrived(later, at_once, self.reach, np.array([record.best for record in records]))

    def rest(self, now: Now | None) -> None:
        """Note what is left of the current lease, which is no more than before."""
        if self.now is not None:
            self.now = replace(self.now, left=np.zeros_like(self.now.left)) if now is None else now

    def answer(
        self, begin: int, use: Ints, free: Ints, gpus: Ints, may_move: int, demand: ExpectedDemand | None, now_s: float
    ) -> int:
        """Answer jobs from `begin` on (:func:`.answer_in_turn`); returns the number of the first job not answered."""
        left, sizes, counts = np.zeros(len(gpus), dtype=np.int64), gpus * 0, np.zeros((len(gpus), 1), dtype=np.int64)
        if self.now is not None:
            left, sizes, counts = self.now.left.copy(), self.now.room.sizes, self.now.room.counts.copy()
        seen, fade, age_s, lease_s = NO_DEMAND
        if demand is not None:
            seen, fade, age_s, lease_s = demand.seen, demand.fading(now_s), demand.age_s(now_s), demand.lease_s
        asked = self._asked
        if self._known is None:
            every = np.concatenate((asked.later.table[:, GPUS], asked.at_once.table[:, GPUS]))
            self._known = Known.nothing(every, len(gpus), self.horizon, int(np.max(gpus)))
        end = answer_in_turn(
            begin,
            asked,
            Leases(left, counts, sizes, use, free, np.asarray(gpus, dtype=np.int64)),
            Demand(seen, fade, age_s, lease_s, demand is not None),
            may_move,
            self._known,
            Answers(self.answers, self._row, self.taken),
        )
        if demand is not None:
            demand.recorded(now_s, fade)
        return int(end)

    def given(self, begin: int, end: int) -> GivenLeases:
        """Return the leases of the jobs in this range that got some."""
        said = self.answers[begin:end]
        which = np.flatnonzero((said == PLACED) | (said == AT_ONCE)) + begin
        now, row = self.answers[which] == AT_ONCE, self._row[which]
        mode, kind, gpus, step, last = (
            np.where(now, _picked(late, row, now), _picked(plain, row, ~now))
            for plain, late in zip(_columns(self._options), _columns(self._at_once), strict=True)
        )
        records = [self.records[at] for at in which.tolist()]
        return GivenLeases(records, mode, kind, gpus, step, last, self.taken[which])


def _columns(options: Options) -> tuple[Ints, ...]:
    return options.mode, options.kind, options.gpus, options.step, options.last


def _picked(column: Ints, rows: Ints, mine: Bools) -> Ints:
    """Return the column's entries at `rows`, zero where they are not `mine`."""
    result = np.zeros(len(rows), dtype=np.int64)
    result[mine] = column[rows[mine]]
    return result


def _table(options: Options) -> Ints:
    return np.ascontiguousarray(np.column_stack((options.kind, options.gpus, options.need, options.last)))
