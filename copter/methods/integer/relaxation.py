"""LP relaxations within tightened bounds; fixed columns and rows without open columns are removed first."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from copter.methods.integer.problem import Domain, IntegerProblem, row_tolerance
from copter.methods.solve import solve
from copter.problem.linear_program import LinearProgram
from copter.problem.solution import Status
from copter.runtime.settings import Settings

Floats = NDArray[np.float64]

GUIDE = 1e-3  # an unfinished point of at most this relative primal residual still guides the search
GUIDE_TOLERANCE = 1e-5  # tolerance of relaxations that only guide the search


@dataclass(frozen=True, slots=True)
class Relaxed:
    """Result of a relaxation: its point (or None), whether it is optimal, and whether infeasibility is proven."""

    x: Floats | None
    optimal: bool
    infeasible: bool


class Relaxation:
    """Solver of LP relaxations of one integer problem, each within a domain's bounds.

    Parameters
    ----------
    problem : IntegerProblem
    settings : Settings
        Settings of the LP solves; their time limit is at most the time left on the problem's clock.
    """

    def __init__(self, problem: IntegerProblem, settings: Settings) -> None:
        self.problem, self.settings = problem, settings
        self.solved = 0
        self.over: Callable[[], bool] = lambda: False  # whether the search has ended, so that relaxations may stop

    def solve(self, domain: Domain, cost: Floats | None = None, share: float = 1.0, guide: bool = False) -> Relaxed:
        """Minimise within the domain's bounds for integer columns and the program's bounds for the others.

        Parameters
        ----------
        domain : Domain
        cost : ndarray (n,), optional
            The problem's own by default.
        share : float
            Largest share of the time left that the solve may take.
        guide : bool
            Whether the point only guides the search, so that a loose tolerance is enough.
        """
        problem, lp = self.problem, self.problem.lp
        lower = np.where(problem.is_integer, domain.lower, lp.col_lower)
        upper = np.where(problem.is_integer, domain.upper, lp.col_upper)
        free = lower < upper
        x = np.where(free, 0.0, lower)
        if not np.isfinite(x).all():  # propagation has moved a bound to infinity: the domain is empty
            return Relaxed(None, False, True)
        shift = lp.A @ x
        row_lower, row_upper = lp.row_lower - shift, lp.row_upper - shift
        columns = lp.A[:, free]
        used = np.diff(columns.tocsr().indptr) > 0
        idle = ~used
        low, high = row_tolerance(lp.row_lower[idle]), row_tolerance(lp.row_upper[idle])
        if (row_lower[idle] > low).any() or (row_upper[idle] < -high).any():
            return Relaxed(None, False, True)
        if not free.any():
            return Relaxed(x, True, False)
        return self._solve(
            x,
            free,
            LinearProgram(
                (problem.cost if cost is None else cost)[free],
                columns[used],
                row_lower[used],
                row_upper[used],
                lower[free],
                upper[free],
            ),
            share,
            guide,
        )

    def _solve(self, x: Floats, free: NDArray[np.bool_], reduced: LinearProgram, share: float, guide: bool) -> Relaxed:
        left = self.problem.clock.left_s
        if left <= 0.0:
            return Relaxed(None, False, False)
        self.solved += 1
        settings = replace(self.settings, time_limit_s=min(self.settings.time_limit_s, max(share * left, 1e-3)))
        if guide:
            loose = max(settings.tolerance, GUIDE_TOLERANCE)
            settings = replace(settings, tolerance=loose, absolute_tolerance=max(settings.absolute_tolerance, loose))
        solution = solve(reduced, settings, lambda *figures: self.over())
        if solution.status is Status.INTERRUPTED and not self.over():
            self.problem.clock.stop()
        if solution.status is Status.PRIMAL_INFEASIBLE:
            return Relaxed(None, False, True)
        if solution.status is Status.DUAL_INFEASIBLE or not solution.residuals.primal <= GUIDE:
            return Relaxed(None, False, False)
        x[free] = solution.x
        return Relaxed(x, solution.status is Status.OPTIMAL, False)

    def complete(self, domain: Domain, found_by: str) -> bool:
        """Fix the integer columns at the middle of the domain, optimise the others, and offer the point.

        Returns whether it became the best point.
        """
        problem = self.problem
        fixed = domain.copy()
        values = np.round(middle(fixed.lower[problem.integers], fixed.upper[problem.integers]))
        fixed.lower[problem.integers] = fixed.upper[problem.integers] = values
        if not len(problem.continuous):
            return problem.offer(fixed.lower, found_by)
        relaxed = self.solve(fixed)
        return relaxed.x is not None and problem.offer(relaxed.x, found_by)


def middle(lower: Floats, upper: Floats) -> Floats:
    """Return the middle of each interval, or its number nearest to zero if an end is infinite."""
    ends = np.isfinite(lower) & np.isfinite(upper)
    half = 0.5 * np.where(ends, lower, 0.0) + 0.5 * np.where(ends, upper, 0.0)
    return np.where(ends, half, np.clip(0.0, lower, upper))
