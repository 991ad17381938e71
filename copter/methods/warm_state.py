"""The state that a session keeps between rounds, with one object per method."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from copter.methods.blocks.basis import BlockWarmBasis
from copter.methods.blocks.program import BlockProgram
from copter.methods.proximal.iterate import FIRST_SIGMA, Iterate
from copter.methods.simplex.resumed import Resumed
from copter.methods.simplex.rounds import Entries, RoundBasis
from copter.methods.worth.program import WorthProgram
from copter.model.matrix import BlockMatrix
from copter.model.matrix.changes import Mark


class WarmState(Iterate):
    """The point shared by all methods, and the bases for pivots.

    Attributes
    ----------
    basis : BlockWarmBasis or None
        None until a method needs one.
    vertex : RoundBasis or None
        Basis of a small model's whole program; None until it is solved by pivots.
    program : tuple or None
        The last whole program, its entries, and the mark of the edits at which it was the model's program.
    whole : Resumed
        The last optimum of the whole program, if the interior-point method or pivots have found one.
    version : int
        Version of the model for which the point was optimal; -1 for none.
    worths : WorthProgram or None
        The requests of a model with concave worths, side by side.
    mu : float
        Smoothing with which the last solve with concave worths has ended; infinite before.
    """

    def __init__(self, sigma: float = FIRST_SIGMA) -> None:
        super().__init__(sigma)
        self.basis: BlockWarmBasis | None = None
        self.vertex: RoundBasis | None = None
        self.program: tuple[BlockProgram, Entries, Mark] | None = None
        self.whole = Resumed()
        self.version = -1
        self.worths: WorthProgram | None = None
        self.mu = float("inf")

    def refresh_prices(self, matrix: BlockMatrix) -> None:
        """Follow edits of rows: those that are still there keep their prices."""
        generation = matrix.row_generation[: matrix.n_rows].copy()
        y, known = np.zeros(matrix.n_rows), min(len(self.y), matrix.n_rows)
        same = self.row_generation[:known] == generation[:known]
        y[:known][same] = self.y[:known][same]
        self.y, self.row_generation = y, generation

    def pivots(self) -> BlockWarmBasis:
        """Return the basis, created on first use."""
        self.basis = self.basis or BlockWarmBasis()
        return self.basis

    def rounds(self) -> RoundBasis:
        """Return the basis of the whole program, created on first use."""
        self.vertex = self.vertex or RoundBasis()
        return self.vertex

    def follow(self, moved: NDArray[np.int64], before: NDArray[np.int64], matrix: BlockMatrix) -> None:
        """Renumber the state after slabs have moved; the basis names blocks by slots, so it is dropped."""
        super().follow(moved, before, matrix)
        self.basis = self.vertex = self.program = self.worths = None
