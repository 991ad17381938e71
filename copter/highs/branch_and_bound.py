"""HiGHS's branch and bound in its own process, which can be ended at any time and may crash without harm (M11).

:func:`main` reads pickled :class:`Task` objects from stdin, one after the other, and writes pickled :class:`Report`
objects to stdout as they come; it ends when stdin is closed or its parent dies. It solves a :class:`.LinearTask` too.
"""

from __future__ import annotations

import contextlib
import os
import pickle
import select
import signal
import sys
import threading
from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from copter.highs.children import end_with_parent, limit_memory
from copter.highs.linear import LinearTask, Vertex, vertex_of
from copter.highs.lp import highs_lp, run_highs, silent_highs
from copter.problem.linear_program import LinearProgram

Floats = NDArray[np.float64]

# Share of the time limit for HiGHS if it returns its point only at the end; the rest is for sending the point.
SHARE = 0.97
IDLE_S = 60.0  # seconds that a process without a task waits for the next one
RELATIVE_GAP = 1e-6  # default relative gap at which branch and bound ends
SOLVED, INFEASIBLE = 0, 2  # statuses of scipy.optimize.milp


@dataclass(frozen=True, slots=True)
class Task:
    """A minimisation with integer columns, and limits on its solve.

    Attributes
    ----------
    cost, col_lower, col_upper : ndarray (n,)
    matrix : csc_array (m, n)
    row_lower, row_upper : ndarray (m,)
    integrality : ndarray of bool (n,)
    start : ndarray (n,) or None
        A feasible point; only better ones are reported.
    cutoff : float
        Points with a larger objective are excluded; infinite without a start.
    time_limit_s : float
    gap : float
        Relative gap at which the search ends.
    max_nodes : int or None
        Nodes after which it ends.
    by_scipy : bool
        Whether to use SciPy's HiGHS even if highspy is installed.
    """

    cost: Floats
    matrix: sp.csc_array
    row_lower: Floats
    row_upper: Floats
    col_lower: Floats
    col_upper: Floats
    integrality: NDArray[np.bool_]
    start: Floats | None
    cutoff: float
    time_limit_s: float
    gap: float = RELATIVE_GAP
    max_nodes: int | None = None
    by_scipy: bool = False


@dataclass(frozen=True, slots=True)
class Report:
    """A report of the search: a better point, a bound, infeasibility, or the end."""

    x: Floats | None = None
    bound: float = -np.inf
    infeasible: bool = False
    finished: bool = False
    solved: bool = False


def main() -> None:
    """Solve tasks one after the other; see the module's docstring."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent handles Ctrl-C
    source, sink = sys.stdin.buffer, os.fdopen(os.dup(sys.stdout.fileno()), "wb")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())  # so that a solver's output does not mix with the reports
    threading.Thread(target=end_with_parent, args=(int(sys.argv[1]),), daemon=True).start()
    limit_memory()
    has_highspy = find_spec("highspy") is not None

    def tell(report: Report | Vertex) -> None:
        pickle.dump(report, sink, protocol=pickle.HIGHEST_PROTOCOL)
        sink.flush()

    with contextlib.suppress(BrokenPipeError, EOFError):
        while is_asked(source):
            task: Task | LinearTask = pickle.load(source)
            try:
                if isinstance(task, LinearTask):
                    tell(vertex_of(task, has_highspy))
                else:
                    (by_highspy if has_highspy and not task.by_scipy else by_scipy)(task, tell)
            except (MemoryError, RuntimeError, ValueError):
                tell(Report(finished=True))
    os._exit(0)  # without waiting for solver threads


def is_asked(source: Any) -> bool:
    """Wait for the next task; returns False after `IDLE_S` without one, and the process then ends."""
    try:
        return bool(select.select([source], [], [], IDLE_S)[0])
    except (OSError, ValueError):  # this system cannot wait for pipes: the read waits instead
        return True


def by_highspy(task: Task, tell: Callable[[Report], None]) -> None:
    """Run branch and bound by highspy, which accepts a start and reports every improvement."""
    highspy: Any = import_module("highspy")
    program = LinearProgram(
        task.cost,
        task.matrix,
        task.row_lower,
        task.row_upper,
        task.col_lower,
        task.col_upper,
        integrality=task.integrality,
    )
    solver = silent_highs()
    solver.setOptionValue("threads", 1)
    for name, value in (("mip_rel_gap", task.gap), ("time_limit", task.time_limit_s)):
        solver.setOptionValue(name, value)
    if task.max_nodes is not None:
        solver.setOptionValue("mip_max_nodes", task.max_nodes)
    if solver.passModel(highs_lp(program, integer=True)) == highspy.HighsStatus.kError:
        tell(Report(finished=True))
        return
    if task.start is not None:
        known = highspy.HighsSolution()
        known.col_value = task.start.tolist()
        solver.setSolution(known)
    kind = highspy.cb.HighsCallbackType

    def report(event: Any, message: str, out: Any, answer: Any, data: Any) -> None:
        tell(Report(x=np.array(out.mip_solution, dtype=np.float64), bound=float(out.mip_dual_bound)))

    solver.setCallback(report, None)
    solver.startCallback(kind.kCallbackMipImprovingSolution)
    run_highs(solver)
    status, info, known_status = solver.getModelStatus(), solver.getInfo(), highspy.HighsModelStatus
    result = info.primal_solution_status == highspy.SolutionStatus.kSolutionStatusFeasible
    tell(
        Report(
            x=np.array(solver.getSolution().col_value) if result else None,
            bound=float(info.mip_dual_bound) if status != known_status.kInfeasible else -np.inf,
            infeasible=status == known_status.kInfeasible,
            finished=True,
            solved=status in (known_status.kInfeasible, known_status.kOptimal),
        )
    )


def by_scipy(task: Task, tell: Callable[[Report], None]) -> None:
    """Run branch and bound by SciPy's HiGHS: the start becomes a cut-off row, and only the final answer is reported."""
    scipys: Any = import_module("scipy.optimize")  # loaded here, because with highspy nobody needs it
    rows = [scipys.LinearConstraint(task.matrix, task.row_lower, task.row_upper)] if len(task.row_lower) else []
    if np.isfinite(task.cutoff):
        rows.append(scipys.LinearConstraint(sp.csc_array(task.cost.reshape(1, -1)), -np.inf, task.cutoff))
    options: dict[str, Any] = {"mip_rel_gap": task.gap, "disp": False}
    if task.max_nodes is not None:
        options["node_limit"] = task.max_nodes
    if np.isfinite(task.time_limit_s):
        options["time_limit"] = SHARE * task.time_limit_s
    result = scipys.milp(
        task.cost,
        integrality=task.integrality.astype(int),
        bounds=scipys.Bounds(task.col_lower, task.col_upper),
        constraints=rows,
        options=options,
    )
    bound = result.get("mip_dual_bound")
    none = result.status == INFEASIBLE
    cut = none and np.isfinite(task.cutoff)  # no point is below the cut-off, so the cut-off is the bound
    tell(
        Report(
            x=None if result.x is None else np.asarray(result.x, dtype=np.float64),
            bound=task.cutoff if cut else -np.inf if bound is None or none else float(bound),
            infeasible=none and not cut,
            finished=True,
            solved=none or result.status == SOLVED,
        )
    )
