"""Prices of leases by descent on a smoothed dual, and integer choices near its optimum (chronus.md, C11 and C12)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.optimize import minimize
from scipy.special import expit

from copter_frontends.policies.chronus.options import Bools, Floats, Ints, Options

GOLDEN = (5**0.5 - 1) / 2  # multiples of this number modulo 1 are spread evenly
SILVER = 2**0.5 - 1  # likewise, and independent of the multiples of GOLDEN

THRESHOLD_STEPS = 25  # largest number of steps in the search for a threshold; about five suffice
NEAR = 1e-5  # tolerance of the search for a threshold, in number of leases
ENDED = 1e-7  # relative decrease of the dual at which the descent ends


@dataclass(frozen=True, slots=True)
class Mixed:
    """The smoothed dual at given prices: value, slope, shares of the options, and leases of the shapes."""

    value: float
    slope: Floats
    share: Floats
    leases: Floats


class SmoothedDual:
    """The dual of the lease LP with soft choices: a Fermi function for leases and a softmax for options.

    Options of equal type, deadline and number of leases, called a *shape*, choose the same leases. There are a few
    hundred shapes, whatever the number of jobs.

    Parameters
    ----------
    options : Options
    capacity : int64 array (types, leases)
    soft_price, soft_worth : float
        A choice is mixed if prices differ by less than `soft_price`, or worths by less than `soft_worth`.
    """

    def __init__(self, options: Options, capacity: Ints, soft_price: float, soft_worth: float) -> None:
        self.options, self.capacity = options, capacity
        self.soft_price, self.soft_worth = soft_price, soft_worth
        kinds, horizon = capacity.shape
        first = options.rows_of()
        self.jobs = np.flatnonzero(np.diff(first) > 0)  # jobs with an option
        self.first = first[self.jobs]
        self.job_at = np.repeat(np.arange(len(self.jobs)), np.diff(first)[self.jobs])
        self.free = ~options.must[self.jobs]
        size = horizon + 1
        key, self.shape = np.unique((options.kind * size + options.last) * size + options.need, return_inverse=True)
        self.kind, self.last, self.need = key // size**2, key // size % size, key % size
        self.within = np.arange(horizon)[None, :] < self.last[:, None]
        self.whole = (self.need == self.last) | (self.need == 0)  # shapes without a choice of leases
        self.of_kind = [np.flatnonzero(self.kind == q) for q in range(kinds)]
        self._threshold = np.zeros(len(key))

    def descend(self, start: Floats, evaluations: int) -> Floats:
        """Return prices, (types, leases), with a lower dual value than those at the start."""
        result = minimize(
            lambda flat: self._judged(flat.reshape(self.capacity.shape)),
            start.ravel(),
            jac=True,
            method="L-BFGS-B",
            bounds=[(0.0, None)] * start.size,
            options={"maxfun": evaluations, "ftol": ENDED},
        )
        return np.asarray(np.maximum(result.x, 0.0).reshape(start.shape))

    def mixed(self, price: Floats) -> Mixed:
        """Return the smoothed dual (C11) at these prices: value, slope, and the shares of options and leases."""
        options = self.options
        leases, cost = self._chosen(price)
        worth = options.value - options.gpus * cost[self.shape]
        best = np.maximum.reduceat(worth, self.first)
        top = np.where(self.free, np.maximum(best, 0.0), best)
        weight = np.exp((worth - top[self.job_at]) / self.soft_worth)
        total = np.add.reduceat(weight, self.first)
        total += np.where(self.free, np.exp(-np.maximum(top, 0.0) / self.soft_worth), 0.0)
        share = weight / total[self.job_at]
        value = (self.capacity * price).sum() + top.sum() + self.soft_worth * np.log(total).sum()
        load = np.bincount(self.shape, share * options.gpus, len(cost))
        slope = self.capacity.astype(np.float64)
        for q, mine in enumerate(self.of_kind):
            slope[q] -= load[mine] @ leases[mine]
        return Mixed(float(value), slope, share, leases)

    def deal(self, mixed: Mixed, order: Ints, offset: float) -> tuple[Ints, Bools]:
        """Draw one integer choice per job from the shares; returns options (-1 for none) and leases.

        Systematic sampling (C12): the jobs' places in the cumulative shares are spread evenly, and so are the leases in
        the cumulative leases of the shape. All jobs together therefore use nearly as much as the mixture.

        Parameters
        ----------
        mixed : Mixed
        order : int64 array (jobs,)
            Positions of the jobs in an order in which neighbours are similar.
        offset : float
            Number from 0 to 1; each value gives another draw.
        """
        options, horizon = self.options, self.capacity.shape[1]
        row = np.full(options.jobs, -1, dtype=np.int64)
        leases = np.zeros((options.jobs, horizon), dtype=bool)
        place = np.mod((order[self.jobs] + 0.5) * GOLDEN + offset, 1.0)
        running = np.cumsum(mixed.share)
        before = running[self.first] - mixed.share[self.first]
        ends = np.append(self.first[1:], len(options.job)) - 1
        takes = (place < running[ends] - before) | ~self.free
        pick = np.clip(np.searchsorted(running, before + place), self.first, ends)
        row[self.jobs[takes]] = pick[takes]
        total = np.cumsum(mixed.leases[self.shape[pick[takes]]], axis=1)
        total[:, -1] = options.need[pick[takes]]
        comb = np.floor(total + np.mod(order[self.jobs[takes]] * SILVER + offset, 1.0)[:, None])
        comb[:, 1:] -= comb[:, :-1].copy()
        leases[self.jobs[takes]] = comb > 0
        return row, leases

    def _judged(self, price: Floats) -> tuple[float, Floats]:
        result = self.mixed(price)
        return result.value, result.slope.ravel()

    def _chosen(self, price: Floats) -> tuple[Floats, Floats]:
        """Return the shares of leases of each shape, (shapes, leases), and their costs, (shapes,) (C11)."""
        soft, need, own = self.soft_price, self.need, price[self.kind]
        spare, some = np.maximum(self.last - need, 0.5), np.maximum(need, 0.5)
        low = np.where(self.within, own, np.inf).min(axis=1) - soft * np.log(self.last / some)
        high = np.where(self.within, own, -np.inf).max(axis=1) + soft * np.log(self.last / spare)
        at = np.clip(self._threshold, low, high)
        for _ in range(THRESHOLD_STEPS):
            chosen = np.where(self.within, expit((at[:, None] - own) / soft), 0.0)
            over = np.where(self.whole, 0.0, chosen.sum(axis=1) - need)
            if np.abs(over).max(initial=0.0) <= NEAR:
                break
            low, high = np.where(over < 0, at, low), np.where(over > 0, at, high)
            slope = (chosen * (1.0 - chosen)).sum(axis=1) / soft
            step = at - over / np.maximum(slope, 1e-12)
            at = np.where((step > low) & (step < high), step, 0.5 * (low + high))
        self._threshold = at
        paid = need * at - soft * np.where(self.within, np.logaddexp(0.0, (at[:, None] - own) / soft), 0.0).sum(axis=1)
        taken = self.within[self.whole] & (need[self.whole] > 0)[:, None]
        chosen[self.whole] = taken
        paid[self.whole] = (own[self.whole] * taken).sum(axis=1)
        return chosen, paid
