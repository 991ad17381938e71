"""A program whose numbers change, solved again from the basis at which its last solve ended (method/simplex.md)."""

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
    """One program after another of the same structure, each from the basis of the last one.

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
        """Solve a program of the same structure; None where the method is given up, after which this is of no use.

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
        """Put the numbers of another program of the same structure into the form; its basis stays."""
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
    """One solve from a kept basis, judged on the program with all its rows."""

    def __init__(self, kept: KeptBasis, lp: LinearProgram, settings: Settings, watch: Watch, work: float) -> None:
        if kept.form is None:
            raise GivenUp
        done = kept.form.tableau.factor.work, kept.form.tableau.iterations
        super().__init__(lp, settings, watch, done[0] + work, form=kept.form)
        self.slim, self.first = kept.slim, done[1]
        self.tableau.sharpen(FEASIBLE, FITTING)

    def ended(self) -> tuple[Status, Floats | None]:
        """The second phase: a basis is there."""
        return self.second_phase()

    def prices(self) -> Floats:
        """Prices of all rows."""
        return self.slim.prices(self.form.prices(), self.lp.c)

    def multipliers(self, ray: Floats) -> Floats:
        """A ray with what it leaves in the columns answered by their rows of one entry."""
        return self.slim.prices(ray, np.zeros(self.lp.shape[1]))

    def solution(self, status: Status, ray: Floats | None) -> Solution | None:
        """As of any solve, with this one's steps."""
        found = super().solution(status, ray)
        return None if found is None else replace(found, iterations=self.tableau.iterations - self.first)


def start_at(form: Form, lp: LinearProgram, x: Floats) -> None:
    """Begin with the variables in the basis that a point has between their bounds; dependent ones are taken out."""
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
    """The basis of another form of the same structure."""
    arrays, given = new.tableau.arrays, old.tableau.arrays
    for name in ("head", "place"):
        arrays[name][:] = given[name]
    rest(new, at_upper(old))


def at_upper(form: Form) -> NDArray[np.bool_]:
    """Which variables rest at their upper bound."""
    arrays, total = form.tableau.arrays, form.tableau.total
    lower, upper = arrays["lower"][:total], arrays["upper"][:total]
    found: NDArray[np.bool_] = (arrays["x"][:total] == upper) & (lower < upper)
    return found


def rest(form: Form, high: NDArray[np.bool_]) -> None:
    """Put the variables outside the basis at their bounds: the upper one where `high` says so and there is one."""
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
    """A program with other numbers around the same matrix, which is neither copied nor checked again."""
    found = object.__new__(LinearProgram)
    given = {"c": c, "row_lower": row_lower, "row_upper": row_upper, "col_lower": col_lower, "col_upper": col_upper}
    for name in lp.__dataclass_fields__:
        object.__setattr__(found, name, given.get(name, getattr(lp, name)))
    return found


__all__ = ("KeptBasis",)
