"""The dual simplex method on one small linear program, from the basis of logical variables (method/simplex.md)."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from copter.methods.simplex.dual_steps import dual_steps
from copter.methods.simplex.form import Form, formed
from copter.methods.simplex.pivots import BLOCKED, GivenUp, Pivots
from copter.problem.checker import RAY_NOISE, check, is_improving_ray, is_infeasibility_ray, supported_ray
from copter.problem.linear_program import LinearProgram
from copter.problem.solution import Effort, Solution, Status
from copter.runtime.settings import Settings
from copter.runtime.watch import Stopped, Watch

Floats = NDArray[np.float64]

SHARP = 1e-12  # scaled tolerances of a second try, if the first result misses them in the program's own units
# if the objective's terms sum in size to more than this many times the objective, more than six digits are lost
CANCELLED = 1e6
DEARER = 1e6  # the search for an unbounded direction leaves out columns this many times costlier than the open ones
CONE_WORK = 1e7  # most multiplications of the search for a missed unbounded direction


class SimplexSolve(Pivots):
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
        super().__init__(formed(lp) if form is None else form, watch, most_work, most_sparse_work)
        self.lp, self.settings, self.callback = lp, settings, callback

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
            if ray is not None and is_improving_ray(self.lp, ray):
                return self.unbounded(ray)
        return self.second_phase()

    def second_phase(self) -> tuple[Status, Floats | None]:
        """Run both methods from the basis; returns the status and its ray."""
        status = self.to_optimum()
        if status is Status.PRIMAL_INFEASIBLE:
            return status, self.infeasibility_ray()
        return status, self.improving_ray(self.direction()) if status is Status.DUAL_INFEASIBLE else None

    def tell(self) -> None:
        """Report the state to the callback; if it returns True, the solve ends."""
        if self.callback is not None:
            judged = check(self.lp, self.form.point(), self.prices())
            if self.callback(self.tableau.iterations, judged.gap, judged.primal):
                self.watch.interrupted = True

    def unbounded(self, ray: Floats) -> tuple[Status, Floats | None]:
        """Return the verdict on a program that improves along a ray: unbounded only if it has a feasible point."""
        self.tableau.arrays["cost"][:] = 0.0
        self.tableau.settle(False)
        if self.pivot(dual_steps) == BLOCKED:
            return Status.PRIMAL_INFEASIBLE, self.infeasibility_ray()
        return Status.DUAL_INFEASIBLE, ray

    def infeasibility_ray(self) -> Floats:
        """Return verified row multipliers, from the tableau row that no column can repair (D6)."""
        ray = self.tableau.arrays["ray"][: self.tableau.rows] * self.form.row
        for each in (self.multipliers(ray), self.multipliers(-ray)):
            if is_infeasibility_ray(self.lp, each):
                return supported_ray(self.lp, each)
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
        """Return a verified direction of improvement that reduced costs within tolerance may hide, or None.

        See docs/method/simplex.md. Costly columns hide the improvement by cheap ones, so the unbounded directions are
        searched without the columns that cost more than `DEARER` times the others.
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
        # A vertex may be so far out that cancellation ruins its objective; the middle of the face is nearer.
        far = float(np.abs(self.lp.c * x).sum()) > CANCELLED * (1.0 + abs(judged.objective))
        if status is Status.OPTIMAL and (far or not within):
            return None
        if status is Status.OPTIMAL and judged.dual_absolute > 0.0:
            ray = self.missed_ray(y)
            status = Status.OPTIMAL if ray is None else Status.DUAL_INFEASIBLE
        counts = self.watch.elapsed_s, self.tableau.iterations
        effort = Effort(*counts, working_columns=self.lp.shape[1], method="simplex")
        return Solution.of_program(self.lp, status, x, y, judged, ray, effort=effort)
