"""The lease LP on the differential model, by columns that say what all jobs of a group do (docs/chronus.md, C8, C9)."""

from __future__ import annotations

import time
from collections.abc import Hashable, Mapping
from dataclasses import dataclass

import numpy as np

from copter import Model, Session, Settings
from copter_frontends.chronus.options import Bools, Floats, Ints, Options
from copter_frontends.chronus.pricing import LeasePrices

GOLDEN = (5**0.5 - 1) / 2  # multiples of it, modulo 1, are spread evenly
Incumbent = Mapping[int, tuple[int, Ints]]  # job -> (option, leases) of the last plan

LIFT = 4.0  # times the dearest lease known, by which a column is lifted for each lease that is promised
LIFT_PASSES = 5  # passes after which columns are lifted more, where promised jobs are left out in part
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
    gap: float = 2e-3
    max_passes: int = 40
    smoothing: float = 0.6
    settings: Settings | None = None

    def solve(
        self,
        options: Options,
        capacity: Ints,
        start: Floats | None = None,
        incumbent: Incumbent | None = None,
        time_limit_s: float = 10.0,
    ) -> LeaseSolution:
        """Solve max sum V s over plans of whole lease sets, mixed (C8).

        Parameters
        ----------
        options : Options
        capacity : int64 array (types, leases)
        start : float64 array (types, leases), optional
            Prices to begin with: the last cycle's, moved on by the leases gone.
        incumbent : mapping of job to (option, leases), optional
            The last plan: the first column of every group, so that promises can be kept from the first pass on.
        time_limit_s : float
            Checked between passes; the bound holds whenever it ends.
        """
        until = time.perf_counter() + time_limit_s
        master = _Master(
            options, capacity, min(self.groups, max(options.jobs, 1)), self.settings or Settings(purify=False), start
        )
        best = prices = LeasePrices(np.zeros(capacity.shape) if start is None else start)
        bound, value, passes = np.inf, 0.0, 0
        if incumbent:
            master.keep(incumbent)
        if start is not None:
            master.price(LeasePrices(np.zeros(capacity.shape)))
        while True:
            passes += 1
            found = master.price(prices)
            if found < bound:
                bound, best = found, prices
            value, target = master.mix()
            closed = bound - value <= self.gap * abs(bound) + ROUNDING and master.whole
            if closed or passes >= self.max_passes:
                break
            if time.perf_counter() > until:
                break
            if not master.whole and passes % LIFT_PASSES == 0:
                master.lift_more()
            weight = self.smoothing if found <= bound or passes % 2 else 0.0
            prices = LeasePrices(weight * best.price + (1.0 - weight) * target)
        certified = best.bound(options, capacity)
        row, leases = master.deal()
        return LeaseSolution(min(value, certified), certified, best, master.shares(), row, leases, master.made, passes)


class _Master:
    """The restricted master, alive for one solve: edits add columns, each solve goes on from the last."""

    def __init__(self, options: Options, capacity: Ints, groups: int, settings: Settings, start: Floats | None) -> None:
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
        self.asked: list[LeasePrices | Bools] = []  # prices of each pass, or the leases taken in it
        self.lift = self._lifts(start)
        self.weight: dict[tuple[int, int], float] = {}  # of (pass, group) in the last mixture
        self.value: dict[tuple[int, int], float] = {}
        self.made = 0

    def _lifts(self, start: Floats | None) -> Floats:
        """What the columns of each group are lifted by: more than all leases of its promised jobs can be worth."""
        options, first = self.options, self.options.rows_of()[:-1]
        if not options.must.any():
            return np.zeros(self.groups)
        usual = options.most / max(float(self.capacity.sum()), 1.0)
        dearest = max(usual, float(start.max(initial=0.0)) if start is not None else 0.0)
        jobs = np.flatnonzero(options.must & (np.diff(options.rows_of()) > 0))
        leases = (options.gpus * options.need)[first[jobs]].astype(np.float64)
        return np.asarray(LIFT * dearest * np.bincount(self.group[jobs], leases, self.groups), dtype=np.float64)

    def price(self, prices: LeasePrices) -> float:
        """Add the columns that these prices make, and say what bound they give."""
        options = self.options
        row, gain = options.best_of_jobs(prices.worth(options), must=True)
        here = np.flatnonzero(row >= 0)
        self._add(row, prices, prices.usage(options, row[here], self.group[here], self.groups))
        return float((self.capacity * prices.price).sum() + gain.sum())

    def keep(self, incumbent: Incumbent) -> None:
        """Add the columns of the last plan."""
        options = self.options
        row = np.full(options.jobs, -1, dtype=np.int64)
        leases = np.zeros((options.jobs, self.capacity.shape[1]), dtype=bool)
        usage = np.zeros((self.groups, *self.capacity.shape))
        for job, (option, chosen) in incumbent.items():
            row[job] = option
            leases[job, chosen] = True
            usage[self.group[job], int(options.kind[option]), chosen] += options.gpus[option]
        self._add(row, leases, usage)

    def _add(self, row: Ints, source: LeasePrices | Bools, usage: Floats) -> None:
        """One column a group: a resource's coefficient is the share of it that is used.

        Where there are promises every column is lifted by the group's best reward, so that the shares of a group add up
        to one if they can: a promised job may not be dropped with a part of its group.
        """
        here = np.flatnonzero(row >= 0)
        value = np.bincount(self.group[here], self.options.value[row[here]], self.groups)
        size = np.maximum(self.capacity, 1)
        number = len(self.chosen)
        self.chosen.append(row)
        self.asked.append(source)
        for group in np.flatnonzero(value > 0).tolist():
            units: dict[Hashable, list[float]] = {
                at: [float(usage[group][at] / size[at])] for at in self.rows if usage[group][at] > 0
            }
            if (usage[group][self.capacity == 0] > 0).any():
                continue  # it takes leases that no GPU has
            worth = [(value[group] + self.lift[group]) * self.scale]
            self.model.add_request((number, group), worth, {**units, ("group", group): [1.0]})
            self.value[number, group] = float(value[group])
            self.made += 1

    @property
    def whole(self) -> bool:
        """Whether the columns of a group with promises add up to all of it."""
        total = np.zeros(self.groups)
        for (_, group), weight in self.weight.items():
            total[group] += weight
        return bool((total[self.lift > 0] > 1.0 - 1e-4).all())

    def lift_more(self) -> None:
        """Lift all columns of groups with promises by so much again."""
        self.lift *= LIFT
        for (number, group), value in self.value.items():
            if self.lift[group] > 0:
                self.model.update_cost((number, group), [(value + self.lift[group]) * self.scale])

    def mix(self) -> tuple[float, Floats]:
        """Solve the master: its value, and its prices."""
        solution = self.session.solve()
        target = np.zeros(self.capacity.shape)
        for at in self.rows:
            target[at] = max(solution.price(at), 0.0) / (self.scale * self.capacity[at])
        self.weight = {r: float(x[0]) for r, _, x in solution.by_request() if len(x) and x[0] > ROUNDING}  # type: ignore[misc]
        return sum(self.value[at] * weight for at, weight in self.weight.items()), target

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
            total = np.cumsum([weight for _, weight in active])
            pick = np.searchsorted(total / total[-1] if self.lift[group] > 0 else total, place)
            for at, (number, _) in enumerate(active):
                mine = jobs[pick == at]
                mine = mine[self.chosen[number][mine] >= 0]
                row[mine] = self.chosen[number][mine]
                source = self.asked[number]
                leases[mine] = (
                    source.leases(options, row[mine]) > 0 if isinstance(source, LeasePrices) else source[mine]
                )
        return row, leases


def _weights(options: Options) -> Floats:
    """GPU-leases of each job's first option."""
    size = np.zeros(options.jobs)
    first = options.rows_of()[:-1]
    has = np.flatnonzero(np.diff(options.rows_of()) > 0)
    at = first[has]
    size[has] = options.value[at] / (options.gpus[at] * options.need[at])
    return size
