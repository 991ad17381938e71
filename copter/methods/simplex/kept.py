"""Repeated solves of a program whose numbers change, each from the last final basis (method/simplex.md)."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from copter.methods.simplex.form import FEASIBLE, FITTING, Form, bounds_of, costs_of, formed
from copter.methods.simplex.pivots import GivenUp
from copter.methods.simplex.slim import Slim
from copter.methods.simplex.solve import SimplexSolve
from copter.problem.linear_program import LinearProgram
from copter.problem.solution import Solution, Status
from copter.runtime.watch import Watch
from copter.settings import Settings

Floats = NDArray[np.float64]

BETWEEN = 1e-7  # scaled distance from both bounds from which on a value counts as basic at the start


class KeptBasis:
    """A series of programs with the same structure; each solve starts from the last basis.

    Moved bounds and sides leave the reduced costs fitting: the dual method mends the values. Moved costs leave the
    values: the primal method follows. Where both have moved, misfitting costs are shifted for the dual method and put
    back for the primal one (:meth:`SimplexSolve.second_phase`). Moved coefficients keep which variables are basic.

    Parameters
    ----------
    lp : LinearProgram
    x : ndarray (n,)
        A point near its optimum: what is between its bounds there begins in the basis.
    """

    def __init__(self, lp: LinearProgram, x: Floats) -> None:
        self.lp = lp
        self.slim = Slim(lp)
        self.form: Form | None = None
        if 0 not in self.slim.lp.shape:
            self.form = formed(self.slim.lp)
            start_at(self.form, self.slim.lp, x)

    def solve(self, lp: LinearProgram, settings: Settings, watch: Watch, work: float = np.inf) -> Solution | None:
        """Solve a program of the same structure; None if the method gives up, after which this object is unusable.

        Parameters
        ----------
        lp : LinearProgram
        settings : Settings
        watch : Watch
            When it stops the solve the status is TIME_LIMIT or INTERRUPTED.
        work : float
            Multiplications after which the method is given up.
        """
        try:
            self.bring_up(lp)
            return None if self.form is None else KeptSolve(self, lp, settings, watch, work).run()
        except (ArithmeticError, GivenUp):
            return None

    def bring_up(self, lp: LinearProgram) -> None:
        """Load the numbers of another program with the same structure; the basis stays."""
        before, self.lp = self.lp, lp
        if before is lp or self.form is None:
            return
        if before.A is not lp.A and not np.array_equal(before.A.data, lp.A.data):
            self.slim = Slim(lp)
            old, self.form = self.form, formed(self.slim.lp)
            if self.form.tableau.rows != old.tableau.rows:  # an entry became zero, or none any more
                raise GivenUp
            take_over(old, self.form)
            return
        row_lower, row_upper, col_lower, col_upper = self.slim.moved(lp)
        slim = with_numbers(self.slim.lp, lp.c, row_lower, row_upper, col_lower, col_upper)
        self.slim.lp = slim
        high = at_upper(self.form)
        cost, unit = costs_of(slim, self.form.column)
        lower, upper = bounds_of(slim, self.form.row, self.form.column)
        self.form = replace(self.form, lp=slim, cost=cost, lower=lower, upper=upper, unit=unit)
        arrays = self.form.tableau.arrays
        arrays["cost"][:], arrays["lower"][:], arrays["upper"][:] = cost, lower, upper
        rest(self.form, high)


class KeptSolve(SimplexSolve):
    """A solve from a kept basis, checked on the program with all its rows."""

    def __init__(self, kept: KeptBasis, lp: LinearProgram, settings: Settings, watch: Watch, work: float) -> None:
        if kept.form is None:
            raise GivenUp
        done = kept.form.tableau.factor.work, kept.form.tableau.iterations
        super().__init__(lp, settings, watch, done[0] + work, form=kept.form)
        self.slim, self.first = kept.slim, done[1]
        self.tableau.sharpen(FEASIBLE, FITTING)

    def ended(self) -> tuple[Status, Floats | None]:
        """Run the second phase only, because there is a basis."""
        return self.second_phase()

    def prices(self) -> Floats:
        """Return the prices of all rows."""
        return self.slim.prices(self.form.prices(), self.lp.c)

    def multipliers(self, ray: Floats) -> Floats:
        """Return a ray in which the rows with one entry absorb what remains in the columns."""
        return self.slim.prices(ray, np.zeros(self.lp.shape[1]))

    def solution(self, status: Status, ray: Floats | None) -> Solution | None:
        """Return the solution as the base class does, with only this solve's iterations."""
        found = super().solution(status, ray)
        return None if found is None else replace(found, iterations=self.tableau.iterations - self.first)


def start_at(form: Form, lp: LinearProgram, x: Floats) -> None:
    """Begin with a basis of the variables strictly between their bounds at a point; dependent ones are removed."""
    arrays, m, n = form.tableau.arrays, form.tableau.rows, form.tableau.columns
    value = np.concatenate((x / form.column, -(lp.A @ x) * form.row))
    below, above = value - form.lower, form.upper - value
    distance = np.minimum(below, above)
    inside = np.flatnonzero(distance > BETWEEN)
    inside = inside[np.argsort(-distance[inside], kind="stable")][:m]
    basic = np.zeros(n + m, dtype=bool)
    basic[inside] = True
    logical = n + np.flatnonzero(~basic[n:])
    basic[logical[: m - len(inside)]] = True
    head = np.flatnonzero(basic)
    arrays["head"][:m] = head
    arrays["place"][: n + m] = -1
    arrays["place"][head] = np.arange(m)
    arrays["x"][: n + m] = 0.0
    rest(form, above < below)


def take_over(old: Form, new: Form) -> None:
    """Copy the basis from another form of the same structure."""
    arrays, given = new.tableau.arrays, old.tableau.arrays
    for name in ("head", "place"):
        arrays[name][:] = given[name]
    rest(new, at_upper(old))


def at_upper(form: Form) -> NDArray[np.bool_]:
    """Mark the variables at their upper bounds."""
    arrays, total = form.tableau.arrays, form.tableau.total
    lower, upper = arrays["lower"][:total], arrays["upper"][:total]
    found: NDArray[np.bool_] = (arrays["x"][:total] == upper) & (lower < upper)
    return found


def rest(form: Form, high: NDArray[np.bool_]) -> None:
    """Put nonbasic variables at their bounds: the upper bound if `high` says so and it is finite."""
    arrays, total = form.tableau.arrays, form.tableau.total
    below, above = np.isfinite(form.lower), np.isfinite(form.upper)
    place = np.where(below, form.lower, np.where(above, form.upper, 0.0))
    place = np.where(high & above, form.upper, place)
    outside = arrays["place"][:total] < 0
    arrays["x"][:total][outside] = place[outside]
    form.tableau.restart()


def with_numbers(
    lp: LinearProgram, c: Floats, row_lower: Floats, row_upper: Floats, col_lower: Floats, col_upper: Floats
) -> LinearProgram:
    """Return a program with other numbers and the same matrix, neither copied nor checked."""
    found = object.__new__(LinearProgram)
    given = {"c": c, "row_lower": row_lower, "row_upper": row_upper, "col_lower": col_lower, "col_upper": col_upper}
    for name in lp.__dataclass_fields__:
        object.__setattr__(found, name, given.get(name, getattr(lp, name)))
    return found


__all__ = ("KeptBasis",)
