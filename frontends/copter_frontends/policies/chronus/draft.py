"""An integer lease plan under construction: each job's leases, and the GPUs left in each (papers/chronus.md, C16)."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from copter_frontends.policies.chronus.options import Bools, Floats, Ints, Options, jobs_and_leases

AT_ONCE = 64  # if not all jobs of a group fit, groups of at most this many jobs are placed one by one
MOST_MOVED = 24  # most leases of other jobs that are moved to make room for one job
# to make room by moves, at most so many leases, and so many (the smallest) jobs of each, are considered
MOST_LOOKED_AT = 128

MOST_WAYS = 16  # leases beyond these from which a chain of moves is searched

Move = tuple[int, int, int]  # a job, its lease, its new lease


class Draft:
    """Leases assigned to jobs; never exceeds the capacity.

    Parameters
    ----------
    options : Options
    capacity : int64 array (types, leases)
    taken : bool array (jobs, leases), optional
        Leases of a plan of which `capacity` is what is left; the draft changes this array. By default none.

    Attributes
    ----------
    free : int64 array (types, leases)
    row : int64 array (jobs,)
        Option of each job, -1 for none.
    taken : bool array (jobs, leases)
    shifts : int
        Number of other jobs' leases that were moved to make room.
    moved : set of int
        Jobs of which a lease was moved, even if it was moved back.
    """

    def __init__(self, options: Options, capacity: Ints, taken: Bools | None = None) -> None:
        self.options = options
        self.free = np.array(capacity, dtype=np.int64)
        self.horizon = self.free.shape[1]
        self.row = np.full(options.jobs, -1, dtype=np.int64)
        self.taken: Bools = np.zeros((options.jobs, self.horizon), dtype=bool) if taken is None else taken
        self.shifts, self.moved = 0, set[int]()
        columns = (options.job, options.kind, options.gpus, options.need, options.last)
        self._table = np.stack(columns, axis=1)
        self._first = options.rows_of()

    @classmethod
    def standing(cls, options: Options, capacity: Ints, use: Ints, taken: Bools) -> Draft | None:
        """Return a draft of an existing plan: all jobs but the last have an option and the leases it needs; None if
        infeasible.

        Parameters
        ----------
        options : Options
            First one option for each of these jobs, then the options of the last one, which has no leases.
        capacity : int64 array (types, leases)
        use : int64 array (types, leases)
            GPUs that the plan uses.
        taken : bool array (jobs, leases)
            The leases; the draft changes this array.

        Returns
        -------
        Draft or None
            None if the plan uses more GPUs than exist.
        """
        if (use > capacity).any():
            return None
        result = cls(options, capacity - use, taken)
        result.row[:-1] = np.arange(len(taken) - 1)
        return result

    def copy(self) -> Draft:
        """Return an independent copy."""
        other = Draft(self.options, self.free)
        other.row, other.taken, other.shifts = self.row.copy(), self.taken.copy(), self.shifts
        return other

    def ranked(self, job: int, scarcity: Floats | None = None) -> list[int]:
        """Return a job's options by reward, then by GPU-leases times the `scarcity` (types,) of their GPU type."""
        options, first, end = self.options, int(self._first[job]), int(self._first[job + 1])
        if end - first < 2:
            return list(range(first, end))
        own = slice(first, end)
        dear = 1.0 if scarcity is None else scarcity[options.kind[own]]
        order = np.lexsort((options.gpus[own] * options.need[own] * dear, -options.value[own]))
        ranked: list[int] = (order + first).tolist()
        return ranked

    def put_all(self, rows: Ints, leases: Bools) -> Bools:
        """Give each option of `rows` its leases, (rows, leases), in turn; returns which options fit, (rows,)."""
        return self.put_leases(rows, *jobs_and_leases(leases))

    def put_leases(self, rows: Ints, at: Ints, lease: Ints) -> Bools:
        """Do :meth:`put_all` with sparse input: `lease` of the option at position `at` of the rows, both ascending."""
        options, fits = self.options, np.zeros(len(rows), dtype=bool)
        count = np.bincount(at, minlength=len(rows))
        ends, has = np.zeros(len(rows), dtype=np.int64), count > 0
        ends[has] = lease[(np.cumsum(count) - 1)[has]] + 1
        sound = (count == options.need[rows]) & (ends <= options.last[rows])
        which, lease = np.flatnonzero(sound), lease[sound[at]]
        first = np.concatenate(([0], np.cumsum(count[which]))).tolist()
        row = rows[which]
        job, place, gpus = (
            np.repeat(each, count[which])
            for each in (options.job[row], options.kind[row] * self.horizon, options.gpus[row])
        )
        place += lease
        parts = [(0, len(which))] if len(which) else []
        while parts:
            begin, end = parts.pop()
            own = slice(first[begin], first[end])
            use = np.bincount(place[own], gpus[own], self.free.size).astype(np.int64).reshape(self.free.shape)
            if (use <= self.free).all():
                self.free -= use
                self.row[options.job[row[begin:end]]] = row[begin:end]
                self.taken[job[own], lease[own]] = True
                fits[which[begin:end]] = True
            elif end - begin > AT_ONCE:
                half = (begin + end) // 2
                parts += [(half, end), (begin, half)]  # the first half comes next
            else:
                for each in range(begin, end):
                    fits[which[each]] = self.put(int(row[each]), lease[first[each] : first[each + 1]])
        return fits

    @property
    def reward(self) -> float:
        """Sum of the rewards, above the floors, of the chosen options."""
        return float(self.options.value[self.row[self.row >= 0]].sum())

    @property
    def broken(self) -> int:
        """Number of promised jobs without an option."""
        return int((self.options.must & (self.row < 0)).sum())

    def roomy(self, rows: Ints, own: bool = False) -> Bools:
        """Mark options with enough free leases before their deadlines; with `own`, the job's own leases count as
        free.
        """
        options = self.options
        kind, gpus, last = options.kind[rows], options.gpus[rows], options.last[rows]
        sizes, which = np.unique(kind * (int(gpus.max(initial=0)) + 1) + gpus, return_inverse=True)
        room = np.zeros(len(rows), dtype=np.int64)
        for each in range(len(sizes)):
            mine = np.flatnonzero(which == each)
            free = self.free[kind[mine[0]], : int(last[mine].max())] >= gpus[mine[0]]
            room[mine] = np.concatenate(([0], np.cumsum(free)))[last[mine]]
        if own:
            job = options.job[rows]
            now = self.row[job]
            same = np.flatnonzero((now >= 0) & (options.kind[now] == kind))
            jobs, which = np.unique(job[same], return_inverse=True)
            lease = [np.flatnonzero(self.taken[each]) for each in jobs.tolist()]
            for at, each in zip(same.tolist(), which.tolist(), strict=True):
                there = self.free[kind[at], lease[each][lease[each] < last[at]]]
                room[at] += ((there < gpus[at]) & (there + options.gpus[now[at]] >= gpus[at])).sum()
        return np.asarray(room >= options.need[rows])

    def jobs_with_room(self, jobs: Ints) -> Bools:
        """Mark jobs with an option for which :meth:`place` would now find leases."""
        wanted = np.zeros(self.options.jobs, dtype=bool)
        wanted[jobs] = True
        rows = np.flatnonzero(wanted[self.options.job])
        able = np.zeros(self.options.jobs, dtype=bool)
        able[self.options.job[rows[self.roomy(rows)]]] = True
        return able[jobs]

    def place(self, row: int) -> bool:
        """Give a job an option, using the leases with most free GPUs, late ones first; returns whether it fits."""
        job, kind, gpus, need, last = self._table[row].tolist()
        if need > self._room(kind, gpus, last):
            return False
        order = np.argsort(-self.free[kind, :last][::-1], kind="stable")[:need]
        self._take(job, row, kind, gpus, last - 1 - order)
        return True

    def put(self, row: int, leases: Ints) -> bool:
        """Give a job an option with these leases; returns False if they are not free or not as many as needed."""
        job, kind, gpus, need, last = self._table[row].tolist()
        sound = (
            len(leases) == need and int(leases.max(initial=-1)) < last and bool((self.free[kind][leases] >= gpus).all())
        )
        if sound:
            self._take(job, row, kind, gpus, leases)
        return sound

    def remove(self, job: int) -> Ints:
        """Free a job's leases; returns them."""
        row = int(self.row[job])
        leases = np.flatnonzero(self.taken[job])
        if row >= 0:
            _, kind, gpus, _, _ = self._table[row].tolist()
            self.free[kind][leases] += gpus
            self.taken[job] = False
            self.row[job] = -1
        return leases

    def may_squeeze(self, row: int) -> bool:
        """Whether :meth:`squeeze` would try to make room for the option in this row.

        It would if the option lacks at most MOST_MOVED leases, and no more than there are leases before its deadline
        with too few free GPUs.
        """
        _, kind, gpus, need, last = self._table[row].tolist()
        roomy = self._room(kind, gpus, last)
        return bool(need - roomy <= min(MOST_MOVED, last - roomy))

    def squeeze(self, row: int) -> bool:
        """Place an option as :meth:`place` does, moving single leases of other jobs if necessary; on failure
        nothing changes.
        """
        if self.place(row):
            return True
        job, kind, gpus, need, last = self._table[row].tolist()
        leases = np.flatnonzero(self.free[kind, :last] >= gpus)
        if need - len(leases) > min(MOST_MOVED, last - len(leases)):
            return False
        self._take(job, row, kind, gpus, leases)
        done: list[Move] = []
        for _ in range(need - len(leases)):
            moves = self._way_in(job, kind, gpus, last)
            if moves is None:
                for other, source, target in reversed(done):
                    self._move(other, target, source)
                self.remove(job)
                return False
            lease = moves[-1][1]
            for move in moves:
                self._move(*move)
            done += moves
            self.free[kind, lease] -= gpus
            self.taken[job, lease] = True
        self.shifts += len(done)
        return True

    def shift_left(self, jobs: Ints) -> int:
        """Give jobs without the first lease that lease in place of their last one, in order; returns how many moved."""
        moved = 0
        for job in jobs.tolist():
            row = int(self.row[job])
            if row < 0 or self.taken[job, 0]:
                continue
            _, kind, gpus, _, _ = self._table[row].tolist()
            if self.free[kind, 0] >= gpus:
                self._move(job, int(np.flatnonzero(self.taken[job])[-1]), 0)
                moved += 1
        return moved

    def _room(self, kind: int, gpus: int, last: int) -> int:
        """Return how many of the first `last` leases have at least `gpus` free GPUs."""
        return int(np.count_nonzero(self.free[kind, :last] >= gpus))

    def _take(self, job: int, row: int, kind: int, gpus: int, leases: Ints) -> None:
        self.free[kind][leases] -= gpus
        self.taken[job, leases] = True
        self.row[job] = row

    def _move(self, job: int, source: int, target: int) -> None:
        _, kind, gpus, _, _ = self._table[int(self.row[job])].tolist()
        self.free[kind, source] += gpus
        self.free[kind, target] -= gpus
        self.taken[job, source] = False
        self.taken[job, target] = True
        self.moved.add(job)

    def _way_in(self, job: int, kind: int, gpus: int, last: int) -> list[Move] | None:
        """Return moves of single leases that free one more lease for a job, namely the source of the last move.

        Breadth-first search: a lease is freed by moving a job that has it to another lease, which is free or is freed
        in the same way.
        """
        options, free = self.options, self.free[kind]
        wanted, seen = np.flatnonzero(~self.taken[job, :last]), np.zeros(self.horizon, dtype=bool)
        seen[wanted] = True
        # the job whose move led here, and from which lease
        came: dict[int, tuple[int, int] | None] = dict.fromkeys(wanted.tolist())
        queue = [(lease, gpus) for lease in wanted[np.argsort(-free[wanted], kind="stable")].tolist()]
        at, most, horizon = 0, min(len(queue), MOST_LOOKED_AT) + MOST_WAYS, np.arange(self.horizon)[None, :]
        while at < min(len(queue), most):
            lease, size = queue[at]
            at += 1
            here = np.flatnonzero(self.taken[:, lease])
            here = here[(options.kind[self.row[here]] == kind) & (here != job)]
            gives = options.gpus[self.row[here]]
            fits = np.flatnonzero(gives >= size - free[lease])
            fits = fits[np.argsort(gives[fits], kind="stable")][:MOST_LOOKED_AT]
            here, gives = here[fits], gives[fits]
            if not len(here):
                continue
            could = ~self.taken[here] & (horizon < options.last[self.row[here]][:, None])
            room = could & (free[None, :] >= gives[:, None])
            room[:, list(_way(came, lease))] = False
            able = np.flatnonzero(room.any(axis=1))
            if len(able):
                mover = int(here[able[0]])
                moves = [(mover, lease, self.horizon - 1 - int(np.argmax(room[able[0]][::-1])))]
                while (before := came[lease]) is not None:
                    moves.append((before[0], before[1], lease))
                    lease = before[1]
                return moves
            could &= ~seen
            fresh = np.flatnonzero(could.any(axis=0))
            first = np.argmax(could[:, fresh], axis=0)
            seen[fresh] = True
            for target, mover in zip(fresh.tolist(), first.tolist(), strict=True):
                came[target] = int(here[mover]), lease
                queue.append((target, int(gives[mover])))
        return None


def _way(came: dict[int, tuple[int, int] | None], lease: int) -> Iterator[int]:
    """Return the leases on the path to a lease."""
    yield lease
    while (before := came[lease]) is not None:
        lease = before[1]
        yield lease
