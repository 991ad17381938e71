"""One linear program by the proximal-point method: scaled, as one request of a session, judged as given."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from copter.model.model import Model
from copter.numerics.scaling import Scaling, equilibrate
from copter.problem.linear_program import LinearProgram
from copter.problem.solution import Residuals, Solution, Status
from copter.runtime.watch import Watch
from copter.session.session import Session
from copter.settings import Settings
from copter.testing import check

COLUMNS = "columns"
TIGHTENINGS = 3  # times that the scaled problem's tolerance is cut tenfold where the unscaled residuals ask for it


def solve_proximal(
    lp: LinearProgram,
    settings: Settings,
    watch: Watch,
    callback: Callable[[int, float, float], bool | None] | None = None,
) -> Solution:
    """Solve by the proximal-point method of sessions alone, from a cold start."""
    settings = replace(settings, interior_columns=0)
    session, scaling = scaled_session(lp, settings)
    solution = None
    for attempt in range(TIGHTENINGS + 1):
        factor = 10.0**-attempt
        session.settings = replace(
            settings,
            tolerance=settings.tolerance * factor,
            absolute_tolerance=settings.absolute_tolerance * factor,
            time_limit_s=max(settings.time_limit_s - watch.elapsed_s, 1e-3),
        )
        scaled = session.solve(callback=callback)
        solution = unscaled(lp, scaling, scaled, settings, watch.elapsed_s)
        if scaled.status is not Status.OPTIMAL or solution.status is Status.OPTIMAL or watch():
            break
    assert solution is not None
    return solution


def scaled_session(lp: LinearProgram, settings: Settings) -> tuple[Session, Scaling]:
    """A session over the equilibrated program: one request without a limit, one resource a row."""
    scaling, matrix = equilibrate(lp)
    model = Model(lp.sense)
    with np.errstate(invalid="ignore"):
        low, high = lp.row_lower * scaling.row, lp.row_upper * scaling.row
    for i in range(lp.shape[0]):
        model._row_of[i] = model._matrix.add_row(low[i], high[i])
    if lp.shape[1]:
        model.add_request(
            COLUMNS,
            lp.c * scaling.column / scaling.cost,
            usage=matrix,
            resources=list(range(lp.shape[0])),
            limit=np.inf,
            lower=lp.col_lower / scaling.column,
            upper=lp.col_upper / scaling.column,
        )
    return Session(model, settings), scaling


def unscaled(lp: LinearProgram, scaling: Scaling, scaled: Solution, settings: Settings, seconds: float) -> Solution:
    """The scaled problem's solution in the terms of the original one, judged anew."""
    x, y, _ = scaled._arrays() if lp.shape[1] else (np.zeros(0), np.zeros(lp.shape[0]), np.zeros(0))
    x = np.clip(x * scaling.column, lp.col_lower, lp.col_upper)
    y = y[: lp.shape[0]] * scaling.row * scaling.cost
    judged = check(lp, x, y)
    residuals = Residuals(
        judged.primal, judged.dual, judged.gap, judged.primal_absolute, judged.dual_absolute, judged.gap_absolute
    )
    status = scaled.status
    if status is Status.OPTIMAL and not residuals.within(settings.tolerance, settings.absolute_tolerance):
        status = Status.NUMERICAL_ERROR
    ray = scaled.ray
    if ray is not None:
        ray = ray * (scaling.row if status is Status.PRIMAL_INFEASIBLE else scaling.column)
        size = float(np.abs(ray).max(initial=0.0))
        ray = ray / size if size > 0 else ray
    reduced = lp.c - lp.A.T @ y
    return replace(
        scaled,
        status=status,
        objective=judged.objective,
        bound=judged.bound,
        bound_is_certified=judged.bound_is_certified,
        residuals=residuals,
        solve_time_s=seconds,
        _ray=None if ray is None else (lambda: ray),
        _dense=lambda: (x, y, reduced),
        _sparse=None,
        _cache={},
    )
