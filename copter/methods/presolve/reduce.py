"""The order of the reductions and the stopping rule."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import scipy.sparse as sp

from copter.methods.presolve.dual_fixing import reduce_dual_fixing
from copter.methods.presolve.fixed_columns import reduce_fixed_columns
from copter.methods.presolve.forcing_rows import reduce_forcing_rows
from copter.methods.presolve.idle_rows import reduce_idle_rows
from copter.methods.presolve.parallel_columns import reduce_parallel_columns
from copter.methods.presolve.parallel_rows import reduce_parallel_rows
from copter.methods.presolve.presolved import Presolved, farkas_of
from copter.methods.presolve.redundant_rows import reduce_redundant_rows
from copter.methods.presolve.singleton_rows import reduce_singleton_rows
from copter.methods.presolve.slack_columns import reduce_slack_columns
from copter.methods.presolve.tolerances import Tolerances
from copter.methods.presolve.work import Work
from copter.problem.linear_program import LinearProgram
from copter.problem.solution import Status

Reduction = Callable[[Work], bool]

LIGHT: tuple[Reduction, ...] = (
    reduce_idle_rows,
    reduce_singleton_rows,
    reduce_fixed_columns,
    reduce_redundant_rows,
    reduce_forcing_rows,
    reduce_dual_fixing,
    reduce_slack_columns,
)
SEARCHING: tuple[Reduction, ...] = (reduce_parallel_rows, reduce_parallel_columns)
ALL = LIGHT + SEARCHING


def presolve(
    lp: LinearProgram, tolerances: Tolerances | None = None, reductions: tuple[Reduction, ...] = ALL
) -> Presolved:
    """Make a linear program smaller without changing its optimum (docs/method/presolve.md).

    Parameters
    ----------
    lp : LinearProgram
        Integrality is ignored: the relaxation is reduced.
    tolerances : Tolerances, optional
    reductions : tuple of functions, optional
        Reductions to use; all by default.

    Returns
    -------
    Presolved
        It has a status if the reductions solve the problem; an infeasible or unbounded problem has a verified ray.
    """
    work = Work(lp, tolerances or Tolerances())
    with np.errstate(over="ignore"):
        _reduce(work, reductions)
        _tidy(work)
        if work.conflict is None:
            return _result(work)
        ray = farkas_of(work, work.conflict)
    if ray is None:  # the proof fails on the original problem, so no reduction is used
        return _result(Work(lp, work.tolerances))
    return Presolved(lp, None, Status.PRIMAL_INFEASIBLE, ray, None, *_left(work), work)


def _reduce(work: Work, reductions: tuple[Reduction, ...]) -> None:
    """Alternate light and searching reductions until neither gains much."""
    light = [reduction for reduction in reductions if reduction not in SEARCHING]
    searching = [reduction for reduction in reductions if reduction in SEARCHING]
    for _ in range(work.tolerances.max_passes):
        if _gives_much(work, light, work.tolerances.least_progress):
            continue
        if work.conflict is not None or not _gives_much(work, searching, work.tolerances.least_found):
            return


def _tidy(work: Work) -> None:
    """Remove empty rows and, once there are no rows, all columns."""
    if work.conflict is None:
        reduce_idle_rows(work)
    if work.conflict is None and not work.row_alive.any():
        reduce_dual_fixing(work)


def _gives_much(work: Work, reductions: list[Reduction], least: float) -> bool:
    """Apply each reduction once; returns whether enough rows and columns were removed for another pass to pay off."""
    before = work.left
    for reduction in reductions:
        reduction(work)
        if work.conflict is not None:
            return False
    return before - work.left > least * before


def _left(work: Work) -> tuple[np.ndarray, np.ndarray]:
    return np.flatnonzero(work.row_alive), np.flatnonzero(work.col_alive)


def _result(work: Work) -> Presolved:
    """Return the remaining problem, or the status that is known if none remains."""
    rows, columns = _left(work)
    ray = work.improving_ray
    if not len(rows) and not len(columns):
        status = Status.OPTIMAL if ray is None else Status.DUAL_INFEASIBLE
        return Presolved(work.lp, None, status, ray, ray, rows, columns, work)
    sign = 1.0 if work.lp.sense == "min" else -1.0
    row_place, col_place = np.cumsum(work.row_alive) - 1, np.cumsum(work.col_alive) - 1
    program = LinearProgram(
        sign * work.c[columns],
        sp.csc_array((work.value, (row_place[work.row], col_place[work.col])), shape=(len(rows), len(columns))),
        work.row_lower[rows],
        work.row_upper[rows],
        work.col_lower[columns],
        work.col_upper[columns],
        sense=work.lp.sense,
        offset=sign * work.offset,
    )
    work.forget_entries()
    return Presolved(work.lp, program, None, None, ray, rows, columns, work)
