"""The central path, stored as prices of the coupling rows, from which the next solve starts (blocks.md, K10)."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from copter.methods.blocks.block_centre import Centre
from copter.methods.blocks.interior import BlockMethod, Figures
from copter.methods.blocks.program import BlockProgram

Floats = NDArray[np.float64]
Ages = NDArray[np.int64]
Ints = NDArray[np.int32]
Mask = NDArray[np.bool_]

LEVELS = (3e-3, 1e-2, 3e-2, 1e-1)  # relative gaps at which prices are kept; a warm start tries them in this order
MOST_BEFORE = 4  # most sets of closed rows whose paths are kept
# A start counts as near the path up to this Newton decrement, per square root of the number of complementarity pairs.
NEAR = 0.2


@dataclass(frozen=True, slots=True, eq=False)
class Milestone:
    """A point of the path: its parameter mu and the coupling rows' prices, in the model's units."""

    mu: float
    prices: Floats


Passed = dict[float, Milestone]


@dataclass(slots=True)
class PricePath:
    """Points of an interior-point run: for each gap level, the first point within it (K10).

    Attributes
    ----------
    row_generation : ndarray (rows,) int64
        Generations of the rows to which the prices belong.
    passed : dict
        Level to milestone.
    closed : tuple of int
        Rows without capacity during that run.
    before : dict
        Closed rows -> milestones of the last run with these rows closed; the latest entry is last.
    near : ndarray (rows,) of bool, or None
        Rows that were near their bounds in the last answer, and new rows; None if unknown.
    missed : bool
        Whether the last start was too far from the path; then the coarsest level is tried first.
    """

    row_generation: Ages
    passed: Passed = field(default_factory=dict)
    closed: tuple[int, ...] = ()
    before: dict[tuple[int, ...], Passed] = field(default_factory=dict)
    near: Mask | None = None
    missed: bool = False

    def turn_to(self, closed: tuple[int, ...]) -> None:
        """Switch to a set of closed rows: use the points stored for the same set, otherwise keep the current ones."""
        if closed == self.closed:
            return
        known = self.before.pop(closed, None)
        self.before[self.closed] = self.passed
        self.passed, self.closed = dict(self.passed if known is None else known), closed
        while len(self.before) > MOST_BEFORE:
            del self.before[next(iter(self.before))]

    @property
    def starts(self) -> list[Passed]:
        """Return the sets of milestones to start from, the most promising first."""
        last = list(self.before.values())[-1:]
        return [self.passed, *(each for each in last if each != self.passed)]

    def of_rows(self, row_generation: Ages) -> PricePath:
        """Return the path for the current rows; prices of new and replaced rows are zero."""
        known = min(len(self.row_generation), len(row_generation))
        same = self.row_generation[:known] == row_generation[:known]

        def carried(passed: Passed) -> Passed:
            found = {}
            for level, each in passed.items():
                prices = np.zeros(len(row_generation))
                prices[:known][same] = each.prices[:known][same]
                found[level] = Milestone(each.mu, prices)
            return found

        path = PricePath(row_generation.copy(), carried(self.passed), missed=self.missed)
        if same.all():  # rows have the same numbers, so the closed rows are valid
            path.closed, path.before = self.closed, {key: carried(each) for key, each in self.before.items()}
        if self.near is not None:
            path.near = np.ones(len(row_generation), dtype=np.bool_)
            path.near[:known][same] = self.near[:known][same]
        return path

    def near_rows(self, kept: Ints) -> Ints | None:
        """Return which of the given rows were near their bounds, as indices into `kept`; None if unknown."""
        return None if self.near is None else np.flatnonzero(self.near[kept]).astype(np.int32)

    def hold_near(self, rows: Ints) -> None:
        """Remember the rows that an answer left near their bounds."""
        self.near = np.zeros(len(self.row_generation), dtype=np.bool_)
        self.near[rows] = True


def path_state(path: PricePath | None) -> dict[str, Any] | None:
    """Return the path as plain arrays, for snapshots and copies; None for None."""
    if path is None or not path.passed:
        return None
    kept = [(path.closed, path.passed), *path.before.items()]
    return {
        "row_generation": path.row_generation,
        "paths": [(list(key), *plain(passed)) for key, passed in kept],
        "near": path.near,
        "missed": path.missed,
    }


def plain(passed: Passed) -> tuple[list[float], list[float], Floats]:
    """Return levels, parameters and prices as plain arrays."""
    levels = sorted(passed)
    return levels, [passed[level].mu for level in levels], np.array([passed[level].prices for level in levels])


def path_from(state: dict[str, Any] | None) -> PricePath | None:
    """Rebuild a path from plain arrays; raises ValueError if they are not a path's."""
    if state is None or "paths" not in state:  # no path, or one of an older version without closed rows
        return None
    path = PricePath(np.array(state["row_generation"]), missed=bool(state.get("missed", False)))
    n = len(path.row_generation)
    first, *others = [passed_from(each, n) for each in state["paths"]]
    path.closed, path.passed = first
    path.before = dict(others)
    if state.get("near") is not None:
        path.near = np.array(state["near"], dtype=np.bool_)
        if path.near.shape != path.row_generation.shape:
            raise ValueError("the central path is damaged: it has other rows near their bounds than it has rows")
    return path


def passed_from(state: tuple[Any, ...], n: int) -> tuple[tuple[int, ...], Passed]:
    """Rebuild closed rows and milestones for n rows; raises ValueError if the arrays are invalid."""
    rows, levels, mu, prices = state
    closed = tuple(int(each) for each in rows)
    levels, mu, prices = [float(each) for each in levels], [float(each) for each in mu], np.array(prices)
    sound = prices.shape == (len(levels), n) and len(mu) == len(levels) and all(0 <= each < n for each in closed)
    if not (
        sound and np.isfinite(prices).all() and all(0.0 < each < np.inf for each in mu) and set(levels) <= set(LEVELS)
    ):
        raise ValueError("the central path is damaged: its arrays do not belong together")
    return closed, {level: Milestone(*each) for level, each in zip(levels, zip(mu, prices, strict=True), strict=True)}


class Recorder:
    """Records the milestones of a run on a scaled program.

    Parameters
    ----------
    method : BlockMethod
    scale : ndarray (rows,)
    factor : float
        The program's scales (:meth:`BlockProgram.equilibrated`).
    path : PricePath
        Path to update; milestones that this run does not reach are kept.
    kept : ndarray (program's rows,) int32
        The path's rows that the program has; prices of the others are zero.
    """

    def __init__(self, method: BlockMethod, scale: Floats, factor: float, path: PricePath, kept: Ints) -> None:
        self.kept = kept
        self.method, self.scale, self.factor, self.path = method, scale[: method.program.n_rows], factor, path
        self.left, self.starts = set(LEVELS), True

    def look(self, figures: Figures) -> None:
        """Record the prices if the point is the first within a level; a run's start counts for the finest level
        only.
        """
        within = sorted(each for each in self.left if max(figures.gap, figures.dual) < each)
        self.left.difference_update(within)
        for level in within[:1] if self.starts else within:
            prices = np.zeros(len(self.path.row_generation))
            prices[self.kept] = self.method.state.y[: self.method.program.n_rows] * self.scale / self.factor
            self.path.passed[level] = Milestone(figures.mu / self.factor, prices)
        self.starts = False


def started_from(method: BlockMethod, path: PricePath, scale: Floats, factor: float, kept: Ints) -> bool:
    """Put the method onto the path; returns whether the point is near enough to the centre to continue.

    Every block is put at its own centre for the kept prices, with its present limit, costs and coefficients. `kept`
    lists the path's rows that the program has. Programs with several private rows per block are refused, because their
    centres would need a method of their own. If the last start was too far away, the coarsest level is tried first: if
    it is too far, so are the finer ones.
    """
    program, state = method.program, method.state
    m = program.n_rows
    if state.most_private > 1:
        return False
    centre = Centre(*program.arrays, cost=program.cost, lower=program.lower, upper=program.upper)
    reduced = np.empty(state.size)

    def near(here: Milestone) -> bool:
        mu = here.mu * factor
        state.y[m:] = 0.0
        state.y[:m] = fitted(program, here.prices[kept] * factor / scale[:m], mu)
        centre.put(mu, state.y, reduced, state.x, state.z, state.v, state.n_pieces)
        if not (np.isfinite(state.x).all() and np.isfinite(state.y).all()):
            return False
        method.measure()
        method.factorise()
        return decrement(method, mu) <= NEAR

    for passed in path.starts:
        levels = [level for level in LEVELS if level in passed]
        if path.missed and levels and not near(passed[levels[-1]]):
            continue
        if any(near(passed[level]) for level in levels):
            path.missed, method.begun = False, True
            return True
    path.missed = True
    return False


def fitted(program: BlockProgram, prices: Floats, mu: float) -> Floats:
    """Return prices with a sign that their rows' bounds allow, and none of zero; zero for rows without bounds."""
    n, m = program.n_columns, program.n_rows
    low, high = program.lower[n : n + m], program.upper[n : n + m]
    below, above = np.isfinite(low), np.isfinite(high)
    least = mu / (1.0 + np.where(below, np.abs(low), np.where(above, np.abs(high), 0.0)))
    prices = np.where(below & ~above, np.maximum(prices, least), prices)
    prices = np.where(above & ~below, np.minimum(prices, -least), prices)
    return np.where(below | above, prices, 0.0)


def decrement(method: BlockMethod, mu: float) -> float:
    """Return the distance of the point from the path: the Newton step's length in its own norm, per complementary
    pair.
    """
    state = method.state
    step = np.empty(state.n_all_rows)
    method.solve(state.primal, step)
    square = float(state.primal @ step) / max(mu, 1e-300)
    return float(np.sqrt(max(square, 0.0) / max(method.pairs, 1))) if np.isfinite(square) else np.inf
