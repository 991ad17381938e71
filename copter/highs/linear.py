"""A linear program by HiGHS's interior points and crossover: what the child process does (K18)."""

from __future__ import annotations

from dataclasses import dataclass
from importlib import import_module
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from copter.highs.lp import filled_lp, run_highs, silent_highs

Floats = NDArray[np.float64]
Statuses = NDArray[np.int8]

AT_LOWER, BASIC, AT_UPPER = 0, 1, 2  # values of HighsBasisStatus
SOLVED, NO_OPTIMUM = 0, (2, 3)  # statuses of scipy.optimize.linprog


@dataclass(frozen=True, slots=True)
class LinearTask:
    """A minimisation without integer columns.

    Attributes
    ----------
    cost, col_lower, col_upper : ndarray (n,)
    matrix : csc_array (m, n)
    row_lower, row_upper : ndarray (m,)
    time_limit_s : float
    """

    cost: Floats
    matrix: sp.csc_array
    row_lower: Floats
    row_upper: Floats
    col_lower: Floats
    col_upper: Floats
    time_limit_s: float


@dataclass(frozen=True, slots=True)
class Vertex:
    """An optimal vertex as HiGHS tells it; without a point it has found none.

    Attributes
    ----------
    x : ndarray (n,) or None
    y : ndarray (m,) or None
        Duals of the rows: costs less usage at them are the reduced costs.
    statuses : ndarray (n + m,) int8 or None
        `AT_LOWER`, `BASIC` or `AT_UPPER`, of columns and then of rows; None from SciPy's HiGHS.
    iterations : int
    no_optimum : bool
        Whether HiGHS says that the program has none.
    finished : bool
        As for :class:`copter.highs.branch_and_bound.Report`.
    """

    x: Floats | None = None
    y: Floats | None = None
    statuses: Statuses | None = None
    iterations: int = 0
    no_optimum: bool = False
    finished: bool = True


def vertex_of(task: LinearTask, has_highspy: bool) -> Vertex:
    """Solve a task, by SciPy's HiGHS where highspy is not installed."""
    return by_highspy(task) if has_highspy else by_scipy(task)


def by_highspy(task: LinearTask) -> Vertex:
    """Solve by highspy, which tells its basis."""
    highspy: Any = import_module("highspy")
    solver = silent_highs()
    for name, value in (("threads", 1), ("solver", "ipm"), ("time_limit", task.time_limit_s)):
        solver.setOptionValue(name, value)
    rows, columns = (task.row_lower, task.row_upper), (task.col_lower, task.col_upper)
    if solver.passModel(filled_lp(task.cost, task.matrix, rows, columns)) == highspy.HighsStatus.kError:
        return Vertex()
    run_highs(solver)
    status, all_statuses = solver.getModelStatus(), highspy.HighsModelStatus
    if status != all_statuses.kOptimal:
        none = all_statuses.kInfeasible, all_statuses.kUnbounded, all_statuses.kUnboundedOrInfeasible
        return Vertex(no_optimum=status in none)
    answer, basis, info = solver.getSolution(), solver.getBasis(), solver.getInfo()
    statuses = np.array([int(each) for each in (*basis.col_status, *basis.row_status)], dtype=np.int8)
    return Vertex(
        np.array(answer.col_value),
        np.array(answer.row_dual),
        statuses if basis.valid else None,
        int(info.ipm_iteration_count + info.crossover_iteration_count + info.simplex_iteration_count),
    )


def by_scipy(task: LinearTask) -> Vertex:
    """Solve by SciPy's HiGHS, which tells point and duals."""
    optimize = import_module("scipy.optimize")
    matrix, low, high = sp.csr_array(task.matrix), task.row_lower, task.row_upper
    equal = low == high
    below, above = np.flatnonzero(np.isfinite(high) & ~equal), np.flatnonzero(np.isfinite(low) & ~equal)
    options = {"time_limit": task.time_limit_s} if np.isfinite(task.time_limit_s) else {}
    result = optimize.linprog(
        task.cost,
        A_ub=sp.vstack([matrix[below], -matrix[above]]),
        b_ub=np.concatenate((high[below], -low[above])),
        A_eq=matrix[equal] if equal.any() else None,
        b_eq=low[equal] if equal.any() else None,
        bounds=np.column_stack((task.col_lower, task.col_upper)),
        method="highs-ipm",
        options=options,
    )
    if result.status != SOLVED:
        return Vertex(no_optimum=result.status in NO_OPTIMUM)
    y = np.zeros(len(low))
    y[below] += result.ineqlin.marginals[: len(below)]
    y[above] -= result.ineqlin.marginals[len(below) :]
    if equal.any():
        y[equal] = result.eqlin.marginals
    return Vertex(np.asarray(result.x), y, None, int(result.nit))
