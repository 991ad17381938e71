"""The program that a session keeps from round to round, against the model's."""

from __future__ import annotations

from dataclasses import fields

import numpy as np

from copter import Session
from copter.methods.blocks.basis import WarmBasis
from copter.methods.blocks.program import BlockProgram, program_of


def kept_program(session: Session) -> BlockProgram | None:
    """The program that the last solve kept with its basis, if it did."""
    if session._iterate.program is not None:
        return session._iterate.program[0]
    basis = session._iterate.basis
    return basis.kept.program if isinstance(basis, WarmBasis) and basis.kept is not None else None


def assert_kept_program_is_the_models(session: Session) -> None:
    """A program that was patched since the last whole one is what a whole one would be (K14)."""
    basis, matrix, vertex = session._iterate.basis, session.model.ledger.matrix, session._iterate.vertex
    if session._iterate.program is not None and vertex is not None and vertex.entries is not None:
        (program, mark), slots, generation = session._iterate.program, vertex.entries.slots, vertex.entries.generation
    elif isinstance(basis, WarmBasis) and basis.kept is not None and basis.seen is not None:
        mark, slots, generation = basis.seen[1], basis.kept.slots, basis.kept.generation
        program = basis.kept.program
        if basis.seen[0] is not program:
            return
    else:
        return
    if mark != session.model.ledger.changes.mark:
        return
    fresh = program_of(matrix, slots)
    np.testing.assert_array_equal(generation, matrix.generation[slots])
    for field in fields(BlockProgram):
        np.testing.assert_array_equal(getattr(program, field.name), getattr(fresh, field.name), field.name)
