"""The outer loop on the working set: proximal-point steps until its own gap closes (equations A1-A2)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from copter.algorithm.newton import Rows, Subproblem, maximise
from copter.algorithm.working_set import WorkingSet
from copter.kernels.project import block_minimum
from copter.settings import Settings

Floats = NDArray[np.float64]


@dataclass(slots=True)
class Progress:
    """How a restricted solve went."""

    y: Floats
    sigma: float
    proximal_steps: int
    newton_steps: int
    gap: float
    converged: bool
    displacement: Floats


def signed_prices(y: Floats, rows: Rows) -> Floats:
    """Prices with the wrong sign for a one-sided row brought to zero, so that the dual value is finite (F4)."""
    positive = np.where(np.isfinite(rows.lower), np.maximum(y, 0.0), 0.0)
    negative = np.where(np.isfinite(rows.upper), np.minimum(y, 0.0), 0.0)
    return np.asarray(positive + negative)


def rows_value(y: Floats, rows: Rows) -> float:
    """min over lower <= s <= upper of y's, for prices of the right sign (first term of equation A3)."""
    bound = np.where(y > 0, rows.lower, rows.upper)
    return float(np.sum(np.where(y == 0.0, 0.0, y * np.where(y == 0.0, 0.0, bound))))


def restricted_dual(ws: WorkingSet, rows: Rows, y: Floats) -> tuple[float, Floats]:
    """Dual value of the working set's LP at prices y, and the minimum over each block (equation A3)."""
    y = signed_prices(y, rows)
    reduced = ws.reduced_costs(y)
    group = np.repeat(np.arange(len(ws.slots)), np.diff(ws.start))
    order = np.lexsort((reduced, group)).astype(np.int64)
    least = np.empty(len(ws.slots))
    block_minimum(ws.start, ws.limit, reduced, ws.lower, ws.upper, order, least)
    return rows_value(y, rows) + float(least.sum()), least


def solve_working_set(
    ws: WorkingSet,
    rows: Rows,
    y: Floats,
    sigma: float,
    tolerance: float,
    row_tolerance: Floats,
    settings: Settings,
    stop: Callable[[], bool] = lambda: False,
) -> Progress:
    """Take proximal steps from (ws.x, y) until the working set's relative gap is at most `tolerance`.

    ws.x is moved in place; the prices are returned. `stop` is asked after every step.
    """
    slack = np.clip(ws.activity(len(y)), rows.lower, rows.upper)
    newton_steps, gap = 0, np.inf
    displacement = np.zeros(ws.size)
    for step in range(1, settings.max_proximal_steps + 1):
        problem = Subproblem(ws, rows, ws.x.copy(), slack, sigma)
        point, taken = maximise(problem, y, row_tolerance, settings)
        newton_steps += taken
        y, slack = point.y, point.slack
        displacement = problem.x - ws.x
        ws.x[:] = problem.x
        primal = float(ws.cost @ ws.x)
        dual, _ = restricted_dual(ws, rows, y)
        gap = abs(primal - dual) / (1.0 + abs(primal) + abs(dual))
        feasible = bool(np.all(np.abs(point.residual) <= row_tolerance))
        if feasible and gap <= tolerance:
            return Progress(y, sigma, step, newton_steps, gap, True, displacement)
        if stop():
            return Progress(y, sigma, step, newton_steps, gap, False, displacement)
        if feasible and taken <= 20:
            sigma = min(sigma * settings.sigma_growth, settings.max_sigma)
        elif not feasible:
            sigma = max(sigma / settings.sigma_growth, 1e-6)
    return Progress(y, sigma, settings.max_proximal_steps, newton_steps, gap, False, displacement)
