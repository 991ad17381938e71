"""Coordinate descent over the working set: cheap estimates of the active set and prices, without factorisation."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from copter.methods.proximal.newton import Rows
from copter.methods.proximal.sweep import Sweep
from copter.methods.proximal.working_set import WorkingSet

Floats = NDArray[np.float64]

SWEEPS_PER_MULTIPLIER_STEP = 2  # sweeps between two updates of the row prices
PENALTY = 100.0  # stiffness of the rows, relative to the proximal term's curvature
SMALL_MOVE = 1e-9  # sweeps end when the largest step is below this


def descend(ws: WorkingSet, rows: Rows, y: Floats, sigma: float, sweeps: int) -> Floats:
    """Sweep over the augmented Lagrangian of the proximal subproblem centered at ws.x (equations A10-A11).

    ws.x moves in place; the prices after the last multiplier step are returned. Every sweep costs one pass over the
    working columns; the blocks' own limits and bounds hold throughout.
    """
    passes = Sweep(ws.groups(), rows.lower, rows.upper, PENALTY / (sigma * rows.scale**2), ws.x.copy(), sigma, ws.x)
    passes.begin(y)
    for done in range(1, sweeps + 1):
        largest = passes.sweep()
        if done % SWEEPS_PER_MULTIPLIER_STEP == 0 or largest < SMALL_MOVE:
            y = passes.price.copy()
            passes.begin(y)
            if largest < SMALL_MOVE:
                break
    return y
