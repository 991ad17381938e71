"""The thesis's method (4.3.2): proximal steps, each solved by primal coordinate descent over all columns.

`Settings(method="coordinate_descent")` takes them. It is a baseline to compare with: small, and without a
factorisation, a working set or Newton's method. Nothing is chosen by prices: every column of every request is swept.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from copter.methods.proximal.newton import Rows
from copter.methods.proximal.pricing import Priced
from copter.methods.proximal.solve import Solve
from copter.methods.proximal.sweep import Sweep
from copter.methods.proximal.working_set import WorkingSet
from copter.model.matrix import BlockMatrix
from copter.problem.residuals import Residuals
from copter.problem.solution import Status

Floats = NDArray[np.float64]
Ints = NDArray[np.int32]

SIGMA = 100.0  # proximal parameter, in units of a column's range divided by its cost
PENALTY = 1e4  # stiffness of the rows, relative to the proximal term's curvature
SWEEPS = 200  # most sweeps of one proximal step
ACTIVE_SWEEPS = 10  # sweeps over the active columns between two over all
MARGIN = 0.01  # a column at rest is active up to this gradient, as a share of the largest cost
SETTLED = 0.01  # a subproblem ends where the last sweep over all has steps below this share of the first one's


class CoordinateDescent(Solve):
    """A solve by proximal steps of coordinate descent; a pass over all columns after each has the bound.

    It starts from the last round's x and prices. It finds no certificate: a program without an optimum ends with
    ITERATION_LIMIT or TIME_LIMIT.
    """

    def begin(self) -> None:
        """Follow the edits, and take in every column."""
        iterate = self.iterate
        iterate.refresh(self.matrix)
        all_columns(self.matrix, iterate.ws)
        self.rows, iterate.sigma = iterate.rows(self.matrix), SIGMA

    def goes_ahead(self) -> bool:
        """Return False: a pass comes first, which tells whether anything has to be done."""
        return False

    def improve(self, residuals: Residuals) -> Status | None:
        """Take one proximal step."""
        iterate = self.iterate
        self.by = self.choice
        iterate.y, sweeps = proximal_step(iterate.ws, self.rows, iterate.y, iterate.sigma, SWEEPS, self.must_stop)
        self.proximal_steps += 1
        self.newton_steps += sweeps
        return None

    def finish(self, residuals: Residuals, best: Priced) -> Residuals:
        """Return the residuals of the point as it is: all columns stay for the next round."""
        self.iterate.cold = False
        return residuals


def all_columns(matrix: BlockMatrix, ws: WorkingSet) -> None:
    """Take every column of every request into the set, new ones at their lower bounds; x of the others stays."""
    none = np.zeros(0, dtype=np.int64)
    slots = matrix.followed(none, none)[1]
    sizes = matrix.sizes_of(slots)
    if ws.size == int(sizes.sum()):
        return
    slot = np.repeat(slots, sizes)
    first = np.repeat(np.cumsum(sizes) - sizes, sizes)
    ws.grow(matrix, slot, (np.arange(len(slot)) - first).astype(np.int32))


def proximal_step(
    ws: WorkingSet, rows: Rows, y: Floats, sigma: float, sweeps: int, stop: Callable[[], bool]
) -> tuple[Floats, int]:
    """Take one step of the proximal method of multipliers from ws.x and y (equations A10, A11).

    ws.x moves in place to the minimum of the augmented Lagrangian with the proximal term around its old value. Sweeps
    over all columns find the active ones; sweeps over these follow, until none of them moves much.

    Returns
    -------
    y : ndarray (m,)
        The multipliers there.
    sweeps : int
        How many sweeps were made, over all or the active columns.
    """
    penalty = PENALTY / (sigma * rows.scale**2)
    passes = Sweep(ws.groups(), rows.lower, rows.upper, penalty, ws.x.copy(), sigma, ws.x)
    passes.begin(y)
    margin = MARGIN * float(np.abs(ws.cost).max(initial=0.0))
    first, done = 0.0, 0
    while done < sweeps and not stop():
        largest = passes.sweep_and_keep(margin)
        done += 1
        first = max(first, largest)
        if largest <= SETTLED * first:
            break
        for _ in range(ACTIVE_SWEEPS):
            done += 1
            if passes.sweep_active() <= SETTLED * first:
                break
    return passes.price.copy(), done
