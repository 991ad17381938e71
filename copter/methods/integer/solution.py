"""Results of solve_integer."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

import numpy as np
from numpy.typing import NDArray

from copter.problem.residuals import relative_gap
from copter.problem.solution import Solution

Floats = NDArray[np.float64]


class IntegerStatus(str, Enum):
    """How a search for an integer point ended."""

    OPTIMAL = "optimal"
    FEASIBLE = "feasible"
    NONE_FOUND = "none_found"
    PRIMAL_INFEASIBLE = "primal_infeasible"
    DUAL_INFEASIBLE = "dual_infeasible"


@dataclass(frozen=True, slots=True)
class IntegerSolution:
    """A feasible integer point, if one was found, and a bound on any better one.

    Attributes
    ----------
    status : IntegerStatus
        OPTIMAL where the bound proves it, FEASIBLE, NONE_FOUND (there may be one), PRIMAL_INFEASIBLE (there is none;
        `bound_by` says who found that), DUAL_INFEASIBLE (unbounded: from `x` the objective improves without end along
        the relaxation's ray).
    x : ndarray (n,) or None
        Integer columns are whole numbers exactly.
    objective : float
        c'x + offset; NaN without a point.
    bound : float
        No integer point is better. Infinite if nothing is known.
    bound_is_certified : bool
        False where it rests on the relaxation's optimality, or on HiGHS, rather than on prices alone (M1).
    bound_by : str
        Where the bound comes from, or the verdict PRIMAL_INFEASIBLE: "prices" (M1), "relaxation" (its bound), "rows"
        (they contradict the bounds, M2), "ray" (the relaxation's, verified) or "HiGHS" (M11); empty without one.
    gap : float
        |objective - bound| / (1 + |objective| + |bound|); NaN without a point or a bound.
    found_by : str
        The part of the search that found the point; "HiGHS" for its branch and bound, which runs at the same time.
    relaxation : Solution or None
        Of the program without integrality; None where no time was left for it.
    relaxations : int
        LPs solved after the first one.
    solve_time_s : float
    proof : str
        How the proof went that was asked for: "written", or why there is none; empty where none was asked for.
    """

    status: IntegerStatus
    x: Floats | None
    objective: float
    bound: float
    bound_is_certified: bool
    bound_by: str
    found_by: str
    relaxation: Solution | None
    relaxations: int
    solve_time_s: float
    proof: str = ""

    @property
    def gap(self) -> float:
        """Relative gap between objective and bound."""
        if self.x is None or not np.isfinite(self.bound):
            return float("nan")
        return relative_gap(self.objective, self.bound)
