"""Every whole plan of a small model, in exact arithmetic: the best there is, or that there is none."""

from __future__ import annotations

from fractions import Fraction
from itertools import product

import numpy as np

from copter import LinearProgram, Model, Status
from tests.copter.exact import exact

MOST = 12  # units of a column that are tried
COMBINATIONS = 4_000
ROUNDING = 1e-12  # of sides that are taken for decimals, beside coefficients that are not


def whole_plans(lp: LinearProgram) -> list[tuple[int, ...]] | None:
    """All whole parts that the bounds of columns allow; None where there are too many."""
    ranges, count = [], 1
    for j in np.flatnonzero(lp.integrality):
        low, high = np.ceil(lp.col_lower[j]), np.floor(lp.col_upper[j])
        if not high - low <= MOST:
            return None
        ranges.append(range(int(low), int(high) + 1))
        count *= len(ranges[-1])
    return list(product(*ranges)) if count <= COMBINATIONS else None


def decimal(value: float) -> Fraction:
    """The decimal that a number is written as."""
    return Fraction(repr(float(value)))


def best_plan(model: Model) -> tuple[bool, Fraction | None] | None:
    """(whether there is a plan, the best objective; None: without end); None where there are too many plans to try.

    Figures are the decimals that they are written as, which is what the check of a plan takes them for.
    """
    lp = model.to_linear_program()
    plans = whole_plans(lp)
    if plans is None:
        return None
    whole, part = np.flatnonzero(lp.integrality), np.flatnonzero(~lp.integrality)
    dense = [[decimal(v) for v in row] for row in lp.A.toarray()]
    cost, sign = [decimal(v) for v in lp.c], 1 if lp.sense == "min" else -1
    best: Fraction | None = None
    found = False
    for values in plans:
        used = [sum((row[j] * v for j, v in zip(whole, values, strict=True) if v), Fraction(0)) for row in dense]
        worth = sum((cost[j] * v for j, v in zip(whole, values, strict=True)), decimal(lp.offset))
        if len(part):
            low = [
                b if np.isinf(b) else float(decimal(b) - u) - ROUNDING for b, u in zip(lp.row_lower, used, strict=True)
            ]
            high = [
                b if np.isinf(b) else float(decimal(b) - u) + ROUNDING for b, u in zip(lp.row_upper, used, strict=True)
            ]
            rest = LinearProgram(
                lp.c[part], lp.A[:, part], low, high, lp.col_lower[part], lp.col_upper[part], sense=lp.sense
            )
            status, value = exact(rest)
            if status is Status.PRIMAL_INFEASIBLE:
                continue
            if status is Status.DUAL_INFEASIBLE:
                return True, None
            assert value is not None
            worth += value
        elif not all(
            (np.isinf(low) or u >= decimal(low)) and (np.isinf(high) or u <= decimal(high))
            for u, low, high in zip(used, lp.row_lower, lp.row_upper, strict=True)
        ):
            continue
        found = True
        if best is None or sign * worth < sign * best:
            best = worth
    return found, best
