"""Results of solve_integer."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

import numpy as np
from numpy.typing import NDArray

from copter.problem.residuals import plan_gap
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
        OPTIMAL if the bound proves it, otherwise FEASIBLE; NONE_FOUND (no point was found, but there may be one);
        PRIMAL_INFEASIBLE (`bound_by` names the proof); DUAL_INFEASIBLE (from `x` the objective improves without limit
        along the relaxation's ray).
    x : ndarray (n,) or None
        The point; its integer columns are exact whole numbers.
    objective : float
        c'x + offset; NaN without a point.
    bound : float
        No integer point is better than this; infinite if no bound is known.
    bound_is_certified : bool
        Whether the bound follows from prices alone (M1); False if it relies on the relaxation's optimality or on HiGHS.
    bound_by : str
        Source of the bound or of the verdict PRIMAL_INFEASIBLE: "prices" (M1), "relaxation" (its bound), "rows" (they
        contradict the bounds, M2), "ray" (the relaxation's verified ray) or "HiGHS" (M11); empty without a bound.
    gap : float
        |bound - objective| / |objective|; NaN without a point or a bound.
    found_by : str
        The part of the search that found the point; "HiGHS" for HiGHS's branch and bound, which runs beside it.
    relaxation : Solution or None
        Solution of the program without integrality; None if there was no time for it.
    relaxations : int
        LPs solved after the first one.
    solve_time_s : float
    proof : str
        "written", or why the requested proof was not written; empty if none was requested.
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

    def __bool__(self) -> bool:
        """Whether there is a point."""
        return self.x is not None

    @property
    def gap(self) -> float:
        """Relative gap between objective and bound."""
        if self.x is None or not np.isfinite(self.bound):
            return float("nan")
        return plan_gap(self.objective, self.bound)
