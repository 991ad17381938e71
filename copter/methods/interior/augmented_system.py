"""The Newton system in augmented form: slower but more accurate than the normal equations (equation I13)."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from copter.methods.interior.column_equations import REFINEMENTS
from copter.methods.interior.sparse_lu import SparseLU
from copter.problem.sums import norm
from copter.runtime.watch import Stopped

Floats = NDArray[np.float64]

MOST_AUGMENTED = 1_000_000  # programs with more entries are not solved by this system
SLOPE = 1e-12  # added to each row's diagonal entry, so that dependent rows do not make the system singular
ACCURATE = 1e-14  # relative residual at which refinement ends


class AugmentedSystem:
    """The matrix [-I, D A'; A D, slope I] with D = sqrt(theta), factorised by SuperLU with pivoting.

    Its condition number is the root of that of the normal equations, and it gives the step in t without cancellation.
    """

    def __init__(self, matrix: sp.csr_array, must_stop: Callable[[], bool] | None = None) -> None:
        self.must_stop = must_stop
        self.matrix = sp.csc_array(matrix)
        self.root: Floats = np.ones(matrix.shape[1])
        self.scaled = self.matrix

    def factorise(self, theta: Floats, delta: float) -> None:
        """Factorise for this theta."""
        m, n = self.matrix.shape
        self.root = np.sqrt(theta)
        self.scaled = sp.csc_array(self.matrix @ sp.diags_array(self.root))
        blocks = [[-sp.eye_array(n), self.scaled.T], [self.scaled, SLOPE * sp.eye_array(m)]]
        whole = sp.csc_matrix(sp.block_array(blocks))
        self.factor = SparseLU(whole, self.must_stop)

    def step(self, short: Floats, known: Floats, rough: bool = False) -> tuple[Floats, Floats]:
        """Return (dt, dy) with A dt = short and A'dy - dt / theta = known."""
        n = len(known)
        upper, lower = self.root * known, short
        u, dy = np.zeros(n), np.zeros(len(short))
        size = norm(np.concatenate((upper, lower)))
        for _ in range(REFINEMENTS):
            if self.must_stop is not None and self.must_stop():
                raise Stopped
            one = upper + u - self.scaled.T @ dy
            other = lower - self.scaled @ u
            if norm(np.concatenate((one, other))) <= ACCURATE * size:
                break
            correction = self.factor.solve(np.concatenate((one, other)))
            u, dy = u + correction[:n], dy + correction[n:]
        return self.root * u, dy

    def solve(self, right: Floats) -> Floats:
        """Return y with A diag(theta) A' y = right."""
        return self.step(right, np.zeros(self.matrix.shape[1]))[1]
