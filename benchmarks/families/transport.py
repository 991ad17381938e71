"""Transport: consumers draw their demand from the suppliers near them, whose capacities are shared."""

from __future__ import annotations

import numpy as np
from scipy.spatial import cKDTree

from families.blocks import BlockFamily, Blocks

NEAREST = 8  # suppliers that a consumer can draw from
LOAD = 1.3  # total demand over total capacity


class TransportRounds(BlockFamily):
    """Consumers (requests; limit = demand) and suppliers (rows) at random points of the unit square.

    A unit is worth what the consumer bids less the distance that it travels.

    Parameters
    ----------
    requests, rows : int
    change : str
    amount : float, optional
        As for :class:`BlockFamily`.
    seed : int
    """

    def __init__(self, requests: int, rows: int, change: str, amount: float | None, seed: int) -> None:
        self.rng = np.random.default_rng(seed)
        self.suppliers = cKDTree(self.rng.random((rows, 2)))
        blocks = self.draw(requests)
        share = self.rng.uniform(0.5, 1.5, rows)
        super().__init__(blocks, share / share.sum() * blocks.limit.sum() / LOAD, change, amount, self.rng)

    def draw(self, count: int) -> Blocks:
        """Consumers at random points."""
        nearest = min(NEAREST, self.suppliers.n)
        distance, supplier = self.suppliers.query(self.rng.random((count, 2)), k=nearest)
        bid = self.rng.uniform(0.5, 2.0, (count, 1))
        cost = bid - distance.reshape(count, nearest)
        row = supplier.reshape(count, nearest, 1).astype(np.int64)
        return Blocks(cost, row, np.ones(row.shape), self.rng.uniform(1.0, 10.0, count))
