"""Weighted local search from an infeasible rounding to a feasible point (M6)."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from copter.methods.integer.jump import Jumps
from copter.methods.integer.problem import Domain, IntegerProblem, pattern, row_tolerance
from copter.methods.integer.relaxation import Relaxation

Floats = NDArray[np.float64]

STEPS = 20_000  # moves between two checks of the clock


class Repair:
    """The rows, including the cut-off, scaled to a largest coefficient of one."""

    def __init__(self, problem: IntegerProblem, relaxation: Relaxation) -> None:
        self.problem, self.relaxation = problem, relaxation
        largest = abs(problem.rows).max(axis=1).toarray().ravel() if problem.n else np.ones(problem.m + 1)
        self.scale: Floats = 1.0 / np.where(largest > 0.0, largest, 1.0)
        rows = sp.csr_array(sp.diags_array(self.scale) @ problem.rows)
        columns = sp.csc_array(rows)
        self.rows = (*pattern(rows), rows.data)
        self.columns = (*pattern(columns), columns.data)
        self.matrix = rows

    def run(self, start: Floats, rng: np.random.Generator, share: float, steps: int) -> bool:
        """Search from a point, limited by a share of the time left and a number of steps; returns whether it
        improved.
        """
        problem, root = self.problem, self.problem.root
        x = np.clip(start, root.lower, root.upper)
        x[problem.integers] = np.round(x[problem.integers])
        until = problem.clock.elapsed_s + share * problem.clock.left_s
        low, high = problem.row_lower * self.scale, problem.row_upper * self.scale
        sides = np.where(np.isfinite(problem.row_upper), problem.row_upper, problem.row_lower)
        tolerance = row_tolerance(sides) * self.scale
        jumps = Jumps(self.rows, self.columns, low, high, tolerance, root.lower, root.upper, problem.integer)
        made = 0
        while made < steps and problem.clock.elapsed_s < until:
            activity = self.matrix @ x
            left, count = jumps.search(x, activity, int(rng.integers(1, 2**62)), STEPS)
            made += count
            if left == 0:
                fixed = Domain(problem, x.copy(), x.copy())
                return self.relaxation.complete(fixed, "repair")
            if count == 0:
                return False
        return False
