"""From a point on the optimal face to a vertex of it, so that at most as many blocks are fractional as rows are tight.

Carathéodory's walk: while more columns are strictly between bounds than there are tight constraints on them, some
direction leaves every tight constraint tight; follow it downhill until a column reaches a bound or a row becomes
tight. (A proof that a vertex has at most as many fractional blocks as coupling rows is in docs/formulation.md, F10.)
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray
from scipy.linalg.lapack import dgeqp3, dormqr

from copter.algorithm.newton import Rows
from copter.algorithm.working_set import WorkingSet

Floats = NDArray[np.float64]

SNAP = 1e-9  # a column this close to a bound (relative to its range) is put on it
TIGHT = 1e-7  # a row this close to a bound (relative) counts as tight
LEVEL = 1e-12  # a direction whose slope is below this (relative to the costs) costs nothing
MAX_STEPS = 20_000


class Walk:
    """The state of one purification: x, which columns are between bounds, which rows and limits are tight."""

    def __init__(self, ws: WorkingSet, rows: Rows) -> None:
        self.ws, self.rows = ws, rows
        self.group = np.repeat(np.arange(len(ws.slots)), np.diff(ws.start))
        self.span = np.where(np.isfinite(ws.upper - ws.lower), ws.upper - ws.lower, 1.0)
        self.snap(np.arange(ws.size))
        self.activity = ws.activity(len(rows.lower))
        size = 1.0 + np.where(np.isfinite(rows.upper), np.abs(rows.upper), 0.0)
        self.row_tight = (np.abs(self.activity - rows.upper) <= TIGHT * size) | (
            np.abs(self.activity - rows.lower) <= TIGHT * size
        )
        total = np.add.reduceat(ws.x, ws.start[:-1]) if ws.size else np.zeros(0)
        self.room = ws.limit - total
        self.limit_tight = self.room <= SNAP * (1.0 + np.where(np.isfinite(ws.limit), ws.limit, 0.0))
        self.held = np.zeros(ws.size, dtype=bool)  # columns that an unbounded face leaves where they are

    def snap(self, columns: NDArray[np.int64]) -> None:
        """Put columns that are at a bound but for rounding exactly on it."""
        x, lower, upper = self.ws.x, self.ws.lower, self.ws.upper
        near = SNAP * self.span[columns]
        x[columns] = np.where(x[columns] <= lower[columns] + near, lower[columns], x[columns])
        x[columns] = np.where(x[columns] >= upper[columns] - near, upper[columns], x[columns])

    def settle(self) -> None:
        """Take what snapping put beyond a group's limit off its column with the most room."""
        ws = self.ws
        excess = np.add.reduceat(ws.x, ws.start[:-1]) - ws.limit
        for group in np.flatnonzero(excess > 0.0):
            columns = np.arange(ws.start[group], ws.start[group + 1])
            inner = columns[self.between(columns)]
            if len(inner):
                most = inner[np.argmax(ws.x[inner] - ws.lower[inner])]
                ws.x[most] = max(ws.lower[most], ws.x[most] - excess[group])

    def between(self, columns: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Which columns are strictly between their bounds."""
        x, lower, upper = self.ws.x, self.ws.lower, self.ws.upper
        return np.asarray((x[columns] > lower[columns]) & (x[columns] < upper[columns]) & ~self.held[columns])

    def column_block(self, columns: NDArray[np.int64]) -> Floats:
        """Rows x columns dense part of A."""
        ws = self.ws
        block = np.zeros((len(self.rows.lower), len(columns)))
        for at, j in enumerate(columns):
            entries = slice(ws.entry_start[j], ws.entry_start[j + 1])
            np.add.at(block[:, at], ws.row[entries], ws.coefficient[entries])
        return block

    def null_direction(self, columns: NDArray[np.int64], block: Floats) -> Floats | None:
        """A direction of these columns that leaves tight rows and tight limits as they are, never uphill."""
        groups, member = distinct(self.group[columns])
        limits = np.zeros((len(groups), len(columns)))
        limits[member, np.arange(len(columns))] = 1.0
        touched = self.row_tight & block.any(axis=1)
        constraints = np.vstack((block[touched] / self.rows.scale[touched, None], limits[self.limit_tight[groups]]))
        direction = orthogonal_to(constraints)
        if direction is None:
            return None
        return np.asarray(-direction if float(direction @ self.ws.cost[columns]) > 0 else direction)

    def follow(self, columns: NDArray[np.int64], block: Floats, direction: Floats) -> None:
        """Go as far as bounds, rows and limits allow, and mark what became tight.

        Where nothing is in the way, go the other way round if that costs nothing; along a line of equally good points
        there is no vertex, and the column that would move most is held where it is.
        """
        slope = abs(float(direction @ self.ws.cost[columns]))
        level = slope <= LEVEL * (1.0 + float(np.abs(self.ws.cost[columns]).max()))
        if self.advance(columns, block, direction) or (level and self.advance(columns, block, -direction)):
            return
        self.held[columns[np.argmax(np.abs(direction))]] = True

    def advance(self, columns: NDArray[np.int64], block: Floats, direction: Floats) -> bool:
        """Go to the first bound, row or limit in the way; False if there is none."""
        ws, rows = self.ws, self.rows
        target = np.where(direction > 0, ws.upper[columns], ws.lower[columns])
        moving = np.abs(direction) > 1e-12
        with np.errstate(divide="ignore", invalid="ignore"):
            reach = np.where(moving, (target - ws.x[columns]) / direction, np.inf)
            change = block @ direction
            loose = ~self.row_tight & (np.abs(change) > 1e-12 * rows.scale)
            goal = np.where(change > 0, rows.upper, rows.lower)
            row_reach = np.where(loose, (goal - self.activity) / change, np.inf)
            groups, member = distinct(self.group[columns])
            per_group = np.bincount(member, weights=direction)
            free = ~self.limit_tight[groups] & (per_group > 1e-12)
            limit_reach = np.where(free, self.room[groups] / per_group, np.inf)
        length = max(0.0, min(reach.min(), row_reach.min(initial=np.inf), limit_reach.min(initial=np.inf)))
        if not np.isfinite(length):
            return False
        ws.x[columns] = np.clip(ws.x[columns] + length * direction, ws.lower[columns], ws.upper[columns])
        first = columns[reach <= length * (1 + 1e-12)]
        ws.x[first] = target[reach <= length * (1 + 1e-12)]
        self.snap(columns)
        self.activity += length * change
        self.room[groups] -= length * per_group
        self.row_tight |= row_reach <= length * (1 + 1e-12)
        self.limit_tight[groups] |= limit_reach <= length * (1 + 1e-12)
        return True


def purify(ws: WorkingSet, rows: Rows, max_rows: int, must_stop: Callable[[], bool] = lambda: False) -> int:
    """Move ws.x to a vertex of its face, in place, never to a worse objective; return the steps taken.

    Nothing is done where more than `max_rows` rows are tight (the walk's linear algebra is dense in them). `must_stop`
    is asked before every step; a walk that is cut short leaves an optimal point that is no vertex.
    """
    if ws.size == 0:
        return 0
    walk = Walk(ws, rows)
    steps = to_vertex(walk, must_stop) if int(walk.row_tight.sum()) <= max_rows else 0
    walk.settle()
    return steps


def to_vertex(walk: Walk, must_stop: Callable[[], bool]) -> int:
    """Follow null directions until there are none; return how many there were."""
    ws = walk.ws
    waiting = np.flatnonzero(walk.between(np.arange(ws.size)))
    pending = waiting[:0]
    steps = 0
    while steps < MAX_STEPS and not must_stop():
        # Take whole groups, until their columns outnumber the constraints that bind them.
        while len(waiting) and not outnumber(walk, pending):
            last = np.searchsorted(walk.group[waiting], walk.group[waiting[0]], side="right")
            pending = np.concatenate((pending, waiting[:last]))
            waiting = waiting[last:]
        if len(pending) == 0:
            return steps
        block = walk.column_block(pending)
        direction = walk.null_direction(pending, block)
        if direction is None:
            if len(waiting) == 0:
                return steps
            last = np.searchsorted(walk.group[waiting], walk.group[waiting[0]], side="right")
            pending, waiting = np.concatenate((pending, waiting[:last])), waiting[last:]
            continue
        walk.follow(pending, block, direction)
        pending = pending[walk.between(pending)]
        steps += 1
    return steps


def outnumber(walk: Walk, columns: NDArray[np.int64]) -> bool:
    """Whether a null direction must exist: more columns than tight rows and tight limits."""
    groups, _ = distinct(walk.group[columns])
    return len(columns) > int(walk.row_tight.sum()) + int(walk.limit_tight[groups].sum())


def orthogonal_to(constraints: Floats) -> Floats | None:
    """A unit vector that every row of a matrix maps to zero, by QR with pivoting; None where there is none."""
    n = constraints.shape[1]
    unit = np.zeros((n, 1), order="F")
    if len(constraints) == 0:
        unit[0] = 1.0
        return np.asarray(unit[:, 0])
    factors, _, reflectors, _, _ = dgeqp3(constraints.T)
    diagonal = np.abs(np.diagonal(factors))
    rank = int(np.sum(diagonal > 1e-11 * max(1.0, diagonal.max(initial=0.0))))
    if rank >= n:
        return None
    unit[rank] = 1.0
    found, _, _ = dormqr("L", "N", factors[:, : len(reflectors)], reflectors, unit, 64)
    return np.asarray(found[:, 0])


def distinct(groups: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The distinct values of an ascending array, and the index of each entry's own."""
    new = np.empty(len(groups), dtype=bool)
    new[:1] = True
    np.not_equal(groups[1:], groups[:-1], out=new[1:])
    return groups[new], np.cumsum(new) - 1
