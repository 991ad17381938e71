"""The interior-point method of a whole model, before or after proximal steps (`copter/choose.py` says which)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from copter.choose import Choice
from copter.methods.interior.solve import solve_interior
from copter.methods.proximal.certificates import farkas, improving_ray
from copter.methods.proximal.iterate import Iterate
from copter.methods.proximal.solve import FallbackResult
from copter.model.assembly import first_columns, places
from copter.model.model import Model
from copter.problem.solution import Solution, Status
from copter.runtime.watch import Watch
from copter.settings import Settings

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class InteriorStart:
    """Solves a model as one LP and writes the answer into an iterate: the `Fallback` of proximal/solve.py.

    Attributes
    ----------
    choice : Choice
        Why it is tried.
    comes_first : bool
        Whether to try it before proximal steps, rather than when they stall.
    """

    model: Model
    iterate: Iterate
    settings: Settings
    watch: Watch
    choice: Choice
    comes_first: bool = False

    def __call__(self) -> FallbackResult:
        """Solve, and move the iterate to the optimum, or say with a verified ray why there is none."""
        if self.watch():
            return FallbackResult()
        try:
            solution = solve_interior(self.model.to_linear_program(), self.settings, self.watch, vertex=True)
        except MemoryError:  # the proximal method factorises nothing of this size
            return FallbackResult()
        if solution.status is Status.OPTIMAL:
            self.move(solution)
            return FallbackResult(moved=True)
        if solution.ray is None:
            return FallbackResult()
        judge = self.infeasible if solution.status is Status.PRIMAL_INFEASIBLE else self.unbounded
        return judge(solution.ray)

    def move(self, solution: Solution) -> None:
        """Write x and the prices of the rows into the iterate."""
        ws = self.iterate.ws
        first = self.take_in(solution.x)
        ws.x[:] = np.clip(solution.x[places(first, ws.key)], ws.lower, ws.upper)
        self.iterate.y = self.row_values(self.model.ledger.sign * solution.y)

    def take_in(self, x: Floats) -> dict[int, int]:
        """Make working columns of those where x is not zero; the place of every slot's first column."""
        first = first_columns(self.model.ledger)
        slots, starts = np.array(list(first)), np.array(list(first.values()))
        column = np.flatnonzero(x)
        group = np.searchsorted(starts, column, side="right") - 1
        slot = slots[group].astype(np.int32)
        self.iterate.ws.grow(self.model.ledger.matrix, slot, (column - starts[group]).astype(np.int32))
        return first

    def row_values(self, values: Floats) -> Floats:
        """Values of the LP's rows by the matrix's rows (the requests' limits left out)."""
        rows = list(self.model.ledger.row_of.values())
        full = np.zeros(self.model.ledger.matrix.n_rows)
        full[rows] = values[: len(rows)]
        return full

    def infeasible(self, ray: Floats) -> FallbackResult:
        """The verdict of row multipliers, if they prove it on the model."""
        matrix, iterate = self.model.ledger.matrix, self.iterate
        prices = self.row_values(ray)
        proven, priced = farkas(matrix, iterate.ws, iterate.rows(matrix), prices, self.settings.n_threads)
        return FallbackResult(Status.PRIMAL_INFEASIBLE, priced.y) if proven else FallbackResult()

    def unbounded(self, ray: Floats) -> FallbackResult:
        """The verdict of a direction, if it proves it on the model."""
        ws = self.iterate.ws
        first = self.take_in(ray)
        proof = improving_ray(ws, self.iterate.rows(self.model.ledger.matrix), ray[places(first, ws.key)])
        return FallbackResult() if proof is None else FallbackResult(Status.DUAL_INFEASIBLE, proof)
