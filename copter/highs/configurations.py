"""Requests' whole columns as one option each: column generation over whole configurations, then rounding (M19).

A request whose columns are all whole and whose own rows are few has a cheapest configuration at any prices, found by a
small search (`pricing.pyx`). A master LP over the configurations found so far gives new prices. Its optimum is at most
one share more than there are coupling rows away from a plan, and its bound is that of the requests' convex hulls.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from copter.highs.choice import oscillate
from copter.highs.lp import filled_lp, require_highspy, run_highs, silent_highs
from copter.highs.pricing import Pricer
from copter.highs.tree import Program
from copter.problem.linear_program import LinearProgram

Floats = NDArray[np.float64]
Places = NDArray[np.int64]

MOST_ROWS, MOST_COLUMNS = 8, 256  # own rows and columns of a request that has configurations
LEAST_SHARE = 0.8  # share of the integer columns that configurations must cover
MOST_USAGE = 4_000_000  # requests with configurations times rows of the master: so many numbers are kept a few times
LEAST_GROUPS = 1.0  # requests with configurations, as a multiple of the coupling rows
NODES, MOST_NODES = 2_000, 200_000  # nodes of one request's search, at first and at most; ten times more if none helps
PENALTY = 100.0  # cost of a unit that a row lacks, in units of 1 + the largest cost of a unit
CLOSE = 3e-5  # the generation ends at this relative gap
SMOOTH = 0.5  # weight of the best bound's prices in those that are tried
RAISED, LOWERED = 2.0, 0.9  # factors on the penalties of broken rows, and of the others
KEPT = 8  # configurations of a request that the next round begins with
HOLDS = 1e-9  # a row of a request's own lacks at most this times (1 + |side|)
SMALL_COST = 1e-7  # a reduced cost of this size counts as zero


@dataclass(frozen=True, slots=True)
class Pool:
    """Configurations of the last round, in the columns of its program.

    Attributes
    ----------
    column : ndarray (k,)
        First column of each one's request.
    size : ndarray (k,)
        Number of its columns.
    values : ndarray
        The values of all, one after the other.
    """

    column: Places
    size: Places
    values: Floats


class Configurations:
    """The requests of a program that have configurations, and the master over those found so far.

    Parameters
    ----------
    program : Program
    lower, upper : ndarray (n,)
        Bounds with whole numbers for integer columns.

    Attributes
    ----------
    is_fit : bool
        Whether the program has such requests, and few coupling rows beside them.
    bound : float
        Largest lower bound found.
    prices : ndarray (m,)
        Prices of all rows at that bound; zero for requests' own rows.
    """

    def __init__(self, program: Program, lower: Floats, upper: Floats) -> None:
        if program.matrix is None:
            raise ValueError("a program without a matrix")
        self.program, self.lower, self.upper = program, lower, upper
        self.bound, self.value, self.is_short = -np.inf, np.inf, True
        m = program.matrix.shape[0]
        self.prices = np.zeros(m)
        self.nodes, self.is_exact, self.is_done = NODES, False, False
        rows = sp.csr_array(program.matrix)
        filled = np.diff(rows.indptr) > 0
        low = np.full(m, -1, dtype=np.int64)
        owner = program.group[rows.indices].astype(np.int64)
        starts = rows.indptr[:-1][filled]
        if len(starts):
            least, most = np.minimum.reduceat(owner, starts), np.maximum.reduceat(owner, starts)
            low[filled] = np.where(least == most, least, -1)
        groups = int(program.group.max(initial=-1)) + 1
        size = np.bincount(program.group, minlength=groups)
        own_rows = np.bincount(low[low >= 0], minlength=groups)
        whole = np.bincount(program.group, weights=program.integrality, minlength=groups) == size
        fine = whole & (size > 1) & (size <= MOST_COLUMNS) & (own_rows <= MOST_ROWS)
        self.taken = fine[program.group]  # columns that configurations cover
        self.is_kept = ~((low >= 0) & fine[low])  # rows of the master
        self.columns, self.rest = np.flatnonzero(self.taken), np.flatnonzero(~self.taken)
        self.count = int(fine.sum())
        coupling = int((self.is_kept & (low < 0)).sum())
        covered = int(self.taken.sum()) >= LEAST_SHARE * max(int(program.integrality.sum()), 1)
        contiguous = bool((np.diff(program.group) >= 0).all())
        choosing = self.count > 0 and self._is_choice(rows, low, fine)
        small = self.count * int(self.is_kept.sum()) <= MOST_USAGE and self.count >= LEAST_GROUPS * coupling
        self.is_fit = covered and contiguous and small and not choosing
        if self.is_fit:
            self._blocks(rows, low, fine, size, own_rows)

    def _is_choice(self, rows: sp.csr_array, low: Places, fine: NDArray[np.bool_]) -> bool:
        """Whether each request takes one column at most, so that its columns are its configurations already."""
        own = np.flatnonzero((low >= 0) & fine[low])
        if len(np.unique(low[own])) < self.count:
            return False
        ones = np.asarray(abs(rows[own] - (rows[own] != 0)).sum(axis=1)).ravel() == 0.0
        return bool((ones & (self.program.row_upper[own] <= 1.0)).all() and (self.lower[self.taken] == 0.0).all())

    def _blocks(self, rows: sp.csr_array, low: Places, fine: NDArray[np.bool_], size: Places, own_rows: Places) -> None:
        """Lay the requests' own rows out, dense, one request after the other."""
        program = self.program
        ids = np.flatnonzero(fine)
        self.first = np.concatenate(([0], np.cumsum(size[ids]))).astype(np.int32)
        own = np.flatnonzero((low >= 0) & fine[low])
        own = own[np.argsort(low[own], kind="stable")]
        row_first = np.concatenate(([0], np.cumsum(own_rows[ids]))).astype(np.int32)
        matrix_first = np.concatenate(([0], np.cumsum(size[ids] * own_rows[ids]))).astype(np.int64)
        matrix = np.zeros(int(matrix_first[-1]) + 1)
        local = np.full(len(program.cost), -1, dtype=np.int64)
        local[self.columns] = np.arange(len(self.columns)) - np.repeat(self.first[:-1], size[ids])
        part = sp.coo_array(rows[own])
        number = np.empty(len(fine), dtype=np.int64)
        number[ids] = np.arange(len(ids))
        at, g = part.row.astype(np.int64), number[low[own]]
        matrix[matrix_first[g[at]] + (at - row_first[g[at]]) * size[ids][g[at]] + local[part.col]] = part.data
        self.pricer = Pricer(
            self.first, row_first, matrix_first, matrix, program.row_lower[own], program.row_upper[own],
            self.lower[self.columns], self.upper[self.columns],
        )  # fmt: skip
        self.A = sp.csc_array(sp.csc_array(program.matrix)[self.is_kept])
        self.row_first, self.own = row_first.astype(np.int64), sp.csr_array(rows[own][:, self.columns])
        self.own_lower, self.own_upper = program.row_lower[own], program.row_upper[own]
        self.of_columns, self.of_rest = sp.csc_array(self.A[:, self.columns]), sp.csc_array(self.A[:, self.rest])
        self.row_lower, self.row_upper = program.row_lower[self.is_kept], program.row_upper[self.is_kept]
        m, cost = len(self.row_lower), np.abs(self.program.cost)
        price = abs(self.A).copy()
        price.data = np.repeat(cost, np.diff(self.A.indptr)) / np.maximum(price.data, 1e-9)
        ratio = np.asarray(sp.csr_array(price).max(axis=1).toarray()).ravel() if price.nnz else np.zeros(m)
        self.penalty = PENALTY * (1.0 + ratio)
        self.points: list[sp.csc_array] = []  # configurations by column
        self.seen: set[tuple[int, bytes]] = set()
        self.group = np.zeros(0, dtype=np.int64)
        self.cost = np.zeros(0)
        self.usage: Floats = np.zeros((0, len(self.row_lower)))
        self.last = np.full(len(self.columns), np.nan)
        self.loaded = 0  # configurations that the master has
        self.share = np.zeros(0)  # the master's last shares

    # Column generation ----------------------------------------------------------------------------------------------

    def generate(
        self,
        prices: Floats | None,
        until: float,
        over: Callable[[], bool],
        pool: Pool | None = None,
        came_from: NDArray[np.int32] | None = None,
    ) -> bool:
        """Find configurations until shares of them fit, or time is over; returns whether each request has one.

        Parameters
        ----------
        prices : ndarray (m,) or None
            Prices of the program's rows to begin with.
        until : float
            Time of ``time.perf_counter()``.
        over : callable
            Whether to stop at once.
        pool : Pool or None
            The last round's configurations.
        came_from : ndarray (n,) or None
            Number of each column in the last round's program, or -1.
        """
        y = np.zeros(len(self.row_lower)) if prices is None else prices[self.is_kept]
        dear = np.where(
            np.isfinite(self.row_upper), -self.penalty, np.where(np.isfinite(self.row_lower), self.penalty, 0.0)
        )
        known = pool is not None and came_from is not None and self._recall(pool, came_from, y)
        if not all(self._priced(each, until) for each in ((y,) if known else (np.zeros_like(y), dear, y))):
            return False
        self._load()
        self._improve(y, until, over, NODES, True)
        return True

    def improve(self, until: float, over: Callable[[], bool], most_nodes: int) -> None:
        """Go on until no configuration is better, with at most so many nodes of a request's search."""
        if not self._is_closed() and not (self.is_exact and self.is_done):
            self._improve(self.prices[self.is_kept], until, over, most_nodes, False)

    def _improve(self, best: Floats, until: float, over: Callable[[], bool], most_nodes: int, first: bool) -> None:
        self.is_done = False
        while True:
            solved = self._master(until)
            if solved is None:
                return
            y = solved
            if self._is_closed() or over() or time.perf_counter() >= until or (first and not self.is_short):
                return
            near = SMOOTH * best + (1.0 - SMOOTH) * y
            before, bound = len(self.cost), self.bound
            self._priced(near, until)
            if self.bound > bound:
                best = near
            fresh = slice(before, None)
            gain = self.cost[fresh] - self.usage[fresh] @ y - self.shares_cost[self.group[fresh]]
            if not (gain < -SMALL_COST).any():
                bound = self.bound
                self._priced(y, until)
                if self.bound > bound:
                    best = y
            if len(self.cost) == before:
                if self.is_exact or self.nodes >= most_nodes:
                    self.is_done = True
                    return
                self.nodes *= 10
            else:
                self._extend()

    def _is_closed(self) -> bool:
        return not self.is_short and self.value - self.bound <= CLOSE * abs(self.value)

    def _priced(self, y: Floats, until: float) -> bool:
        """Add each request's cheapest configuration at prices; returns whether every request has one."""
        program = self.program
        reduced = program.cost[self.columns] - self.of_columns.T @ y
        x, least = self.last.copy(), np.zeros(self.count)
        self.is_exact = self.pricer.price(reduced, x, least, self.nodes, until) == self.count
        if np.isnan(x[self.first[:-1]]).any():
            return False
        self.last = x
        others = program.cost[self.rest] - self.of_rest.T @ y
        others[np.abs(others) <= SMALL_COST * (1.0 + np.abs(program.cost[self.rest]))] = 0.0
        with np.errstate(invalid="ignore"):
            sides = np.where(y > 0.0, y * self.row_lower, np.where(y < 0.0, y * self.row_upper, 0.0))
            boxes = np.where(
                others > 0.0,
                others * self.lower[self.rest],
                np.where(others < 0.0, others * self.upper[self.rest], 0.0),
            )
        bound = float(sides.sum() + boxes.sum() + least.sum())
        if bound > self.bound:
            self.bound = bound
            self.prices = np.zeros(len(self.is_kept))
            self.prices[self.is_kept] = y
        new = []
        for g in range(self.count):
            key = g, x[self.first[g] : self.first[g + 1]].tobytes()
            if key not in self.seen:
                self.seen.add(key)
                new.append(g)
        if new:
            self._keep(np.array(new), x)
        return True

    def _places(self, of: Places) -> tuple[Places, Places]:
        """Return the columns of some requests, one after the other, and where each one's begin."""
        first = self.first.astype(np.int64)
        size = np.diff(first)[of]
        starts = np.concatenate(([0], np.cumsum(size)))
        return np.repeat(first[of] - starts[:-1], size) + np.arange(starts[-1]), starts

    def _keep(self, new: Places, x: Floats) -> None:
        """Add configurations of some requests to the pool."""
        place, starts = self._places(new)
        self._add(new, sp.csc_array((x[place], place, starts), shape=(len(self.columns), len(new))))

    def _add(self, new: Places, points: sp.csc_array) -> None:
        self.points.append(points)
        self.group = np.concatenate((self.group, new))
        self.cost = np.concatenate((self.cost, points.T @ self.program.cost[self.columns]))
        self.usage = np.concatenate((self.usage, np.asarray((self.of_columns @ points).T.toarray())))

    def _recall(self, pool: Pool, came_from: NDArray[np.int32], y: Floats) -> bool:
        """Take the last round's configurations that still hold, the cheapest at prices as first points; whether any."""
        local = np.full(int(pool.column.max(initial=-1)) + 1, -1, dtype=np.int64)
        begin = came_from[self.columns[self.first[:-1]]]
        known = (begin >= 0) & (begin < len(local))
        local[begin[known]] = np.flatnonzero(known)
        of = local[pool.column]
        size = np.diff(self.first)[of]
        taken = np.flatnonzero((of >= 0) & (size == pool.size))
        values = pool.values[np.repeat((of >= 0) & (size == pool.size), pool.size)]
        if not len(taken):
            return False
        of = of[taken]
        place, starts = self._places(of)
        number = np.repeat(np.arange(len(of)), np.diff(starts))
        off = (values < self.lower[self.columns][place]) | (values > self.upper[self.columns][place])
        rows = np.diff(self.row_first)[of]
        row_starts = np.concatenate(([0], np.cumsum(rows)))
        row = np.repeat(self.row_first[of] - row_starts[:-1], rows) + np.arange(row_starts[-1])
        points = sp.csc_array((values, place, starts), shape=(len(self.columns), len(of)))
        sums, entries = np.zeros(len(row)), sp.coo_array(self.own @ points)
        sums[row_starts[entries.col] + entries.row - self.row_first[of[entries.col]]] = entries.data
        broken = (sums < self.own_lower[row] - HOLDS * (1.0 + np.abs(self.own_lower[row]))) | (
            sums > self.own_upper[row] + HOLDS * (1.0 + np.abs(self.own_upper[row]))
        )
        wrong = np.bincount(number[off], minlength=len(of)) + np.bincount(
            np.repeat(np.arange(len(of)), rows)[broken], minlength=len(of)
        )
        fine = np.flatnonzero(wrong == 0)
        if not len(fine):
            return False
        points = sp.csc_array(points[:, fine])
        for g, begin_at, end_at in zip(of[fine], starts[fine], starts[fine + 1], strict=True):
            self.seen.add((int(g), values[begin_at:end_at].tobytes()))
        self._add(of[fine], points)
        reduced = self.cost - self.usage @ y
        order = np.lexsort((-reduced, self.group))  # the cheapest of each request is the last
        self.last[:] = np.nan
        for at in order:
            one = fine[at]
            self.last[self.first[of[one]] : self.first[of[one] + 1]] = values[starts[one] : starts[one + 1]]
        return True

    def pool(self) -> Pool | None:
        """Return the configurations that lose least at the best prices, at most KEPT of each request."""
        if not len(self.cost):
            return None
        reduced = self.cost - self.usage @ self.prices[self.is_kept]
        order = np.lexsort((reduced, self.group))
        first = np.searchsorted(self.group[order], np.arange(self.count))
        kept = order[np.arange(len(order)) - first[self.group[order]] < KEPT]
        points, of = sp.hstack(self.points, format="csc")[:, kept], self.group[kept]
        starts = self._places(of)[1]
        dense = np.zeros(int(starts[-1]))
        number = np.repeat(np.arange(len(kept)), np.diff(points.indptr))
        dense[starts[number] + points.indices - self.first[of[number]]] = points.data
        return Pool(self.columns[self.first[of]], np.diff(starts), dense)

    def _load(self) -> None:
        """Bring the master into HiGHS: rest of the columns, lacking and surplus units, shares of configurations."""
        highspy = require_highspy("column generation")
        m = len(self.row_lower)
        lacks, left = np.flatnonzero(np.isfinite(self.row_lower)), np.flatnonzero(np.isfinite(self.row_upper))
        eye = sp.eye_array(m, format="csc")
        matrix = sp.vstack([
            sp.hstack([self.of_rest, eye[:, lacks], -eye[:, left]]),
            sp.csr_array((self.count, len(self.rest) + len(lacks) + len(left))),
        ])  # fmt: skip
        self.others = matrix.shape[1]
        extra = len(lacks) + len(left)
        self.lp = silent_highs()
        for name, value in (("threads", 1), ("solver", "simplex"), ("presolve", "off"), ("simplex_strategy", 4)):
            self.lp.setOptionValue(name, value)
        ones = np.ones(self.count)
        self.lp.passModel(
            filled_lp(
                np.concatenate((self.program.cost[self.rest], self.penalty[lacks], self.penalty[left])),
                sp.csc_array(matrix),
                (np.concatenate((self.row_lower, ones)), np.concatenate((self.row_upper, ones))),
                (
                    np.concatenate((self.lower[self.rest], np.zeros(extra))),
                    np.concatenate((self.upper[self.rest], np.full(extra, np.inf))),
                ),
            )
        )
        self.optimal = highspy.HighsModelStatus.kOptimal
        self._extend()

    def _extend(self) -> None:
        """Add the configurations that the master does not have."""
        start = self.loaded
        self.loaded = len(self.cost)
        new = self.loaded - start
        own = sp.csr_array((np.ones(new), (np.arange(new), self.group[start:])), shape=(new, self.count))
        rows = sp.csr_array(sp.hstack([sp.csr_array(self.usage[start:]), own]))
        self.lp.addCols(
            new, self.cost[start:], np.zeros(new), np.full(new, np.inf), rows.nnz, rows.indptr[:-1].astype(np.int32),
            rows.indices.astype(np.int32), rows.data,
        )  # fmt: skip

    def _master(self, until: float) -> Floats | None:
        """Solve the master; returns the prices of its rows, None if time was over."""
        self.lp.setOptionValue("time_limit", self.lp.getRunTime() + max(until - time.perf_counter(), 1e-3))
        run_highs(self.lp)
        solution = self.lp.getSolution()
        x, dual = np.array(solution.col_value), np.array(solution.row_dual)
        if len(x) != self.others + self.loaded:
            return None
        self.share = x[self.others :]
        self.is_short = bool(x[len(self.rest) : self.others].max(initial=0.0) > 1e-7)
        if self.lp.getModelStatus() != self.optimal or len(dual) == 0:
            return None
        self.value = float(self.lp.getInfo().objective_function_value)
        m = len(self.row_lower)
        self.shares_cost: Floats = dual[m:]
        return np.asarray(dual[:m], dtype=np.float64)

    # Plans ----------------------------------------------------------------------------------------------------------

    def enrich(self, several: int, until: float) -> None:
        """Find the cheapest configurations of each request at the best prices: a choice needs more than an LP does."""
        several = min(several, MOST_USAGE // max(len(self.columns), self.count * len(self.row_lower)))
        if several < 1:
            return
        reduced = self.program.cost[self.columns] - self.of_columns.T @ self.prices[self.is_kept]
        x, count = np.zeros(several * len(self.columns)), np.zeros(self.count, dtype=np.int32)
        self.pricer.several(reduced, x, count, several, NODES, until)
        of, parts = [], []
        for g in range(self.count):
            if time.perf_counter() >= until:
                break
            begin, end = self.first[g], self.first[g + 1]
            for point in x[several * begin : several * end].reshape(several, -1)[: count[g]]:
                key = g, point.tobytes()
                if key not in self.seen:
                    self.seen.add(key)
                    of.append(g)
                    parts.append(point)
        if of:
            place, starts = self._places(np.array(of))
            shape = len(self.columns), len(of)
            self._add(np.array(of), sp.csc_array((np.concatenate(parts), place, starts), shape=shape))

    def rounded(self, until: float, gap: float, tries: int) -> Places:
        """Return a configuration of each request: the master's largest share, then exchanges of single requests under
        penalties that rise and fall, until the gap is closed or nothing is gained.
        """
        m = len(self.row_lower)
        share = np.concatenate((self.share, np.zeros(len(self.cost) - len(self.share))))
        order = np.lexsort((self.cost - self.usage @ self.prices[self.is_kept], -share, self.group))
        first = np.searchsorted(self.group[order], np.arange(self.count + 1))
        now = order[first[:-1]].copy()
        entries = sp.csr_array(self.of_rest)
        at = np.repeat(np.arange(m), np.diff(entries.indptr))
        with np.errstate(invalid="ignore"):
            one = entries.data * self.lower[self.rest][entries.indices]
            two = entries.data * self.upper[self.rest][entries.indices]
        low = self.row_lower - np.bincount(at, weights=np.maximum(one, two), minlength=m)
        high = self.row_upper - np.bincount(at, weights=np.minimum(one, two), minlength=m)
        weight = np.minimum(self.penalty, 4.0 * np.abs(self.prices[self.is_kept]) + 1e-3 * self.penalty)
        tolerance = HOLDS * (1.0 + np.abs(self.usage[now].sum(axis=0)))
        # other columns may cost something: what a choice costs in all is known without them only
        enough = -np.inf if self.program.cost[self.rest].any() else self.bound + gap * abs(self.bound)
        oscillate(
            self.usage, self.cost, order, first, low, high, tolerance, weight, now, RAISED, LOWERED, enough, tries,
            until,
        )  # fmt: skip
        return now

    def point_of(self, chosen: Places) -> Floats:
        """Return the point of the program with these configurations; other columns at zero, within bounds."""
        x = np.clip(np.zeros(len(self.program.cost)), self.lower, self.upper)
        pool = sp.hstack(self.points, format="csc")
        x[self.columns] = np.asarray(pool[:, chosen].sum(axis=1)).ravel()
        return x

    def restricted(self, most: float) -> tuple[LinearProgram, Places]:
        """Return the program over the configurations that a point below `most` may use, and their numbers.

        Columns: the rest, then shares of configurations (0 or 1).
        """
        y = self.prices[self.is_kept]
        reduced = self.cost - self.usage @ y
        least = np.full(self.count, np.inf)
        np.minimum.at(least, self.group, reduced)
        kept = np.flatnonzero(reduced - least[self.group] <= max(most - self.bound, 0.0) + 1e-9 * (1.0 + abs(most)))
        own = sp.csr_array((np.ones(len(kept)), (self.group[kept], np.arange(len(kept)))), (self.count, len(kept)))
        matrix = sp.vstack([
            sp.hstack([self.of_rest, sp.csr_array(self.usage[kept].T)]),
            sp.hstack([sp.csr_array((self.count, len(self.rest))), own]),
        ])  # fmt: skip
        ones, k = np.ones(self.count), len(kept)
        lp = LinearProgram(
            np.concatenate((self.program.cost[self.rest], self.cost[kept])), sp.csc_array(matrix),
            np.concatenate((self.row_lower, ones)), np.concatenate((self.row_upper, ones)),
            np.concatenate((self.lower[self.rest], np.zeros(k))), np.concatenate((self.upper[self.rest], np.ones(k))),
            np.concatenate((self.program.integrality[self.rest], np.ones(k, dtype=bool))),
        )  # fmt: skip
        return lp, kept


def moved_prices(prices: Floats, rows_from: NDArray[np.int32]) -> Floats:
    """Return the last program's prices in the rows of this one; new rows have none."""
    return np.where(rows_from >= 0, prices[np.maximum(rows_from, 0)], 0.0) if len(prices) else np.zeros(len(rows_from))
