"""Seeded problems of the suite: Sia-like models of three sizes, edited as a round edits them."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from copter import Model, Session, Solution
from copter.testing import check, sia_like_model

Floats = NDArray[np.float64]

SIZES = (50, 200, 800)  # requests
GPUS_PER_REQUEST = 2.4
TYPES = 3


def sia_like(requests: int, seed: int = 0) -> Model:
    """A model whose variables grow with the square of its requests."""
    per_type = 8 * max(8, round(GPUS_PER_REQUEST * requests / 8))
    return sia_like_model(requests, gpus_per_type=per_type, types=TYPES, seed=seed)


class Rounds:
    """A model solved once, and the edits of one more round: 1 % of the requests replaced, all costs moved.

    Parameters
    ----------
    requests : int
    """

    def __init__(self, requests: int) -> None:
        self.model = sia_like(requests)
        self.session = Session(self.model)
        self.session.solve()
        self.rng = np.random.default_rng(1)
        self.names = iter(range(10**9))

    @property
    def template(self) -> object:
        """The pattern that all requests share."""
        return next(iter(self.model.ledger.matrix.templates))

    def edit(self) -> None:
        """One round's edits."""
        known = list(self.model.requests)
        for _ in range(max(1, len(known) // 100)):
            gone = known.pop(int(self.rng.integers(len(known))))
            cost = self.model.cost(gone)
            self.model.remove_request(gone)
            self.model.add_request(f"new-{next(self.names)}", self.rng.permutation(cost), template=self.template)
        scale = self.rng.uniform(0.97, 1.0, len(self.model.requests))
        self.model.rescale_costs(list(self.model.requests), scale)

    def round(self) -> Solution:
        """Edit and solve."""
        self.edit()
        return self.session.solve()


def judged_gap(model: Model, solution: Solution) -> float:
    """Relative gap that the independent checker finds."""
    return check(model.to_linear_program(), solution.x, solution.y).gap
