"""Generic scheduling: every request takes one of a few options, each a random bundle of many resources."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from families.blocks import BlockFamily, Blocks

OPTIONS = 10
RESOURCES_OF_AN_OPTION = 4
LOAD = 2.5  # demand over capacity, were every request to take an option at random


class GubRounds(BlockFamily):
    """Requests of limit 1 with ten options; an option uses 1 to 10 units of four resources out of `rows`.

    Values are worth about as much as the units used, so that what is chosen depends on the prices of all rows.

    Parameters
    ----------
    requests, rows : int
    change : str
    amount : float, optional
        As for :class:`BlockFamily`.
    seed : int
    """

    changes: ClassVar[tuple[str, ...]] = ("churn", "costs", "link")
    integer = True

    def __init__(self, requests: int, rows: int, change: str, amount: float | None, seed: int) -> None:
        self.rng, self.rows = np.random.default_rng(seed), rows
        blocks = self.draw(requests)
        used = np.bincount(blocks.row.ravel(), weights=blocks.coefficient.ravel(), minlength=rows)
        super().__init__(blocks, np.ceil(used / OPTIONS / LOAD) + 10.0, change, amount, self.rng)

    def draw(self, count: int) -> Blocks:
        """Random options."""
        shape = (count, OPTIONS, min(RESOURCES_OF_AN_OPTION, self.rows))
        # Distinct resources: a random start and random strides that add up to less than the number of rows.
        step = self.rng.integers(1, max(self.rows // shape[2], 1) + 1, shape)
        row = (self.rng.integers(0, self.rows, shape[:2])[..., None] + np.cumsum(step, axis=2)) % self.rows
        coefficient = self.rng.integers(1, 11, shape).astype(np.float64)
        cost = coefficient.sum(axis=2) * self.rng.uniform(0.5, 1.5, shape[:2])
        return Blocks(cost, row, coefficient, np.ones(count))
