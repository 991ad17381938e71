"""What prices prove about integer points: the dual function over propagated bounds (M1)."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from copter.integer.problem import IntegerProblem

Floats = NDArray[np.float64]

ROUNDING = 1e-9  # of the sum of all terms: what floating point may have lost
WHOLE = 1e-6


def proven_bound(problem: IntegerProblem, y: Floats) -> float:
    """Largest value that no feasible integer point of the minimisation is below, by prices y of the minimisation.

    Columns without bounds of their own may have got finite ones from the rows, so this is finite more often than the
    relaxation's own bound. -inf where it is not.
    """
    lp, root = problem.lp, problem.root
    price = np.where(((y > 0) & np.isinf(lp.row_lower)) | ((y < 0) & np.isinf(lp.row_upper)), 0.0, y)
    reduced = problem.cost - lp.A.T @ price
    total = size = 0.0
    for value, lower, upper in ((price, lp.row_lower, lp.row_upper), (reduced, root.lower, root.upper)):
        at = np.where(value > 0, lower, upper)
        terms = value * np.where(value == 0.0, 0.0, at)
        total += float(terms.sum())
        size += float(np.abs(terms).sum())
    if not np.isfinite(total):
        return -np.inf
    return whole_bound(problem, total - ROUNDING * (1.0 + size))


def whole_bound(problem: IntegerProblem, bound: float) -> float:
    """The bound rounded up where the objective takes whole values only."""
    return float(np.ceil(bound - WHOLE)) if problem.objective_is_integer and np.isfinite(bound) else bound
