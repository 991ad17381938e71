"""The program that a session keeps from round to round, against the model's."""

from __future__ import annotations

from dataclasses import fields

import numpy as np

from copter import Session
from copter.methods.blocks.basis import WarmBasis
from copter.methods.blocks.program import BlockProgram, program_of


def kept_program(session: Session) -> BlockProgram | None:
    """The program that the last solve kept with its basis, if it did."""
    basis = session._iterate.basis
    return basis.kept.program if isinstance(basis, WarmBasis) and basis.kept is not None else None


def assert_kept_program_is_the_models(session: Session) -> None:
    """A program that was patched since the last whole one is what a whole one would be (K16)."""
    basis, matrix = session._iterate.basis, session.model.ledger.matrix
    if not isinstance(basis, WarmBasis) or basis.kept is None or basis.seen is None:
        return
    if basis.seen[0] is not basis.kept.program or basis.seen[1] != session.model.ledger.changes.mark:
        return
    fresh = program_of(matrix, basis.kept.slots)
    np.testing.assert_array_equal(basis.kept.generation, matrix.generation[basis.kept.slots])
    for field in fields(BlockProgram):
        np.testing.assert_array_equal(getattr(basis.kept.program, field.name), getattr(fresh, field.name), field.name)
