"""The mixed-integer program in the heuristics' form, with the best point so far."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from copter.methods.integer.clock import Clock
from copter.methods.integer.propagate import Propagator
from copter.methods.integer.semicontinuous import NO_SWITCHES, Switches
from copter.problem.linear_program import LinearProgram

Floats = NDArray[np.float64]
Ints = NDArray[np.int32]
Exactly = Callable[[Floats], "Floats | None"]

FEASIBLE = 1e-6  # largest violation of a row, in units of 1 + |side|
ENTRIES = 20_000_000  # most matrix entries that one propagation visits
ENTRIES_A_S = 10_000_000  # most matrix entries that one propagation visits per second of the time left
WHOLE = 1e-3  # largest violation of a row of integer columns and coefficients: it can only be rounding
IMPROVEMENT = 1e-4  # least relative gain of a better point, if the objective is not integer


class IntegerProblem:
    """Rows and columns of a minimisation; the objective is a last row whose upper side is the cut-off (M4).

    Parameters
    ----------
    lp : LinearProgram
    clock : Clock
    switches : Switches, optional
        Switches of the semi-continuous columns; every offered point is made to obey them.
    exactly : callable, optional
        Gets a point that is feasible within FEASIBLE; returns the point to keep instead, or None to refuse it.
    """

    def __init__(
        self, lp: LinearProgram, clock: Clock, switches: Switches = NO_SWITCHES, exactly: Exactly | None = None
    ) -> None:
        self.lp, self.clock, self.switches, self.exactly = lp, clock, switches, exactly
        self.sign = 1.0 if lp.sense == "min" else -1.0
        self.cost: Floats = self.sign * lp.c
        self.m, self.n = lp.shape
        whole = sp.vstack([lp.A, sp.csr_array(self.cost.reshape(1, -1))]) if self.n else sp.csr_array((self.m + 1, 0))
        self.rows = sp.csr_array(whole)
        self.rows.eliminate_zeros()
        self.columns = sp.csc_array(self.rows)
        self.row_arrays = (*pattern(self.rows), np.asarray(self.rows.data, dtype=np.float64))
        self.column_arrays = (*pattern(self.columns), np.asarray(self.columns.data, dtype=np.float64))
        self.row_lower: Floats = np.append(lp.row_lower, -np.inf)
        self.row_upper: Floats = np.append(lp.row_upper, np.inf)
        self.is_integer = lp.integrality
        self.integer: NDArray[np.uint8] = lp.integrality.astype(np.uint8)
        self.integers = np.flatnonzero(lp.integrality)
        self.continuous = np.flatnonzero(~lp.integrality)
        self.objective_is_integer = self._objective_is_integer()
        self.most_tolerance = np.where(self._whole_rows(), WHOLE, np.inf)
        self.x: Floats | None = None
        self.value = np.inf
        self.found_by = ""
        self.propagator = Propagator(
            *self.row_arrays, self.row_lower, self.row_upper, *self.column_arrays[:2], self.integer
        )
        self.root = Domain(self, *self._whole_bounds())
        self.feasible = bool((self.root.lower <= self.root.upper).all()) and self.root.propagate_all()

    def _whole_bounds(self) -> tuple[Floats, Floats]:
        lower, upper = self.lp.col_lower.copy(), self.lp.col_upper.copy()
        inside = self.is_integer
        lower[inside], upper[inside] = np.ceil(lower[inside] - FEASIBLE), np.floor(upper[inside] + FEASIBLE)
        return lower, upper

    def _objective_is_integer(self) -> bool:
        priced = self.cost != 0.0
        return bool((self.is_integer[priced]).all() and (self.cost[priced] == np.round(self.cost[priced])).all())

    def _whole_rows(self) -> NDArray[np.bool_]:
        """Mark rows that contain only integer columns with whole coefficients."""
        broken = self.lp.A.data != np.round(self.lp.A.data)
        broken |= np.repeat(~self.is_integer, np.diff(self.lp.A.indptr))
        return np.asarray(np.bincount(self.lp.A.indices[broken], minlength=self.m) == 0)

    @property
    def entries(self) -> int:
        """Number of entries that the next propagation may visit; less when little time is left."""
        return int(min(ENTRIES, ENTRIES_A_S * self.clock.left_s))

    # Points -------------------------------------------------------------------------------------------------------

    def holds(self, x: Floats) -> bool:
        """Whether a point satisfies rows, bounds and integrality to FEASIBLE; rows of whole numbers must hold
        exactly.
        """
        lp = self.lp
        activity = lp.A @ x
        low = lp.row_lower - np.minimum(row_tolerance(lp.row_lower), self.most_tolerance)
        high = lp.row_upper + np.minimum(row_tolerance(lp.row_upper), self.most_tolerance)
        within = bool((x >= lp.col_lower).all() and (x <= lp.col_upper).all())
        whole = bool((x[self.integers] == np.round(x[self.integers])).all())
        return within and whole and bool((activity >= low).all() and (activity <= high).all())

    def offer(self, x: Floats, found_by: str) -> bool:
        """Keep a point if it is feasible and better than the best so far, and lower the cut-off."""
        x = x.copy()
        x[self.integers] = np.round(x[self.integers])
        x = self.switches.obeyed(np.clip(x, self.lp.col_lower, self.lp.col_upper))
        with np.errstate(over="ignore", invalid="ignore"):  # a value that overflows is not better
            value = float(self.cost @ x)
        if not value < self.value or not np.isfinite(x).all() or not self.holds(x):
            return False
        if self.exactly is not None:
            exact = self.exactly(x)
            if exact is None or not float(self.cost @ exact) < self.value:
                return False
            x, value = exact, float(self.cost @ exact)
        self.x, self.value, self.found_by = x, value, found_by
        gain = 1.0 - 1e-6 if self.objective_is_integer else max(IMPROVEMENT * abs(value), 1e-9)
        self.row_upper[-1] = value - gain
        return True


class Domain:
    """Bounds of all columns, which tighten as columns are fixed."""

    __slots__ = ("lower", "problem", "upper")

    def __init__(self, problem: IntegerProblem, lower: Floats, upper: Floats) -> None:
        self.problem, self.lower, self.upper = problem, lower, upper

    def copy(self) -> Domain:
        """Return an independent copy."""
        return Domain(self.problem, self.lower.copy(), self.upper.copy())

    def propagate_all(self) -> bool:
        """Tighten bounds by every row; returns False on a contradiction."""
        return self.problem.propagator.propagate(self.lower, self.upper, self.problem.entries)

    def restrict(self, column: int, lower: float, upper: float) -> bool:
        """Tighten a column's bounds and propagate; on a contradiction nothing changes and False is returned."""
        return self.problem.propagator.restrict(self.lower, self.upper, column, lower, upper, self.problem.entries)

    def fix_all(self, order: NDArray[np.int64], target: Floats) -> int:
        """Fix the columns of `order` in turn near their targets, with propagation after each.

        Returns the place in `order` of the first column that cannot be fixed; its length if all are.
        """
        return self.problem.propagator.fix_all(self.lower, self.upper, order, target, self.problem.entries)

    def open(self) -> NDArray[np.intp]:
        """Return the integer columns that are not fixed."""
        return np.flatnonzero(self.problem.is_integer & (self.lower < self.upper))


def pattern(matrix: sp.csr_array | sp.csc_array) -> tuple[Ints, Ints]:
    """Return (starts, indices) of a compressed matrix as int32."""
    return matrix.indptr.astype(np.int32), matrix.indices.astype(np.int32)


def row_tolerance(side: Floats) -> Floats:
    """Return the largest violation, for rows with these sides, that still counts as feasible."""
    return FEASIBLE * (1.0 + np.abs(np.where(np.isfinite(side), side, 0.0)))
