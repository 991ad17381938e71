"""The central path by the prices of the coupling rows alone, from which the next solve starts (blocks.md, K10)."""

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

LEVELS = (3e-3, 1e-2, 3e-2, 1e-1)  # relative gaps at which prices are kept, the first to be tried first
MOST_BEFORE = 4  # sets of closed rows of which the path is kept
NEAR = 0.2  # Newton decrement from which a start is near enough, in square roots of the number of pairs


@dataclass(frozen=True, slots=True, eq=False)
class Milestone:
    """Where the path was passed: its parameter, and the coupling rows' prices, in the model's own units."""

    mu: float
    prices: Floats


Passed = dict[float, Milestone]


@dataclass(slots=True)
class PricePath:
    """Points kept from a run of the interior-point method: for each gap, the first point within it (K10).

    Attributes
    ----------
    row_generation : ndarray (rows,) int64
        Which rows the prices are of.
    passed : dict
        Level to milestone.
    closed : tuple of int
        Rows without capacity at the time.
    before : dict
        What was passed with other rows closed, for the time when it is so again; the latest last.
    near : ndarray (rows,) of bool, or None
        Rows that the last answer left near their bounds, and those that are new; None where that was not looked at.
    missed : bool
        Whether the last start from here was not near enough: then the coarsest level is asked first.
    """

    row_generation: Ages
    passed: Passed = field(default_factory=dict)
    closed: tuple[int, ...] = ()
    before: dict[tuple[int, ...], Passed] = field(default_factory=dict)
    near: Mask | None = None
    missed: bool = False

    def turn_to(self, closed: tuple[int, ...]) -> None:
        """Go on with these rows closed: from the last time that it was so, or else from where the path is."""
        if closed == self.closed:
            return
        known = self.before.pop(closed, None)
        self.before[self.closed] = self.passed
        self.passed, self.closed = dict(self.passed if known is None else known), closed
        while len(self.before) > MOST_BEFORE:
            del self.before[next(iter(self.before))]

    @property
    def starts(self) -> list[Passed]:
        """Where a solve may start from, what to try first at the front."""
        last = list(self.before.values())[-1:]
        return [self.passed, *(each for each in last if each != self.passed)]

    def of_rows(self, row_generation: Ages) -> PricePath:
        """The same for the rows that there are now: prices of new and of replaced ones are zero."""
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
        if same.all():  # rows are closed by number
            path.closed, path.before = self.closed, {key: carried(each) for key, each in self.before.items()}
        if self.near is not None:
            path.near = np.ones(len(row_generation), dtype=np.bool_)
            path.near[:known][same] = self.near[:known][same]
        return path

    def near_rows(self, kept: Ints) -> Ints | None:
        """Which of some rows were near their bounds, counted among these; None where that was not looked at."""
        return None if self.near is None else np.flatnonzero(self.near[kept]).astype(np.int32)

    def hold_near(self, rows: Ints) -> None:
        """Keep the rows that an answer left near their bounds."""
        self.near = np.zeros(len(self.row_generation), dtype=np.bool_)
        self.near[rows] = True


def path_state(path: PricePath | None) -> dict[str, Any] | None:
    """The path as plain arrays, for snapshots and copies of sessions; None for none."""
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
    """Levels, parameters and prices as plain arrays."""
    levels = sorted(passed)
    return levels, [passed[level].mu for level in levels], np.array([passed[level].prices for level in levels])


def path_from(state: dict[str, Any] | None) -> PricePath | None:
    """The path again; ValueError where the arrays cannot be those of one."""
    if state is None or "paths" not in state:  # none, or of a version before paths with closed rows
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
    """Closed rows and milestones of a path over n rows; ValueError where they cannot be."""
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
    """Writes the milestones of a run on a scaled program.

    Parameters
    ----------
    method : BlockMethod
    scale : ndarray (rows,)
    factor : float
        The program's scales (:meth:`BlockProgram.equilibrated`).
    path : PricePath
        Milestones that this run does not pass stay.
    kept : ndarray (program's rows,) int32
        Which of the path's rows the program has; prices of the others are zero.
    """

    def __init__(self, method: BlockMethod, scale: Floats, factor: float, path: PricePath, kept: Ints) -> None:
        self.kept = kept
        self.method, self.scale, self.factor, self.path = method, scale[: method.program.n_rows], factor, path
        self.left, self.starts = set(LEVELS), True

    def look(self, figures: Figures) -> None:
        """Keep the prices if the point is the first within a level; where a run starts, at the finest level only."""
        within = sorted(each for each in self.left if max(figures.gap, figures.dual) < each)
        self.left.difference_update(within)
        for level in within[:1] if self.starts else within:
            prices = np.zeros(len(self.path.row_generation))
            prices[self.kept] = self.method.state.y[: self.method.program.n_rows] * self.scale / self.factor
            self.path.passed[level] = Milestone(figures.mu / self.factor, prices)
        self.starts = False


def started_from(method: BlockMethod, path: PricePath, scale: Floats, factor: float, kept: Ints) -> bool:
    """Whether the method could be put onto the path, near enough to its centre to go on from there.

    Every block is put at its own centre for the kept prices, whatever its limits, costs and coefficients are by now.
    Of the rows of the path the program has those `kept`. Blocks of more than one private row are not put there: their
    centres would take a method of their own. A path that was too far away last time is tried at its coarsest level
    first, the widest one: where that is too far, so are the finer ones.
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
    """Prices of the sign that their rows' bounds allow, strictly; of rows without bounds, zero."""
    n, m = program.n_columns, program.n_rows
    low, high = program.lower[n : n + m], program.upper[n : n + m]
    below, above = np.isfinite(low), np.isfinite(high)
    least = mu / (1.0 + np.where(below, np.abs(low), np.where(above, np.abs(high), 0.0)))
    prices = np.where(below & ~above, np.maximum(prices, least), prices)
    prices = np.where(above & ~below, np.minimum(prices, -least), prices)
    return np.where(below | above, prices, 0.0)


def decrement(method: BlockMethod, mu: float) -> float:
    """How far the point is from the path: the length of Newton's step in its own norm, for each pair."""
    state = method.state
    step = np.empty(state.n_all_rows)
    method.solve(state.primal, step)
    square = float(state.primal @ step) / max(mu, 1e-300)
    return float(np.sqrt(max(square, 0.0) / max(method.pairs, 1))) if np.isfinite(square) else np.inf
