"""The feasibility pump: alternate between rounding and the nearest point of the relaxation (M7)."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from copter.methods.integer.fixing import by_certainty, fix_in_order
from copter.methods.integer.problem import IntegerProblem
from copter.methods.integer.relaxation import Relaxation

Floats = NDArray[np.float64]

ROUNDS = 25  # most rounds of rounding and projection
FLIPS = (10, 30)  # least and most columns moved at random when rounding returns to the same point


def pump(problem: IntegerProblem, relaxation: Relaxation, x: Floats, rng: np.random.Generator) -> bool:
    """Run the feasibility pump (M7) from a relaxation's point `x`; returns whether it found a better integer point."""
    integers, root = problem.integers, problem.root
    before: Floats | None = None
    for _ in range(ROUNDS):
        if problem.clock.expired:
            return False
        fixed = fix_in_order(problem, root, x, by_certainty(root, x), restarts=2)
        if fixed is not None and relaxation.complete(fixed, "feasibility pump"):
            return True
        rounded = np.clip(np.round(x[integers]), root.lower[integers], root.upper[integers])
        if before is not None and np.array_equal(rounded, before):
            rounded = flipped(rounded, x[integers], root.lower[integers], root.upper[integers], rng)
        before = rounded
        cost = np.zeros(problem.n)
        cost[integers] = np.where(
            rounded <= root.lower[integers], 1.0, np.where(rounded >= root.upper[integers], -1.0, 0.0)
        )
        relaxed = relaxation.solve(root, cost, guide=True)
        if relaxed.x is None:
            return False
        x = relaxed.x
    return False


def flipped(rounded: Floats, x: Floats, lower: Floats, upper: Floats, rng: np.random.Generator) -> Floats:
    """Return the rounding, with its least certain columns moved by one towards their values."""
    count = min(int(rng.integers(*FLIPS)), len(rounded))
    chosen = np.argsort(-np.abs(x - rounded) - 1e-3 * rng.random(len(x)))[:count]
    moved = rounded.copy()
    step = np.where(x[chosen] > rounded[chosen], 1.0, np.where(x[chosen] < rounded[chosen], -1.0, 0.0))
    step[step == 0.0] = rng.choice((-1.0, 1.0), int((step == 0.0).sum()))
    moved[chosen] = np.clip(rounded[chosen] + step, lower[chosen], upper[chosen])
    return moved
