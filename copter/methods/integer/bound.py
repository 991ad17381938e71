"""Bounds on integer points that follow from prices: the dual function over propagated bounds (M1)."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from copter.methods.integer.problem import IntegerProblem
from copter.problem.dual_bound import proven_dual_bound

Floats = NDArray[np.float64]

MARGIN = 1e-9  # relative loss that rounding may cause in propagated bounds
WHOLE = 1e-6  # an integer objective's bound is rounded up, after subtracting this much for rounding errors


def proven_bound(problem: IntegerProblem, y: Floats) -> float:
    """Return a lower bound on the minimum over integer points, from prices y of the minimisation.

    Propagation can give finite bounds to columns without bounds of their own, so the result is finite more often than
    the relaxation's bound; otherwise it is -inf.
    """
    lp, root = problem.lp, problem.root
    price = np.where(((y > 0) & np.isinf(lp.row_lower)) | ((y < 0) & np.isinf(lp.row_upper)), 0.0, y)
    bound = proven_dual_bound(
        problem.cost, lp.A, lp.row_lower, lp.row_upper, root.lower, root.upper, np.ascontiguousarray(price)
    )
    return whole_bound(problem, bound - MARGIN * (1.0 + abs(bound))) if np.isfinite(bound) else -np.inf


def whole_bound(problem: IntegerProblem, bound: float) -> float:
    """Return the bound, rounded up if the objective takes only whole values."""
    return float(np.ceil(bound - WHOLE)) if problem.objective_is_integer and np.isfinite(bound) else bound
