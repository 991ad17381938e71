"""Semi-continuous columns, modelled by a binary switch for each that says whether the column is nonzero (M16)."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from copter.methods.integer.solution import IntegerSolution
from copter.problem.checker import check
from copter.problem.linear_program import LinearProgram
from copter.problem.solution import Effort, Solution

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Switches:
    """The assignment of switches to columns.

    Attributes
    ----------
    column, switch : ndarray (switches,)
    least, most : ndarray (switches,)
        Smallest and largest value of the column while its switch is on.
    """

    column: NDArray[np.intp]
    switch: NDArray[np.intp]
    least: Floats
    most: Floats

    def obeyed(self, x: Floats) -> Floats:
        """Return the point with columns at zero where their switches are off and clipped to their ranges elsewhere."""
        x = x.copy()
        on = x[self.switch] > 0.5
        x[self.column] = np.where(on, np.clip(x[self.column], self.least, self.most), 0.0)
        return x


NO_SWITCHES = Switches(np.zeros(0, np.intp), np.zeros(0, np.intp), np.zeros(0), np.zeros(0))


def with_switches(lp: LinearProgram) -> tuple[LinearProgram, Switches]:
    """Return the program with a switch z for every semi-continuous column x: least z <= x <= most z."""
    column = np.flatnonzero(lp.semicontinuous)
    (m, n), k = lp.shape, len(column)
    switches = Switches(column, n + np.arange(k), lp.semicontinuous[column], lp.col_upper[column])
    ones = sp.csr_array((np.ones(k), (np.arange(k), column)), shape=(k, n))
    matrix = sp.vstack((
        sp.hstack((lp.A, sp.csc_array((m, k)))),
        sp.hstack((ones, -sp.diags_array(switches.most))),
        sp.hstack((ones, -sp.diags_array(switches.least))),
    ))  # fmt: skip
    program = LinearProgram(
        np.concatenate((lp.c, np.zeros(k))),
        matrix,
        np.concatenate((lp.row_lower, np.full(k, -np.inf), np.zeros(k))),
        np.concatenate((lp.row_upper, np.zeros(k), np.full(k, np.inf))),
        np.concatenate((lp.col_lower, np.zeros(k))),
        np.concatenate((lp.col_upper, np.ones(k))),
        np.concatenate((lp.integrality, np.ones(k))),
        lp.sense,
        lp.offset,
    )
    return program, switches


def without_switches(lp: LinearProgram, found: IntegerSolution) -> IntegerSolution:
    """Return the solution in terms of the original program."""
    x = None if found.x is None else found.x[: lp.shape[1]]
    relaxation = None if found.relaxation is None else _relaxation(lp, found.relaxation)
    return replace(found, x=x, relaxation=relaxation)


def _relaxation(lp: LinearProgram, found: Solution) -> Solution:
    """Return the relaxation's solution without the switches' rows; reduced costs replace their prices."""
    m, n = lp.shape
    x, y = np.clip(found.x[:n], lp.col_lower, lp.col_upper), found.y[:m]
    ray = found.ray
    if ray is not None:
        ray = ray[:m] if len(ray) == len(found.y) and found.status.value == "primal_infeasible" else ray[:n]
    effort = Effort(found.solve_time_s, found.iterations)
    return Solution.of_program(lp, found.status, x, y, check(lp, x, y), ray, effort=effort)
