"""Fixing integer columns one by one near a point's values, with propagation after each (M3)."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from copter.methods.integer.problem import Domain, IntegerProblem

Floats = NDArray[np.float64]

RESTARTS = 12  # most restarts with a column that had no feasible value moved to the front


def fix_in_order(
    problem: IntegerProblem,
    domain: Domain,
    target: Floats,
    order: NDArray[np.intp],
    restarts: int = RESTARTS,
    until: float = np.inf,
) -> Domain | None:
    """Fix the columns in this order near their targets; None if a column has no value left or time is up.

    Time is up when the problem's clock has run out, or shows more than `until`.

    If a column's nearest value contradicts a row, the next value on the other side is tried. If that fails too,
    everything starts again with this column first.
    """
    columns = order.astype(np.int64)
    for _ in range(restarts + 1):
        if problem.clock.expired or problem.clock.elapsed_s > until:
            return None
        trial = domain.copy()
        failed = trial.fix_all(columns, target)
        if failed == len(columns):
            return trial
        columns[: failed + 1] = np.roll(columns[: failed + 1], 1)
    return None


def by_certainty(domain: Domain, x: Floats) -> NDArray[np.intp]:
    """Return the open columns: first those at a whole number above their lower bound, then by distance from one."""
    columns = domain.open()
    distance = np.abs(x[columns] - np.round(x[columns]))
    at_rest = np.round(x[columns]) == domain.lower[columns]
    return columns[np.lexsort((distance, at_rest))]


def by_value(domain: Domain, x: Floats) -> NDArray[np.intp]:
    """Return the open columns, those furthest above their lower bound first."""
    columns = domain.open()
    return columns[np.argsort(domain.lower[columns] - x[columns], kind="stable")]


def randomly_rounded(domain: Domain, x: Floats, rng: np.random.Generator) -> Floats:
    """Return a point whose integer columns are rounded up with the probability of their fractional part."""
    target = x.copy()
    columns = domain.problem.integers
    target[columns] = np.floor(x[columns] + rng.random(len(columns)))
    return target
