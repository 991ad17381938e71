"""State of a solve of the relaxation: a feasible point, prices, and the gap between them."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace

import numpy as np

from copter import Status
from copter_frontends.policies.hare.bound import best_prices
from copter_frontends.policies.hare.formulation import Relaxation
from copter_frontends.policies.hare.instance import Floats, Ints


@dataclass(frozen=True, slots=True, eq=False)
class Standing:
    """A point and prices of one relaxation; immutable.

    Attributes
    ----------
    v : ndarray (N, L, G)
        GPU seconds of the point.
    value : float
        Objective of `v`; infinite if `v` is not feasible.
    price : ndarray (L, G)
    lam, nu, phi : ndarray (N,)
        Duals and value of each job at `price` (HR12).
    bound : float
        Bound of HR11 at these prices.
    status : copter.Status
    iterations, free_jobs : int
        Iterations of the solve, and number of jobs in its last pass.
    """

    v: Floats
    value: float
    price: Floats
    lam: Floats
    nu: Floats
    phi: Floats
    bound: float
    status: Status = Status.ITERATION_LIMIT
    iterations: int = 0
    free_jobs: int = 0

    @classmethod
    def at_prices(
        cls, data: Relaxation, price: Floats, lam: Floats, nu: Floats, pool: ThreadPoolExecutor | None = None
    ) -> Standing:
        """Return a state without a point, with the bound at `price` (HR11) and each job's best duals, from guesses."""
        price = np.maximum(price, 0.0)
        phi, lam, nu = best_prices(data, price, lam, nu, pool)
        bound = data.constant + float(phi.sum()) - float((data.capacity * price).sum())
        return cls(np.zeros(data.shape), np.inf, price, lam, nu, phi, bound)

    @property
    def feasible(self) -> bool:
        """Whether there is a feasible point."""
        return bool(np.isfinite(self.value))

    @property
    def gap(self) -> float:
        """(value - bound) / |value|; infinite without a point."""
        return (self.value - self.bound) / max(abs(self.value), 1e-300) if self.feasible else np.inf

    def with_point(self, data: Relaxation, v: Floats, feasible: bool = True) -> Standing:
        """Return the same prices with another point."""
        value = float(data.weight @ data.completion_s(v)) if feasible else np.inf
        return replace(self, v=v, value=value)

    def with_jobs(self, data: Relaxation, others: Floats, jobs: Ints, v: Floats) -> Standing:
        """Return the same prices with a point (N, L, G) in which some jobs' columns are replaced."""
        whole = others.copy()
        whole[jobs] = v
        return self.with_point(data, whole)

    def better(self, other: Standing) -> Standing:
        """Combine the better point and the better prices of the two."""
        point = other if other.value <= self.value or not self.feasible else self
        prices = other if other.bound > self.bound else self
        return replace(prices, v=point.v, value=point.value)

    def ended(self, status: Status, iterations: int, free_jobs: int) -> Standing:
        """Return the same state with the status and counts of the solve."""
        return replace(self, status=status, iterations=iterations, free_jobs=free_jobs)

    # From round to round ------------------------------------------------------------------------------------------

    def regret(self, data: Relaxation) -> Floats:
        """Return how much each job's cost at the prices exceeds its least, (N,): w e + y v - phi (HR16)."""
        late = np.maximum(data.excess + data.mean_busy_s(self.v), 0.0)
        return np.asarray(data.weight * late + np.einsum("nlg,lg->n", self.v, self.price) - self.phi)
