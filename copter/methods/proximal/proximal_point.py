"""Proximal-point steps on the working set until its own gap closes (equations A1-A2)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from copter.methods.proximal import newton
from copter.methods.proximal.accumulate import all_easy_minimum, easy_minimum, moved
from copter.methods.proximal.ascent import Ascent
from copter.methods.proximal.newton import SMALL_WORKING_SET, Direction, Region, Rows, Subproblem, maximise
from copter.methods.proximal.project import block_minimum
from copter.methods.proximal.row_sums import dual_terms, farthest, is_within, signed
from copter.methods.proximal.steps import Steps
from copter.methods.proximal.working_set import WorkingSet
from copter.problem.residuals import relative_gap
from copter.problem.sums import norm
from copter.runtime.settings import Settings
from copter.runtime.threads import safe_threads

Floats = NDArray[np.float64]
Ints = NDArray[np.int32]

MAX_VIOLATED_STEPS = 8  # the solve ends after this many proximal steps in a row that leave a row violated
EASY_STEPS = 20  # sigma grows after a proximal step of at most this many Newton steps
LEAST_SIGMA, MAX_SIGMA = 1e-6, 1e6  # least and largest proximal parameter sigma
IDLE_PRICE = 0.01  # size of a zero price, in units of the largest cost over the row's scale
NONE: Floats = np.zeros(0)


@dataclass(frozen=True, slots=True)
class Control:
    """Accuracy of the working set's solve and its stopping rules.

    Attributes
    ----------
    settings : Settings
    tolerance : float
        Relative gap of the working set's program at which it counts as solved.
    row_tolerance : ndarray (m,)
        Largest residual allowed in each row.
    stop : callable
        Called before every Newton step; True ends the solve.
    offset : float
        Constant in the objective, as minimised: the gap is relative to the objective with it.
    trust_radius : float
        Largest distance of prices from those of the last pricing pass, in units of their size (equation A9).
    direction : callable
        Returns the direction of the prices: Newton's, or that of coordinate descent.
    """

    settings: Settings
    tolerance: float
    row_tolerance: Floats
    stop: Callable[[], bool] = lambda: False
    offset: float = 0.0
    trust_radius: float = np.inf
    direction: Direction = Subproblem.newton_direction


@dataclass(slots=True)
class Progress:
    """Result of a solve of the working set's program."""

    y: Floats
    sigma: float
    proximal_steps: int
    newton_steps: int
    gap: float
    converged: bool
    # longest single step in x: for an unbounded program it is a ray, and its relative rounding error is the least
    displacement: Floats
    left_trust_region: bool = False  # whether the prices left the trust region and were moved back to its edge


def signed_prices(y: Floats, rows: Rows) -> Floats:
    """Return prices with wrong signs for one-sided rows set to zero, so that the dual value is finite (F6)."""
    return signed(y, rows.lower, rows.upper)


def rows_value(y: Floats, rows: Rows) -> float:
    """Return min over lower <= s <= upper of y's, for prices of the right sign (first term of equation A3)."""
    return dual_terms(y, rows.lower, rows.upper)[0]


def blocks_minimum(reduced: Floats, lower: Floats, upper: Floats, start: Ints, limit: Floats) -> tuple[float, Floats]:
    """Return the sum over groups of min reduced'x, and the reduced costs left out of it.

    Left out are reduced costs whose sign belongs to an infinite bound, because they would make the minimum minus
    infinity (equations A3, F9).
    """
    easy = np.empty(len(limit), dtype=np.uint8)
    total = easy_minimum(start, limit, lower, upper, reduced, easy)
    if easy.all():
        return total, np.zeros(0)
    counts, groups = np.diff(start), easy == 0
    columns = np.repeat(groups, counts)
    rest, wrong = bounded_minimum(
        reduced[columns], lower[columns], upper[columns], counts[groups], limit[groups], np.arange(int(groups.sum()))
    )
    return total + rest, wrong


def bounded_minimum(
    reduced: Floats, lower: Floats, upper: Floats, counts: NDArray[np.int64], limit: Floats, groups: NDArray[np.int64]
) -> tuple[float, Floats]:
    """Return the same as :func:`blocks_minimum` for groups whose columns have bounds of their own."""
    without_limit = np.repeat(~np.isfinite(limit), counts)
    wrong = np.where(np.isneginf(lower), np.maximum(reduced, 0.0), 0.0)
    wrong += np.where(np.isposinf(upper) & without_limit, np.minimum(reduced, 0.0), 0.0)
    kept = reduced - wrong
    if not np.isfinite(limit).any():
        at = np.where(kept > 0, lower, np.where(kept < 0, upper, 0.0))
        return float((kept * at).sum()), wrong
    least = np.empty(len(limit))
    start = np.concatenate(([0], np.cumsum(counts))).astype(np.int32)
    order = np.lexsort((kept, np.repeat(groups, counts))).astype(np.int64)
    block_minimum(start, limit, kept, lower, upper, order, least)
    return float(least.sum()), wrong


def restricted_dual(ws: WorkingSet, rows: Rows, y: Floats) -> tuple[float, Floats]:
    """Return the dual value of the working set's LP at prices y, and the reduced costs left out (equation A3)."""
    y = signed_prices(y, rows)
    value, all_easy = all_easy_minimum(ws.groups(), y)
    wrong = NONE
    if not all_easy:
        value, wrong = blocks_minimum(ws.reduced_costs(y), ws.lower, ws.upper, ws.start, ws.limit)
    return rows_value(y, rows) + value, wrong


def solve_working_set(ws: WorkingSet, rows: Rows, y: Floats, sigma: float, control: Control) -> Progress:
    """Take proximal steps from (ws.x, y) until the working set's relative gap is within tolerance.

    ws.x is changed in place; the prices are returned. Prices that leave the trust region are moved back to its edge and
    the solve ends (equation A9), because so far from the last pricing pass the working set lacks too many columns.
    Several steps in a row that leave rows violated end the solve too, so that the caller can look for a certificate.
    """
    region = Region(y, sizes(ws, rows, y), control.trust_radius)
    progress = proximal_point(ws, rows, y, sigma, control, region)
    distance = farthest(progress.y, y, region.weight)
    if distance > region.radius:
        progress.y = y + (progress.y - y) * (region.radius / distance)
        progress.converged, progress.left_trust_region = False, True
    return progress


def sizes(ws: WorkingSet, rows: Rows, y: Floats) -> Floats:
    """Return the units of moves of the prices, (m,): w of equation A8."""
    idle = IDLE_PRICE * float(np.abs(ws.cost).max(initial=0.0)) / np.maximum(rows.scale, 1e-300)
    return np.abs(y) + np.where(rows.scale > 0.0, idle, 1.0)


def solve_in_one_call(
    steps: Steps, ws: WorkingSet, rows: Rows, y: Floats, sigma: float, control: Control
) -> Progress | None:
    """Do :func:`solve_working_set` in one compiled call; None for a program that needs more than plain and held
    groups, few rows and Newton's directions.
    """
    few = 0 < len(y) <= newton.FEW_ROWS and control.direction is Subproblem.newton_direction
    if not few or ws.size == 0 or not ws.groups().all_easy:
        return None
    threads, ends = safe_threads(control.settings.n_threads), (MAX_VIOLATED_STEPS, EASY_STEPS, newton.MAX_NEWTON_STEPS)
    rules = SMALL_WORKING_SET, threads, IDLE_PRICE, control.trust_radius, *ends, LEAST_SIGMA, MAX_SIGMA
    return Progress(*steps.solve(ws, rows, y, sigma, control, rules))


def proximal_point(ws: WorkingSet, rows: Rows, y: Floats, sigma: float, control: Control, region: Region) -> Progress:
    """Take the steps of :func:`solve_working_set` until prices leave the region."""
    settings, offset = control.settings, control.offset
    slack = np.minimum(np.maximum(ws.activity(len(y)), rows.lower), rows.upper)
    newton_steps, violated, gap = 0, 0, np.inf
    displacement, longest, nowhere = np.zeros(ws.size), 0.0, np.zeros(len(y))
    threads = settings.n_threads if ws.size >= SMALL_WORKING_SET else 1
    problem = Subproblem(ws, rows, ws.x.copy(), slack, sigma, threads)
    ascent = Ascent(problem.dual, control.row_tolerance, *region)
    for step in range(1, settings.max_proximal_steps + 1):
        if step > 1:
            problem.begin(ws.x.copy(), slack, sigma)
        point, taken = maximise(problem, ascent, y, control.stop, control.direction)
        newton_steps += taken
        y, slack = point.y, point.slack
        if not region.inside(y):
            return Progress(y, sigma, step - 1, newton_steps, gap, False, displacement)
        move = np.empty(ws.size)
        objective, length = moved(ws.cost, problem.x, ws.x, move)
        if length >= longest:
            displacement, longest = move, length
        dual, wrong = restricted_dual(ws, rows, y)
        gap = relative_gap(objective + offset, dual + offset)
        if len(wrong):
            gap = max(gap, norm(wrong) / (1.0 + norm(ws.cost)))
        feasible = is_within(point.residual, nowhere, control.row_tolerance)
        if feasible and gap <= control.tolerance:
            return Progress(y, sigma, step, newton_steps, gap, True, displacement)
        violated = 0 if feasible else violated + 1
        if control.stop() or violated >= MAX_VIOLATED_STEPS:
            return Progress(y, sigma, step, newton_steps, gap, False, displacement)
        if feasible and taken <= EASY_STEPS:
            sigma = min(sigma * settings.sigma_growth, MAX_SIGMA)
        elif not feasible:
            sigma = max(sigma / settings.sigma_growth, LEAST_SIGMA)
    return Progress(y, sigma, settings.max_proximal_steps, newton_steps, gap, False, displacement)
