"""A whole lease plan in the making: which leases each job has, and what is free of each (docs/chronus.md, C10)."""

from __future__ import annotations

import numpy as np

from copter_frontends.chronus.options import Bools, Ints, Options


class Draft:
    """Leases given to jobs, within capacity at any time.

    Parameters
    ----------
    options : Options
    capacity : int64 array (types, leases)

    Attributes
    ----------
    free : int64 array (types, leases)
    row : int64 array (jobs,)
        Option that each job has, -1 for none.
    taken : bool array (jobs, leases)
    shifts : int
        Leases of other jobs that were moved to make room.
    """

    def __init__(self, options: Options, capacity: Ints) -> None:
        self.options = options
        self.free = np.array(capacity, dtype=np.int64)
        self.horizon = self.free.shape[1]
        self.row = np.full(options.jobs, -1, dtype=np.int64)
        self.taken: Bools = np.zeros((options.jobs, self.horizon), dtype=bool)
        self.shifts = 0
        self._table = np.stack([options.job, options.kind, options.gpus, options.need, options.last]).T

    def load(self, rows: Ints, taken: Bools) -> None:
        """Give the first jobs these options, on these leases, (rows, leases), that are known to be free."""
        self.row[: len(rows)] = rows
        self.taken[: len(rows)] = taken
        gpus = self.options.gpus[rows][:, None] * taken
        np.subtract.at(self.free, self.options.kind[rows], gpus)

    @property
    def reward(self) -> float:
        """Sum of the rewards of the options taken, above the floors."""
        return float(self.options.value[self.row[self.row >= 0]].sum())

    @property
    def broken(self) -> int:
        """Promised jobs without an option."""
        return int((self.options.must & (self.row < 0)).sum())

    def place(self, row: int) -> bool:
        """Give a job an option, on the leases with most free GPUs, late ones first; say whether it fits."""
        job, kind, gpus, need, last = self._row(row)
        free = self.free[kind, :last]
        order = np.argsort(-free[::-1], kind="stable")[:need]
        chosen = last - 1 - order
        if len(chosen) < need or free[chosen[-1]] < gpus:
            return False
        self._take(job, row, kind, gpus, chosen)
        return True

    def put(self, row: int, leases: Ints) -> bool:
        """Give a job an option on these leases; say whether they are free and as many as it needs."""
        job, kind, gpus, need, last = self._row(row)
        sound = (
            len(leases) == need and int(leases.max(initial=-1)) < last and bool((self.free[kind][leases] >= gpus).all())
        )
        if sound:
            self._take(job, row, kind, gpus, leases)
        return sound

    def remove(self, job: int) -> Ints:
        """Take a job's leases back; return them."""
        row = int(self.row[job])
        leases = np.flatnonzero(self.taken[job])
        if row >= 0:
            _, kind, gpus, _, _ = self._row(row)
            self.free[kind][leases] += gpus
            self.taken[job] = False
            self.row[job] = -1
        return leases

    def squeeze(self, row: int) -> bool:
        """As :meth:`place`, but move single leases of other jobs out of the way; changes nothing where that fails."""
        if self.place(row):
            return True
        job, kind, gpus, need, last = self._row(row)
        reserved = np.flatnonzero(self.free[kind][:last] >= gpus)
        blocked = np.flatnonzero(self.free[kind][:last] < gpus)
        blocked = blocked[np.argsort(-self.free[kind][blocked], kind="stable")]
        moves: list[tuple[int, int, int]] = []
        held = np.zeros(self.horizon, dtype=bool)
        held[reserved] = True
        short = need - len(reserved)
        for lease in blocked.tolist():
            if short == 0:
                break
            move = self._way_out(lease, kind, gpus, held)
            if move is not None:
                self._move(*move)
                moves.append(move)
                held[lease] = True
                short -= 1
        if short > 0:
            for other, source, target in reversed(moves):
                self._move(other, target, source)
            return False
        self.shifts += len(moves)
        self._take(job, row, kind, gpus, np.flatnonzero(held)[:need])
        return True

    def shift_left(self, jobs: Ints) -> int:
        """Let jobs that do not have the first lease have it in place of their last, in order; return how many do."""
        moved = 0
        for job in jobs.tolist():
            row = int(self.row[job])
            if row < 0 or self.taken[job, 0]:
                continue
            _, kind, gpus, _, _ = self._row(row)
            if self.free[kind, 0] >= gpus:
                self._move(job, int(np.flatnonzero(self.taken[job])[-1]), 0)
                moved += 1
        return moved

    def _row(self, row: int) -> list[int]:
        """Job, type, GPUs, leases needed and leases ahead of an option."""
        found: list[int] = self._table[row].tolist()
        return found

    def _take(self, job: int, row: int, kind: int, gpus: int, leases: Ints) -> None:
        self.free[kind][leases] -= gpus
        self.taken[job, leases] = True
        self.row[job] = row

    def _move(self, job: int, source: int, target: int) -> None:
        _, kind, gpus, _, _ = self._row(int(self.row[job]))
        self.free[kind, source] += gpus
        self.free[kind, target] -= gpus
        self.taken[job, source] = False
        self.taken[job, target] = True

    def _way_out(self, lease: int, kind: int, gpus: int, held: Bools) -> tuple[int, int, int] | None:
        """One job whose lease, moved elsewhere, makes room for `gpus` more: (job, lease, its new lease)."""
        options = self.options
        here = np.flatnonzero(self.taken[:, lease])
        rows = self.row[here]
        size = options.gpus[rows]
        lacking = gpus - int(self.free[kind, lease])
        fits = (options.kind[rows] == kind) & (size >= lacking)
        here, rows, size = here[fits], rows[fits], size[fits]
        if len(here) == 0:
            return None
        room = self.free[kind][None, :] - np.where(held, gpus, 0)[None, :] >= size[:, None]
        room &= ~self.taken[here] & (np.arange(self.horizon)[None, :] < options.last[rows][:, None])
        able = np.flatnonzero(room.any(axis=1))
        if len(able) == 0:
            return None
        best = able[np.argmin(size[able])]
        target = self.horizon - 1 - int(np.argmax(room[best][::-1]))
        return int(here[best]), lease, target
