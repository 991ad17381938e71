"""Solve of a model's block program: from the last round's basis or path if there is one, otherwise cold."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from copter.methods.blocks.answer import Accept, BlockAnswer
from copter.methods.blocks.program import BlockProgram, program_of
from copter.methods.blocks.solve import solve_blocks
from copter.methods.warm_state import WarmState
from copter.model.matrix import BlockMatrix
from copter.runtime.settings import Settings
from copter.runtime.watch import Watch

Floats = NDArray[np.float64]
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
    return by_interior_points(matrix, program, slots, settings, watch, accept)


def by_interior_points(
    matrix: BlockMatrix,
    program: BlockProgram,
    slots: Ints,
    settings: Settings,
    watch: Watch,
    accept: Accept | None,
    prices: Floats | None = None,
    point: Floats | None = None,
) -> BlockAnswer | None:
    """Return the interior-point optimum, a vertex if requests are integer; prices and point of the last round."""
    vertex = settings.internals.purify and matrix.any_integer(slots)
    return solve_blocks(program, settings, watch, vertex, accept, prices, point)
