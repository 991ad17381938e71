"""1-opt: shift single integer columns if the objective improves and every row still holds (M8)."""

from __future__ import annotations

import numpy as np

from copter.methods.integer.problem import Domain, IntegerProblem, row_tolerance
from copter.methods.integer.relaxation import Relaxation

SWEEPS = 3  # most sweeps over the columns


def one_opt(problem: IntegerProblem, relaxation: Relaxation) -> bool:
    """Improve the best point; returns whether it improved."""
    if problem.x is None:
        return False
    x, lp = problem.x.copy(), problem.lp
    priced = problem.integers[problem.cost[problem.integers] != 0.0]
    order = priced[np.argsort(-np.abs(problem.cost[priced]), kind="stable")]
    start, row, value = lp.A.indptr, lp.A.indices, lp.A.data
    activity = lp.A @ x
    low, high = lp.row_lower - row_tolerance(lp.row_lower), lp.row_upper + row_tolerance(lp.row_upper)
    for _ in range(SWEEPS):
        moved = False
        for count, j in enumerate(order.tolist()):
            if count % 256 == 0 and problem.clock.expired:
                break
            sign = -np.sign(problem.cost[j])
            entries = slice(start[j], start[j + 1])
            rows, change = row[entries], sign * value[entries]
            room_left = np.where(change > 0, high[rows] - activity[rows], activity[rows] - low[rows])
            steps = np.where(change != 0.0, room_left / np.where(change != 0.0, np.abs(change), 1.0), np.inf)
            most = lp.col_upper[j] - x[j] if sign > 0 else x[j] - lp.col_lower[j]
            step = np.floor(min(most, float(steps.min(initial=np.inf))) + 1e-9)
            if not 1.0 <= step < np.inf:
                continue
            x[j] += sign * step
            activity[rows] += change * step
            moved = True
        if not moved:
            break
    if not float(problem.cost @ x) < problem.value:
        return False
    return relaxation.complete(Domain(problem, x.copy(), x.copy()), "1-opt")
