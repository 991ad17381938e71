"""A family's round as one LP in NumPy, and what every peer does with it."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import scipy.sparse as sp
from families.protocol import Family, Floats, Ints
from judge import Point


@dataclass(frozen=True, slots=True)
class Answer:
    """One solve of a peer; x (n k,) and prices (rows,) where it found a point."""

    optimal: bool
    status: str
    objective: float
    solve_s: float
    iterations: int
    x: Floats | None = None
    price: Floats | None = None


def point_of(family: Family, answer: Answer) -> Point | None:
    """An answer in the judge's terms."""
    if answer.x is None or answer.price is None:
        return None
    at = np.flatnonzero(answer.x)
    return Point(at // family.columns, at % family.columns, answer.x[at], answer.price)


def entries(family: Family, at: Ints, first_row: int) -> tuple[Ints, Ints, Floats]:
    """(start, row, value) by columns of some requests; their limits' rows are first_row, first_row + 1, ..."""
    row, value = family.pattern(at)
    m, k = len(at), family.columns
    row = np.broadcast_to(row, (m, *row.shape[1:]))
    value = np.broadcast_to(value, (m, *value.shape[1:]))
    limit_row = np.broadcast_to(first_row + np.arange(m)[:, None, None], (m, k, 1))
    row = np.concatenate((row, limit_row), axis=2).reshape(m * k, -1)
    value = np.concatenate((value, np.ones((m, k, 1))), axis=2).reshape(m * k, -1)
    kept = value != 0
    start = np.concatenate(([0], np.cumsum(kept.sum(axis=1))))
    return start, row[kept], value[kept]


def matrix_of(family: Family) -> sp.csc_array:
    """All rows: resources, then limits in the requests' order."""
    n, rows = len(family.requests), len(family.capacity)
    start, row, value = entries(family, np.arange(n), rows)
    return sp.csc_array((value, row, start), shape=(rows + n, n * family.columns))


@dataclass
class Snapshot:
    """What a peer has been told: requests, costs (n, k), limits and capacities."""

    requests: Ints = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    cost: Floats = field(default_factory=lambda: np.zeros((0, 1)))
    limits: Floats = field(default_factory=lambda: np.zeros(0))
    capacity: Floats = field(default_factory=lambda: np.zeros(0))

    @classmethod
    def of(cls, family: Family) -> Snapshot:
        """The family as it is now."""
        everything = slice(0, len(family.requests))
        return cls(family.requests.copy(), family.costs(everything), family.limits.copy(), family.capacity.copy())

    def kept(self, family: Family) -> tuple[Ints, Ints]:
        """Places of surviving requests here and in the family (ids only grow, so both rise)."""
        _, here, there = np.intersect1d(self.requests, family.requests, assume_unique=True, return_indices=True)
        return here, there
