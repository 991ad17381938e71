"""Prices of leases: the cheapest leases before a deadline, and the bound certified by prices (chronus.md, C9)."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

import numpy as np

from copter_frontends.policies.chronus.options import Floats, Ints, Options


class LeasePrices:
    """Prices of a GPU in each lease, and the cost of the cheapest leases before each deadline.

    Parameters
    ----------
    price : float64 array (types, leases)
        At least zero.
    """

    def __init__(self, price: Floats) -> None:
        self.price = np.maximum(price, 0.0)
        self._known: dict[tuple[int, int], tuple[Floats, Ints]] = {}

    def cheapest(self, kind: int, last: int) -> tuple[Floats, Ints]:
        """Return the cost of the r cheapest of a type's first `last` leases, (last + 1,), and each lease's rank,
        (leases,).

        Among equal prices a later lease ranks first, so that early leases stay free for future jobs. Leases from `last`
        on rank behind all others.
        """
        found = self._known.get((kind, last))
        if found is None:
            price, horizon = self.price[kind, :last], self.price.shape[1]
            order = np.lexsort((-np.arange(last), price))
            place = np.full(horizon, horizon, dtype=np.int64)
            place[order] = np.arange(last)
            found = self._known[kind, last] = (np.concatenate(([0.0], np.cumsum(price[order]))), place)
        return found

    def worth(self, options: Options) -> Floats:
        """Return each row's value minus the price of its cheapest leases."""
        cost = np.empty(len(options.job))
        narrow = options.last.astype(np.uint16 if self.price.shape[1] < 2**16 else np.int64)  # sorted by their digits
        order = np.argsort(narrow, kind="stable")
        sorted_last = options.last[order]
        first = np.flatnonzero(np.diff(sorted_last, prepend=-1))
        for begin, end in pairwise((*first.tolist(), len(order))):
            last, rows = int(sorted_last[begin]), order[begin:end]
            sums = np.zeros((len(self.price), last + 1))  # of the cheapest of each type's first leases
            np.cumsum(np.sort(self.price[:, :last], axis=1), axis=1, out=sums[:, 1:])
            cost[rows] = sums[options.kind[rows], options.need[rows]]
        return np.asarray(options.value - options.gpus * cost)

    def _alike(self, options: Options, rows: Ints) -> Iterator[tuple[tuple[int, int], Ints]]:
        """Yield the positions in `rows` grouped by (GPU type, leases to the deadline)."""
        if not len(rows):
            return
        size = self.price.shape[1] + 1
        key = options.kind[rows] * size + options.last[rows]
        order = np.argsort(key, kind="stable")
        first = np.flatnonzero(np.diff(key[order], prepend=-1))
        for at, mine in zip(key[order][first].tolist(), np.split(order, first[1:]), strict=True):
            yield divmod(at, size), mine

    def bound(self, options: Options, capacity: Ints) -> float:
        """Return a bound on the reward of any plan that keeps the promises (C10), which these prices certify."""
        gain = options.best_of_jobs(self.worth(options), must=True)[1]
        return float((capacity * self.price).sum() + gain.sum())

    def leases(self, options: Options, rows: Ints) -> Ints:
        """Return the cheapest leases of some rows as 0 or 1, (rows, leases)."""
        rank = np.empty((len(rows), self.price.shape[1]), dtype=np.int64)
        for (kind, last), mine in self._alike(options, rows):
            rank[mine] = self.cheapest(kind, last)[1]
        return np.asarray(rank < options.need[rows][:, None]).astype(np.int64)
