"""The simplex form of a linear program: minimised, scaled, with a logical variable per row (D1, D10)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from copter.methods.simplex.scaling import geometric_scaling, scaled_bounds, scaled_costs
from copter.methods.simplex.tableau import Tableau
from copter.problem.linear_program import LinearProgram

Floats = NDArray[np.float64]
Ints = NDArray[np.int32]

PASSES = 3  # passes of geometric scaling
FEASIBLE = 1e-9  # violation of a scaled bound up to which it counts as satisfied
FITTING = 1e-9  # reduced cost, in units of the largest scaled cost, up to which it counts as zero


class Numbers(Protocol):
    """Interface: costs, bounds and sense of a program, without its coefficients; a :class:`LinearProgram` or
    :class:`Minimised`.
    """

    @property
    def c(self) -> Floats:
        """Costs of the columns."""

    @property
    def row_lower(self) -> Floats:
        """Lower bounds of the rows."""

    @property
    def row_upper(self) -> Floats:
        """Upper bounds of the rows."""

    @property
    def col_lower(self) -> Floats:
        """Lower bounds of the columns."""

    @property
    def col_upper(self) -> Floats:
        """Upper bounds of the columns."""

    @property
    def sense(self) -> str:
        """The sense, "min" or "max"."""


@dataclass(frozen=True, slots=True)
class Minimised:
    """Costs and bounds of a minimisation; implements :class:`Numbers`.

    Attributes
    ----------
    c : ndarray (columns,)
    lower, upper : ndarray (columns + rows,)
        Bounds of the columns, then of the rows.
    """

    c: Floats
    lower: Floats
    upper: Floats
    sense: str = "min"

    @property
    def row_lower(self) -> Floats:
        """Lower bounds of the rows."""
        return self.lower[len(self.c) :]

    @property
    def row_upper(self) -> Floats:
        """Upper bounds of the rows."""
        return self.upper[len(self.c) :]

    @property
    def col_lower(self) -> Floats:
        """Lower bounds of the columns."""
        return self.lower[: len(self.c)]

    @property
    def col_upper(self) -> Floats:
        """Upper bounds of the columns."""
        return self.upper[: len(self.c)]


@dataclass(frozen=True, slots=True)
class Form:
    """A program's tableau, its true costs and bounds, and the scales: x = column * x', y = unit * row * y'."""

    lp: Numbers
    tableau: Tableau
    cost: Floats
    lower: Floats
    upper: Floats
    row: Floats
    column: Floats
    unit: float

    def point(self) -> Floats:
        """Return the program's x at the basis, clipped to its bounds."""
        return self.tableau.point(self.column, self.lp.col_lower, self.lp.col_upper)

    def prices(self) -> Floats:
        """Return the program's y at the basis, in its own sense."""
        return self.tableau.prices(self.row, self.unit)


def formed(lp: LinearProgram) -> Form:
    """Return the form of a program with at least one row and column."""
    return form_of(lp, lp.A.indptr.astype(np.int32), lp.A.indices.astype(np.int32), lp.A.data)


def form_of(lp: Numbers, start: Ints, index: Ints, value: Floats) -> Form:
    """Return the form of a program with these entries by columns."""
    m, n = len(lp.row_lower), len(lp.c)
    row, column, scaled = np.empty(m), np.empty(n), np.empty(len(value))
    geometric_scaling(start, index, value, PASSES, row, column, scaled)
    cost, unit = costs_of(lp, column)
    lower, upper = bounds_of(lp, row, column)
    tableau = Tableau(start, index, scaled, cost, lower, upper, FEASIBLE, FITTING)
    return Form(lp, tableau, cost, lower, upper, row, column, unit)


def costs_of(lp: Numbers, column: Floats) -> tuple[Floats, float]:
    """Return scaled costs of all variables, minimised, and their unit, negative for a maximisation."""
    cost = np.empty(len(column) + len(lp.row_lower))
    return cost, scaled_costs(lp.c, column, cost, lp.sense == "min")


def bounds_of(lp: Numbers, row: Floats, column: Floats) -> tuple[Floats, Floats]:
    """Return scaled bounds of all variables: columns, then the rows' logical variables."""
    lower, upper = np.empty((2, len(row) + len(column)))
    scaled_bounds(lp.col_lower, lp.col_upper, lp.row_lower, lp.row_upper, row, column, lower, upper)
    return lower, upper
