"""The lease program on the engine: a request per job, a resource per GPU type and block of leases (chronus.md, C13)."""

from __future__ import annotations

import time
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.sparse import csc_array

from copter import Model, Session, Settings, Solution, Status
from copter_frontends.policies.chronus.column_pool import ColumnPool
from copter_frontends.policies.chronus.lease_blocks import LeaseBlocks
from copter_frontends.policies.chronus.options import Bools, Floats, Ints, Options
from copter_frontends.policy_kit import Edits

Row = tuple[int, int, int]  # GPU type, first absolute lease, and the one after the last
ROUNDING = 1e-9  # smaller shares of a column count as zero


@dataclass(frozen=True, slots=True)
class Mixture:
    """A solution: reward of the mixture, prices of the scarce leases, and the share of every column of the pool."""

    value: float
    price: Floats
    share: Floats


class LeaseModel:
    """The lease program in one :class:`copter.Session` for all cycles.

    A request is a job; its columns are its lease sets in the pool. It takes at most one of them, and exactly one if it
    has a promise. Past leases are dropped, and leases that become scarce are added. A job whose columns have not
    changed is left in the model, with its values.

    Attributes
    ----------
    model : copter.Model
    session : copter.Session
    edits : Edits
        Edits since :meth:`begin`.
    solution : Solution or None
        The last solution since :meth:`begin`.
    solution_s : float
        Seconds of that solve and of the edits before it.
    """

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.begin()
        self._start()

    def __getstate__(self) -> dict[str, Any]:
        """Return all fields but the last solution, which is not saved."""
        return {**self.__dict__, "solution": None}

    def _start(self) -> None:
        self.model = Model("max")
        self.session = Session(self.model, self.settings)
        self.rows: dict[Row, float] = {}
        self._columns: dict[Hashable, Ints] = {}  # by job, its columns' unique numbers in the model's order
        self._must: dict[Hashable, bool] = {}
        self._since = 0.0

    def begin(self) -> None:
        """Reset the counts of edits."""
        self.edits = Edits()
        self.solution: Solution | None = None
        self.solution_s = 0.0

    # Edits --------------------------------------------------------------------------------------------------------

    def set_program(self, options: Options, pool: ColumnPool, capacity: Ints, blocks: LeaseBlocks, free: Bools) -> None:
        """Edit the model to have the blocks of leases with `capacity`, (types, blocks), and the `free` jobs.

        Requests that leave or change are removed before the past leases, because dropping a resource changes every
        request that is still in the model.
        """
        self._since = time.perf_counter()
        first, names = blocks.first, blocks.names
        rows = [(q, *name) for q in range(len(capacity)) for name in names]
        wanted = dict(zip(rows, capacity.ravel().astype(np.float64).tolist(), strict=True))
        gone = [row for row in self.rows if row not in wanted]
        if gone and len(gone) == len(self.rows):
            self._start()
            gone = []
        fresh = [row for row in wanted if row not in self.rows]
        if self._columns:
            touched = {lease for _, begin, end in (*fresh, *gone) for lease in range(max(begin, first), end)}
            self._forget(pool, touched, first)
        order, start = pool.by_job(options.jobs)
        again, gone_jobs, replaced = self._retire(options, pool, pool.uid[order], start, free)
        self._move_leases(wanted, gone, fresh)
        self._add(options, pool, again, [order[start[job] : start[job + 1]] for job in again], blocks)
        self.edits.added += len(again) - replaced
        self.edits.removed += gone_jobs
        self.edits.changed += replaced
        self.edits.requests = len(self._columns)

    def _forget(self, pool: ColumnPool, touched: set[int], first: int) -> None:
        """Mark the jobs with columns on these leases as to be added again."""
        at = np.array(sorted(lease - first for lease in touched), dtype=np.int64)
        at = at[at < pool.leases.shape[1]]
        if not len(at):
            return
        for job in np.unique(pool.job[pool.leases[:, at].any(axis=1)]).tolist():
            name = pool.names[job]
            if name in self._columns:
                self._columns[name] = np.zeros(0, dtype=np.int64)

    def _retire(
        self, options: Options, pool: ColumnPool, uid: Ints, start: Ints, free: Bools
    ) -> tuple[list[int], int, int]:
        """Remove the requests that leave or change, and edit promises.

        Returns the jobs to add, the number of requests that leave, and how many of the jobs to add were in the model.
        """
        at = np.flatnonzero(free)
        jobs = at.tolist()
        known = {pool.names[job] for job in jobs}
        gone = [name for name in self._columns if name not in known]
        again: list[int] = []
        promised: list[Hashable] = []
        freed: list[Hashable] = []
        ends = start[at].tolist(), start[at + 1].tolist()
        for job, a, b, must in zip(jobs, *ends, options.must[at].tolist(), strict=True):
            name = pool.names[job]
            had = self._columns.get(name)
            if had is None or len(had) != b - a or (had != uid[a:b]).any():
                if had is not None or b > a:
                    again.append(job)
            elif must != self._must[name]:
                (promised if must else freed).append(name)
        replaced = [pool.names[job] for job in again if pool.names[job] in self._columns]
        if gone or replaced:
            self.model.remove_requests([*gone, *replaced])
        for name in [*gone, *replaced]:
            del self._columns[name], self._must[name]
        for names, least in ((promised, 1.0), (freed, -np.inf)):
            if names:
                self.model.update_limits(names, np.ones(len(names)), np.full(len(names), least))
                self._must.update(dict.fromkeys(names, least == 1.0))
        self.edits.changed += len(promised) + len(freed)
        return again, len(gone), len(replaced)

    def _move_leases(self, wanted: dict[Row, float], gone: list[Row], fresh: list[Row]) -> None:
        """Remove past leases, add new ones, and update the capacities of the others."""
        for row in gone:
            self.model.remove_resource(row)
        for row in fresh:
            self.model.add_resource(row, wanted[row])
        moved = [row for row in wanted if row in self.rows and self.rows[row] != wanted[row]]
        if moved:
            self.model.update_counts(moved, np.array([wanted[row] for row in moved]))
        self.edits.resources += len(gone) + len(fresh) + len(moved)
        self.rows = wanted

    def _add(self, options: Options, pool: ColumnPool, jobs: list[int], mine: list[Ints], blocks: LeaseBlocks) -> None:
        """Add jobs with these columns of the pool in one edit; jobs without columns are left out."""
        jobs, mine = [job for job, own in zip(jobs, mine, strict=True) if len(own)], [own for own in mine if len(own)]
        if not jobs:
            return
        columns = np.concatenate(mine)
        row = pool.row[columns]
        counts = blocks.counts(pool.leases[columns])
        column, block = np.nonzero(counts)
        place = options.kind[row][column] * counts.shape[1] + block  # the order of the blocks in `rows`
        start = np.searchsorted(column, np.arange(len(columns) + 1)).astype(np.int32)
        units = (options.gpus[row][column] * counts[column, block]).astype(np.float64)
        usage = csc_array((units, place, start), shape=(len(self.rows), len(columns)))
        names, must = [pool.names[job] for job in jobs], options.must[jobs]
        least, sizes = np.where(must, 1.0, -np.inf), np.array([len(own) for own in mine])
        self.model.add_own_requests(names, sizes, options.value[row], usage, resources=list(self.rows), at_least=least)
        self._must.update(zip(names, must.tolist(), strict=True))
        self._columns.update((name, pool.uid[own]) for name, own in zip(names, mine, strict=True))

    # Solution -----------------------------------------------------------------------------------------------------

    def mix(
        self, options: Options, pool: ColumnPool, capacity: Ints, time_limit_s: float, tolerance: float
    ) -> Mixture | None:
        """Return the solution to a tolerance; None if none is found in time."""
        self.session.settings = replace(self.settings, tolerance=tolerance, absolute_tolerance=tolerance)
        solution = self.session.solve(max(time_limit_s, 1e-3) if np.isfinite(time_limit_s) else None)
        self.solution, self.solution_s = solution, time.perf_counter() - self._since
        if solution.status is not Status.OPTIMAL:
            return None
        order, start = pool.by_job(options.jobs)
        jobs = sorted(map(pool.number.__getitem__, self._columns))
        names: Sequence[Hashable] = [pool.names[job] for job in jobs]
        share = np.zeros(len(pool))
        places = [order[start[job] : start[job + 1]] for job in jobs]
        share[np.concatenate([order[:0], *places])] = solution.values_of(names)[1]
        share = np.where(share > ROUNDING, share, 0.0)
        price = np.abs(solution.prices(list(self.rows))).reshape(capacity.shape)
        return Mixture(float(share @ options.value[pool.row]), price, share)
