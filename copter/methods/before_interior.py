"""Methods tried before the interior-point method: fast on suitable programs, and quick to give up on others."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from copter.methods.blocks.structure import solve_structured
from copter.methods.simplex.solve import SimplexSolve
from copter.problem.checker import check
from copter.problem.linear_program import LinearProgram
from copter.problem.solution import Effort, Solution, Status
from copter.runtime.settings import Settings
from copter.runtime.watch import Watch

Callback = Callable[[int, float, float], bool | None]


def by_simplex(
    lp: LinearProgram,
    settings: Settings,
    watch: Watch,
    work: float = np.inf,
    sparse_work: float = np.inf,
    callback: Callback | None = None,
) -> Solution | None:
    """Solve by the simplex method with limited work; None if it gives up."""
    return SimplexSolve(lp, settings, watch, work, sparse_work, callback).run() if 0 not in lp.shape else None


def by_structure(
    lp: LinearProgram, settings: Settings, watch: Watch, callback: Callback | None = None
) -> Solution | None:
    """Solve a program of many blocks under few coupling rows (blocks.md); None unless an optimum is found."""
    try:
        found = solve_structured(lp, settings, watch)
    except MemoryError:
        return None
    if found is None:
        return None
    x, y, iterations = np.clip(found[0], lp.col_lower, lp.col_upper), found[1], found[2]
    judged = check(lp, x, y)
    if not judged.within(settings.tolerance, settings.absolute_tolerance):
        return None
    if callback is not None and callback(iterations, judged.gap, judged.primal):
        watch.interrupted = True
    effort = Effort(watch.elapsed_s, iterations, working_columns=lp.shape[1], method="blocks")
    return Solution.of_program(lp, Status.OPTIMAL, x, y, judged, effort=effort)
