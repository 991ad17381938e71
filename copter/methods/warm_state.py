"""The state that a session keeps between rounds, with one object per method."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from copter.methods.blocks.basis import WarmBasis
from copter.methods.blocks.path import PricePath
from copter.methods.blocks.program import BlockProgram
from copter.methods.proximal.iterate import Iterate
from copter.methods.simplex.rounds import RoundBasis
from copter.model.matrix import BlockMatrix
from copter.model.matrix.changes import Mark


class WarmState(Iterate):
    """The point shared by all methods, the basis for pivots, and the path for interior points on blocks.

    Attributes
    ----------
    basis : WarmBasis or None
        None until a method needs one.
    path : PricePath or None
        None before the first solve by interior points on blocks.
    vertex : RoundBasis or None
        Basis of a small model's whole program; None until it is solved by pivots.
    program : tuple or None
        The program of that basis, and the mark of the edits at which it was the model's program.
    version : int
        Version of the model for which the point was optimal; -1 for none.
    """

    def __init__(self, sigma: float) -> None:
        super().__init__(sigma)
        self.basis: WarmBasis | None = None
        self.path: PricePath | None = None
        self.vertex: RoundBasis | None = None
        self.program: tuple[BlockProgram, Mark] | None = None
        self.version = -1

    def pivots(self) -> WarmBasis:
        """Return the basis, created on first use."""
        self.basis = self.basis or WarmBasis()
        return self.basis

    def rounds(self) -> RoundBasis:
        """Return the basis of the whole program, created on first use."""
        self.vertex = self.vertex or RoundBasis()
        return self.vertex

    def path_of(self, rows: NDArray[np.int64]) -> PricePath:
        """Return the path for rows of these generations; an empty path if there is none."""
        return PricePath(rows.copy()) if self.path is None else self.path.of_rows(rows)

    def follow(self, moved: NDArray[np.int64], before: NDArray[np.int64], matrix: BlockMatrix) -> None:
        """Renumber the state after slabs have moved; the basis names blocks by slots, so it is dropped."""
        super().follow(moved, before, matrix)
        self.basis = self.vertex = self.program = None
