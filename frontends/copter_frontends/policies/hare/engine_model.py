"""The relaxation in the engine: a request per job with private rows, a resource per GPU type and interval (HR13)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from time import perf_counter
from typing import Any

import numpy as np
from scipy.sparse import coo_array, csc_array

from copter import Model, PrivateRows, Session, Settings, Solution
from copter_frontends.policies.hare.columns import JobColumns
from copter_frontends.policies.hare.instance import Floats, Ints
from copter_frontends.policy_kit import Edits

# absolute divided by relative tolerance; large, as GPU seconds are large numbers in the solver's units
ABSOLUTE = 100.0
KINDS = 64  # more GPU types than there are, for numbers that name columns
Row = tuple[int, float]  # GPU type, and the right edge of an interval in seconds


class EngineModel:
    """The relaxation in one :class:`copter.Session`; resources are keyed by absolute time, requests by job.

    A request's columns are its GPU seconds, its excess and its share of undone work, which costs more than any other
    column and ensures feasibility. Its private rows are the parallelism of each interval (HR5), its work (HR6) and its
    excess (HR8). The coefficients are those of the job when it got its columns: with progress, only bounds and the cost
    of the excess change. Other columns are an edit in place too. A job whose plan stays has one column, which is zero.

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
        # columns as they were given (None for a job whose plan stays), and the `start` of the undone share
        self._jobs: dict[str, tuple[JobColumns | None, float]] = {}
        self._now: dict[str, tuple[JobColumns, float]] = {}  # current columns, and the remaining share of the work
        self._rows: dict[Row, float] = {}

    def __getstate__(self) -> dict[str, Any]:
        """Return all fields but the last solution, which is not saved."""
        return {**self.__dict__, "solution": None}

    def begin(self) -> None:
        """Reset the counts of edits."""
        self.edits = Edits()

    # Edits --------------------------------------------------------------------------------------------------------

    def edit(self, capacity: Mapping[Row, float], jobs: Mapping[str, JobColumns | None], undone_at: float) -> None:
        """Edit the model to have these resources and requests; None for a job whose plan stays.

        Only jobs that have come or gone are added or removed. On an error, nothing is changed.
        """
        gone = [job for job in self._jobs if job not in jobs]
        fresh: dict[str, JobColumns | None] = {}
        other: dict[str, JobColumns | None] = {}
        bounds: dict[str, tuple[JobColumns, float]] = {}
        for job, own in jobs.items():
            had = self._jobs.get(job)
            if had is None:
                fresh[job] = own
            elif own is None or had[0] is None:
                if own is not had[0]:
                    other[job] = own
            else:
                left = _left(had[0], own) if had[1] == undone_at else None
                if left is None:
                    other[job] = own
                elif not _same(self._now[job], (own, left)):
                    bounds[job] = (own, left)
        with self.model.batch():
            past = self._set_rows(capacity)
            self._remove(gone)
            self._give(other, undone_at, present=True)
            self._give(fresh, undone_at)
            self._move(bounds)
            for row in past:  # no request uses them any more
                self.model.remove_resource(row)
        self._rows = dict(capacity)
        self.edits.added += len(fresh)
        self.edits.removed += len(gone)
        self.edits.changed += len(bounds) + len(other)
        self.edits.requests = len(self._jobs)

    def _set_rows(self, capacity: Mapping[Row, float]) -> list[Row]:
        """Add the resources that are new, update changed capacities, and return those that are past."""
        past = [row for row in self._rows if row not in capacity]
        fresh = [row for row in capacity if row not in self._rows]
        moved = [row for row, units in self._rows.items() if row in capacity and capacity[row] != units]
        for row in fresh:
            self.model.add_resource(row, capacity[row])
        if moved:
            self.model.update_counts(moved, np.array([capacity[row] for row in moved]))
        self.edits.resources += len(past) + len(fresh) + len(moved)
        self._rows |= dict.fromkeys(fresh, 0.0)
        return past

    def _remove(self, jobs: list[str]) -> None:
        """Remove requests in one edit."""
        if jobs:
            self.model.remove_requests(jobs)
        for job in jobs:
            del self._jobs[job]
            self._now.pop(job, None)

    def _give(self, jobs: Mapping[str, JobColumns | None], undone_at: float, present: bool = False) -> None:
        """Add requests, or give present ones other columns, in one edit; all of their work is undone."""
        if not jobs:
            return
        live = [each for each in jobs.values() if each is not None]
        solved = np.array([each is not None for each in jobs.values()])
        columns, rows = _sizes(jobs.values())
        first, first_row = (np.concatenate(([0], np.cumsum(counts))) for counts in (columns, rows))
        last = np.stack((first[1:] - 2, first[1:] - 1))[:, solved]  # positions of each job's excess and undone share
        n, end = int(first[-1]), first_row[1:][solved] - 1
        seconds = np.repeat(solved, columns)
        seconds[last] = False
        own = columns[solved] - 2
        at, base, work = np.flatnonzero(seconds), np.repeat(first_row[:-1][solved], own), np.repeat(end - 1, own)
        alpha, start, line = (_joined(live, name) for name in ("alpha", "start", "row"))
        ones = np.ones(len(live))
        entries = (
            (at, base + line.astype(np.int64), np.ones(len(at))),
            (at, work, alpha),
            (at, work + 1, -alpha * start),
            (last[0], end, ones),
            (last[1], end - 1, ones),
            (last[1], end, -undone_at * ones),
        )
        column, row, value = (np.concatenate([each[part] for each in entries]) for part in range(3))
        matrix = coo_array((value, (row, column)), shape=(int(first_row[-1]), n))
        bounds = [_bounds(each, 1.0) for each in live]
        lower, upper = (np.concatenate([np.zeros(0), *(each[side] for each in bounds)]) for side in (0, 1))
        cost = np.zeros(n)
        cost[last[0]] = [each.weight for each in live]
        most = np.full(n, np.inf)
        most[first[:-1][~solved]] = 0.0
        how = (list(jobs), columns, cost, self._usage(live, at, n))
        named: dict[str, Any] = {"resources": list(self._rows), "limit": np.inf, "upper": most}
        named |= {"private_rows": PrivateRows(matrix, lower, upper), "private_sizes": rows}
        if present:
            kept, kept_rows = self._kept(jobs)
            self.model.update_columns(*how, **named, kept=kept, kept_rows=kept_rows)
        else:
            self.model.add_own_requests(*how, **named)
        for job, each in jobs.items():
            self._jobs[job] = each, undone_at
            if each is None:
                self._now.pop(job, None)
            else:
                self._now[job] = each, 1.0

    def _kept(self, jobs: Mapping[str, JobColumns | None]) -> tuple[Ints, Ints]:
        """Return the old column and private row that each new one of these present requests continues, -1 for none."""
        before, now = [self._jobs[job][0] for job in jobs], list(jobs.values())
        edges = np.unique(_joined([each for each in (*before, *now) if each is not None], "edge"))
        found = []
        for of_rows in (False, True):
            old, new, counts = _names(before, edges, of_rows), _names(now, edges, of_rows), _sizes(before)[of_rows]
            _, here, there = np.intersect1d(old, new, assume_unique=True, return_indices=True)
            kept = np.full(len(new), -1, dtype=np.int64)
            kept[there] = here - np.repeat(np.cumsum(counts) - counts, counts)[here]
            found.append(kept)
        return found[0], found[1]

    def _usage(self, own: list[JobColumns], at: Ints, n: int) -> csc_array:
        """Return the usage of n columns, of which those at positions `at` use seconds of one type in one interval."""
        kind, edge = _joined(own, "kind").astype(np.int64), _joined(own, "edge")
        edges, place = np.unique(edge, return_inverse=True)
        number = {row: k for k, row in enumerate(self._rows)}
        kinds = int(kind.max(initial=-1)) + 1
        table = np.array([[number.get((g, each), -1) for g in range(kinds)] for each in edges.tolist()])
        start = np.zeros(n + 1, dtype=np.int32)
        start[at + 1] = 1
        used = table.reshape(len(edges), kinds)[place, kind]
        return csc_array((np.ones(len(at)), used, np.cumsum(start)), shape=(len(number), n))

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


def _sizes(jobs: Iterable[JobColumns | None]) -> tuple[Ints, Ints]:
    """Return the numbers of columns and of private rows of each job."""
    each = [(1, 0) if own is None else (len(own.edge) + 2, len(own.parallel) + 2) for own in jobs]
    columns, rows = np.array(each, dtype=np.int64).reshape(-1, 2).T
    return columns, rows


def _joined(jobs: Sequence[JobColumns], name: str) -> Any:
    """Return one array of all jobs, side by side."""
    return np.concatenate([getattr(each, name) for each in jobs]) if jobs else np.zeros(0)


def _names(jobs: Sequence[JobColumns | None], edges: Floats, of_rows: bool) -> Ints:
    """Return a number for each column or private row of many jobs, the same for the same one; negative if unused."""
    live, solved = [each for each in jobs if each is not None], np.array([each is not None for each in jobs])
    counts = _sizes(jobs)[of_rows]
    owner, most = np.repeat(np.arange(len(jobs)), counts), KINDS * (len(edges) + 1)
    code = KINDS * np.searchsorted(edges, _joined(live, "edge"))
    if of_rows:  # a row is named by its interval, which that of its first column is
        counts_of_columns = np.array([len(each.edge) for each in live], dtype=np.int64)
        line, job = _joined(live, "row"), np.repeat(np.arange(len(live)), counts_of_columns)
        code = code[np.append(True, (np.diff(line) != 0) | (np.diff(job) != 0))[: len(line)]]
    else:
        code = code + _joined(live, "kind").astype(np.int64)
    last, names, seconds = np.cumsum(counts)[solved] - 1, -1 - owner, solved[owner]
    seconds[last] = seconds[last - 1] = False
    names[seconds] = owner[seconds] * most + code
    for back in (0, 1):  # excess and undone share; work and excess
        names[last - back] = owner[last - back] * most + most - 1 - back
    return names


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
