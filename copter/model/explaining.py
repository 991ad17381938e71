"""Facts that explain what a request was given: its columns, prices, and the effect of a resource's count."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from copter.problem.explanation import CapacityEffect, Facts

if TYPE_CHECKING:
    from copter.model.ledger import Ledger

Floats = NDArray[np.float64]
Keys = NDArray[np.int64]

MOST = 500  # an explanation solves a basis with at most this many fractional columns or tight rows
SLACK = 1e-7  # a value this close to a bound, in units of 1 + |bound|, is at it
SOLVED = 1e-6  # largest residual with which the basis's equations count as solved


def facts_of(
    ledger: Ledger,
    request: Hashable,
    key: Keys,
    x: Floats,
    y: Floats,
    limit_dual: float,
    capacity: Mapping[Hashable, CapacityEffect] | None = None,
) -> Facts:
    """Return the facts about one request in a solution of the current model.

    Parameters
    ----------
    ledger : Ledger
    request : hashable
    key, x : ndarray (k,)
        Working columns and their values.
    y : ndarray (rows,)
        Prices by row slot, in the signs of the model's sense.
    limit_dual : float
    capacity : mapping, optional
        Effects of the counts, if already computed; then only this request is read.
    """
    matrix, slot = ledger.matrix, ledger.slot(request)
    template = matrix.slabs[slot].template
    start, row, units = template.column_start, template.row, template.coefficient
    used = np.unique(row)
    usage = np.zeros((template.n_columns, len(used)))
    owner = np.repeat(np.arange(template.n_columns), np.diff(start))
    np.add.at(usage, (owner, np.searchsorted(used, row)), units)
    lower, _ = matrix.bounds_of(slot)
    value = np.array(lower)
    first, last = np.searchsorted(key, [slot << 32, (slot + 1) << 32])
    value[key[first:last] & 0xFFFFFFFF] = x[first:last]
    resource_at = {place: resource for resource, place in ledger.row_of.items()}
    resources = [resource_at[int(place)] for place in used]
    idle = not lower.any() and not matrix.least_of(slot) > 0.0
    if capacity is None:
        capacity = capacity_effects(ledger, slot, key, x, y, dict(zip(used.tolist(), resources, strict=True)))
    return Facts(
        -float(ledger.sign),
        ledger.sign * np.asarray(matrix.costs_of(slot)) + 0.0,
        value,
        resources,
        usage,
        y[used],
        limit_dual,
        idle,
        capacity,
    )


@dataclass(frozen=True, slots=True)
class Vertex:
    """The fractional columns of a solution and the equations that determine them.

    Attributes
    ----------
    key, x : ndarray (k,)
    entries : ndarray (rows, k)
        Coefficients of these columns in all resource rows.
    lower, upper : ndarray (k,)
    tight : ndarray (t,)
        Rows that are at a bound.
    equations : ndarray (t + sums, k)
        The tight rows, then the sums of requests that are at their limits.
    free_sums : list of (columns, room down to the least sum, room up to the limit)
    """

    key: Keys
    x: Floats
    entries: Floats
    lower: Floats
    upper: Floats
    tight: NDArray[np.intp]
    equations: Floats
    free_sums: list[tuple[NDArray[np.intp], float, float]]


def capacity_effects(
    ledger: Ledger, slot: int, key: Keys, x: Floats, y: Floats, named: dict[int, Hashable]
) -> dict[Hashable, CapacityEffect]:
    """Return how a request's columns change with the count of each priced resource; empty without a basis."""
    matrix = ledger.matrix
    vertex = None if matrix.n_with_rows else vertex_of(ledger, key, x, y)
    if vertex is None:
        return {}
    activity = activity_of(ledger, key, x)
    effects: dict[Hashable, CapacityEffect] = {}
    own = np.flatnonzero(vertex.key >> 32 == slot)
    for place, resource in named.items():
        at = np.flatnonzero(vertex.tight == place)
        if not len(at) or not np.isfinite(matrix.row_upper[place]):
            continue
        least = float(matrix.row_lower[place])
        if ledger.sign * y[place] > 0.0:  # the lower bound binds, which a change of the count leaves where it is
            effects[resource] = CapacityEffect({}, least, np.inf)
            continue
        right = np.zeros(len(vertex.equations))
        right[at] = 1.0
        step = np.asarray(np.linalg.lstsq(vertex.equations, right, rcond=None)[0], dtype=np.float64)
        if len(right) and np.abs(vertex.equations @ step - right).max() > SOLVED:
            down, up, step = 0.0, 0.0, np.zeros_like(step)  # degenerate: any change of the count changes the basis
        else:
            down, up = reach(matrix, vertex, step, activity, place)
        rates = {int(vertex.key[j] & 0xFFFFFFFF): float(step[j]) for j in own if abs(step[j]) > SOLVED}
        count = float(matrix.row_upper[place])
        effects[resource] = CapacityEffect(rates, max(count + down, least), count + up)
    return effects


def vertex_of(ledger: Ledger, key: Keys, x: Floats, y: Floats) -> Vertex | None:
    """Return the fractional columns with their equations; None if there are too many or they are not unique."""
    matrix = ledger.matrix
    slots = (key >> 32).astype(np.int32)
    wanted = np.flatnonzero(x > 0.0)
    lower, upper = np.empty(len(key)), np.empty(len(key))
    inside: list[int] = []
    for at in wanted.tolist():
        low, high = matrix.bounds_of(int(slots[at]))
        column = int(key[at] & 0xFFFFFFFF)
        lower[at], upper[at] = low[column], high[column]
        if x[at] > low[column] + SLACK * (1.0 + abs(low[column])) and x[at] < high[column] - SLACK * (1.0 + abs(x[at])):
            inside.append(at)
    # A single column that fills its request's limit is not counted: it can move only together with another column.
    sums: dict[int, list[int]] = {}
    for at in inside:
        sums.setdefault(int(slots[at]), []).append(at)
    held: list[tuple[list[int], float, float]] = []
    free: list[tuple[list[int], float, float]] = []
    kept: list[int] = []
    for slot, members in sums.items():
        whole = wanted[slots[wanted] == slot]
        total, limit, least = float(x[whole].sum()), float(matrix.limit_of(slot)), float(matrix.least_of(slot))
        at_limit = total >= limit - SLACK * (1.0 + abs(limit)) or total <= least + SLACK * (1.0 + abs(least))
        if at_limit and len(members) == 1:
            continue
        kept += members
        (held if at_limit else free).append((members, least - total, limit - total))
    if len(kept) > MOST:
        return None
    place = {at: j for j, at in enumerate(kept)}
    entries = np.zeros((matrix.n_rows, len(kept)))
    for at, j in place.items():
        template = matrix.slabs[int(slots[at])].template
        column = int(key[at] & 0xFFFFFFFF)
        part = slice(int(template.column_start[column]), int(template.column_start[column + 1]))
        entries[template.row[part], j] += template.coefficient[part]
    tight = np.flatnonzero(np.abs(y) > SLACK * (1.0 + np.abs(y).max(initial=0.0)))
    if len(tight) > MOST:
        return None
    rows = [entries[tight]]
    for members, _, _ in held:
        one = np.zeros((1, len(kept)))
        one[0, [place[at] for at in members]] = 1.0
        rows.append(one)
    equations = np.vstack(rows)
    if len(kept) and np.linalg.matrix_rank(equations) < len(kept):
        return None
    chosen = np.array(kept, dtype=np.intp)
    loose = [(np.array([place[at] for at in members]), low, high) for members, low, high in free]
    return Vertex(key[chosen], x[chosen], entries, lower[chosen], upper[chosen], tight, equations, loose)


def activity_of(ledger: Ledger, key: Keys, x: Floats) -> Floats:
    """Return the usage of every row by the working columns, (rows,)."""
    matrix = ledger.matrix
    activity = np.zeros(matrix.n_rows)
    for at in np.flatnonzero(x).tolist():
        template = matrix.slabs[int(key[at] >> 32)].template
        column = int(key[at] & 0xFFFFFFFF)
        part = slice(int(template.column_start[column]), int(template.column_start[column + 1]))
        np.add.at(activity, template.row[part], template.coefficient[part] * x[at])
    return activity


def reach(matrix: object, vertex: Vertex, step: Floats, activity: Floats, place: int) -> tuple[float, float]:
    """Return the (negative) fall and the rise of a row's count until a column, a sum or another row reaches a bound."""
    moves = vertex.entries @ step
    moves[vertex.tight] = 0.0
    row_lower, row_upper = matrix.row_lower[: len(moves)], matrix.row_upper[: len(moves)]  # type: ignore[attr-defined]
    rates = [step, moves, *(np.array([step[members].sum()]) for members, _, _ in vertex.free_sums)]
    below = [vertex.lower - vertex.x, row_lower - activity, *(np.array([low]) for _, low, _ in vertex.free_sums)]
    above = [vertex.upper - vertex.x, row_upper - activity, *(np.array([high]) for _, _, high in vertex.free_sums)]
    rate, low, high = (np.concatenate(parts) for parts in (rates, below, above))
    moving = np.abs(rate) > SOLVED
    rate, low, high = rate[moving], np.minimum(low[moving], 0.0), np.maximum(high[moving], 0.0)
    up = np.where(rate > 0.0, high / rate, low / rate).min(initial=np.inf)
    down = np.where(rate > 0.0, low / rate, high / rate).max(initial=-np.inf)
    return float(down), float(up)
