"""State of a relaxation: a feasible point, prices, and the gap between them."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from copter import Status
from copter_frontends.hare.bound import best_prices
from copter_frontends.hare.formulation import Relaxation
from copter_frontends.hare.instance import Floats, Ints


@dataclass(frozen=True, slots=True, eq=False)
class Standing:
    """A point and prices of one relaxation; immutable.

    Attributes
    ----------
    v : ndarray (N, L, G)
        GPU seconds.
    value : float
        Objective of `v`, infinite where it is not feasible.
    price : ndarray (L, G)
    lam, nu, phi : ndarray (N,)
        Each job's own prices and value at `price` (HR12).
    bound : float
        HR11 at these.
    changed : ndarray (N,) of bool
        Jobs for which `v` held nothing when the round began.
    status : copter.Status
    iterations, free_jobs : int
        Of the solve, and jobs solved for in its last part.
    """

    v: Floats
    value: float
    price: Floats
    lam: Floats
    nu: Floats
    phi: Floats
    bound: float
    changed: NDArray[np.bool_]
    status: Status = Status.ITERATION_LIMIT
    iterations: int = 0
    free_jobs: int = 0

    @classmethod
    def at_prices(
        cls, data: Relaxation, price: Floats, lam: Floats, nu: Floats, pool: ThreadPoolExecutor | None = None
    ) -> Standing:
        """The bound at prices, and no point; `lam` and `nu` are guesses."""
        price = np.maximum(price, 0.0)
        phi, lam, nu = best_prices(data, price, lam, nu, pool)
        bound = data.constant + float(phi.sum()) - float((data.capacity * price).sum())
        return cls(np.zeros(data.shape), np.inf, price, lam, nu, phi, bound, np.zeros(len(phi), dtype=np.bool_))

    @property
    def feasible(self) -> bool:
        """Whether there is a feasible point."""
        return bool(np.isfinite(self.value))

    @property
    def gap(self) -> float:
        """(value - bound) / |value|; infinite without a point."""
        return (self.value - self.bound) / max(abs(self.value), 1e-300) if self.feasible else np.inf

    def with_point(self, data: Relaxation, v: Floats, feasible: bool = True) -> Standing:
        """The same prices with another point."""
        value = float(data.weight @ data.completion_s(v)) if feasible else np.inf
        return replace(self, v=v, value=value)

    def with_jobs(self, data: Relaxation, others: Floats, jobs: Ints, v: Floats) -> Standing:
        """The same prices with a point (N, L, G) whose columns of some jobs are replaced."""
        whole = others.copy()
        whole[jobs] = v
        return self.with_point(data, whole)

    def better(self, other: Standing) -> Standing:
        """The better of two points, with the better of their prices."""
        point = other if other.value <= self.value or not self.feasible else self
        prices = other if other.bound > self.bound else self
        return replace(prices, v=point.v, value=point.value, changed=self.changed | other.changed)

    def ended(self, status: Status, iterations: int, free_jobs: int) -> Standing:
        """The same with the status and counts of the solve."""
        return replace(self, status=status, iterations=iterations, free_jobs=free_jobs)

    # From round to round ------------------------------------------------------------------------------------------

    def carried(self, place: Ints) -> Standing:
        """For the next round's jobs, job n from `place[n]` of this one; -1 is a job that is new or has changed."""
        new = place < 0
        lam, nu = self.lam[place], self.nu[place]
        lam[new], nu[new] = self.lam.mean(), np.inf
        v = self.v[place]
        v[new] = 0.0
        return replace(self, v=v, value=np.inf, lam=lam, nu=nu, phi=self.phi[place], bound=-np.inf, changed=new)

    def priced(self, data: Relaxation, pool: ThreadPoolExecutor | None = None) -> Standing:
        """The same with the changed jobs' values, and the bound, computed; the other jobs' values stay."""
        jobs = np.flatnonzero(self.changed)
        lam, nu, phi = self.lam.copy(), np.minimum(self.nu, data.weight), self.phi.copy()
        phi[jobs], lam[jobs], nu[jobs] = best_prices(data.of_jobs(jobs), self.price, lam[jobs], nu[jobs], pool)
        bound = data.constant + float(phi.sum()) - float((data.capacity * self.price).sum())
        return replace(self, lam=lam, nu=nu, phi=phi, bound=bound)

    def regret(self, data: Relaxation) -> Floats:
        """How far each job is from its best at the prices, (N,): w e + y v - phi; infinite for changed jobs."""
        late = np.maximum(data.excess + data.mean_busy_s(self.v), 0.0)
        own = data.weight * late + np.einsum("nlg,lg->n", self.v, self.price) - self.phi
        return np.where(self.changed, np.inf, own)
