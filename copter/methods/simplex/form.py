"""The simplex form of a linear program: minimised, scaled, with a logical variable per row (D1, D10)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from copter.methods.simplex.scaling import geometric_scaling
from copter.methods.simplex.tableau import Tableau
from copter.problem.linear_program import LinearProgram

Floats = NDArray[np.float64]

PASSES = 3  # passes of geometric scaling
FEASIBLE = 1e-9  # violation of a scaled bound that counts as none
FITTING = 1e-9  # reduced cost, in units of the largest scaled cost, that counts as zero


@dataclass(frozen=True, slots=True)
class Form:
    """A program's tableau, its true costs and bounds, and the scales: x = column * x', y = cost * row * y'."""

    lp: LinearProgram
    tableau: Tableau
    cost: Floats
    lower: Floats
    upper: Floats
    row: Floats
    column: Floats
    unit: float

    def point(self) -> Floats:
        """Return the program's x at the basis, clipped to its bounds."""
        scaled = self.tableau.arrays["x"][: self.tableau.columns]
        found: Floats = np.minimum(np.maximum(scaled * self.column, self.lp.col_lower), self.lp.col_upper)
        return found

    def prices(self) -> Floats:
        """Return the program's y at the basis, in its own sense."""
        y = self.tableau.prices() * self.row * self.unit
        return y if self.lp.sense == "min" else -y


def formed(lp: LinearProgram) -> Form:
    """Return the form of a program with at least one row and column."""
    m, n = lp.shape
    row, column, scaled = np.empty(m), np.empty(n), np.empty(lp.A.nnz)
    start, index = lp.A.indptr.astype(np.int32), lp.A.indices.astype(np.int32)
    geometric_scaling(start, index, lp.A.data, PASSES, row, column, scaled)
    cost, unit = costs_of(lp, column)
    lower, upper = bounds_of(lp, row, column)
    tableau = Tableau(start, index, scaled, cost.copy(), lower.copy(), upper.copy(), FEASIBLE, FITTING)
    return Form(lp, tableau, cost, lower, upper, row, column, unit)


def costs_of(lp: LinearProgram, column: Floats) -> tuple[Floats, float]:
    """Return scaled costs of all variables, minimised, and their unit."""
    cost = np.zeros(sum(lp.shape))
    cost[: lp.shape[1]] = lp.c * column
    largest = float(np.abs(cost).max())
    unit = float(2.0 ** np.round(np.log2(largest))) if largest > 0.0 else 1.0
    cost /= unit if lp.sense == "min" else -unit
    return cost, unit


def bounds_of(lp: LinearProgram, row: Floats, column: Floats) -> tuple[Floats, Floats]:
    """Return scaled bounds of all variables: columns, then the rows' logical variables."""
    lower = np.concatenate((lp.col_lower / column, -lp.row_upper * row))
    upper = np.concatenate((lp.col_upper / column, -lp.row_lower * row))
    return lower, upper
