"""What a program is shown before the interior-point method: methods that are fast where they fit, and give up soon."""

from __future__ import annotations

import numpy as np

from copter.blocks.structure import solve_structured
from copter.problem.checker import check
from copter.problem.linear_program import LinearProgram
from copter.problem.solution import Solution, Status
from copter.runtime.watch import Watch
from copter.settings import Settings
from copter.simplex.solve import SimplexSolve

DIRECT = 6_000  # entries of a program whose presolve takes longer than what it saves
DIRECT_WORK = 2e7  # of the simplex method on such a program; a unit is about three nanoseconds
MOST_WORK = 1e8  # of the simplex method before the interior-point method gets its turn
MOST_SPARSE_WORK = 3e8  # the same where steps stay sparse
MOST_ENTRIES = 500_000  # of a program that the simplex method is tried on
MOST_ROWS = 10_000


def by_simplex_directly(lp: LinearProgram, settings: Settings, watch: Watch) -> Solution | None:
    """A small program by the simplex method as it stands; None where it is large, or the method gives up."""
    return _by_simplex(lp, settings, watch, DIRECT_WORK, DIRECT_WORK) if lp.A.nnz <= DIRECT else None


def by_simplex(lp: LinearProgram, settings: Settings, watch: Watch) -> Solution | None:
    """A presolved program by the simplex method; None where that gives up."""
    return _by_simplex(lp, settings, watch, MOST_WORK, MOST_SPARSE_WORK) if lp.A.nnz <= MOST_ENTRIES else None


def _by_simplex(
    lp: LinearProgram, settings: Settings, watch: Watch, work: float, sparse_work: float
) -> Solution | None:
    m, n = lp.shape
    if not 0 < m <= MOST_ROWS or not n:
        return None
    return SimplexSolve(lp, settings, watch, work, sparse_work).run()


def by_structure(lp: LinearProgram, settings: Settings, watch: Watch) -> Solution | None:
    """A program of many blocks under few coupling rows (docs/method/blocks.md), if that ends at an optimum."""
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
    return Solution.of_program(
        lp,
        Status.OPTIMAL,
        x,
        y,
        judged,
        solve_time_s=watch.elapsed_s,
        iterations=iterations,
        working_columns=lp.shape[1],
    )
