"""LP-guided dive: fix what the relaxation is surest of, solve again, and step back once where that was wrong (M5)."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from copter.integer.fixing import by_certainty, fix_in_order, fix_near
from copter.integer.problem import Domain, IntegerProblem
from copter.integer.relaxation import Relaxation

Floats = NDArray[np.float64]

SHARE = 0.25  # of the fractional columns that are fixed before the next relaxation
WHOLE = 1e-5  # a value this close to a whole number is one
PASSES = 40  # relaxations of one dive


def dive(problem: IntegerProblem, relaxation: Relaxation, domain: Domain, x: Floats, found_by: str) -> bool:
    """Dive from a relaxation's point; whether a better point was found."""
    found = stepped_back = False
    for step in range(PASSES):
        if problem.clock.expired:
            break
        if step % 4 == 0:
            rounded = fix_in_order(problem, domain, x, by_certainty(domain, x), restarts=2)
            found = (rounded is not None and relaxation.complete(rounded, found_by)) or found
        columns = domain.open()
        fractional = columns[np.abs(x[columns] - np.round(x[columns])) > WHOLE]
        if len(fractional) == 0:
            whole = fix_in_order(problem, domain, x, by_certainty(domain, x), restarts=0)
            return (whole is not None and relaxation.complete(whole, found_by)) or found
        batch = surest(domain, x, columns, fractional)
        deeper = fix_batch(domain, x, batch)
        relaxed = None if deeper is None else relaxation.solve(deeper)
        if relaxed is None or relaxed.infeasible:
            opposite = other_side(domain, int(batch[0]), float(x[batch[0]]))
            if stepped_back or opposite is None:
                break
            stepped_back = True
            deeper, relaxed = opposite, relaxation.solve(opposite)
        if deeper is None or relaxed.x is None:
            break
        domain, x = deeper, relaxed.x
    return found


def surest(domain: Domain, x: Floats, columns: NDArray[np.intp], fractional: NDArray[np.intp]) -> NDArray[np.intp]:
    """Columns to fix next: a share of the fractional ones, then those that are whole and off their lower bound."""
    distance = np.abs(x[fractional] - np.round(x[fractional]))
    up = np.round(x[fractional]) > x[fractional]
    count = max(1, int(SHARE * len(fractional)))
    chosen = fractional[np.lexsort((distance, ~up))][:count]
    settled = columns[(np.abs(x[columns] - np.round(x[columns])) <= WHOLE) & (x[columns] > domain.lower[columns] + 0.5)]
    return np.concatenate((chosen, settled))


def fix_batch(domain: Domain, x: Floats, batch: NDArray[np.intp]) -> Domain | None:
    """The domain with the batch fixed, each near its value as far as the ones before allow; None if one cannot be."""
    deeper: Domain | None = domain
    for column in batch.tolist():
        if deeper is not None and deeper.lower[column] < deeper.upper[column]:
            deeper = fix_near(deeper, column, float(x[column]))
    return deeper


def other_side(domain: Domain, column: int, value: float) -> Domain | None:
    """The domain with a column kept from the value that it would have been rounded to."""
    rounded, trial = float(np.round(value)), domain.copy()
    if rounded >= value:
        return trial if trial.restrict(column, -np.inf, rounded - 1.0) else None
    return trial if trial.restrict(column, rounded + 1.0, np.inf) else None
