"""A round of a small model, solved by pivots of its whole program from the last round's basis
(docs/method/simplex.md).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from copter.methods.answers import Ended
from copter.methods.block_round import Proof, kept_point, moved_to
from copter.methods.blocks.answer import BlockAnswer
from copter.methods.blocks.basis import BlockWarmBasis
from copter.methods.blocks.program import BlockProgram, patched, program_of
from copter.methods.choose import KEPT, SMALL_COLD, Choice, round_work
from copter.methods.protocol import Round
from copter.methods.simplex.carry import whole_columns
from copter.methods.simplex.form import Minimised
from copter.methods.simplex.lone_columns import lone_columns, price_sums
from copter.methods.simplex.rounds import Entries, Moved, Vertex, judged
from copter.model.ledger import Ledger
from copter.model.matrix.bounds import live_slots, own_keys
from copter.model.values import sparse_values
from copter.problem.solution import Status
from copter.problem.values import OwnDuals, ranges


@dataclass(frozen=True, slots=True)
class SmallSimplex:
    """A solve of a model by pivots of its whole program.

    Attributes
    ----------
    entries : Entries
    program : BlockProgram
    numbers : Minimised
        Of the program, where the sum of a single column is no row but bounds of the column.
    alone, sums : ndarray int32
        These columns, and the rows of their sums.
    """

    of: Round
    entries: Entries
    program: BlockProgram
    numbers: Minimised
    alone: NDArray[np.int32]
    sums: NDArray[np.int32]

    @classmethod
    def start(cls, given: Round) -> SmallSimplex:
        """Prepare a solve of the current model; its program is the last one where only bounds are others."""
        ledger, seen = given.model.ledger, given.iterate.program
        matrix, mark = ledger.matrix, ledger.changes.mark
        program = entries = None
        if seen is not None:
            entries, changed = seen[1], ledger.changes.since(seen[2])
            program = None if changed is None else patched(seen[0], matrix, entries.slots, changed)
        if program is None or entries is None:
            slots = live_slots(matrix)
            program = program_of(matrix, slots)
            start, index, value = whole_columns(program)
            rows = matrix.row_generation[: matrix.n_rows].copy()
            entries = Entries(
                start, index, value, program.column_start, program.private_start, slots, matrix.generation[slots], rows
            )
        given.iterate.program = (program, entries, mark)
        alone, sums, lower, upper = lone_columns(program)
        return cls(given, entries, program, Minimised(program.cost, lower, upper), alone, sums)

    def still_optimal(self) -> Ended | None:
        """The iterate's point, if nothing was edited since it was optimal and it is proven so again."""
        iterate, model, entries = self.of.iterate, self.of.model, self.entries
        if iterate.version != model.version or self.is_empty:
            return None
        point = kept_point(iterate, model, self.program, entries.slots, entries.generation)
        y = np.concatenate((point.y, iterate.own_at(own_keys(model.ledger.matrix, entries.slots))))
        return self.ended(Vertex(point.x, y, 0, judged(entries, self.numbers, point.x, y)), KEPT)

    def improve(self, order: tuple[Choice, ...]) -> Ended | None:
        """Return the optimum that pivots find; if its proof fails, pivot once more with tighter tolerances."""
        basis, watch = self.of.iterate.rounds(), self.of.watch
        if self.is_empty or watch():
            return None
        choice = SMALL_COLD if basis.form is None else order[0]
        work = round_work(self.program.n_columns, basis.form is not None)
        ledger = self.of.model.ledger
        moved = None if basis.entries is None else moved_blocks(ledger, basis.entries, self.entries)
        vertex = basis.solve(self.entries, self.numbers, watch, work, moved)
        ended = None if vertex is None else self.ended(vertex, choice)
        if vertex is not None and ended is None:
            vertex = basis.sharper(self.numbers, watch, work)
            ended = None if vertex is None else self.ended(vertex, choice)
        return ended

    @property
    def is_empty(self) -> bool:
        """Whether there is no column, or no row."""
        return self.program.n_columns in (0, len(self.program.lower))

    def ended(self, vertex: Vertex, choice: Choice) -> Ended | None:
        """Move the iterate to a vertex; None if it is not proven optimal."""
        iterate, model, entries, settings = self.of.iterate, self.of.model, self.entries, self.of.settings
        proof = Proof.of(vertex.figures, self.of.offset)
        if not proof.holds(settings, self.of.offset):
            return None
        matrix, sign, m = model.ledger.matrix, model.ledger.sign, self.program.n_rows
        if matrix.n_with_rows:
            price_sums(self.program, self.alone, self.sums, vertex.y)
        answer = BlockAnswer(vertex.x, vertex.y[:m], vertex.iterations, vertex.y[m:], vertex=True)
        limit = matrix.sums_of(entries.slots)[0]
        moved_to(iterate, matrix, self.program, entries.slots, entries.generation, limit, answer)
        iterate.basis, iterate.version = BlockWarmBasis(), model.version
        key = own_keys(matrix, entries.slots)
        iterate.hold_own(matrix, key, answer.private)
        self.of.tell(proof.residuals)
        own = OwnDuals(key, sign * answer.private) if matrix.n_with_rows else None
        values = sparse_values(model.ledger, iterate.ws.key, iterate.ws.x.copy(), sign * answer.y, own)
        return Ended(Status.OPTIMAL, proof.of_model(model), values, choice, vertex.iterations)


def moved_blocks(ledger: Ledger, before: Entries, now: Entries) -> Moved | None:
    """Return where the columns and own rows went of requests that have others than in an earlier program."""
    if not ledger.moves or not len(before.slots):
        return None
    place = np.minimum(np.searchsorted(before.slots, now.slots), len(before.slots) - 1)
    other = np.flatnonzero((before.slots[place] == now.slots) & (before.generation[place] != now.generation))
    was = place[other]
    names = (each.tolist() for each in (now.slots[other], before.generation[was], now.generation[other]))
    found = [ledger.moves.between(*each) for each in zip(*names, strict=True)]
    moves = [each for each in found if each is not None]
    if not moves:
        return None
    known = np.array([each is not None for each in found])
    at, was = other[known], was[known]
    moved = np.zeros(len(now.slots), dtype=np.uint8)
    moved[at] = 1
    columns = np.full(now.column_start[-1], -1, dtype=np.int32)
    rows = np.full(now.private_start[-1], -1, dtype=np.int32)
    columns[ranges(now.column_start[at], now.column_start[at + 1])] = np.concatenate([each.columns for each in moves])
    first, end, own = now.private_start[at], now.private_start[at + 1], np.array([len(each.rows) for each in moves])
    summed = first < end - own  # the sum of the columns comes first, where it is limited
    n_rows = np.array([each.n_rows for each in moves])
    was_summed = before.private_start[was + 1] - before.private_start[was] > n_rows
    rows[first[summed & was_summed]] = 0
    to = np.concatenate([each.rows for each in moves])
    rows[ranges(end - own, end)] = np.where(to < 0, -1, to + np.repeat(was_summed, own))
    return moved, columns, rows
