"""The interior-point method on a whole model, before or after proximal steps (see `copter/methods/choose.py`)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from copter.methods.choose import Choice
from copter.methods.interior.solve import solve_interior
from copter.methods.proximal.certificates import farkas, improving_ray
from copter.methods.proximal.solve import FallbackResult
from copter.methods.warm_state import WarmState
from copter.model.column_map import ColumnMap
from copter.model.model import Model
from copter.problem.solution import Solution, Status
from copter.runtime.settings import Settings
from copter.runtime.watch import Watch

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class InteriorStart:
    """Solves a model as one LP and stores the answer in an iterate; a `Fallback` of proximal/solve.py.

    Attributes
    ----------
    choice : Choice
        The method and the reason why it is tried.
    comes_first : bool
        Whether to try it before proximal steps, rather than when they stall.
    """

    model: Model
    iterate: WarmState
    settings: Settings
    watch: Watch
    choice: Choice
    comes_first: bool = False

    def __call__(self) -> FallbackResult:
        """Solve; move the iterate to the optimum, or return a verified ray."""
        if self.watch():
            return FallbackResult()
        try:
            program = self.model.to_linear_program()
            solution = solve_interior(program, self.settings, self.watch, vertex=True)
        except MemoryError:  # the proximal method needs no factorisation of this size
            return FallbackResult()
        if solution.status is Status.OPTIMAL:
            self.move(solution)
            if self.comes_first:  # where it is a last resort, the next round has a better start than pivots
                self.iterate.whole.note(program, solution.x, solution.y)
            return FallbackResult(moved=True)
        if solution.ray is None:
            return FallbackResult()
        judge = self.infeasible if solution.status is Status.PRIMAL_INFEASIBLE else self.unbounded
        return judge(solution.ray)

    def move(self, solution: Solution) -> None:
        """Store x and the rows' prices in the iterate."""
        ws = self.iterate.ws
        columns = self.take_in(solution.x)
        ws.x[:] = np.clip(solution.x[columns.places(ws.key)], ws.lower, ws.upper)
        self.iterate.y = self.row_values(self.model.ledger.sign * solution.y)

    def take_in(self, x: Floats) -> ColumnMap:
        """Make the columns with nonzero x working columns; returns the program's column mapping."""
        columns = ColumnMap.of_model(self.model.ledger)
        self.iterate.ws.grow(self.model.ledger.matrix, *columns.split(np.flatnonzero(x)))
        return columns

    def row_values(self, values: Floats) -> Floats:
        """Return values of the LP's rows in the order of the matrix's rows; requests' limits are left out."""
        rows = list(self.model.ledger.row_of.values())
        full = np.zeros(self.model.ledger.matrix.n_rows)
        full[rows] = values[: len(rows)]
        return full

    def infeasible(self, ray: Floats) -> FallbackResult:
        """Return the verdict of row multipliers, if they prove infeasibility of the model."""
        matrix, iterate = self.model.ledger.matrix, self.iterate
        prices = self.row_values(ray)
        proven, priced = farkas(matrix, iterate.ws, iterate.rows(matrix), prices, self.settings.n_threads)
        return FallbackResult(Status.PRIMAL_INFEASIBLE, priced.y) if proven else FallbackResult()

    def unbounded(self, ray: Floats) -> FallbackResult:
        """Return the verdict of a direction, if it proves unboundedness of the model."""
        ws = self.iterate.ws
        columns = self.take_in(ray)
        proof = improving_ray(ws, self.iterate.rows(self.model.ledger.matrix), ray[columns.places(ws.key)])
        return FallbackResult() if proof is None else FallbackResult(Status.DUAL_INFEASIBLE, proof)
