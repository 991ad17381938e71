"""The independent judge: NumPy alone, from a family's own arrays; it shares no code with any solver."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from families.protocol import Family, Floats, Ints

CHUNK = 1_000_000  # columns judged at once


@dataclass(frozen=True, slots=True)
class Judged:
    """What the judge finds of one answer.

    Attributes
    ----------
    objective, bound : float
        Value of x; value of the dual function at the prices (negative prices are taken as zero, and held against them).
    gap : float
        |objective - bound| / (1 + |objective| + |bound|).
    violation : float
        Largest violation of a row, a limit, a bound, or a price's sign, absolute.
    relative_violation : float
        Norm of the violations of rows and limits over 1 + norm of their right-hand sides.
    """

    objective: float
    bound: float
    gap: float
    violation: float
    relative_violation: float


@dataclass(frozen=True, slots=True)
class Point:
    """Values of columns that are not zero: the request's place in the family's order, its column, x; prices (rows,)."""

    place: Ints
    column: Ints
    x: Floats
    price: Floats


def judge(family: Family, point: Point) -> Judged:
    """Recompute objective, certified bound, gap and violations of a point."""
    n, k, rows = len(family.requests), family.columns, len(family.capacity)
    price = np.maximum(point.price, 0.0)
    bound, objective, activity = float(family.capacity @ price), 0.0, np.zeros(rows)
    order = np.argsort(point.place, kind="stable")
    place, column, x = point.place[order], point.column[order], point.x[order]
    step = max(1, CHUNK // k)
    for first in range(0, n, step):
        at = slice(first, min(first + step, n))
        cost, (row, coefficient) = family.costs(at), family.pattern(at)
        value = (cost - np.einsum("mkh,mkh->mk", coefficient, price[row])).max(axis=1)
        bound += float(family.limits[at] @ np.maximum(value, 0.0))
        here = slice(*np.searchsorted(place, [at.start, at.stop]).tolist())
        local, own = place[here] - first, column[here]
        objective += float(cost[local, own] @ x[here])
        pattern = 0 if len(row) == 1 else local
        use = coefficient[pattern, own] * x[here][:, None]
        activity += np.bincount(row[pattern, own].ravel(), weights=use.ravel(), minlength=rows)
    total = np.bincount(place, weights=x, minlength=n)
    over = np.concatenate((np.maximum(activity - family.capacity, 0.0), np.maximum(total - family.limits, 0.0)))
    size = float(np.sqrt(family.capacity @ family.capacity + family.limits @ family.limits))
    worst = max(
        float(over.max(initial=0.0)),
        float((-x).max(initial=0.0)),
        float((x - family.limits[place]).max(initial=0.0)),
        float((-point.price).max(initial=0.0)),
    )
    return Judged(
        objective=objective,
        bound=bound,
        gap=abs(objective - bound) / (1.0 + abs(objective) + abs(bound)),
        violation=worst,
        relative_violation=float(np.linalg.norm(over)) / (1.0 + size),
    )


def plan_value(family: Family, columns: Ints) -> float:
    """Value of a whole plan (a column for every request in order, -1 for none); ValueError if it over-commits."""
    taken = np.flatnonzero(columns >= 0)
    activity, value = np.zeros(len(family.capacity)), 0.0
    step = max(1, CHUNK // family.columns)
    for first in range(0, len(taken), step):
        at = taken[first : first + step]
        row, coefficient = family.pattern(at)
        pattern = 0 if len(row) == 1 else np.arange(len(at))
        own = columns[at]
        value += float(family.costs(at)[np.arange(len(at)), own].sum())
        weight = coefficient[pattern, own]
        activity += np.bincount(row[pattern, own].ravel(), weights=weight.ravel(), minlength=len(activity))
    over = activity - family.capacity
    if np.any(over > 1e-9 * (1.0 + family.capacity)):
        at = int(np.argmax(over))
        raise ValueError(f"the whole plan over-commits resource {at}: {activity[at]} of {family.capacity[at]}")
    return value
