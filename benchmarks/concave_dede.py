"""DeDe's method for logarithms of shares: GPU types and jobs alternate (Xu et al., OSDI 2025).

The jobs maximise sum_j w_j log(v_j'z_j) with z_j >= 0 and sum_t z_jt <= 1; type t has c_t GPUs. Each type has shares
x_t of the jobs, each job has shares z_j of the types, and ADMM makes the two agree; u are the multipliers of x = z,
scaled by rho. A step:

- every type by itself: x_t is z_t - u_t projected on x >= 0, sum_j x_jt <= c_t;
- every job by itself: z_j maximises w log(v'z) - rho / 2 |z - x_j - u_j|^2 within its limit; then u grows by x - z.

Both halves are exact. In each, prices are what the limits cost: t_t of the types, so that a job's u_jt is -t_t wherever
it has a share once the two agree. A job that comes starts from these prices, as copter's does.
"""

from __future__ import annotations

import numba
import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
NEWTON = 60
"""Most steps for a job's slope; usually two or three reach the tolerance."""

TOLERANCE = 1e-12
"""A job's slope s is exact when s v'z is w but for this share."""


@numba.njit(cache=True)
def types_step(wanted, counts, price, given):  # type: ignore[no-untyped-def]
    """Project each column of `wanted` on x >= 0, sum x <= count, as `given`; `price` becomes what was taken.

    The price rises until the shares above it fit (Michelot 1986): it is exact after finitely many passes.
    """
    jobs, types = wanted.shape
    total, number, above = np.zeros(types), np.zeros(types), np.zeros(types)
    price[:] = 0.0
    while True:
        above[:] = number
        total[:], number[:] = 0.0, 0.0
        for job in range(jobs):
            for at in range(types):
                if wanted[job, at] > price[at]:
                    total[at] += wanted[job, at]
                    number[at] += 1.0
        same = True
        for at in range(types):
            if number[at] != above[at]:
                price[at] = max((total[at] - counts[at]) / number[at], 0.0) if number[at] > 0.0 else 0.0
                same = False
        if same:
            break
    for job in range(jobs):
        for at in range(types):
            given[job, at] = max(wanted[job, at] - price[at], 0.0)


@numba.njit(cache=True)
def jobs_step(target, rates, weights, rho, slope, shares):  # type: ignore[no-untyped-def]
    """Choose each job's shares, in place: they maximise w log(v'z) - rho / 2 |z - target|^2 over z >= 0, sum z <= 1.

    With s = w / v'z the shares are target + s v / rho, projected on the limit. Which of them are above zero is the same
    between two breakpoints of s, where v'z is linear in it and s v'z = w a quadratic: each step solves that, within a
    bracket. `slope` is s, from which the next search starts.
    """
    jobs, types = target.shape
    for job in range(jobs):
        low, high, s = 0.0, np.inf, slope[job]
        for _ in range(NEWTON):
            level, number = 0.0, -1
            while True:
                total, above = 0.0, 0
                for at in range(types):
                    value = target[job, at] + s * rates[job, at] / rho
                    if value > level:
                        total += value
                        above += 1
                if above == number or above == 0:
                    break
                number, level = above, max((total - 1.0) / above, 0.0)
            worth, rate, square = 0.0, 0.0, 0.0
            for at in range(types):
                share = max(target[job, at] + s * rates[job, at] / rho - level, 0.0)
                shares[job, at] = share
                if share > 0.0:
                    worth += rates[job, at] * share
                    rate += rates[job, at]
                    square += rates[job, at] ** 2
            if abs(s * worth - weights[job]) <= TOLERANCE * weights[job]:
                break
            if s * worth > weights[job]:
                high = s
            else:
                low = s
            if level > 0.0:
                square = max(square - rate * rate / above, 0.0)
            gain = square / rho
            rest = worth - gain * s
            root = rest + np.sqrt(rest * rest + 4.0 * gain * weights[job])
            new = 2.0 * weights[job] / root if root > 0.0 else np.inf
            if not low < new < high:
                new = 0.5 * (low + high) if high < np.inf else 2.0 * s
            if new == s:
                break
            s = new
        slope[job] = s


class DeDe:
    """DeDe's steps for some jobs, from the last round's shares and multipliers.

    Parameters
    ----------
    rates : ndarray (jobs, types)
    weights : ndarray (jobs,)
    counts : ndarray (types,)
    rho : float
        Penalty of a share on which a type and a job disagree.
    """

    def __init__(self, rates: Floats, weights: Floats, counts: Floats, rho: float) -> None:
        self.rates, self.weights, self.counts, self.rho = rates.copy(), weights.copy(), counts, rho
        self.given = np.zeros_like(rates)
        self.shares = np.tile(self.mean, (len(weights), 1))
        self.multiplier, self.price = np.zeros_like(rates), np.zeros(len(counts))
        self.slope = weights / (rates @ self.mean)

    @property
    def mean(self) -> Floats:
        """The shares that every job would have of equal parts."""
        equal = self.counts / max(len(self.weights), 1)
        shares: Floats = equal / max(float(equal.sum()), 1.0)
        return shares

    def replace(self, which: NDArray[np.int64], rates: Floats, weights: Floats) -> None:
        """Put other jobs in the places of some, at the types' last prices and with equal shares."""
        self.rates[which], self.weights[which] = rates, weights
        self.multiplier[which] = -self.price
        self.shares[which] = self.mean
        self.slope[which] = weights / (rates @ self.mean)

    def step(self) -> None:
        """Do one step: types, jobs, multipliers."""
        types_step(self.shares - self.multiplier, self.counts, self.price, self.given)
        target = self.given + self.multiplier
        jobs_step(target, self.rates, self.weights, self.rho, self.slope, self.shares)
        self.multiplier = target - self.shares

    def feasible(self) -> tuple[float, Floats]:
        """Return (objective, shares) of the better of two points: the jobs' shares that shrink until the types' GPUs
        suffice, and the types' shares that shrink to the jobs' limits.
        """
        used = self.shares.sum(axis=0)
        fits = self.shares * np.minimum(1.0, self.counts / np.maximum(used, 1e-300))
        within = self.given / np.maximum(self.given.sum(axis=1), 1.0)[:, None]
        with np.errstate(divide="ignore"):
            worths = [float(self.weights @ np.log((self.rates * each).sum(axis=1))) for each in (fits, within)]
        return (worths[0], fits) if worths[0] >= worths[1] else (worths[1], within)
