"""Pivots of the dual and the primal method on one form, interrupted to check the clock: phases and perturbed costs."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from copter.methods.simplex.dual_steps import dual_steps
from copter.methods.simplex.form import Form
from copter.methods.simplex.primal_steps import primal_steps
from copter.methods.simplex.tableau import Tableau
from copter.problem.solution import Status
from copter.runtime.watch import Stopped, Watch

Floats = NDArray[np.float64]

CHUNK = 5e6  # multiplications between two checks of the clock
FIRST_CHUNK = 5e5  # multiplications before the first check of the clock
IDLE = 0.2  # costs are perturbed when more than this share of the dual steps has length zero
DONE, BLOCKED, PAUSED, STUCK = range(4)
BOX = 1e3  # bound on free variables in the first phase, where all others are bounded by one
IMPROVES = 1e-7  # the first phase has found a direction of improvement if its objective is below minus this
SEED = 20_151  # seed of the perturbation: the same program is always solved by the same pivots
SPARSE = 10.0  # steps count as sparse up to this many multiplications per row
SHIFT = 5e-7  # relative perturbation of costs if many steps change nothing


class GivenUp(Exception):
    """Raised when rounding errors or too much work make the method give up."""


class Pivots:
    """Pivots from a form's present basis to an optimal one.

    Parameters
    ----------
    form : Form
    watch : Watch
    most_work : float
        Multiplications, including the form's earlier ones, after which :class:`GivenUp` is raised.
    most_sparse_work : float
        The limit instead of `most_work` while each step touches few rows.
    """

    def __init__(self, form: Form, watch: Watch, most_work: float, most_sparse_work: float = 0.0) -> None:
        self.form, self.watch = form, watch
        self.most_work, self.most_sparse_work = most_work, max(most_work, most_sparse_work)
        self.perturbed = False

    @property
    def tableau(self) -> Tableau:
        """The tableau of the form."""
        return self.form.tableau

    def to_optimum(self) -> Status:
        """Run the dual method with shifted costs, then the primal one with the true costs; returns the status."""
        if self.perturbed:
            self.perturb()
        self.tableau.resume()
        if self.pivot(dual_steps) == BLOCKED:
            return Status.PRIMAL_INFEASIBLE
        if self.tableau.put_back(self.form.cost) and self.tableau.misfits():
            self.tableau.unit_weights()
            if self.pivot(primal_steps) == BLOCKED:
                return Status.DUAL_INFEASIBLE
        return Status.OPTIMAL

    def first_phase(self) -> Floats | None:
        """Pivot to a dual feasible basis; returns a possible direction of improvement if there is none (D8)."""
        arrays, below, above = self.tableau.arrays, np.isfinite(self.form.lower), np.isfinite(self.form.upper)
        arrays["lower"][:] = np.where(below, 0.0, np.where(above, -1.0, -BOX))
        arrays["upper"][:] = np.where(above, 0.0, np.where(below, 1.0, BOX))
        arrays["x"][:] = 0.0
        self.tableau.settle(False)
        if self.pivot(dual_steps) == BLOCKED:
            raise GivenUp  # zero satisfies every row, so the failure is rounding
        found = None
        if float(self.form.cost @ arrays["x"]) < -IMPROVES:
            found = arrays["x"][: self.tableau.columns] * self.form.column
        arrays["lower"][:], arrays["upper"][:] = self.form.lower, self.form.upper
        arrays["cost"][:] = self.form.cost
        arrays["x"][:] = 0.0
        self.tableau.restart()
        self.tableau.settle(False)
        return found

    def perturb(self) -> None:
        """Perturb nonbasic costs in the direction that keeps reduced costs feasible (D7)."""
        arrays = self.tableau.arrays
        lower, upper = arrays["lower"], arrays["upper"]
        below, above = np.isfinite(lower), np.isfinite(upper)
        side = np.where(below & above, np.where(arrays["d"] >= 0.0, 1.0, -1.0), below * 1.0 - above * 1.0)
        side[(lower == upper) | (arrays["place"][: len(lower)] >= 0)] = 0.0
        amount = np.random.default_rng(SEED).uniform(SHIFT, 2.0 * SHIFT, len(lower))
        amount *= side * (1.0 + np.abs(arrays["cost"]))
        arrays["cost"] += amount
        arrays["d"] += amount
        self.perturbed = True

    def pivot(self, steps: Callable[[Tableau, float], int]) -> int:
        """Pivot in pieces of limited work until the method ends with DONE or BLOCKED."""
        chunk, since = FIRST_CHUNK, self.tableau.idle
        first = self.tableau.iterations
        while True:
            found = steps(self.tableau, min(chunk, max(self.left, 0.0)))
            self.tell()
            if self.watch():
                raise Stopped
            if found in (DONE, BLOCKED):
                return found
            if found == STUCK or self.left <= 0.0:
                raise GivenUp
            if not self.perturbed and self.tableau.idle - since > IDLE * (self.tableau.iterations - first):
                self.perturb()
            chunk = CHUNK

    @property
    def left(self) -> float:
        """Return the remaining work; more is allowed if steps touch few rows, as in networks."""
        spent, tableau = self.tableau.factor.work, self.tableau
        sparse = spent <= SPARSE * tableau.rows * tableau.iterations
        return (self.most_sparse_work if sparse else self.most_work) - spent

    def tell(self) -> None:
        """Report progress, if somebody watches."""
