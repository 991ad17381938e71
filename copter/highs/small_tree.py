"""Depth-first branch and bound over a few requests on one live LP: dozens of nodes while HiGHS's own begins."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from copter.highs.lp import highs_lp, require_highspy, run_highs, silent_highs
from copter.problem.linear_program import LinearProgram

Floats = NDArray[np.float64]

WHOLE = 1e-6  # a value this close to a whole number counts as whole
GAIN = 1e-6  # least gain of a point, relative to the value to beat
LEAST_S = 1e-3  # an LP gets at least this many seconds


class SmallTree:
    """Branch and bound by the dual simplex method, from the basis of the last node.

    A node's LP ends once its value is that of the best point. Columns whose reduced costs are above what is left to
    that value stay where they are.

    Parameters
    ----------
    lp : LinearProgram
        A minimisation; its integrality says which columns are whole.
    best : float
        Value that a point must beat.
    nodes : int
        Most LPs that are solved.
    left_s : callable
        Seconds left.
    over : callable
        Whether to stop.

    Attributes
    ----------
    x : ndarray (n,) or None
        The best point that is better than `best`.
    """

    def __init__(
        self, lp: LinearProgram, best: float, nodes: int, left_s: Callable[[], float], over: Callable[[], bool]
    ) -> None:
        self.x: Floats | None = None
        self._best, self._nodes, self._left_s, self._over = best, nodes, left_s, over
        self._lower, self._upper = lp.col_lower.copy(), lp.col_upper.copy()
        self._whole = np.flatnonzero(lp.integrality)
        self._highspy = require_highspy("branch and bound")
        self._solver: Any = silent_highs()
        for name, value in (("threads", 1), ("solver", "simplex"), ("presolve", "off")):
            self._solver.setOptionValue(name, value)
        self._solver.passModel(
            highs_lp(LinearProgram(lp.c, lp.A, lp.row_lower, lp.row_upper, lp.col_lower, lp.col_upper))
        )

    def run(self) -> bool:
        """Search; returns whether the tree was searched to its end."""
        self._node()
        return self._nodes >= 0 and not self._over()

    def _node(self) -> None:
        """Solve a node's LP, and the nodes below it."""
        self._nodes -= 1
        if self._nodes < 0 or self._over() or (found := self._solved()) is None:
            return
        x, reduced, value = found
        whole = x[self._whole]
        split = np.abs(whole - np.rint(whole))
        if split.max(initial=0.0) <= WHOLE:
            self.x, self._best = x, value
            return
        free = self._lower[self._whole] < self._upper[self._whole]
        settled = self._whole[free & (split <= WHOLE) & (np.abs(reduced[self._whole]) > self._best - value)]
        before = self._lower[settled], self._upper[settled]
        self._bound(settled, np.rint(x[settled]), np.rint(x[settled]))
        at = self._whole[[int(np.argmax(split))]]
        low, high, below = self._lower[at], self._upper[at], np.floor(x[at])
        for sides in ((below + 1.0, high), (low, below)):
            self._bound(at, *sides)
            self._node()
        self._bound(at, low, high)
        self._bound(settled, *before)

    def _solved(self) -> tuple[Floats, Floats, float] | None:
        """Return the LP's point, reduced costs and value; None if it is not below the best value, or not known."""
        solver, least = self._solver, self._best - GAIN * abs(self._best)
        solver.setOptionValue("objective_bound", least)
        solver.setOptionValue("time_limit", solver.getRunTime() + max(self._left_s(), LEAST_S))
        run_highs(solver)
        value = float(solver.getInfo().objective_function_value)
        if solver.getModelStatus() != self._highspy.HighsModelStatus.kOptimal or value >= least:
            return None
        point = solver.getSolution()
        return np.array(point.col_value), np.array(point.col_dual), value

    def _bound(self, columns: NDArray[np.int64], lower: Floats, upper: Floats) -> None:
        """Give columns other bounds."""
        if len(columns):
            self._lower[columns], self._upper[columns] = lower, upper
            self._solver.changeColsBounds(len(columns), columns.astype(np.int32), lower, upper)
