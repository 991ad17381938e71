"""The book's jobs as arrays, one row a job in order of arrival: only jobs that have changed are read again (chronus.md,
C4).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import numpy as np

from copter_frontends.policies.chronus.mode_times import ModeTimes
from copter_frontends.policies.chronus.options import Bools, Floats, Ints
from copter_frontends.policies.chronus.slo_record import SloRecord

FIRST_ROWS = 1024  # rows of the first arrays
MOSTLY_GONE = 0.5  # the arrays are made anew once this share of their rows is of jobs that have left
# numbers of a job: as in its record; its first option, and how many it has; the first of its modes' shares; the number
# of how its time passes
PROMISED, MODE, STEP, REACH, OPTION, OPTIONS, SHARE, TIMES = range(8)


class RecordTable:
    """What each round reads of all jobs of a book.

    Attributes
    ----------
    rows : dict of job id to int
    records : list of SloRecord or None
        By row, None for a job that has left.
    options : float64 array (options, 8)
        The jobs' option tables, one after the other.
    shares : float64 array
        Share of each job's time that has passed, mode by mode.
    """

    def __init__(self) -> None:
        self.rows: dict[str, int] = {}
        self.records: list[SloRecord | None] = []
        self.options: Floats = np.zeros((0, 8))
        self.shares: Floats = np.zeros(0)
        self._used, self._shares_used = 0, 0  # rows of `options`, entries of `shares`
        self._numbers: Ints = np.zeros((8, 0), dtype=np.int64)
        self._last_s: Floats = np.zeros(0)
        self._there: Bools = np.zeros(0, dtype=np.bool_)
        self._owner: Ints = np.zeros(0, dtype=np.int64)  # row of each lease's job, ascending
        self._lease: Ints = np.zeros(0, dtype=np.int64)
        self._changed: dict[int, None] = {}  # rows to read again
        self._times: list[ModeTimes] = []
        self._number: dict[int, int] = {}  # of each of them, by its identity

    # Edits --------------------------------------------------------------------------------------------------------

    def add(self, records: Sequence[SloRecord]) -> None:
        """Add jobs; one with the id of another takes its place."""
        for record in records:
            if record.job.id in self.rows:
                self.remove(record.job.id)
        begin, end = len(self.records), len(self.records) + len(records)
        if end > len(self._there):
            self._grow(len(records))
            begin, end = len(self.records), len(self.records) + len(records)
        sizes = np.array([(len(record.table), len(record.modes)) for record in records], dtype=np.int64)
        options, modes = sizes.reshape(-1, 2).T
        own = slice(begin, end)
        self._numbers[OPTION, own] = self._used + np.cumsum(options) - options
        self._numbers[SHARE, own] = self._shares_used + np.cumsum(modes) - modes
        self._numbers[OPTIONS, own], self._numbers[TIMES, own] = options, self._times_of(records)
        self.options = _filled(self.options, self._used, [record.table for record in records])
        self.shares = _filled(self.shares, self._shares_used, [record.done for record in records])
        self._used, self._shares_used = self._used + int(options.sum()), self._shares_used + int(modes.sum())
        self._last_s[own], self._there[own] = [record.last_s for record in records], True
        self.records.extend(records)
        self.rows.update((record.job.id, begin + at) for at, record in enumerate(records))
        self._changed.update(dict.fromkeys(range(begin, end)))

    def nearly(self, records: Sequence[SloRecord], share: float, least_s: float) -> list[int]:
        """Return the positions of the jobs just added of which nearly all, this share, is over in some mode, or of
        which the rest from there takes at most `least_s`.
        """
        numbers = self._numbers[:, len(self.records) - len(records) : len(self.records)]
        seconds = self.options[numbers[OPTION, 0] : self._used, 3]
        short = np.full(len(records), np.inf)
        has = np.flatnonzero(numbers[OPTIONS] > 0)
        if len(has):
            short[has] = np.minimum.reduceat(seconds, numbers[OPTION, has] - numbers[OPTION, 0])
        found = short * (1.0 - share) <= least_s
        fresh = dict[int, bool]()  # jobs alike of which nothing is done share one array
        for at, done in enumerate([record.done for record in records]):
            over = fresh.get(id(done))
            if over is None:
                over = fresh[id(done)] = bool(len(done)) and bool(done.max() >= share)
            if over:
                found[at] = True
        return np.flatnonzero(found).tolist()

    def remove(self, job_id: str) -> None:
        """Delete a job."""
        row = self.rows.pop(job_id)
        self.records[row], self._there[row] = None, False
        self._changed.pop(row, None)

    def changed(self, job_id: str) -> None:
        """Note that a job's promise or leases have changed."""
        row = self.rows.get(job_id)
        if row is not None:
            self._changed[row] = None

    def progressed(self, record: SloRecord) -> None:
        """Read how much of a job's time is over."""
        row = self.rows.get(record.job.id)
        if row is not None and self.records[row] is record:
            begin = self._numbers[SHARE, row]
            self.shares[begin : begin + len(record.done)] = record.done

    def put_shares(self, rows: Ints, done: Floats) -> None:
        """Store how much of their time is over for jobs with as many modes, (jobs, modes)."""
        self.shares[self._numbers[SHARE, rows][:, None] + np.arange(done.shape[1])] = done

    def _times_of(self, records: Sequence[SloRecord]) -> list[int]:
        """Return the numbers of how the jobs' time passes; jobs alike share one."""
        found = []
        for times in [record.times for record in records]:
            number = self._number.get(id(times))
            if number is None or self._times[number] is not times:  # identities are others in a run that was loaded
                number = self._number[id(times)] = len(self._times)
                self._times.append(times)
            found.append(number)
        return found

    # Reading ------------------------------------------------------------------------------------------------------

    def alike(self, rows: Ints) -> Iterator[tuple[Ints, ModeTimes]]:
        """Yield how the time of these jobs passes, each way once, and the positions of its jobs in `rows`."""
        number = self._numbers[TIMES, rows]
        order = np.argsort(number, kind="stable")
        for own in np.split(order, np.flatnonzero(np.diff(number[order])) + 1):
            yield own, self._times[number[own[0]]]

    @property
    def every(self) -> Ints:
        """Return the rows of all jobs, in order of arrival."""
        return np.flatnonzero(self._there[: len(self.records)])

    def rows_of(self, job_ids: Iterable[str]) -> Ints:
        """Return the rows of these jobs."""
        return np.fromiter(map(self.rows.__getitem__, job_ids), dtype=np.int64)

    def at(self, rows: Ints) -> list[SloRecord]:
        """Return the records in these rows."""
        return [record for record in map(self.records.__getitem__, rows.tolist()) if record is not None]

    def numbers(self, rows: Ints) -> Ints:
        """Return the numbers of jobs, (8, rows), in the order of the names above."""
        self._read()
        return np.ascontiguousarray(self._numbers[:, rows])

    def last_s(self, rows: Ints) -> Floats:
        """Return the last deadline of jobs, (rows,)."""
        return self._last_s[rows]

    def values(self, rows: Ints) -> Floats:
        """Return the reward of the deadline that each job's leases meet; 0 without leases."""
        numbers = self.numbers(rows)
        value, has = np.zeros(len(rows)), numbers[STEP] >= 0
        value[has] = self.options[numbers[OPTION, has] + numbers[STEP, has], 6]
        return value

    def leases(self, rows: Ints) -> tuple[Ints, Ints]:
        """Return the leases of jobs in ascending rows, and for each lease the position of its job in `rows`."""
        self._read()
        position = np.full(len(self.records) + 1, -1, dtype=np.int64)
        position[rows] = np.arange(len(rows))
        owner = position[self._owner]
        mine = owner >= 0
        return self._lease[mine], owner[mine]

    def holders(self, lease: int) -> Ints:
        """Return the rows of the jobs that have a lease, in order of arrival."""
        self._read()
        rows = self._owner[self._lease == lease]
        return np.asarray(rows[self._there[rows]])

    @property
    def end(self) -> int:
        """Return the number after the last lease that any job has; 0 without leases."""
        self._read()
        return int(self._lease[self._there[self._owner]].max(initial=-1)) + 1

    # A plan -------------------------------------------------------------------------------------------------------

    def give(self, rows: Ints, lease: Ints, owner: Ints, plan: Ints) -> None:
        """Store a plan in the records of the jobs that it changes.

        Parameters
        ----------
        rows : int64 array (jobs,)
            Jobs, in ascending rows.
        lease, owner : int64 arrays
            All leases of these jobs, one job after the other, and the position of each lease's job in `rows`.
        plan : int64 array (3, jobs)
            Mode, deadline and reach; a job with the mode -1 keeps its own.
        """
        had, whose = self.leases(rows)
        counts = np.bincount(owner, minlength=len(rows))
        same = counts == np.bincount(whose, minlength=len(rows))
        other = lease[same[owner]] != had[same[whose]]
        differs = ~same
        differs[owner[same[owner]][other]] = True
        new = np.where(plan[0] >= 0, plan, self._numbers[MODE : REACH + 1, rows])
        differs |= (new != self._numbers[MODE : REACH + 1, rows]).any(axis=0)
        self._numbers[MODE : REACH + 1, rows] = new
        ends = np.cumsum(counts)
        at = np.flatnonzero(differs)
        columns = ((ends - counts)[at].tolist(), ends[at].tolist(), *new[:, at].tolist())
        for record, begin, end, mode, step, reach in zip(self.at(rows[at]), *columns, strict=True):
            record.leases, record.mode, record.step, record.reach = lease[begin:end], mode, step, reach
        planned = np.zeros(len(self.records) + 1, dtype=np.bool_)
        planned[rows] = True
        self._put(~planned[self._owner], rows[owner], lease)

    def _read(self) -> None:
        """Read the jobs that have changed."""
        if not self._changed:
            return
        rows = np.sort(np.fromiter(self._changed, dtype=np.int64))
        self._changed = {}
        records = self.at(rows)
        facts = [(record.promised, record.mode, record.step, record.reach, len(record.leases)) for record in records]
        told = np.array(facts, dtype=np.int64).T
        self._numbers[PROMISED : REACH + 1, rows] = told[:4]
        stale = np.zeros(len(self.records) + 1, dtype=np.bool_)
        stale[rows] = True
        lease = np.concatenate([self._lease[:0], *(record.leases for record in records)])
        self._put(~stale[self._owner] & self._there[self._owner], np.repeat(rows, told[4]), lease)

    def _put(self, kept: Bools, owner: Ints, lease: Ints) -> None:
        """Replace all leases but the kept ones by these, in ascending rows."""
        owner, lease = np.concatenate((self._owner[kept], owner)), np.concatenate((self._lease[kept], lease))
        order = np.argsort(owner, kind="stable")
        self._owner, self._lease = owner[order], lease[order]

    def _grow(self, more: int) -> None:
        """Make room for more jobs; if most have left, their rows are dropped first."""
        if len(self.rows) < MOSTLY_GONE * len(self.records):
            self._drop()
        rows = max(2 * len(self.records), len(self.records) + more, FIRST_ROWS) - len(self._there)
        if rows > 0:
            self._numbers, self._last_s, self._there = (
                np.concatenate((each, np.zeros((*each.shape[:-1], rows), dtype=each.dtype)), axis=-1)
                for each in (self._numbers, self._last_s, self._there)
            )

    def _drop(self) -> None:
        """Drop the rows of jobs that have left."""
        self._read()
        kept = self.every
        row = np.full(len(self.records) + 1, -1, dtype=np.int64)
        row[kept] = np.arange(len(kept))
        mine = row[self._owner] >= 0
        self._owner, self._lease = row[self._owner[mine]], self._lease[mine]
        records = self.at(kept)
        numbers, self._last_s = self._numbers[:, kept], self._last_s[kept]
        many = numbers[OPTIONS]
        modes = np.array([len(record.modes) for record in records], dtype=np.int64)
        self.options = self.options[_ranges(numbers[OPTION], many)]
        self.shares = self.shares[_ranges(numbers[SHARE], modes)]
        used, numbers[TIMES] = np.unique(numbers[TIMES], return_inverse=True)
        self._times = [self._times[at] for at in used.tolist()]
        self._number = {id(times): at for at, times in enumerate(self._times)}
        numbers[OPTION], numbers[SHARE] = np.cumsum(many) - many, np.cumsum(modes) - modes
        self._used, self._shares_used = len(self.options), len(self.shares)
        self._numbers, self._there = np.ascontiguousarray(numbers), np.ones(len(kept), dtype=np.bool_)
        self.records = list(records)
        self.rows = {record.job.id: at for at, record in enumerate(records)}


def _ranges(begin: Ints, count: Ints) -> Ints:
    """Return the numbers from each `begin` on, `count` of them, one range after the other."""
    ends = np.cumsum(count)
    return np.asarray(np.arange(int(ends[-1]) if len(ends) else 0) + np.repeat(begin - (ends - count), count))


def _filled(array: Floats, used: int, parts: Sequence[Floats]) -> Floats:
    """Return an array of which `used` rows are in use, with these parts after them; it at least doubles if it grows."""
    end = used + sum(map(len, parts))
    if end > len(array):
        more = np.zeros((max(2 * len(array), end), *array.shape[1:]))
        more[:used] = array[:used]
        array = more
    if end > used:
        np.concatenate(parts, out=array[used:end])
    return array
