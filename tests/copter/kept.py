"""The program that a session keeps from round to round, against the model's."""

from __future__ import annotations

from dataclasses import fields

import numpy as np
import scipy.sparse as sp

from copter import Session
from copter.methods.blocks.basis import WarmBasis
from copter.methods.blocks.program import BlockProgram, program_of
from copter.model.column_map import slots_in_order


def kept_program(session: Session) -> BlockProgram | None:
    """The program that the last solve kept with its basis, if it did."""
    if session._iterate.program is not None:
        return session._iterate.program[0]
    basis = session._iterate.basis
    return basis.kept.program if isinstance(basis, WarmBasis) and basis.kept is not None else None


def assert_kept_program_is_the_models(session: Session) -> None:
    """A program that was patched since the last whole one is what a whole one would be (K14)."""
    assert_room_is_the_models(session)
    basis, matrix = session._iterate.basis, session.model.ledger.matrix
    if session._iterate.program is not None:
        program, entries, mark = session._iterate.program
        slots, generation = entries.slots, entries.generation
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


def assert_room_is_the_models(session: Session) -> None:
    """A program that follows the model has each request's columns in its slot's block, and nothing in gaps (K14)."""
    basis, matrix = session._iterate.basis, session.model.ledger.matrix
    if not isinstance(basis, WarmBasis) or basis.room is None or basis.mark != session.model.ledger.changes.mark:
        return  # a round that the last answer solves leaves the room behind the model
    room, slots = basis.room, np.sort(slots_in_order(session.model.ledger))
    program, fresh = room.program, program_of(matrix, slots)
    n, m, own = program.n_columns, program.n_rows, program.n_columns + program.n_rows
    sizes, used = np.diff(fresh.column_start), np.zeros(n, dtype=bool)
    place = room.block_of[slots]
    np.testing.assert_array_equal(room.slots[place], slots)
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
    idle = np.setdiff1d(np.arange(len(room.slots)), place)
    assert np.isneginf(program.lower[own:][idle]).all()
    assert np.isposinf(program.upper[own:][idle]).all()
    np.testing.assert_array_equal(room.generation[place], matrix.generation[slots])
    assert (room.generation[idle] == -1).all()
