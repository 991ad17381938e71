"""Prices of leases: the cheapest leases before a deadline, and the bound that prices certify (docs/chronus.md, C6)."""

from __future__ import annotations

import numpy as np
from scipy.sparse import csr_array

from copter_frontends.chronus.options import Floats, Ints, Options


class LeasePrices:
    """Prices of a GPU for each lease, and tables of what the cheapest leases cost.

    Parameters
    ----------
    price : float64 array (types, leases)
        At least zero.

    Attributes
    ----------
    cost : float64 array (types, leases + 1, leases + 1)
        Sum of the r cheapest prices among the first d leases, at [type, d, r]; meaningless for r > d.
    rank : int64 array (types, leases + 1, leases)
        Place of lease k among the first d by price, at [type, d, k]; of equals the later goes first, so that early
        leases stay free for what is still to come; K for k >= d.
    """

    def __init__(self, price: Floats) -> None:
        self.price = np.maximum(price, 0.0)
        kinds, horizon = self.price.shape
        self.rank = np.full((kinds, horizon + 1, horizon), horizon, dtype=np.int64)
        self.cost = np.zeros((kinds, horizon + 1, horizon + 1))
        within = np.arange(horizon)[None, :] < np.arange(horizon + 1)[:, None]  # (d, k)
        at_d, at_k = np.nonzero(within)
        for q in range(kinds):
            place = np.empty(horizon, dtype=np.int64)
            place[np.lexsort((-np.arange(horizon), self.price[q]))] = np.arange(horizon)
            before = place[:, None] > place[None, :]  # [k, j]: j goes before k
            counts = np.zeros((horizon, horizon + 1), dtype=np.int64)
            np.cumsum(before, axis=1, out=counts[:, 1:])
            self.rank[q][within] = counts.T[within]
            ordered = np.zeros((horizon + 1, horizon))
            ordered[at_d, self.rank[q][within]] = self.price[q][at_k]
            np.cumsum(ordered, axis=1, out=self.cost[q][:, 1:])

    def worth(self, options: Options) -> Floats:
        """Value of each row less the price of its cheapest leases."""
        return np.asarray(options.value - options.gpus * self.cost[options.kind, options.last, options.need])

    def bound(self, options: Options, capacity: Ints) -> float:
        """Certified bound on the reward of any plan that keeps the promises (C7), for any prices."""
        gain = options.best_of_jobs(self.worth(options), must=True)[1]
        return float((capacity * self.price).sum() + gain.sum())

    def leases(self, options: Options, rows: Ints) -> Ints:
        """The cheapest leases of some rows, 0 or 1, (rows, leases)."""
        rank = self.rank[options.kind[rows], options.last[rows]]
        return np.asarray(rank < options.need[rows][:, None]).astype(np.int64)

    def usage(self, options: Options, rows: Ints, groups: Ints, count: int) -> Floats:
        """GPUs that some rows take, by group, type and lease, (count, types, leases); `groups` is of the rows."""
        kinds, horizon = self.price.shape
        at = groups * kinds + options.kind[rows]
        deal = csr_array(
            (options.gpus[rows].astype(np.float64), (at, np.arange(len(rows)))), (count * kinds, len(rows))
        )
        return np.asarray(deal @ self.leases(options, rows).astype(np.float64)).reshape(count, kinds, horizon)
