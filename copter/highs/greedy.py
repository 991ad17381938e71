"""Points by moves of single columns: until broken rows hold, then to where they cost less (M17)."""

from __future__ import annotations

import time
from math import floor, inf, isfinite

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

Floats = NDArray[np.float64]

EXACT = 1e-9  # rows are kept to this, in units of 1 + |side|: far inside of what a search accepts
PASSES = 3  # times that broken rows are gone through
LOOK_EVERY = 64  # columns or rows between two looks at the clock


class Greedy:
    """Moves of single columns that break no row.

    Parameters
    ----------
    matrix : csc_array (m, n)
    row_lower, row_upper : ndarray (m,)
    lower, upper : ndarray (n,)
        Bounds; those of integer columns are whole.
    is_integer : ndarray of bool (n,)
    cost : ndarray (n,)
        Of the minimisation.
    """

    def __init__(
        self,
        matrix: sp.csc_array,
        row_lower: Floats,
        row_upper: Floats,
        lower: Floats,
        upper: Floats,
        is_integer: NDArray[np.bool_],
        cost: Floats,
    ) -> None:
        self.matrix, self.rows = matrix, sp.csr_array(matrix)
        self._sides = row_lower, row_upper
        self._bounds = lower, upper
        self._integer, self._cost = is_integer, cost
        self.start, self.index, self.entry = matrix.indptr.tolist(), matrix.indices.tolist(), matrix.data.tolist()
        self.row_lower: list[float] = row_lower.tolist()
        self.row_upper: list[float] = row_upper.tolist()
        self.lower, self.upper = lower.tolist(), upper.tolist()
        self.is_integer, self.cost = is_integer.tolist(), cost.tolist()
        self.x: list[float] = []
        self.activity: list[float] = []

    def free_point(self) -> Floats:
        """Return the point in which each column is at a bound at which it breaks no row, or at the one nearest to 0."""
        lower, upper = self._bounds
        owner = np.repeat(np.arange(len(lower)), np.diff(self.matrix.indptr))
        rises = self.matrix.data > 0.0
        above, below = (np.isfinite(side)[self.matrix.indices] for side in self._sides[::-1])
        up = np.bincount(owner, (rises & above) | (~rises & below), minlength=len(lower)) > 0.0
        down = np.bincount(owner, (rises & below) | (~rises & above), minlength=len(lower)) > 0.0
        x = np.clip(np.zeros(len(lower)), lower, upper)
        return np.where(~up & down & np.isfinite(upper) & self._integer, upper, x)

    def near(self, x: Floats) -> Floats:
        """Return a point rounded down, but for columns that no row keeps from rising."""
        free = self.free_point()
        found = np.where(self._integer, np.where(free > self._bounds[0], np.ceil(x - EXACT), np.floor(x + EXACT)), x)
        return np.clip(found, *self._bounds)

    def point(self, x: Floats, reduced: Floats | None, until: float) -> Floats | None:
        """Return a point near `x` in which all rows hold and no single column can move to where it costs less.

        Parameters
        ----------
        x : ndarray (n,)
            Within its bounds, integer columns whole.
        reduced : ndarray (n,) or None
            Reduced costs of the LP: they order the moves.
        until : float
            Time of `time.perf_counter` at which it gives up, without a point if a row is broken then.
        """
        self.x, self.activity = x.tolist(), (self.matrix @ x).tolist()
        price = self.cost if reduced is None else reduced.tolist()
        if not self._covered(price, reduced is None, until):
            return None
        self._improved(price, reduced is not None, until)
        return np.array(self.x)

    def _short(self, row: int) -> float:
        """Return what a row lacks to its lower side (above zero), or exceeds its upper side by (below zero)."""
        value, low, high = self.activity[row], self.row_lower[row], self.row_upper[row]
        if value < low - EXACT * (1.0 + abs(low)):
            return low - value
        if value > high + EXACT * (1.0 + abs(high)):
            return high - value
        return 0.0

    def _room(self, column: int, sign: float) -> float:
        """Return how far a column may move up (1.0) or down (-1.0) before a bound or a row stops it."""
        found = self.upper[column] - self.x[column] if sign > 0.0 else self.x[column] - self.lower[column]
        for at in range(self.start[column], self.start[column + 1]):
            if found <= 0.0:
                return 0.0
            row, change = self.index[at], self.entry[at] * sign
            if change > 0.0:
                left = (self.row_upper[row] - self.activity[row]) / change
            elif change < 0.0:
                left = (self.row_lower[row] - self.activity[row]) / change
            else:
                continue
            found = min(found, left)
        return float(floor(found + EXACT)) if self.is_integer[column] and isfinite(found) else max(found, 0.0)

    def _move(self, column: int, step: float) -> None:
        self.x[column] += step
        for at in range(self.start[column], self.start[column + 1]):
            self.activity[self.index[at]] += self.entry[at] * step

    def _covered(self, price: list[float], largest_first: bool, until: float) -> bool:
        """Move columns until all rows hold: for each broken row those that cost least for what they mend."""
        counts = np.diff(self.rows.indptr)
        weight = self._weights(counts) if largest_first else np.zeros(len(counts))
        for _ in range(PASSES):
            activity, (low, high) = np.array(self.activity), self._sides
            broken = np.flatnonzero(
                (activity < low - EXACT * (1.0 + np.abs(np.where(np.isfinite(low), low, 0.0))))
                | (activity > high + EXACT * (1.0 + np.abs(np.where(np.isfinite(high), high, 0.0))))
            )
            if not len(broken):
                return True
            moved = False
            for row in broken[np.lexsort((-weight[broken], counts[broken]))].tolist():
                if time.perf_counter() > until:
                    return False
                moved = self._mend(row, price) or moved
            if not moved:
                return False
        return not any(self._short(row) for row in range(len(self.row_lower)))

    def _weights(self, counts: NDArray[np.int64]) -> Floats:
        """Return how much a row's columns use of all rows: of bins' items, the heaviest are the hardest to place."""
        n, m = len(self.cost), len(counts)
        use = np.bincount(np.repeat(np.arange(n), np.diff(self.matrix.indptr)), np.abs(self.matrix.data), n)
        found: Floats = np.bincount(np.repeat(np.arange(m), counts), use[self.rows.indices], m).astype(np.float64)
        return found

    def _mend(self, row: int, price: list[float]) -> bool:
        """Move columns until a row holds, or none can; returns whether one was moved."""
        first, end = self.rows.indptr[row], self.rows.indptr[row + 1]
        columns, entries = self.rows.indices[first:end].tolist(), self.rows.data[first:end].tolist()
        moved = False
        for _ in range(len(columns)):
            short = self._short(row)
            if short == 0.0:
                break
            best, choice = inf, (0, 0.0)
            for column, entry in zip(columns, entries, strict=True):
                sign = 1.0 if entry * short > 0.0 else -1.0
                room = self._room(column, sign)
                if room <= 0.0 or entry == 0.0:
                    continue
                step = abs(short / entry)
                if self.is_integer[column]:
                    step = -floor(-(step - EXACT))  # no fewer than one
                step = sign * min(room, step)
                rate = (price[column] * step + 1e-9 * abs(step)) / self._gain(column, step)
                if rate < best:
                    best, choice = rate, (column, step)
            if not choice[1]:
                break
            self._move(*choice)
            moved = True
        return moved

    def _gain(self, column: int, step: float) -> float:
        """Return how much a move mends of all broken rows, each in shares of its side."""
        found = 0.0
        for at in range(self.start[column], self.start[column + 1]):
            short, change = self._short(self.index[at]), self.entry[at] * step
            if short * change > 0.0:
                found += min(abs(change), abs(short)) / (1.0 + abs(self.activity[self.index[at]] + short))
        return max(found, 1e-12)

    def _improved(self, price: list[float], by_price: bool, until: float) -> None:
        """Move each column once as far as it costs less, those first that gain most for what they use."""
        cost = self._cost
        if by_price:
            score = -np.sign(cost) * np.array(price)
        else:
            side = np.where(cost < 0.0, 1.0, -1.0)[np.repeat(np.arange(len(cost)), np.diff(self.matrix.indptr))]
            low, high = (np.abs(np.where(np.isfinite(each), each, inf)) for each in self._sides)
            scarce = np.where(self.matrix.data * side > 0.0, high[self.matrix.indices], low[self.matrix.indices])
            use = np.abs(self.matrix.data) / np.maximum(scarce, 1.0)
            sums = np.bincount(np.repeat(np.arange(len(cost)), np.diff(self.matrix.indptr)), use, len(cost))
            score = -np.abs(cost) / (sums + 1e-9)
        order = np.argsort(score, kind="stable")
        for at, column in enumerate(order[cost[order] != 0.0].tolist()):
            if at % LOOK_EVERY == 0 and time.perf_counter() > until:
                return
            sign = -1.0 if self.cost[column] > 0.0 else 1.0
            room = self._room(column, sign)
            if room > 0.0 and isfinite(room):
                self._move(column, sign * room)
