"""A round of a small model, solved by pivots of its whole program from the last round's basis
(docs/method/simplex.md).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from copter.choose import KEPT, ROUND_WORK, SMALL_COLD, Choice
from copter.methods.answers import Proven, Work, solution_of
from copter.methods.blocks.answer import BlockAnswer
from copter.methods.blocks.program import BlockProgram, patched, program_of
from copter.methods.by_coupling import Proof, kept_point, moved_to
from copter.methods.simplex.carry import whole_columns
from copter.methods.simplex.form import Minimised
from copter.methods.simplex.rounds import Entries, RoundBasis, Vertex, judged
from copter.methods.warm_state import WarmState
from copter.model.matrix import BlockMatrix
from copter.model.model import Model
from copter.model.values import sparse_values
from copter.problem.solution import Solution, Status
from copter.problem.values import OwnDuals
from copter.runtime.watch import Watch
from copter.settings import Settings

Floats = NDArray[np.float64]
Callback = Callable[[int, float, float], bool | None]


@dataclass(slots=True)
class VertexSolve:
    """One solve of a model by pivots of its whole program; the iterate is moved to the final point."""

    model: Model
    iterate: WarmState
    settings: Settings
    watch: Watch

    def run(self, choice: Choice, callback: Callback | None, restart_reason: str | None) -> Solution | None:
        """Return the proven optimum; None if another method must try."""
        basis = self.iterate.rounds()
        entries, program = self.program_now(basis)
        if program.n_columns == 0 or len(program.lower) == program.n_columns or self.watch():
            return None
        n = program.n_columns
        numbers = Minimised(program.cost, program.lower[n:], program.upper[n:], program.lower[:n], program.upper[:n])
        offset = self.model.ledger.sign * self.model.offset
        if self.iterate.version == self.model.version:
            last = self.kept(entries, program, numbers)
            known = Proof.of(last.figures, offset)
            if known.holds(self.settings, offset):
                return self.solution(last, known, entries, program, KEPT, callback, restart_reason)
        if basis.form is None:
            choice = SMALL_COLD
        vertex = basis.solve(entries, numbers, self.watch, ROUND_WORK)
        proof = None if vertex is None else Proof.of(vertex.figures, offset)
        if proof is not None and not proof.holds(self.settings, offset):
            vertex = basis.sharper(numbers, self.watch, ROUND_WORK)
            proof = None if vertex is None else Proof.of(vertex.figures, offset)
        if vertex is None or proof is None or not proof.holds(self.settings, offset):
            return None
        return self.solution(vertex, proof, entries, program, choice, callback, restart_reason)

    def kept(self, entries: Entries, program: BlockProgram, numbers: Minimised) -> Vertex:
        """Return the iterate's point with the checker's findings."""
        iterate, key = self.iterate, own_keys(self.model.ledger.matrix, entries)
        point = kept_point(iterate, self.model, program, entries.slots, entries.generation)
        y = np.concatenate((point.y, iterate.own_at(key)))
        return Vertex(point.x, y, 0, judged(entries, numbers, point.x, y))

    def program_now(self, basis: RoundBasis) -> tuple[Entries, BlockProgram]:
        """Return the model's program: the last one with new bounds if only bounds have changed, otherwise a new one."""
        ledger, seen, entries = self.model.ledger, self.iterate.program, basis.entries
        matrix, mark = ledger.matrix, ledger.changes.mark
        program = None
        if seen is not None and entries is not None:
            changed = ledger.changes.since(seen[1])
            program = None if changed is None else patched(seen[0], matrix, entries.slots, changed)
        if program is None or entries is None:
            slots = np.fromiter(ledger.slot_of.values(), dtype=np.int32, count=len(ledger.slot_of))
            slots.sort()
            program = program_of(matrix, slots)
            start, index, value = whole_columns(*program.arrays)
            rows = matrix.row_generation[: matrix.n_rows].copy()
            entries = Entries(
                start, index, value, program.column_start, program.private_start, slots, matrix.generation[slots], rows
            )
        self.iterate.program = program, mark
        return entries, program

    def solution(
        self,
        vertex: Vertex,
        proof: Proof,
        entries: Entries,
        program: BlockProgram,
        choice: Choice,
        callback: Callback | None,
        restart_reason: str | None,
    ) -> Solution:
        """Move the iterate to the vertex, call the callback, and return the solution."""
        iterate, model = self.iterate, self.model
        matrix, sign, m = model.ledger.matrix, model.ledger.sign, program.n_rows
        answer = BlockAnswer(vertex.x, vertex.y[:m], vertex.iterations, vertex.y[m:], vertex=True)
        moved_to(iterate, matrix, program, entries.slots, entries.generation, answer, self.settings.keep_slack)
        iterate.basis, iterate.version = None, model.version
        key = own_keys(matrix, entries)
        iterate.hold_own(matrix, key, answer.private)
        own = OwnDuals(key, sign * answer.private) if matrix.n_with_rows else None
        if callback is not None and callback(1, proof.residuals.gap, proof.residuals.primal_absolute):
            self.watch.interrupted = True
        values = sparse_values(model.ledger, iterate.ws.key, iterate.ws.x.copy(), sign * answer.y, own)
        proven = Proven.of_minimised(model, proof.objective, proof.bound, proof.margin, True, proof.residuals)
        work = Work(self.watch.elapsed_s, restart_reason, vertex.iterations)
        return solution_of(model, Status.OPTIMAL, proven, values, choice, work, None)


def own_keys(matrix: BlockMatrix, entries: Entries) -> NDArray[np.int64]:
    """Return the keys slot << 32 | row of all own rows, ascending; row 0 is the sum (copter.problem.values)."""
    start = entries.private_start
    counts = start[1:] - start[:-1]
    first = (entries.slots.astype(np.int64) << 32) + (counts <= matrix.private_sizes(entries.slots)) - start[:-1]
    return np.repeat(first, counts) + np.arange(start[-1])
