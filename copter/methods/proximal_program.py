"""One linear program by the proximal-point method: scaled, as a model with one request, checked on the original."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from copter.methods.warm import warm_solve
from copter.methods.warm_state import WarmState
from copter.model.model import Model
from copter.problem.checker import check
from copter.problem.linear_program import LinearProgram
from copter.problem.scaling import Scaling, equilibrate
from copter.problem.solution import Effort, Solution, Status
from copter.runtime.settings import Settings
from copter.runtime.watch import Watch

COLUMNS = "columns"
# Most times that the scaled problem's tolerance is divided by ten because the unscaled residuals are large.
TIGHTENINGS = 3


def solve_proximal(
    lp: LinearProgram,
    settings: Settings,
    watch: Watch,
    callback: Callable[[int, float, float], bool | None] | None = None,
) -> Solution:
    """Solve by the proximal-point method of sessions, from a cold start.

    If the unscaled optimum is not within tolerance, the solve continues from it with a tighter tolerance.
    """
    settings = replace(settings, interior_columns=0)
    model, scaling = scaled_model(lp)
    iterate = WarmState()
    attempt = 0
    while True:
        factor = 10.0**-attempt
        left_s = max(settings.time_limit_s - watch.elapsed_s, 1e-3)
        tighter = replace(
            settings,
            tolerance=settings.tolerance * factor,
            absolute_tolerance=settings.absolute_tolerance * factor,
            time_limit_s=left_s,
        )
        with Watch(left_s) as inner:
            scaled = warm_solve(model, iterate, tighter, inner, callback)
        solution = replace(unscaled(lp, scaling, scaled, settings, watch.elapsed_s), why=scaled.why)
        within = scaled.status is not Status.OPTIMAL or solution.status is Status.OPTIMAL
        if within or attempt == TIGHTENINGS or watch():
            return solution
        attempt += 1


def scaled_model(lp: LinearProgram) -> tuple[Model, Scaling]:
    """Return a model of the equilibrated program: one request without a limit, one resource per row."""
    scaling, matrix = equilibrate(lp)
    model = Model(lp.sense)
    rows = list(range(lp.shape[0]))
    with np.errstate(invalid="ignore"):
        model.ledger.apply("rows", rows, lp.row_lower * scaling.row, lp.row_upper * scaling.row)
    if lp.shape[1]:
        model.add_request(
            COLUMNS,
            lp.c * scaling.column / scaling.cost,
            usage=matrix,
            resources=rows,
            limit=np.inf,
            lower=lp.col_lower / scaling.column,
            upper=lp.col_upper / scaling.column,
        )
    return model, scaling


def unscaled(lp: LinearProgram, scaling: Scaling, scaled: Solution, settings: Settings, seconds: float) -> Solution:
    """Return the scaled problem's solution in the original's terms, checked on the original."""
    x, y = (scaled.x, scaled.y) if lp.shape[1] else (np.zeros(0), np.zeros(lp.shape[0]))
    x = np.clip(x * scaling.column, lp.col_lower, lp.col_upper)
    y = y[: lp.shape[0]] * scaling.row * scaling.cost
    judged = check(lp, x, y)
    status = scaled.status
    within = judged.residuals.within(settings.tolerance, settings.absolute_tolerance)
    if status is Status.OPTIMAL and not (within and judged.complementarity <= settings.tolerance):
        status = Status.NUMERICAL_ERROR
    ray = scaled.ray
    if ray is not None:
        ray = ray * (scaling.row if status is Status.PRIMAL_INFEASIBLE else scaling.column)
        size = float(np.abs(ray).max(initial=0.0))
        ray = ray / size if size > 0 else ray
    counts = scaled.iterations, scaled.pricing_passes, scaled.proximal_steps, scaled.working_columns
    effort = Effort(seconds, *counts, method=scaled.method)
    return Solution.of_program(lp, status, x, y, judged, ray, effort=effort)
