"""The dual simplex method on one small linear program, from the basis of logical variables (method/simplex.md)."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from copter.methods.simplex.dual_steps import dual_steps
from copter.methods.simplex.form import Form, formed
from copter.methods.simplex.primal_steps import primal_steps
from copter.methods.simplex.tableau import Tableau
from copter.problem.checker import RAY_NOISE, check, is_improving_ray, is_infeasibility_ray
from copter.problem.linear_program import LinearProgram
from copter.problem.solution import Solution, Status
from copter.runtime.watch import Stopped, Watch
from copter.settings import Settings

Floats = NDArray[np.float64]

CHUNK = 5e6  # multiplications between two looks at the clock
FIRST_CHUNK = 5e5  # multiplications before the first look at the clock
IDLE = 0.2  # share of dual steps of length zero from which costs are perturbed
SHARP = 1e-12  # scaled tolerances of a second try, where the first ones do not hold in the program's own units
DONE, BLOCKED, PAUSED, STUCK = range(4)
BOX = 1e3  # bound on free variables in the first phase, where all others are bounded by one
IMPROVES = 1e-7  # the first phase has found a direction of improvement where its objective is below minus this
CANCELLED = 1e6  # sum of the terms of the objective, in units of the objective, above which it has lost six digits
SEED = 20_151
SPARSE = 10.0  # work of a step per row up to which solves with the factors count as sparse
DEARER = 1e6  # times the cost of what is open, of columns that a search for a direction leaves out
CONE_WORK = 1e7  # multiplications that the search for a missed direction may take
SHIFT = 5e-7  # relative perturbation of costs where many steps change nothing


class GivenUp(Exception):
    """Raised when rounding errors or too much work make the method give up."""


class SimplexSolve:
    """A solve of one program with at least one row and column."""

    def __init__(
        self,
        lp: LinearProgram,
        settings: Settings,
        watch: Watch,
        most_work: float,
        most_sparse_work: float = 0.0,
        callback: Callable[[int, float, float], bool | None] | None = None,
        form: Form | None = None,
    ) -> None:
        self.lp, self.settings, self.watch = lp, settings, watch
        self.form: Form = formed(lp) if form is None else form
        self.most_work, self.most_sparse_work = most_work, max(most_work, most_sparse_work)
        self.perturbed = False
        self.callback = callback

    @property
    def tableau(self) -> Tableau:
        """The tableau of the form."""
        return self.form.tableau

    def run(self) -> Solution | None:
        """Return the solution, checked on the original program; None if the method gives up."""
        try:
            solution = self.solution(*self.ended())
            if solution is None:
                self.tableau.sharpen(SHARP, SHARP)
                solution = self.solution(*self.second_phase())
            return solution
        except (GivenUp, ArithmeticError):
            return None
        except Stopped:
            return self.solution(Status.INTERRUPTED if self.watch.interrupted else Status.TIME_LIMIT, None)

    def ended(self) -> tuple[Status, Floats | None]:
        """Run both phases; returns the status and its ray."""
        if self.tableau.settle(False):
            ray = self.first_phase()
            if ray is not None:
                return self.unbounded(ray)
        return self.second_phase()

    def second_phase(self) -> tuple[Status, Floats | None]:
        """Run the dual method with shifted costs, then the primal one with the true costs."""
        if self.perturbed:
            self.perturb()
        self.tableau.settle(True)
        if self.pivot(dual_steps) == BLOCKED:
            return Status.PRIMAL_INFEASIBLE, self.infeasibility_ray()
        self.tableau.arrays["cost"][:] = self.form.cost
        self.tableau.renew()
        if self.tableau.misfits():
            self.tableau.unit_weights()
            if self.pivot(primal_steps) == BLOCKED:
                return Status.DUAL_INFEASIBLE, self.improving_ray(self.direction())
        return Status.OPTIMAL, None

    def first_phase(self) -> Floats | None:
        """Pivot to a dual feasible basis; returns a direction of improvement if there is none (D8)."""
        arrays, below, above = self.tableau.arrays, np.isfinite(self.form.lower), np.isfinite(self.form.upper)
        arrays["lower"][:] = np.where(below, 0.0, np.where(above, -1.0, -BOX))
        arrays["upper"][:] = np.where(above, 0.0, np.where(below, 1.0, BOX))
        arrays["x"][:] = 0.0
        self.tableau.settle(False)
        if self.pivot(dual_steps) == BLOCKED:
            raise GivenUp  # zero holds in every row: this is rounding
        found = None
        if float(self.form.cost @ arrays["x"]) < -IMPROVES:
            ray = arrays["x"][: self.tableau.columns] * self.form.column
            found = ray if is_improving_ray(self.lp, ray) else None
        arrays["lower"][:], arrays["upper"][:] = self.form.lower, self.form.upper
        arrays["cost"][:] = self.form.cost
        arrays["x"][:] = 0.0
        self.tableau.restart()
        self.tableau.settle(False)
        return found

    def unbounded(self, ray: Floats) -> tuple[Status, Floats | None]:
        """Return the verdict on a program that improves along a ray: unbounded only if it has a feasible point."""
        self.tableau.arrays["cost"][:] = 0.0
        self.tableau.settle(False)
        if self.pivot(dual_steps) == BLOCKED:
            return Status.PRIMAL_INFEASIBLE, self.infeasibility_ray()
        return Status.DUAL_INFEASIBLE, ray

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

    def tell(self) -> None:
        """Report the state to the callback; if it returns True, the solve ends."""
        if self.callback is not None:
            judged = check(self.lp, self.form.point(), self.prices())
            if self.callback(self.tableau.iterations, judged.gap, judged.primal):
                self.watch.interrupted = True

    @property
    def left(self) -> float:
        """Return the remaining work; more is allowed if steps touch few rows, as in networks."""
        spent, tableau = self.tableau.factor.work, self.tableau
        sparse = spent <= SPARSE * tableau.rows * tableau.iterations
        return (self.most_sparse_work if sparse else self.most_work) - spent

    def infeasibility_ray(self) -> Floats:
        """Return verified row multipliers, from the tableau row that no column can repair (D6)."""
        ray = self.tableau.arrays["ray"][: self.tableau.rows] * self.form.row
        for each in (self.multipliers(ray), self.multipliers(-ray)):
            if is_infeasibility_ray(self.lp, each):
                size: Floats = each / np.abs(each).max()
                return size
        raise GivenUp

    def multipliers(self, ray: Floats) -> Floats:
        """Convert a ray of the form's rows to one of the program's rows."""
        return ray

    def prices(self) -> Floats:
        """Return prices of the program's rows at the basis."""
        return self.form.prices()

    def direction(self) -> Floats:
        """Return the direction of the column that no row blocks."""
        tableau, arrays = self.tableau, self.tableau.arrays
        entering = int(arrays["candidate"][0])
        sign = -1.0 if arrays["d"][entering] > 0.0 else 1.0
        found = np.zeros(tableau.total)
        found[arrays["head"][: tableau.rows]] = -sign * arrays["alpha"][: tableau.rows]
        found[entering] = sign
        return found[: tableau.columns] * self.form.column

    def missed_ray(self, y: Floats) -> Floats | None:
        """Return a verified direction of improvement for reduced costs within tolerance on unbounded columns, or None.

        docs/method/simplex.md. Dear columns hide cheap ones: the directions in which the program is open are searched
        without the columns that are dearer by more than `DEARER`, in units of the others.
        """
        lp, sign = self.lp, 1.0 if self.lp.sense == "min" else -1.0
        price = sign * y
        price[np.isinf(np.where(price > 0.0, lp.row_lower, lp.row_upper))] = 0.0
        reduced = sign * lp.c - lp.A.T @ price
        endless = np.isinf(np.where(reduced > 0.0, lp.col_lower, lp.col_upper))
        reduced[np.abs(reduced) <= RAY_NOISE * (np.abs(lp.c) + abs(lp.A).T @ np.abs(price))] = 0.0
        endless &= reduced != 0.0
        if not endless.any():
            return None
        cheap = np.abs(reduced) <= DEARER * float(np.abs(reduced[endless]).max())
        lower, upper = (
            np.where(cheap & np.isinf(side), way * self.form.column, 0.0)
            for side, way in ((lp.col_lower, -1.0), (lp.col_upper, 1.0))
        )
        row_lower, row_upper = (np.where(np.isinf(side), side, 0.0) for side in (lp.row_lower, lp.row_upper))
        cost = np.where(lower < upper, reduced, 0.0)
        cone = LinearProgram(cost, lp.A, row_lower, row_upper, lower, upper)
        found = SimplexSolve(cone, self.settings, self.watch, CONE_WORK).run()
        return found.x if found is not None and is_improving_ray(lp, found.x) else None

    def improving_ray(self, ray: Floats) -> Floats:
        """Return the direction scaled to a largest entry of 1, verified by the checker."""
        if not is_improving_ray(self.lp, ray):
            raise GivenUp
        size: Floats = ray / np.abs(ray).max()
        return size

    def solution(self, status: Status, ray: Floats | None) -> Solution | None:
        """Return the checked solution of the basis; None if the check contradicts the method."""
        x, y = self.form.point(), self.prices()
        judged = check(self.lp, x, y)
        within = judged.within(self.settings.tolerance, self.settings.absolute_tolerance)
        # A vertex may be so far out that its objective is what cancellation leaves; the middle of the face is nearer.
        far = float(np.abs(self.lp.c * x).sum()) > CANCELLED * (1.0 + abs(judged.objective))
        if status is Status.OPTIMAL and (far or not within):
            return None
        if status is Status.OPTIMAL and judged.dual_absolute > 0.0:
            ray = self.missed_ray(y)
            status = Status.OPTIMAL if ray is None else Status.DUAL_INFEASIBLE
        return Solution.of_program(
            self.lp,
            status,
            x,
            y,
            judged,
            ray,
            solve_time_s=self.watch.elapsed_s,
            iterations=self.tableau.iterations,
            working_columns=self.lp.shape[1],
            method="simplex",
        )
