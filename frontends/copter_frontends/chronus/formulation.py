"""The lease LP on the differential model, by columns that say what all jobs of a group do (docs/chronus.md, C8, C9)."""

from __future__ import annotations

import time
from dataclasses import dataclass

import numpy as np

from copter import Model, Session, Settings
from copter_frontends.chronus.options import Bools, Floats, Ints, Options
from copter_frontends.chronus.pricing import LeasePrices

GOLDEN = (5**0.5 - 1) / 2  # multiples of it, modulo 1, are spread evenly
ROUNDING = 1e-9  # weights of columns below this do not count


@dataclass(frozen=True, slots=True)
class LeaseSolution:
    """An answer of the LP.

    Attributes
    ----------
    value, bound : float
        Reward of the best mixture of columns found, and the certified bound on any plan's.
    prices : LeasePrices
        Those of the bound.
    share : float64 array (rows,)
        Share in which each option is taken: s_ip.
    row : int64 array (jobs,)
        An option for each job, -1 for none, dealt in the shares of the mixture's columns (C9).
    leases : bool array (jobs, leases)
        The leases that go with it.
    columns : int
        Columns made, those of all passes together.
    passes : int
    """

    value: float
    bound: float
    prices: LeasePrices
    share: Floats
    row: Ints
    leases: Bools
    columns: int
    passes: int

    @property
    def gap(self) -> float:
        """Bound less value, relative to the bound."""
        return (self.bound - self.value) / max(abs(self.bound), 1e-12)


@dataclass(frozen=True, slots=True)
class LeaseFormulation:
    """Dantzig-Wolfe decomposition of the lease LP, with exact pricing in closed form.

    Jobs are dealt to groups. A column is what all jobs of a group do at some prices: the option of most worth, on the
    cheapest leases. The master mixes columns: one share a group, one row a (GPU type, lease).

    Parameters
    ----------
    groups : int
        Groups of jobs; more of them converge in fewer passes that take longer.
    gap : float
        Relative gap between mixture and bound at which it stops.
    max_passes : int
    smoothing : float
        Weight of the best prices so far in the prices that are tried next, from 0 to below 1.
    settings : copter.Settings, optional
        Of the master's solver.
    """

    groups: int = 12
    gap: float = 1e-3
    max_passes: int = 80
    smoothing: float = 0.6
    settings: Settings | None = None

    def solve(
        self, options: Options, capacity: Ints, start: Floats | None = None, time_limit_s: float = 10.0
    ) -> LeaseSolution:
        """Solve max sum V s over plans of whole lease sets, mixed (C8).

        Parameters
        ----------
        options : Options
        capacity : int64 array (types, leases)
        start : float64 array (types, leases), optional
            Prices to begin with: the last cycle's, moved on by the leases gone.
        time_limit_s : float
            Checked between passes; the bound holds whenever it ends.
        """
        until = time.perf_counter() + time_limit_s
        master = _Master(options, capacity, min(self.groups, max(options.jobs, 1)), self.settings or Settings(purify=False))
        best = prices = LeasePrices(np.zeros(capacity.shape) if start is None else start)
        bound, value, passes = np.inf, 0.0, 0
        tried: list[Floats] = [np.zeros(capacity.shape)] if start is not None else []
        for extra in tried:
            master.price(LeasePrices(extra))
        while True:
            passes += 1
            found = master.price(prices)
            if found < bound:
                bound, best = found, prices
            value, target = master.mix()
            if bound - value <= self.gap * abs(bound) + ROUNDING or passes >= self.max_passes:
                break
            if time.perf_counter() > until:
                break
            weight = self.smoothing if found <= bound or passes % 2 else 0.0
            prices = LeasePrices(weight * best.price + (1.0 - weight) * target)
        certified = best.bound(options, capacity)
        row, leases = master.deal()
        return LeaseSolution(min(value, certified), certified, best, master.shares(), row, leases, master.made, passes)


class _Master:
    """The restricted master, alive for one solve: edits add columns, each solve goes on from the last."""

    def __init__(self, options: Options, capacity: Ints, groups: int, settings: Settings) -> None:
        self.options, self.capacity, self.groups = options, capacity, groups
        self.scale = 1.0 / max(options.most, 1e-12)
        order = np.argsort(np.argsort(_weights(options), kind="stable"), kind="stable")
        self.group = order * groups // max(options.jobs, 1)  # jobs of like size together
        self.model = Model(sense="max")
        self.rows = [(q, k) for q, k in np.ndindex(*capacity.shape) if capacity[q, k] > 0]
        for row in self.rows:
            self.model.add_resources(row, 1.0)
        for group in range(groups):
            self.model.add_resources(("group", group), 1.0)
        self.session = Session(self.model, settings)
        self.chosen: list[Ints] = []  # rows chosen in each pass, -1 for none, (jobs,)
        self.asked: list[LeasePrices] = []  # prices of each pass
        self.weight: dict[tuple[int, int], float] = {}
        self.made = 0

    def price(self, prices: LeasePrices) -> float:
        """Add the columns that these prices make, and say what bound they give."""
        options = self.options
        row, gain = options.best_of_jobs(prices.worth(options))
        here = np.flatnonzero(row >= 0)
        usage = prices.usage(options, row[here], self.group[here], self.groups)
        value = np.bincount(self.group[here], options.value[row[here]], self.groups)
        size = np.maximum(self.capacity, 1)
        number = len(self.chosen)
        self.chosen.append(row)
        self.asked.append(prices)
        for group in np.flatnonzero(value > 0).tolist():
            units = {at: usage[group][at] / size[at] for at in self.rows if usage[group][at] > 0}
            if (usage[group][self.capacity == 0] > 0).any():
                continue  # it takes leases that no GPU has
            self.model.add_request((number, group), [value[group] * self.scale], {**units, ("group", group): 1.0})
            self.made += 1
        return float((self.capacity * prices.price).sum() + gain.sum())

    def mix(self) -> tuple[float, Floats]:
        """Solve the master: its value, and its prices."""
        solution = self.session.solve()
        target = np.zeros(self.capacity.shape)
        for at in self.rows:
            target[at] = max(solution.price(at), 0.0) / (self.scale * self.capacity[at])
        self.weight = {r: float(x[0]) for r, _, x in solution.by_request() if len(x) and x[0] > ROUNDING}  # type: ignore[misc]
        return solution.objective / self.scale, target

    def shares(self) -> Floats:
        """Shares of the options in the last mixture."""
        share = np.zeros(len(self.options.job))
        for (number, group), weight in self.weight.items():
            row = self.chosen[number]
            mine = row[(self.group == group) & (row >= 0)]
            share[mine] += weight
        return share

    def deal(self) -> tuple[Ints, Bools]:
        """Give every job one of its group's columns, in the columns' shares: (options, leases).

        The jobs of a group stand in order of size, and take places that are spread evenly over the shares, so that the
        GPUs that they take together are near the mixture's in every lease.
        """
        options = self.options
        row = np.full(options.jobs, -1, dtype=np.int64)
        leases = np.zeros((options.jobs, self.capacity.shape[1]), dtype=bool)
        size = np.zeros(options.jobs)
        np.maximum.at(size, options.job, options.gpus.astype(np.float64))
        for group in range(self.groups):
            active = [(number, weight) for (number, other), weight in self.weight.items() if other == group]
            if not active:
                continue
            jobs = np.flatnonzero(self.group == group)
            jobs = jobs[np.argsort(-size[jobs], kind="stable")]
            place = np.mod((np.arange(len(jobs)) + 0.5) * GOLDEN, 1.0)
            pick = np.searchsorted(np.cumsum([weight for _, weight in active]), place)
            for at, (number, _) in enumerate(active):
                mine = jobs[pick == at]
                mine = mine[self.chosen[number][mine] >= 0]
                row[mine] = self.chosen[number][mine]
                leases[mine] = self.asked[number].leases(options, row[mine]) > 0
        return row, leases


def _weights(options: Options) -> Floats:
    """GPU-leases of each job's first option."""
    size = np.zeros(options.jobs)
    first = options.rows_of()[:-1]
    has = np.flatnonzero(np.diff(options.rows_of()) > 0)
    at = first[has]
    size[has] = options.value[at] / (options.gpus[at] * options.need[at])
    return size
