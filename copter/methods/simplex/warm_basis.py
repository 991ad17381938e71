"""Repeated solves of a program whose numbers change, each from the last final basis (method/simplex.md)."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from copter.methods.simplex.form import FEASIBLE, FITTING, Form, bounds_of, costs_of, formed
from copter.methods.simplex.pivots import GivenUp
from copter.methods.simplex.row_bounds import RowBounds
from copter.methods.simplex.shift import Shift, looks_shifted, recognise, same_pattern
from copter.methods.simplex.solve import SimplexSolve
from copter.problem.linear_program import LinearProgram
from copter.problem.solution import Solution, Status
from copter.runtime.settings import Settings
from copter.runtime.watch import Watch

Floats = NDArray[np.float64]

# solves without a search for shifts after a search that did not pay: first and longest number
SHORTEST_REST, LONGEST_REST = 4, 64
COMPLETIONS = 3  # most factorisations in which variables without a reduced cost replace others in the first basis
BETWEEN = 1e-7  # a value at least this scaled distance from both bounds is basic at the start


class WarmBasis:
    """A series of programs; each solve starts from the last basis.

    Changed bounds leave the basis dual feasible, so the dual method continues. Changed costs leave it primal feasible,
    so the primal method continues. If both changed, costs are shifted until the basis is dual feasible; the dual method
    runs, then the primal method with the true costs (:meth:`SimplexSolve.second_phase`). If coefficients changed, the
    same variables stay basic. If rows and columns have shifted, as in a rolling horizon, the basis shifts with them
    (:func:`.recognise`).

    Parameters
    ----------
    lp : LinearProgram
    x : ndarray (n,)
        A point near its optimum; variables strictly between their bounds start in the basis.
    y : ndarray (m,), optional
        Its prices; at a degenerate vertex they decide which variables at their bounds are basic.
    basic : ndarray of bool (n + m,), optional
        The basic columns and rows, if they are known.
    """

    def __init__(
        self, lp: LinearProgram, x: Floats, y: Floats | None = None, basic: NDArray[np.bool_] | None = None
    ) -> None:
        self.lp = lp
        self.shift: Shift | None = None  # the shift between the last two programs of one structure
        # solves left without a search for shifts; number of them after the next failure
        self.rests, self.pause = 0, SHORTEST_REST
        self.row_bounds = RowBounds(lp)
        self.form: Form | None = None
        if 0 not in self.row_bounds.lp.shape:
            self.form = formed(self.row_bounds.lp)
            others = self.row_bounds.others
            known = None if basic is None else np.concatenate((basic[: len(x)], basic[len(x) :][others]))
            start_at(self.form, self.row_bounds.lp, x, None if y is None else y[others], known)

    def solve(self, lp: LinearProgram, settings: Settings, watch: Watch, work: float = np.inf) -> Solution | None:
        """Solve the next program; None if the method gives up, after which this object is unusable.

        Parameters
        ----------
        lp : LinearProgram
        settings : Settings
        watch : Watch
            If it stops the solve, the status is TIME_LIMIT or INTERRUPTED.
        work : float
            Multiplications after which the method gives up.
        """
        try:
            self.bring_up(lp)
            return None if self.form is None else KeptSolve(self, lp, settings, watch, work).run()
        except (ArithmeticError, GivenUp):
            return None

    def bring_up(self, lp: LinearProgram) -> None:
        """Load another program; the basis stays, and follows rows and columns that have shifted.

        Raises
        ------
        GivenUp
            If the structure differs and too little of the program was in the last one.
        """
        before, self.lp = self.lp, lp
        if before is lp:
            return
        alike = same_pattern(before, lp)
        if self.form is None:
            if not alike:
                raise GivenUp
            return
        old, numbers = self.form, self.row_bounds.lp
        standing = Standing(old)
        if alike and (before.A is lp.A or np.array_equal(before.A.data, lp.A.data)):
            reduced = with_numbers(numbers, lp.c, *self.row_bounds.moved(lp))
            self.row_bounds.lp = reduced
            cost, unit = costs_of(reduced, old.column)
            lower, upper = bounds_of(reduced, old.row, old.column)
            self.form = replace(old, lp=reduced, cost=cost, lower=lower, upper=upper, unit=unit)
            arrays = self.form.tableau.arrays
            arrays["cost"][:], arrays["lower"][:], arrays["upper"][:] = cost, lower, upper
        else:
            self.row_bounds = RowBounds(lp)
            self.form = formed(self.row_bounds.lp) if 0 not in self.row_bounds.lp.shape else None
            # the same entries are nonzero
            alike &= self.form is not None and self.form.tableau.rows == old.tableau.rows
        if self.form is None:
            raise GivenUp
        if not self.follow(standing, numbers, alike):
            if not alike:
                raise GivenUp
            standing.enter(self.form)

    def follow(self, standing: Standing, numbers: LinearProgram, alike: bool) -> bool:
        """Let the basis follow a shift; returns False if there is no shift or the unshifted basis violates less.

        Parameters
        ----------
        standing : Standing
            The last program's basis; the form without one-entry rows has these `numbers`.
        alike : bool
            Whether the basis could also stay in place. If that was better, the next 4 solves do not search for shifts,
            then 8, up to 64.
        """
        if self.form is None or (alike and self.rests > 0):
            self.rests -= 1
            return False
        now = self.row_bounds.lp
        if alike and not looks_shifted(numbers, now):
            return False
        if not alike:  # the known shift belongs to another structure
            self.shift = None
            found = recognise(numbers, now)
            if found is not None:
                standing.shifted(found).enter(self.form)
            return found is not None
        if self.shift is None or not self.shift.joins(numbers, now):
            self.shift = recognise(numbers, now)
        if self.shift is not None and enter_better(self.form, standing, standing.shifted(self.shift)):
            self.pause = SHORTEST_REST
            return True
        self.rests, self.pause = self.pause, min(2 * self.pause, LONGEST_REST)
        return False


class Standing:
    """State of a form's variables: basic, or at which bound; columns first, then logical variables.

    Attributes
    ----------
    columns : int
    head : ndarray (rows,)
        Basic variables; -1 for positions that the factorisation fills.
    high : ndarray of bool
        Whether a variable is at its upper bound.
    room : ndarray
        Distance from the nearest bound.
    edge : ndarray
        Weights (D5) of basic variables, 1 of the others.
    """

    def __init__(self, form: Form) -> None:
        arrays, total = form.tableau.arrays, form.tableau.total
        x = arrays["x"][:total]
        self.columns = form.tableau.columns
        self.head: NDArray[np.int32] = arrays["head"][: form.tableau.rows].copy()
        self.high = at_upper(form)
        with np.errstate(invalid="ignore"):
            self.room: Floats = np.minimum(x - arrays["lower"][:total], arrays["upper"][:total] - x)
        self.edge = np.ones(total)
        self.edge[self.head] = arrays["edge"][: len(self.head)]

    def shifted(self, shift: Shift) -> Standing:
        """Return the state of another program's variables, given their positions in this one.

        New columns are at a bound; new rows' logical variables are basic. If too many variables are basic, those
        nearest to a bound leave; if too few, the factorisation adds some.
        """
        found = object.__new__(Standing)
        found.columns, m = len(shift.columns), len(shift.rows)
        source = np.concatenate((shift.columns, np.where(shift.rows >= 0, self.columns + shift.rows, -1)))
        known = source >= 0
        basic = np.zeros(len(self.high), dtype=bool)
        basic[self.head[self.head >= 0]] = True
        logical = np.arange(len(source)) >= found.columns
        found.high = known & self.high[source]
        found.room = np.where(known, self.room[source], np.inf)
        found.edge = np.where(known, self.edge[source], 1.0)
        head = np.flatnonzero(np.where(known, basic[source], logical))
        head = head[np.argsort(-found.room[head], kind="stable")][:m]
        found.head = np.full(m, -1, dtype=np.int32)
        found.head[: len(head)] = np.sort(head)
        return found

    def enter(self, form: Form) -> None:
        """Set the variables of a form to this state."""
        arrays, m = form.tableau.arrays, form.tableau.rows
        filled = np.flatnonzero(self.head >= 0)
        arrays["head"][:m] = self.head
        arrays["place"][: form.tableau.total] = -1
        arrays["place"][self.head[filled]] = filled
        arrays["edge"][:m] = np.where(self.head >= 0, self.edge[self.head], 1.0)
        rest(form, self.high)


class KeptSolve(SimplexSolve):
    """A solve from a kept basis, checked on the program with all its rows."""

    def __init__(self, basis: WarmBasis, lp: LinearProgram, settings: Settings, watch: Watch, work: float) -> None:
        if basis.form is None:
            raise GivenUp
        done = basis.form.tableau.factor.work, basis.form.tableau.iterations
        super().__init__(lp, settings, watch, done[0] + work, form=basis.form)
        self.row_bounds, self.first = basis.row_bounds, done[1]
        self.tableau.sharpen(FEASIBLE, FITTING)

    def ended(self) -> tuple[Status, Floats | None]:
        """Run the second phase only, because there is a basis."""
        return self.second_phase()

    def prices(self) -> Floats:
        """Return the prices of all rows."""
        return self.row_bounds.prices(self.form.prices(), self.lp.c)

    def multipliers(self, ray: Floats) -> Floats:
        """Return the ray of all rows: rows with one entry absorb the columns' remaining reduced costs."""
        return self.row_bounds.prices(ray, np.zeros(self.lp.shape[1]))

    def solution(self, status: Status, ray: Floats | None) -> Solution | None:
        """Return the solution as the base class does, with only this solve's iterations."""
        found = super().solution(status, ray)
        return None if found is None else replace(found, iterations=self.tableau.iterations - self.first)


def start_at(
    form: Form, lp: LinearProgram, x: Floats, y: Floats | None, basic: NDArray[np.bool_] | None = None
) -> None:
    """Begin with a known basis, or with the variables strictly between their bounds at a point; dependent ones are
    removed.

    With prices y, variables at a bound without a reduced cost complete it (:func:`complete`).
    """
    arrays, m, n = form.tableau.arrays, form.tableau.rows, form.tableau.columns
    value = np.concatenate((x / form.column, -(lp.A @ x) * form.row))
    below, above = value - form.lower, form.upper - value
    distance = np.minimum(below, above)
    inside = np.flatnonzero(distance > BETWEEN if basic is None else basic)
    inside = inside[np.argsort(-distance[inside], kind="stable")][:m]
    arrays["head"][:m] = -1
    arrays["head"][: len(inside)] = inside
    arrays["place"][: n + m] = -1
    arrays["place"][inside] = np.arange(len(inside))
    arrays["x"][: n + m] = 0.0
    rest(form, above < below)
    if y is not None:
        reduced = np.concatenate(((lp.c - lp.A.T @ y) * form.column, y / form.row)) / abs(form.unit)
        complete(form, lp.A, (np.abs(reduced) <= FITTING) & (form.lower < form.upper))


def complete(form: Form, A: sp.csc_array, free: NDArray[np.bool_]) -> None:
    """Replace basic logical variables that are not `free`, which means without a reduced cost, by columns that are.

    At a degenerate vertex fewer variables are strictly between their bounds than there are rows. The factorisation puts
    logical variables into the rows that are left, also those of rows with a price; then the basis is not optimal.
    """
    arrays, m, n = form.tableau.arrays, form.tableau.rows, form.tableau.columns
    column = np.repeat(np.arange(n), np.diff(A.indptr))
    for _ in range(COMPLETIONS):
        form.tableau.renew()
        head, place = arrays["head"][:m], arrays["place"][: n + m]
        priced = np.zeros(m, dtype=bool)
        priced[head[(head >= n) & ~free[head]] - n] = True
        usable = free[:n] & (place[:n] < 0)
        entries = np.flatnonzero(priced[A.indices] & usable[column])
        if not len(entries):
            return
        for _ in range(COMPLETIONS):  # each row takes the first of its columns, unless another row has
            rows, at = np.unique(A.indices[entries], return_index=True)
            columns, first = np.unique(column[entries[at]], return_index=True)
            rows = rows[first]
            at = place[n + rows]
            place[n + rows], place[columns], head[at] = -1, at, columns
            priced[rows] = usable[columns] = False
            entries = entries[priced[A.indices[entries]] & usable[column[entries]]]
        form.tableau.restart()


def enter_better(form: Form, here: Standing, there: Standing) -> bool:
    """Set the variables of a form to the one of two states that violates less; returns True if that is `there`."""
    here.enter(form)
    most = violations(form)
    there.enter(form)
    return violations(form) <= most


def violations(form: Form) -> int:
    """Count the violations of a basis: values outside their bounds, and wrong reduced costs that no bound flip
    corrects.
    """
    misfits = form.tableau.settle(False)
    return misfits + int(np.count_nonzero(form.tableau.arrays["squared"][: form.tableau.rows]))


def at_upper(form: Form) -> NDArray[np.bool_]:
    """Mark the variables at their upper bounds."""
    arrays, total = form.tableau.arrays, form.tableau.total
    lower, upper = arrays["lower"][:total], arrays["upper"][:total]
    found: NDArray[np.bool_] = (arrays["x"][:total] == upper) & (lower < upper)
    return found


def rest(form: Form, high: NDArray[np.bool_]) -> None:
    """Put nonbasic variables at their bounds: the upper bound where `high` is true and the bound is finite."""
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
    """Return a program with other numbers and the same matrix; nothing is copied or checked."""
    found = object.__new__(LinearProgram)
    given = {"c": c, "row_lower": row_lower, "row_upper": row_upper, "col_lower": col_lower, "col_upper": col_upper}
    for name in lp.__dataclass_fields__:
        object.__setattr__(found, name, given.get(name, getattr(lp, name)))
    return found


__all__ = ("WarmBasis",)
