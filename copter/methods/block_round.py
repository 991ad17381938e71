"""A round solved from the last round's basis: pivots, then a proof by one pass over all columns (blocks.md, K12 and
K15).

The work is proportional to the number of nonzeros and of pivots, and nearly all of it is in compiled code.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from copter.highs.linear import LinearTask
from copter.highs.vertex import optimal_vertex
from copter.methods.answers import Ended, Proven
from copter.methods.block_rounds import by_interior_points
from copter.methods.blocks.answer import BlockAnswer
from copter.methods.blocks.basis import (
    DENSE_ROWS,
    MOST_ROWS,
    BlockWarmBasis,
    applies_to,
    blocks_work,
    first_vertex_work,
)
from copter.methods.blocks.block_proof import prove
from copter.methods.blocks.program import BlockProgram, patched, program_of, whole_matrix
from copter.methods.blocks.reduced_program import has_limits_alone
from copter.methods.blocks.settled import ties_a_row
from copter.methods.blocks.working_columns import working_columns
from copter.methods.choose import KEPT, Choice
from copter.methods.protocol import Round
from copter.methods.proximal.iterate import KEEP_SLACK, NO_DUALS
from copter.methods.proximal.working_set import WorkingSet
from copter.methods.warm_state import WarmState
from copter.model.column_map import ColumnMap
from copter.model.matrix import BlockMatrix
from copter.model.matrix.bounds import live_slots
from copter.model.matrix.changes import Mark
from copter.model.model import Model
from copter.model.values import sparse_values
from copter.problem.residuals import Residuals, relative_gap
from copter.problem.solution import Status
from copter.problem.values import OwnDuals
from copter.runtime.settings import Settings

Floats = NDArray[np.float64]
Ints = NDArray[np.int32]
Figures = tuple[float, float, float, float, float, float, float, float, float]


@dataclass(frozen=True, slots=True)
class Proof:
    """Objective, bound and residuals of a point, as minimised and without the constant."""

    objective: float
    bound: float
    margin: float
    residuals: Residuals

    @classmethod
    def of(cls, figures: Figures, offset: float) -> Proof:
        """Convert the findings of :func:`.prove` or :func:`.prove_point`; `offset` is the objective's constant."""
        objective, violation, largest, size, bound, margin, wrong, most, costs = figures
        residuals = Residuals(
            primal=violation / (1.0 + size),
            dual=wrong / (1.0 + costs),
            gap=relative_gap(objective + offset, bound + offset),
            primal_absolute=largest,
            dual_absolute=most,
            gap_absolute=abs(objective - bound),
        )
        return cls(objective, bound, margin, residuals)

    def of_model(self, model: Model) -> Proven:
        """Return the proof in the model's terms."""
        return Proven.of_minimised(model, self.objective, self.bound, self.margin, True, self.residuals)

    def shows(self, settings: Settings, offset: float) -> bool:
        """Whether the gap is within tolerance even after the rounding margin is subtracted from the bound."""
        lowest = self.bound - self.margin + offset
        return relative_gap(self.objective + offset, lowest) <= settings.tolerance

    def holds(self, settings: Settings, offset: float) -> bool:
        """Whether the point is optimal within tolerance, proven in spite of rounding."""
        return self.residuals.within(settings.tolerance, settings.absolute_tolerance) and self.shows(settings, offset)


@dataclass(slots=True)
class BlockRound:
    """A solve of a model without private rows but sums, by pivots or interior points; the answer is proven optimal.

    Attributes
    ----------
    basis : BlockWarmBasis
        Basis of the iterate.
    moved : BlockAnswer or None
        The iterate's point, if another method has moved it since the basis's last answer.
    hopeless : bool
        Whether HiGHS says that there is no optimum: interior points on blocks, which cannot prove that, are left out.
    """

    of: Round
    basis: BlockWarmBasis
    program: BlockProgram
    slots: Ints
    generation: NDArray[np.int64]
    judge: Judge
    mark: Mark
    moved: BlockAnswer | None
    hopeless: bool = False

    @classmethod
    def start(cls, given: Round) -> BlockRound:
        """Prepare a solve of the current model."""
        model, iterate = given.model, given.iterate
        basis, mark = iterate.pivots(), model.ledger.changes.mark
        if has_gaps(model, given.settings):
            slotted = basis.follow(model.ledger)
            program, slots, generation = slotted.program, slotted.slots, slotted.generation
        else:
            program, slots, generation = program_now(model, basis)
        judge = Judge(program, given.settings, given.offset)
        is_moved = basis.answer is None and not iterate.cold and not model.ledger.matrix.n_with_rows
        moved = kept_point(iterate, model, program, slots, generation) if is_moved else None
        return cls(given, basis, program, slots, generation, judge, mark, moved)

    def still_optimal(self) -> Ended | None:
        """The iterate's point, if it is still optimal."""
        return None if self.moved is None or not self.judge(self.moved) else self.ended(self.moved, KEPT)

    def improve(self, order: tuple[Choice, ...]) -> Ended | None:
        """The optimum that pivots or interior points find, if it is proven."""
        if self.of.watch() or self.hopeless:
            return None
        ways = {"basis": self.by_pivots, "highs": self.by_highs}
        found = ways.get(order[0].method, self.by_interior_points)()
        if found is None or not self.judge(found) or not self.judge.shows(found):
            if self.of.watch() and not self.of.watch.interrupted:
                self.basis.ran_out()
            return None
        return self.ended(found, order[0])

    def ended(self, answer: BlockAnswer, choice: Choice) -> Ended:
        """Move the iterate to an optimal answer."""
        model, iterate, proof = self.of.model, self.of.iterate, self.judge.proof_of(answer)
        matrix, program = model.ledger.matrix, self.program
        self.basis.late, self.basis.stopped = 0, None
        if program.private_start[-1] == len(self.slots):
            limit = program.upper[program.n_columns + program.n_rows :]
        else:
            limit = matrix.sums_of(self.slots)[0]
        moved_to(iterate, matrix, program, self.slots, self.generation, limit, answer, self.judge.reduced)
        iterate.version, sign, own = model.version, model.ledger.sign, None
        if matrix.n_with_rows:
            key, dual = sum_duals(program, self.slots, answer.private)
            iterate.hold_own(matrix, key, dual)
            own = OwnDuals(key, sign * dual)
        self.of.tell(proof.residuals)
        values = sparse_values(model.ledger, iterate.ws.key, iterate.ws.x.copy(), sign * answer.y, own)
        return Ended(Status.OPTIMAL, proof.of_model(model), values, choice, answer.iterations)

    @property
    def follows(self) -> bool:
        """Whether the program follows the model in place."""
        return self.basis.slotted is not None and self.program is self.basis.slotted.program

    def by_pivots(self, fresh: bool = False) -> BlockAnswer | None:
        """Solve by pivots from the last round's basis, or from prices; `fresh` as for :meth:`.BlockWarmBasis.solve`."""
        basis, prices = self.basis, prices_now(self.of.iterate, self.of.model)
        iterate, point = self.of.iterate, None
        if basis.last is None and self.program.n_rows > DENSE_ROWS and not iterate.cold:
            last = self.moved or kept_point(iterate, self.of.model, self.program, self.slots, self.generation)
            point = last.x
        answer = basis.solve(self.program, self.slots, self.generation, prices, self.of.watch, point, fresh)
        known = basis.last is not None and basis.last.program is self.program and not self.follows
        basis.seen = (self.program, self.mark) if known else None
        return answer

    def by_highs(self) -> BlockAnswer | None:
        """Solve by HiGHS's interior points and crossover, then by pivots from its basis (K18)."""
        program = self.program
        if not applies_to(program) or blocks_work(program) <= first_vertex_work(program):
            return None
        n, m = program.n_columns, program.n_rows
        task = LinearTask(
            program.cost, whole_matrix(program), program.lower[n:], program.upper[n:], program.lower[:n],
            program.upper[:n], self.of.watch.left_s,
        )  # fmt: skip
        vertex = optimal_vertex(task, self.of.watch)
        self.hopeless = vertex is not None and vertex.no_optimum
        if vertex is None or vertex.x is None or vertex.y is None:
            return None
        if self.basis.enter(program, self.slots, self.generation, vertex):
            found = self.by_pivots(fresh=True)
            if found is not None:
                return replace(found, iterations=vertex.iterations + found.iterations)
        return BlockAnswer(vertex.x, vertex.y[:m], vertex.iterations, vertex.y[m:], vertex=True)

    def by_interior_points(self) -> BlockAnswer | None:
        """Solve by interior points, whose program has no gaps."""
        matrix, iterate = self.of.model.ledger.matrix, self.of.iterate
        if self.follows:
            self.slots = live_slots(matrix)
            self.program, self.generation = program_of(matrix, self.slots), matrix.generation[self.slots]
            self.judge = Judge(self.program, self.of.settings, self.of.offset)
        prices = point = None
        if not iterate.cold and self.basis.settles():
            last = kept_point(iterate, self.of.model, self.program, self.slots, self.generation)
            prices, point = prices_now(iterate, self.of.model), last.x
        try:
            found = by_interior_points(
                matrix, self.program, self.slots, self.of.settings, self.of.watch, self.judge, prices, point
            )
        except MemoryError:  # the other methods need no dense matrix of this size
            return None
        if found is not None:
            self.basis.ties = ties_a_row(self.program, found.y) if has_limits_alone(self.program) else 0
            if prices is not None:
                self.basis.note_settled(found.settled)
        return found


def has_gaps(model: Model, settings: Settings) -> bool:
    """Whether a model is so small that its program has gaps and follows all edits in place (K14)."""
    rows = model.ledger.matrix.n_rows
    most = settings.interior_columns if rows > DENSE_ROWS else settings.basis_columns
    return 0 < model.n_columns <= most and 0 < rows <= MOST_ROWS


def program_now(model: Model, basis: BlockWarmBasis) -> tuple[BlockProgram, Ints, NDArray[np.int64]]:
    """Return the model's program with the slots and generations of its blocks; patched if only bounds changed."""
    matrix, last, program = model.ledger.matrix, basis.last, None
    if last is not None and basis.seen is not None and basis.seen[0] is last.program:
        changed = model.ledger.changes.since(basis.seen[1])
        program = None if changed is None else patched(last.program, matrix, last.slots, changed)
    if last is not None and program is not None:
        slots, generation = last.slots, last.generation
    else:
        slots = live_slots(matrix)
        program, generation = program_of(matrix, slots), matrix.generation[slots]
    return program, slots, generation


class Judge:
    """Decides whether an answer is proven optimal; each answer is examined once.

    Parameters
    ----------
    program : BlockProgram
    settings : Settings
    offset : float
        The objective's constant, as minimised.
    """

    def __init__(self, program: BlockProgram, settings: Settings, offset: float) -> None:
        self.program, self.settings, self.offset = program, settings, offset
        self.last: tuple[BlockAnswer, Proof] | None = None
        self.reduced: Floats = np.empty(program.n_columns)  # costs less usage at the last answer's prices

    def proof_of(self, answer: BlockAnswer) -> Proof:
        """Return the proof of an answer by one pass over all columns (K15), cached for the same point."""
        if self.last is None or self.last[0].x is not answer.x or self.last[0].y is not answer.y:
            figures = prove(self.program, answer.x, answer.y, self.reduced)
            self.last = (answer, Proof.of(figures, self.offset))
        return self.last[1]

    def shows(self, answer: BlockAnswer) -> bool:
        """Whether the gap is within tolerance even after the rounding margin is subtracted from the bound."""
        return self.proof_of(answer).shows(self.settings, self.offset)

    def __call__(self, answer: BlockAnswer) -> bool:
        residuals = self.proof_of(answer).residuals
        return residuals.within(self.settings.tolerance, self.settings.absolute_tolerance)


def sum_duals(program: BlockProgram, slots: Ints, dual: Floats) -> tuple[NDArray[np.int64], Floats]:
    """Return keys and duals of the bounded sums of a program without other private rows (:class:`.OwnDuals`)."""
    own = program.n_columns + program.n_rows
    bounded = np.isfinite(program.lower[own:]) | np.isfinite(program.upper[own:])
    start = program.private_start
    slot = (slots if len(slots) == start[-1] else np.repeat(slots, start[1:] - start[:-1]))[bounded]
    order = np.argsort(slot)
    return slot[order].astype(np.int64) << 32, dual[bounded][order]


def prices_now(iterate: WarmState, model: Model) -> Floats:
    """Return the iterate's prices for the rows that still exist unchanged."""
    matrix = model.ledger.matrix
    known = len(iterate.y)
    same = iterate.row_generation == matrix.row_generation[:known]
    prices = np.zeros(matrix.n_rows)
    prices[:known] = np.where(same, iterate.y, 0.0)
    return prices


def kept_point(
    iterate: WarmState, model: Model, program: BlockProgram, slots: Ints, generation: NDArray[np.int64]
) -> BlockAnswer:
    """Return the iterate's point: working columns at their values, the others at their lower bounds."""
    n, m, ws = program.n_columns, program.n_rows, iterate.ws
    x = program.lower[:n].copy()
    columns = ColumnMap(slots, program.column_start)
    if len(slots):
        block = columns.requests(ws.slot_of_column)
        alive = np.flatnonzero((block >= 0) & (generation[block] == ws.generation))
        x[columns.places(ws.key[alive])] = ws.x[alive]
    y = prices_now(iterate, model)
    bound = np.where(y > 0.0, program.lower[n : n + m], program.upper[n : n + m])
    return BlockAnswer(x, np.where(np.isfinite(bound), y, 0.0), 0, np.zeros(0))


def moved_to(
    iterate: WarmState,
    matrix: BlockMatrix,
    program: BlockProgram,
    slots: Ints,
    generation: NDArray[np.int64],
    limit: Floats,
    answer: BlockAnswer,
    reduced: Floats | None = None,
) -> None:
    """Store the answer in the iterate; data of working columns are gathered on first use.

    `limit` and `reduced` are as for :func:`.working_columns`.
    """
    least = KEEP_SLACK if matrix.any_integer(slots) else -1.0
    key, x, block = working_columns(program, limit, slots, answer.x, answer.y, least, reduced)
    iterate.own_key, iterate.own_dual, iterate.own_generation = NO_DUALS
    iterate.ws, iterate.y, iterate.cold = WorkingSet.of(key, x, generation[block]), answer.y, False
    iterate.row_generation = matrix.row_generation[: matrix.n_rows].copy()
