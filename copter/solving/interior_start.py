"""The fallback of a warm solve: interior points, where there are many rows or the proximal method has stalled.

Models of many coupling rows are solved by their block structure first (docs/method/blocks.md).
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from copter.blocks.answer import BlockAnswer
from copter.blocks.program import sums_before
from copter.interior.solve import solve_interior
from copter.model.assembly import first_columns, places
from copter.model.model import Model
from copter.problem.solution import Solution, Status
from copter.proximal.certificates import farkas, improving_ray
from copter.proximal.iterate import Iterate
from copter.proximal.solve import FallbackResult
from copter.runtime.watch import Watch
from copter.settings import Settings
from copter.solving.blocks import answer_by_blocks

Floats = NDArray[np.float64]
Ints = NDArray[np.int32]

MOST_PRICED = 1024  # rows up to which Newton's method in their prices comes before interior points of the LP as a whole


@dataclass(frozen=True, slots=True)
class InteriorStart:
    """Solves a model as one LP and writes the answer into an iterate: a :class:`copter.proximal.solve.Fallback`.

    Attributes
    ----------
    warm : bool
        Whether to try the kept basis first.
    blocks : bool
        Whether the block structure has not been tried yet.
    """

    model: Model
    iterate: Iterate
    settings: Settings
    watch: Watch
    warm: bool = True
    blocks: bool = True

    @property
    def comes_first(self) -> bool:
        """Whether there are so many coupling rows that Newton's method in their prices is the slower one."""
        few = self.settings.interior_rows >= self.model.ledger.matrix.n_rows
        return self.blocks and self.most_columns > 0 and not few

    @property
    def most_columns(self) -> int:
        """Columns beyond which an LP is no longer written out whole."""
        return self.settings.interior_columns

    def __call__(self) -> FallbackResult:
        """Solve, and move the iterate to the optimum, or say with a verified ray why there is none."""
        if self.watch():
            return FallbackResult()
        if self.comes_first:
            answer = self.by_blocks()
            if answer is not None:
                self.move_to(answer)
                return FallbackResult(moved=True, vertex=answer.vertex)
            if self.model.ledger.matrix.n_rows <= MOST_PRICED:
                return FallbackResult(rest=replace(self, blocks=False))
        if self.model.n_columns > self.most_columns or self.watch():
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

    def by_blocks(self) -> BlockAnswer | None:
        """The optimum by the structure of the model, or None."""
        matrix = self.model.ledger.matrix
        return answer_by_blocks(matrix, self.slots(), self.iterate, self.settings, self.watch, self.warm)

    def slots(self) -> Ints:
        """Slots of the requests, ascending."""
        return np.sort(np.array(list(self.model.ledger.slot_of.values()), dtype=np.int32))

    def move_to(self, answer: BlockAnswer) -> None:
        """Write a block program's answer into the iterate."""
        ws, matrix, slots = self.iterate.ws, self.model.ledger.matrix, self.slots()
        first = sums_before(matrix.sizes_of(slots))
        column = np.flatnonzero(answer.x)
        group = np.searchsorted(first, column, side="right") - 1
        ws.grow(matrix, slots[group], (column - first[group]).astype(np.int32))
        place = np.zeros(matrix.n_slots, dtype=np.int64)
        place[slots] = first[:-1]
        ws.x[:] = np.clip(answer.x[place[ws.slot_of_column] + ws.column], ws.lower, ws.upper)
        self.iterate.y = answer.y

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
