"""The program that a session keeps from round to round, against the model's."""

from __future__ import annotations

from dataclasses import fields

import numpy as np
import scipy.sparse as sp

from copter import Session
from copter.methods.blocks.basis import BlockWarmBasis
from copter.methods.blocks.program import BlockProgram, program_of
from copter.model.column_map import slots_in_order


def last_program(session: Session) -> BlockProgram | None:
    """The program that the last solve kept with its basis, if it did."""
    if session._iterate.program is not None:
        return session._iterate.program[0]
    basis = session._iterate.basis
    return basis.last.program if isinstance(basis, BlockWarmBasis) and basis.last is not None else None


def assert_program_is_the_models(session: Session) -> None:
    """A program that was patched since the last whole one is what a whole one would be (K14)."""
    assert_slotted_program_is_the_models(session)
    basis, matrix = session._iterate.basis, session.model.ledger.matrix
    if session._iterate.program is not None:
        program, entries, mark = session._iterate.program
        slots, generation = entries.slots, entries.generation
    elif isinstance(basis, BlockWarmBasis) and basis.last is not None and basis.seen is not None:
        mark, slots, generation = basis.seen[1], basis.last.slots, basis.last.generation
        program = basis.last.program
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


def assert_slotted_program_is_the_models(session: Session) -> None:
    """A program that follows the model has each request's columns in its slot's block, and nothing in gaps (K14)."""
    basis, matrix = session._iterate.basis, session.model.ledger.matrix
    if (
        not isinstance(basis, BlockWarmBasis)
        or basis.slotted is None
        or basis.mark != session.model.ledger.changes.mark
    ):
        return  # a round that the last answer solves leaves the slotted program behind the model
    slotted, slots = basis.slotted, np.sort(slots_in_order(session.model.ledger))
    program, fresh = slotted.program, program_of(matrix, slots)
    n, m, own = program.n_columns, program.n_rows, program.n_columns + program.n_rows
    sizes, used = np.diff(fresh.column_start), np.zeros(n, dtype=bool)
    place = slotted.block_of[slots]
    np.testing.assert_array_equal(slotted.slots[place], slots)
    columns = np.repeat(program.column_start[place] - fresh.column_start[:-1], sizes) + np.arange(fresh.n_columns)
    used[columns] = True
    for field in ("cost", "lower", "upper"):
        np.testing.assert_array_equal(getattr(program, field)[columns], getattr(fresh, field)[: len(columns)], field)
        np.testing.assert_array_equal(getattr(program, field)[:n][~used], 0.0, field)
    for bound in ("lower", "upper"):
        np.testing.assert_array_equal(getattr(program, bound)[n:own], getattr(fresh, bound)[len(columns) :][:m], bound)
    both = [
        sp.csc_array((each.value, each.row, each.start), shape=(m, each.n_columns)).toarray()
        for each in (program, fresh)
    ]
    np.testing.assert_array_equal(both[0][:, columns], both[1])
    assert not both[0][:, ~used].any()
    limit, least = matrix.sums_of(slots)
    np.testing.assert_array_equal(program.lower[own:][place], least)
    np.testing.assert_array_equal(program.upper[own:][place], limit)
    idle = np.setdiff1d(np.arange(len(slotted.slots)), place)
    assert np.isneginf(program.lower[own:][idle]).all()
    assert np.isposinf(program.upper[own:][idle]).all()
    np.testing.assert_array_equal(slotted.generation[place], matrix.generation[slots])
    assert (slotted.generation[idle] == -1).all()
