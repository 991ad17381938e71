"""Families whose requests have patterns of their own: requests leave, others arrive, some are priced anew."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from copter import Model
from families.protocol import At, Floats, Ints

MANY = 200_000
Pattern = tuple[sp.csc_array, list[int]]
REPRICED = 2.5  # requests with new costs a round, for each request replaced


@dataclass(frozen=True, slots=True)
class Blocks:
    """New requests: costs (n, k), rows and coefficients (n, k, h) padded with zeros, limits (n,)."""

    cost: Floats
    row: Ints
    coefficient: Floats
    limit: Floats

    def usage(self, at: int) -> Pattern:
        """Usage of one request as a sparse matrix over the rows that it touches, and those rows."""
        column, entry = np.nonzero(self.coefficient[at])
        rows, place = np.unique(self.row[at, column, entry], return_inverse=True)
        start = np.concatenate(([0], np.cumsum(np.bincount(column, minlength=self.cost.shape[1]))))
        matrix = sp.csc_array(
            (self.coefficient[at, column, entry], place, start), shape=(len(rows), self.cost.shape[1])
        )
        return matrix, rows.tolist()


class BlockFamily:
    """Base of the generic families; a subclass says how a round is prepared.

    Parameters
    ----------
    blocks : Blocks
        The first round's requests.
    capacity : ndarray (rows,)
    churn : float
        Share of the requests replaced every round; 2.5 times as many get new costs.
    rng : Generator
    """

    integer = False
    shared_pattern = False

    def __init__(self, blocks: Blocks, capacity: Floats, churn: float, rng: np.random.Generator) -> None:
        self.rng, self.churn, self.capacity = rng, churn, capacity
        self.columns = blocks.cost.shape[1]
        self.model = Model(sense="max")
        for row, count in enumerate(capacity):
            self.model.add_resources(row, float(count))
        n = len(blocks.cost)
        self.cost, self.row, self.coefficient = blocks.cost, blocks.row, blocks.coefficient
        self.limits, self.place = blocks.limit, np.arange(n)  # place: of a request in the arrays above
        self.requests, self.next_id = np.arange(n), n
        self.departed, self.arrived = np.zeros(0, dtype=np.int64), self.requests
        self.repriced = np.zeros(0, dtype=np.int64)  # places in requests
        # Patterns are made beforehand, as they are the caller's; of very many, one at a time to spare memory.
        patterns = (blocks.usage(i) for i in range(n))
        self.waiting: Iterable[Pattern] = patterns if n > MANY else list(patterns)

    @property
    def nonzeros(self) -> int:
        """Nonzeros of the resources' rows."""
        return int(np.count_nonzero(self.coefficient))

    def costs(self, at: At) -> Floats:
        """Objective coefficients, (m, k)."""
        return self.cost[self.place[at]]

    def pattern(self, at: At) -> tuple[Ints, Floats]:
        """(rows, coefficients), each (m, k, h)."""
        return self.row[self.place[at]], self.coefficient[self.place[at]]

    def edit(self) -> None:
        """Apply the round's changes to the model."""
        for request in self.departed.tolist():
            self.model.remove_request(request)
        for at in self.repriced.tolist():
            self.model.update_cost(int(self.requests[at]), self.cost[self.place[at]])
        first = len(self.requests) - len(self.arrived)
        for at, (matrix, rows) in enumerate(self.waiting, first):
            limit = float(self.limits[at])
            self.model.add_request(
                int(self.requests[at]),
                self.cost[self.place[at]],
                matrix,
                resources=rows,
                limit=limit,
                upper=limit,
                integer=self.integer,
            )
        self.waiting = []

    def adopt(self, outcome: Any) -> None:
        """Nothing here depends on the plan."""


class RenewedFamily(BlockFamily, ABC):
    """Requests leave, as many others are drawn, and some of those that stay are priced anew."""

    @abstractmethod
    def draw(self, count: int) -> Blocks:
        """Blocks of new requests."""

    def new_costs(self, at: Ints) -> Floats:
        """Costs of requests that are priced anew, (m, k)."""
        return np.asarray(self.costs(at) * self.rng.uniform(0.9, 1.1, (len(at), self.columns)))

    def prepare(self) -> None:
        """Draw departures, arrivals and new costs; the arrays then describe the coming round."""
        n = len(self.requests)
        count = min(n, max(1, round(self.churn * n))) if self.churn > 0 else 0
        self.replace(self.rng.choice(n, count, replace=False))
        others = n - count
        self.repriced = self.rng.choice(others, min(others, round(REPRICED * count)), replace=False)
        self.cost[self.place[self.repriced]] = self.new_costs(self.repriced)

    def replace(self, doomed: Ints) -> None:
        """Let new requests take the places of those doomed in the arrays, and stand at the end of the order."""
        blocks = self.draw(len(doomed))
        free = self.place[doomed]
        keep = np.ones(len(self.requests), dtype=bool)
        keep[doomed] = False
        self.departed, self.arrived = self.requests[doomed], np.arange(self.next_id, self.next_id + len(doomed))
        self.next_id += len(doomed)
        self.cost[free], self.row[free], self.coefficient[free] = blocks.cost, blocks.row, blocks.coefficient
        self.requests = np.concatenate((self.requests[keep], self.arrived))
        self.place = np.concatenate((self.place[keep], free))
        self.limits = np.concatenate((self.limits[keep], blocks.limit))
        self.waiting = [blocks.usage(i) for i in range(len(doomed))]
