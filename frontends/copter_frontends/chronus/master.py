"""The restricted master on the differential model: mixtures of what groups of jobs do (docs/chronus.md, C10)."""

from __future__ import annotations

import numpy as np
from scipy.sparse import csc_array

from copter import Model, Session, Settings
from copter_frontends.chronus.draft import Draft
from copter_frontends.chronus.options import Bools, Floats, Ints, Options
from copter_frontends.chronus.pricing import LeasePrices
from copter_frontends.chronus.smoothing import GOLDEN

ROUNDING = 1e-9  # weights of columns below this do not count


class Master:
    """The master, alive for one solve: edits add columns, each solve goes on from the last.

    Columns say what all jobs of a group do, less what they do in the plan at the origin, which is within capacity and
    keeps the promises; so every mixture of them keeps the promises, however the shares of a group add up.

    Parameters
    ----------
    options : Options
    capacity : int64 array (types, leases)
    groups : int
    settings : copter.Settings
    origin : Draft
        A plan of the same options.

    Attributes
    ----------
    group : int64 array (jobs,)
    order : int64 array (jobs,)
        Places of the jobs by group, and by size in it.
    made : int
        Columns.
    """

    def __init__(self, options: Options, capacity: Ints, groups: int, settings: Settings, origin: Draft) -> None:
        self.options, self.capacity = options, capacity
        self.groups = min(groups, max(options.jobs, 1))
        by_worth = np.argsort(np.argsort(_worth_of_a_lease(options), kind="stable"), kind="stable")
        self.group = by_worth * self.groups // max(options.jobs, 1)  # jobs of like worth together
        self.order = np.empty(options.jobs, dtype=np.int64)
        self.order[np.lexsort((-options.size, self.group))] = np.arange(options.jobs)
        self.scale = 1.0 / max(options.most, 1e-12)
        self.size = np.maximum(capacity, 1)
        self.model = Model(sense="max")
        self.rows = list(np.ndindex(*capacity.shape))
        for row, free in zip(self.rows, (origin.free / self.size).ravel().tolist(), strict=True):
            self.model.add_resources(row, free)
        self.session = Session(self.model, settings)
        self.chosen, self.leases = [origin.row.copy()], [origin.taken.copy()]
        self.value = self._value(origin.row)[None, :]  # (columns, groups): rewards
        self.use = self._use(origin.row, origin.taken)[None, :]  # (columns, groups, types x leases): shares of capacity
        self.weight = np.ones((1, self.groups))  # (columns, groups): of the last mixture
        self.made = 0

    def price(self, prices: LeasePrices) -> float:
        """Add the columns that these prices make, and say what bound they give (C7)."""
        options = self.options
        row, gain = options.best_of_jobs(prices.worth(options), must=True)
        leases = np.zeros((options.jobs, self.capacity.shape[1]), dtype=bool)
        here = np.flatnonzero(row >= 0)
        leases[here] = prices.leases(options, row[here]) > 0
        self.add(row, leases)
        return float((self.capacity * prices.price).sum() + gain.sum())

    def add(self, row: Ints, leases: Bools) -> None:
        """Add one column per group: these options on these leases."""
        self.chosen.append(row)
        self.leases.append(leases)
        self.value = np.concatenate((self.value, self._value(row)[None, :]))
        self.use = np.concatenate((self.use, self._use(row, leases)[None, :]))
        self.made += self.groups

    def mix(self) -> tuple[float, Floats]:
        """Solve the master: its value, and its prices, (types, leases)."""
        columns, rows = len(self.value) - 1, self.capacity.size
        if self.model.requests:
            self.model.remove_requests(list(self.model.requests))
        cost = (self.value[1:] - self.value[0]) * self.scale
        use = self.use[1:] - self.use[0]
        start, place = np.arange(columns + 1) * rows, np.tile(np.arange(rows), columns)
        for group in range(self.groups):
            usage = csc_array((use[:, group].ravel(), place, start), shape=(rows, columns))
            self.model.add_request(group, cost[:, group], usage, resources=self.rows)
        solution = self.session.solve()
        price = np.array([max(solution.price(at), 0.0) for at in self.rows]) / (self.scale * self.size.ravel())
        self.weight = np.zeros((columns + 1, self.groups))
        for request, column, share in solution.by_request():
            self.weight[np.asarray(column) + 1, int(str(request))] = np.where(share > ROUNDING, share, 0.0)
        self.weight[0] = np.maximum(1.0 - self.weight.sum(axis=0), 0.0)
        return float((self.weight * self.value).sum()), price.reshape(self.capacity.shape)

    def shares(self) -> Floats:
        """Shares of the options in the last mixture, (rows,)."""
        share = np.zeros(len(self.options.job))
        for row, weight in zip(self.chosen, self.weight, strict=True):
            here = np.flatnonzero(row >= 0)
            share[row[here]] += weight[self.group[here]]
        return share

    def deal(self) -> tuple[Ints, Bools]:
        """Give every job one of its group's columns, in the columns' shares: (options, leases) (C11).

        The jobs of a group stand in order of size, and take places that are spread evenly over the shares, so that the
        GPUs that they take together are near the mixture's in every lease.
        """
        row = np.full(self.options.jobs, -1, dtype=np.int64)
        leases = np.zeros((self.options.jobs, self.capacity.shape[1]), dtype=bool)
        place = np.mod((self.order + 0.5) * GOLDEN, 1.0)
        total = np.cumsum(self.weight, axis=0)
        pick = (place[None, :] >= total[:, self.group] / total[-1, self.group]).sum(axis=0)
        for number in np.unique(pick).tolist():
            mine = pick == number
            row[mine] = self.chosen[number][mine]
            leases[mine] = self.leases[number][mine]
        return row, leases

    def _value(self, row: Ints) -> Floats:
        here = np.flatnonzero(row >= 0)
        value: Floats = np.bincount(self.group[here], self.options.value[row[here]], self.groups).astype(np.float64)
        return value

    def _use(self, row: Ints, leases: Bools) -> Floats:
        kinds, horizon = self.capacity.shape
        here, lease = np.nonzero(leases & (row >= 0)[:, None])
        at = (self.group[here] * kinds + self.options.kind[row[here]]) * horizon + lease
        use = np.bincount(at, self.options.gpus[row[here]], self.groups * kinds * horizon)
        return np.asarray(use.reshape(self.groups, -1) / self.size.ravel())


def _worth_of_a_lease(options: Options) -> Floats:
    """Reward of each job's first option, for a GPU and a lease."""
    worth, first = np.zeros(options.jobs), options.rows_of()
    has = np.flatnonzero(np.diff(first) > 0)
    at = first[has]
    worth[has] = options.value[at] / (options.gpus[at] * np.maximum(options.need[at], 1))
    return worth
