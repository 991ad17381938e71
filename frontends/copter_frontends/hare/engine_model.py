"""The relaxation in the engine: a request per job with private rows, a resource per GPU type and interval (HR13)."""

from __future__ import annotations

from collections.abc import Mapping
from time import perf_counter
from typing import Any

import numpy as np
from scipy.sparse import coo_array, csc_array

from copter import Model, PrivateRows, Session, Settings, Solution
from copter_frontends.hare.columns import JobColumns
from copter_frontends.hare.instance import Floats, Ints
from copter_frontends.policy_kit import Edits

# absolute divided by relative tolerance; large, as GPU seconds are large numbers in the solver's units
ABSOLUTE = 100.0
Row = tuple[int, float]  # GPU type, and the right edge of an interval in seconds


class EngineModel:
    """The relaxation in one :class:`copter.Session`; resources are keyed by absolute time, requests by job.

    A request's columns are its GPU seconds, its excess and its share of undone work, which costs more than any other
    column and ensures feasibility. Its private rows are the parallelism of each interval (HR5), its work (HR6) and its
    excess (HR8). The coefficients are those of the job when it was added: with progress, only bounds and the cost of
    the excess change.

    Attributes
    ----------
    model : copter.Model
    session : copter.Session
    edits : Edits
        Edits since :meth:`begin`.
    solution : Solution or None
        The last solution.
    solution_s : float
        Seconds of the last solve.
    """

    def __init__(self, threads: int = 0) -> None:
        self.model = Model("min")
        self.session = Session(self.model, Settings(threads=threads))
        self.edits = Edits()
        self.solution: Solution | None = None
        self.solution_s = 0.0
        self._jobs: dict[str, tuple[JobColumns, float]] = {}  # columns as added, and the `start` of the undone share
        self._now: dict[str, tuple[JobColumns, float]] = {}  # current columns, and the remaining share of the work
        self._rows: dict[Row, float] = {}
        self._before: set[str] | None = None  # jobs before the rows were edited, until the jobs are edited too

    def __getstate__(self) -> dict[str, Any]:
        """Return all fields but the last solution, which is not saved."""
        return {**self.__dict__, "solution": None}

    def begin(self) -> None:
        """Reset the counts of edits."""
        self.edits = Edits()

    # Edits --------------------------------------------------------------------------------------------------------

    def set_rows(self, capacity: Mapping[Row, float]) -> None:
        """Edit the model to have these resources: drop past ones, add new ones, update changed capacities."""
        self._before = set(self._jobs)
        gone = [row for row in self._rows if row not in capacity]
        fresh = [row for row in capacity if row not in self._rows]
        moved = [row for row, units in self._rows.items() if row in capacity and capacity[row] != units]
        if gone:
            dead = set(gone)
            lost = [j for j, (own, _) in self._jobs.items() if not dead.isdisjoint(_rows_of(own))]
            self.remove(lost)
            for row in gone:
                self.model.drop_resource(row)
        for row in fresh:
            self.model.add_resources(row, capacity[row])
        if moved:
            self.model.update_counts(moved, np.array([capacity[row] for row in moved]))
        self.edits.resources += len(gone) + len(fresh) + len(moved)
        self._rows = dict(capacity)

    def set_jobs(self, jobs: Mapping[str, JobColumns], undone_at: float) -> None:
        """Edit the model to have these requests: remove others, and replace those with changed columns or
        coefficients. A replaced request counts as changed.
        """
        before, self._before = set(self._jobs) if self._before is None else self._before, None
        self.remove([job for job in self._jobs if job not in jobs])
        bounds: dict[str, tuple[JobColumns, float]] = {}
        fresh: dict[str, JobColumns] = {}
        for job, own in jobs.items():
            had = self._jobs.get(job)
            left = None if had is None or had[1] != undone_at else _left(had[0], own)
            if left is not None:
                if not _same(self._now[job], (own, left)):
                    bounds[job] = (own, left)
                continue
            fresh[job] = own
        self.remove([job for job in fresh if job in self._jobs])
        self._add(fresh, undone_at)
        self._move(bounds)
        self.edits.added += len(self._jobs.keys() - before)
        self.edits.removed += len(before - self._jobs.keys())
        self.edits.changed += len(bounds) + len(before & fresh.keys())
        self.edits.requests = len(self._jobs)

    def remove(self, jobs: list[str]) -> None:
        """Remove these jobs' requests from the model in one edit; all must be in the model."""
        if jobs:
            self.model.remove_requests(jobs)
            for job in jobs:
                del self._jobs[job], self._now[job]

    def _add(self, jobs: Mapping[str, JobColumns], undone_at: float) -> None:
        """Add requests, with all of their work undone, in one edit."""
        if not jobs:
            return
        own = list(jobs.values())
        columns, rows = (np.array([len(getattr(each, what)) for each in own]) for what in ("edge", "parallel"))
        first, first_row = (np.concatenate(([0], np.cumsum(counts + 2))) for counts in (columns, rows))
        last = np.stack((first[1:] - 2, first[1:] - 1))  # positions of each job's excess and undone share
        n = int(first[-1])
        seconds = np.ones(n, dtype=np.bool_)
        seconds[last] = False
        at, base = np.flatnonzero(seconds), np.repeat(first_row[:-1], columns)
        work = np.repeat(first_row[1:] - 2, columns)
        alpha, start = (np.concatenate([getattr(each, what) for each in own]) for what in ("alpha", "start"))
        row = base + np.concatenate([each.row for each in own])
        ones, end = np.ones(len(own)), first_row[1:] - 1
        entries = (
            (at, row, np.ones(len(at))),
            (at, work, alpha),
            (at, work + 1, -alpha * start),
            (last[0], end, ones),
            (last[1], end - 1, ones),
            (last[1], end, -undone_at * ones),
        )
        column, line, value = (np.concatenate([each[part] for each in entries]) for part in range(3))
        matrix = coo_array((value, (line, column)), shape=(int(first_row[-1]), n))
        lower, upper = (np.concatenate(side) for side in zip(*(_bounds(each, 1.0) for each in own), strict=True))
        cost = np.zeros(n)
        cost[last[0]] = [each.weight for each in own]
        self.model.add_own_requests(
            list(jobs),
            columns + 2,
            cost,
            self._usage(own, at, n),
            resources=list(self._rows),
            limit=np.inf,
            private_rows=PrivateRows(matrix, lower, upper),
            private_sizes=rows + 2,
        )
        for job, each in jobs.items():
            self._jobs[job], self._now[job] = (each, undone_at), (each, 1.0)

    def _usage(self, own: list[JobColumns], at: Ints, n: int) -> csc_array:
        """Return the usage of n columns, each of which uses seconds of one type in one interval."""
        kind, edge = (np.concatenate([getattr(each, what) for each in own]) for what in ("kind", "edge"))
        edges, place = np.unique(edge, return_inverse=True)
        number = {row: k for k, row in enumerate(self._rows)}
        kinds = int(kind.max()) + 1
        table = np.array([[number.get((g, each), -1) for g in range(kinds)] for each in edges.tolist()])
        start = np.zeros(n + 1, dtype=np.int32)
        start[at + 1] = 1
        return csc_array((np.ones(len(at)), table[place, kind], np.cumsum(start)), shape=(len(number), n))

    def _move(self, bounds: Mapping[str, tuple[JobColumns, float]]) -> None:
        """Update bounds and costs of requests to their remaining work; coefficients do not depend on it."""
        jobs = list(bounds)
        if not jobs:
            return
        pairs = [_bounds(own, left) for own, left in bounds.values()]
        self.model.update_row_bounds(jobs, [low for low, _ in pairs], [high for _, high in pairs])
        for job, (own, left) in bounds.items():
            self.model.update_column_cost(job, len(own.edge), own.weight / left)
        self._now.update(bounds)

    # Solutions ----------------------------------------------------------------------------------------------------

    def solve(self, tolerance: float, time_limit_s: float) -> Solution:
        """Solve the current model; rows hold to the relative tolerance, so that the caller repairs the point."""
        settings = self.session.settings
        if settings.tolerance != tolerance:
            self.session.settings = Settings(
                tolerance=tolerance, absolute_tolerance=ABSOLUTE * tolerance, threads=settings.threads
            )
        begun = perf_counter()
        self.solution = self.session.solve(time_limit_s if np.isfinite(time_limit_s) else None)
        self.solution_s = perf_counter() - begun
        return self.solution

    def gpu_seconds(self, solution: Solution, jobs: list[str]) -> list[Floats]:
        """Return the values of each job's columns, without its excess and its undone share."""
        first, values = solution.values_of(jobs)
        at = first.tolist()
        return [np.maximum(values[at[n] : at[n + 1] - 2], 0.0) for n in range(len(jobs))]

    def prices(self, solution: Solution, rows: list[Row]) -> Floats:
        """Return the price of a GPU second of each row, at least zero."""
        return np.abs(solution.prices(rows))


def _rows_of(own: JobColumns) -> list[Row]:
    return list(zip(own.kind.tolist(), own.edge.tolist(), strict=True))


def _bounds(own: JobColumns, left: float) -> tuple[Floats, Floats]:
    """Return the bounds of a job's private rows if this share of its original work is left."""
    none = np.full(len(own.parallel), -np.inf)
    return np.append(none, (left, left * own.excess)), np.append(own.parallel, (left, np.inf))


def _same(had: tuple[JobColumns, float], now: tuple[JobColumns, float]) -> bool:
    """Return whether bounds and costs are unchanged."""
    (before, left), (own, share) = had, now
    told = (left, before.excess, before.weight) == (share, own.excess, own.weight)
    return told and np.array_equal(before.parallel, own.parallel)


def _left(had: JobColumns, own: JobColumns) -> float | None:
    """Return the remaining share of the work at the time of adding; None if columns or coefficients differ."""
    same = (
        np.array_equal(had.edge, own.edge)
        and np.array_equal(had.kind, own.kind)
        and np.array_equal(had.start, own.start)
    )
    if not same:
        return None
    left = had.alpha[0] / own.alpha[0]
    return float(left) if np.allclose(had.alpha, left * own.alpha, rtol=1e-12, atol=0.0) else None
