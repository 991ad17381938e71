"""Solve of a model's block program: from the last round's basis or path if there is one, otherwise cold."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from copter.methods.blocks.answer import Accept, BlockAnswer
from copter.methods.blocks.path import PricePath
from copter.methods.blocks.program import BlockProgram, program_of
from copter.methods.blocks.solve import solve_blocks
from copter.methods.warm_state import WarmState
from copter.model.matrix import BlockMatrix
from copter.runtime.watch import Watch
from copter.settings import Settings

Ints = NDArray[np.int32]


def answer_by_blocks(
    matrix: BlockMatrix,
    slots: Ints,
    iterate: WarmState,
    settings: Settings,
    watch: Watch,
    warm: bool = True,
    pivots: bool = True,
    accept: Accept | None = None,
) -> BlockAnswer | None:
    """Return an optimum found by the model's block structure, or None; the iterate keeps basis and path.

    Parameters
    ----------
    matrix : BlockMatrix
    slots : ndarray (requests,) int32
        Slots in the order that the answer's columns shall have.
    iterate : WarmState
    settings : Settings
    watch : Watch
    warm : bool
        Whether to start from the last round.
    pivots : bool
        Whether a warm solve tries the last basis before the path.
    accept : callable, optional
        See :func:`.solve_blocks`.
    """
    program = program_of(matrix, slots)
    if watch():
        return None
    if warm and pivots and iterate.basis is not None:
        answer = iterate.basis.solve(program, slots, matrix.generation[slots], iterate.y, watch)
        if answer is not None or watch():
            return answer
    iterate.pivots()
    return by_interior_points(matrix, program, slots, iterate, settings, watch, warm, accept)


def by_interior_points(
    matrix: BlockMatrix,
    program: BlockProgram,
    slots: Ints,
    iterate: WarmState,
    settings: Settings,
    watch: Watch,
    warm: bool,
    accept: Accept | None,
    last: BlockAnswer | None = None,
) -> BlockAnswer | None:
    """Return the optimum of the interior-point method, started from the last path if `warm`; the iterate keeps the new
    path.

    In a large program, the part that may have changed since the `last` answer is solved first.
    """
    rows = matrix.row_generation[: matrix.n_rows]
    path = iterate.path_of(rows) if warm else PricePath(rows.copy())
    vertex = settings.purify and matrix.any_integer(slots)
    answer = solve_blocks(program, settings, watch, vertex, path, accept, last)
    iterate.path = path
    return answer
