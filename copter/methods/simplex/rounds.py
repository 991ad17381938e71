"""The basis of a session's small program, kept from round to round and through edits (method/simplex.md)."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from copter.methods.choose import after_failure
from copter.methods.simplex.carry import carried_prices, carry
from copter.methods.simplex.form import FEASIBLE, FITTING, Form, Minimised, bounds_of, costs_of, form_of
from copter.methods.simplex.pivots import GivenUp, Pivots
from copter.methods.simplex.proof import prove_point
from copter.methods.simplex.solve import SHARP
from copter.problem.solution import Status
from copter.runtime.watch import Stopped, Watch

Floats = NDArray[np.float64]
Ints = NDArray[np.int32]
Ages = NDArray[np.int64]

Moved = tuple[NDArray[np.uint8], Ints, Ints]  # blocks, columns and private rows, see carry
Figures = tuple[float, float, float, float, float, float, float, float, float]  # results of prove_point


@dataclass(frozen=True, slots=True)
class Entries:
    """Coefficients of a program of blocks by columns, and the names of its variables.

    Attributes
    ----------
    start, index, value : CSC arrays
        Coupling rows first, then the private rows of every block.
    column_start, private_start : ndarray (blocks + 1,) int32
    slots, generation : ndarray (blocks,)
        Slot and generation, the name of each block; slots ascend.
    row_generation : ndarray (coupling rows,) int64
    """

    start: Ints
    index: Ints
    value: Floats
    column_start: Ints
    private_start: Ints
    slots: Ints
    generation: Ages
    row_generation: Ages

    @property
    def names(self) -> tuple[Ints, Ints, Ints, Ages, Ages]:
        """Return the names, in the order of :func:`.carry`'s arguments."""
        return self.column_start, self.private_start, self.slots, self.generation, self.row_generation

    def equals(self, other: Entries) -> bool:
        """Whether coefficients and names are the same."""
        return self is other or (
            np.array_equal(self.slots, other.slots)
            and np.array_equal(self.generation, other.generation)
            and np.array_equal(self.row_generation, other.row_generation)
            and np.array_equal(self.column_start, other.column_start)
            and np.array_equal(self.private_start, other.private_start)
            and np.array_equal(self.start, other.start)
            and np.array_equal(self.index, other.index)
            and np.array_equal(self.value, other.value)
        )


@dataclass(frozen=True, slots=True)
class Vertex:
    """An optimal vertex of a minimisation, with the figures of :func:`.prove_point`."""

    x: Floats
    y: Floats
    iterations: int
    figures: Figures


def judged(entries: Entries, numbers: Minimised, x: Floats, y: Floats) -> Figures:
    """Return a point's figures; prices whose sign belongs to an infinite bound of the row are set to zero."""
    return prove_point(entries.start, entries.index, entries.value, numbers.c, numbers.lower, numbers.upper, x, y)


class RoundBasis:
    """Solves one program after another, each from the last basis, restricted to the blocks that both have."""

    def __init__(self) -> None:
        self.form: Form | None = None
        self.entries: Entries | None = None
        self.prices: Floats = np.zeros(0)  # prices of the last program's rows
        self.failures = self.resting = 0  # consecutive failures; rounds left to skip

    def solve(
        self, entries: Entries, numbers: Minimised, watch: Watch, work: float, moved: Moved | None = None
    ) -> Vertex | None:
        """Return an optimal vertex; None if the method gives up or time is up.

        Parameters
        ----------
        entries : Entries
        numbers : Minimised
        watch : Watch
        work : float
            Multiplications after which the method gives up.
        moved : tuple, optional
            Blocks that have other columns than in the last program (:func:`.carry`).
        """
        if self.resting:
            self.resting -= 1
            return None
        try:
            with np.errstate(all="ignore"):
                return self.pivoted(entries, numbers, watch, work, moved)
        except Stopped:
            return None
        except (ArithmeticError, GivenUp):
            self.form = self.entries = None
            self.failures, self.resting = after_failure(self.failures)
            return None

    def pivoted(
        self, entries: Entries, numbers: Minimised, watch: Watch, work: float, moved: Moved | None
    ) -> Vertex | None:
        """Return an optimal vertex by pivots from the kept basis, if any; raises GivenUp if the method gives up."""
        cold = self.form is None
        form = self.bring_up(entries, numbers, moved)
        tableau, before = form.tableau, form.tableau.iterations
        tableau.sharpen(FEASIBLE, FITTING)
        pivots = Pivots(form, watch, tableau.factor.work + work)
        if cold and tableau.settle(False) and pivots.first_phase() is not None:
            raise GivenUp  # it may be unbounded, which other methods decide
        if pivots.to_optimum() is not Status.OPTIMAL:
            raise GivenUp
        self.failures = 0
        return self.vertex(numbers, tableau.iterations - before)

    def sharper(self, numbers: Minimised, watch: Watch, work: float) -> Vertex | None:
        """Solve the last program again with tighter tolerances; None if that fails."""
        if self.form is None:
            return None
        tableau, before = self.form.tableau, self.form.tableau.iterations
        tableau.sharpen(SHARP, SHARP)
        try:
            with np.errstate(all="ignore"):
                ended = Pivots(self.form, watch, tableau.factor.work + work).to_optimum()
        except (ArithmeticError, GivenUp, Stopped):
            return None
        return self.vertex(numbers, tableau.iterations - before) if ended is Status.OPTIMAL else None

    def vertex(self, numbers: Minimised, iterations: int) -> Vertex:
        """Return the vertex of the form's present basis, with its figures on the program as given."""
        if self.form is None or self.entries is None:
            raise GivenUp
        x, y = self.form.point(), self.form.prices()
        figures = judged(self.entries, numbers, x, y)
        self.prices = y
        return Vertex(x, y, iterations, figures)

    def bring_up(self, entries: Entries, numbers: Minimised, moved: Moved | None) -> Form:
        """Load a program into the form, with the last basis for the blocks and rows that are the same."""
        old, known, self.form = self.form, self.entries, None
        if old is not None and known is not None and known.equals(entries):
            cost, unit = costs_of(numbers, old.column)
            lower, upper = bounds_of(numbers, old.row, old.column)
            form = replace(old, lp=numbers, cost=cost, lower=lower, upper=upper, unit=unit)
            form.tableau.arrays["cost"][:] = cost
            form.tableau.move_bounds(lower, upper)
        else:
            form = form_of(numbers, entries.start, entries.index, entries.value)
            tableau, names = (None, NOTHING) if old is None or known is None else (old.tableau, known.names)
            # of these rows, for the next program, if this one's solve is stopped
            self.prices, scaled = carried_prices(names[-1], self.prices, entries.row_generation, form.row, form.unit)
            carry(tableau, form.tableau, names, entries.names, scaled, None if tableau is None else moved)
        self.form, self.entries = form, entries
        return form


_NONE = np.zeros(0, dtype=np.int64)
_START = np.zeros(1, dtype=np.int32)
NOTHING = (_START, _START, np.zeros(0, dtype=np.int32), _NONE, _NONE)
