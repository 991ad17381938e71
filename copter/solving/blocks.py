"""A model's block program, from the basis of the last round where there is one, else cold."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from copter.blocks.basis import WarmBasis
from copter.blocks.program import program_of
from copter.blocks.solve import BlockAnswer, solve_blocks
from copter.matrix import BlockMatrix
from copter.proximal.iterate import Iterate
from copter.runtime.watch import Watch
from copter.settings import Settings

Ints = NDArray[np.int32]


def answer_by_blocks(
    matrix: BlockMatrix, slots: Ints, iterate: Iterate, settings: Settings, watch: Watch, warm: bool = True
) -> BlockAnswer | None:
    """The optimum by the structure of a model, or None; the iterate keeps the basis.

    Parameters
    ----------
    matrix : BlockMatrix
    slots : ndarray (requests,) int32
        In the order that the answer's columns are to have.
    iterate : Iterate
    settings : Settings
    watch : Watch
    warm : bool
        Whether to try the basis first.
    """
    program = program_of(matrix, slots)
    if watch():
        return None
    basis = iterate.basis
    if warm and isinstance(basis, WarmBasis):
        answer = basis.solve(program, slots, matrix.generation[slots], iterate.y, watch)
        if answer is not None or watch():
            return answer
    vertex = settings.purify and any(matrix.slabs[slot].integer for slot in slots.tolist())
    if not isinstance(basis, WarmBasis):
        iterate.basis = WarmBasis()
    return solve_blocks(program, settings, watch, vertex)
