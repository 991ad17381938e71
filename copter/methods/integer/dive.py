"""LP-guided dive: fix the columns that the relaxation suggests most clearly, re-solve, and backtrack on failure
(M5).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from copter.methods.integer.fixing import by_certainty, fix_in_order
from copter.methods.integer.problem import Domain, IntegerProblem
from copter.methods.integer.relaxation import Relaxation

Floats = NDArray[np.float64]

SHARE = 0.25  # share of the fractional columns that one batch fixes before the next relaxation
SHRINK = 0.2  # factor on the size of a batch after a failed one
WHOLE = 1e-5  # a value this close to a whole number counts as whole
PASSES = 60  # most relaxations of one dive
STEPS_BACK = 8  # most times that a dive undoes a batch of fixed columns before it gives up
TIME_SHARE = 0.3  # share of the time left that one dive may take


def dive(
    problem: IntegerProblem,
    relaxation: Relaxation,
    domain: Domain,
    x: Floats,
    found_by: str,
    lean: Floats | None = None,
) -> bool:
    """Dive from a relaxation's point; returns whether a better point was found.

    `lean`: a point towards which columns are rounded; by default they are rounded to the nearest whole number.
    """
    result, share, steps_back = False, SHARE, 0
    until = problem.clock.elapsed_s + TIME_SHARE * problem.clock.left_s
    for step in range(PASSES):
        if problem.clock.expired or problem.clock.elapsed_s > until or relaxation.over():
            break
        if step % 4 == 0:
            rounded = fix_in_order(problem, domain, x, by_certainty(domain, x), restarts=2)
            result = (rounded is not None and relaxation.complete(rounded, found_by)) or result
        columns = domain.open()
        fractional = columns[np.abs(x[columns] - np.round(x[columns])) > WHOLE]
        if len(fractional) == 0:
            whole = fix_in_order(problem, domain, x, by_certainty(domain, x), restarts=0)
            return (whole is not None and relaxation.complete(whole, found_by)) or result
        target = x if lean is None else np.where(lean >= x, np.ceil(x), np.floor(x))
        batch = surest(domain, x, target, columns, fractional, share)
        deeper = fix_batch(domain, target, batch)
        relaxed = None if deeper is None else relaxation.solve(deeper, guide=True)
        if deeper is None or relaxed is None or relaxed.infeasible:
            steps_back += 1
            if steps_back > STEPS_BACK:
                break
            if len(batch) > 1:
                share = SHRINK * share if len(fractional) * share >= 1.0 else 0.0
                continue
            deeper = other_side(domain, int(batch[0]), float(np.round(target[batch[0]])), float(x[batch[0]]))
            if deeper is None:
                break
            relaxed = relaxation.solve(deeper, guide=True)
        if relaxed.x is None:
            break
        domain, x, share = deeper, relaxed.x, min(SHARE, 2.0 * share + 0.01)
    return result


def surest(
    domain: Domain,
    x: Floats,
    target: Floats,
    columns: NDArray[np.intp],
    fractional: NDArray[np.intp],
    share: float,
) -> NDArray[np.intp]:
    """Return the columns to fix next: a share of the fractional ones, then integral ones above their lower bound.

    With a share of zero a single column is returned.
    """
    rounded = np.round(target[fractional])
    ranked = fractional[np.lexsort((np.abs(x[fractional] - rounded), rounded <= x[fractional]))]
    if share == 0.0:
        return ranked[:1]
    settled = columns[(np.abs(x[columns] - np.round(x[columns])) <= WHOLE) & (x[columns] > domain.lower[columns] + 0.5)]
    return np.concatenate((ranked[: max(1, int(share * len(ranked)))], settled))


def fix_batch(domain: Domain, x: Floats, batch: NDArray[np.intp]) -> Domain | None:
    """Return the domain with the batch of columns fixed near their values; None if one cannot be fixed."""
    deeper = domain.copy()
    return deeper if deeper.fix_all(batch.astype(np.int64), x) == len(batch) else None


def other_side(domain: Domain, column: int, rounded: float, value: float) -> Domain | None:
    """Return the domain that excludes the whole number to which a column was rounded."""
    trial = domain.copy()
    holds = (
        trial.restrict(column, -np.inf, rounded - 1) if rounded > value else trial.restrict(column, rounded + 1, np.inf)
    )
    return trial if holds else None
