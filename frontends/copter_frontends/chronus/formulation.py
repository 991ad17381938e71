"""The lease LP: prices by descent, then exact columns on the differential model (docs/chronus.md, C8 to C11)."""

from __future__ import annotations

import time
from dataclasses import dataclass, replace

import numpy as np

from copter import Settings
from copter_frontends.chronus.draft import Draft
from copter_frontends.chronus.free_tail import FreeTail
from copter_frontends.chronus.master import Master
from copter_frontends.chronus.options import Bools, Floats, Ints, Options
from copter_frontends.chronus.pricing import LeasePrices
from copter_frontends.chronus.smoothing import SmoothedDual

SOFT_PRICES = (0.1, 0.02)  # softness of the choice of leases, cold and warm, in units of the mean worth of a GPU-lease
SOFT_WORTH = 0.03  # softness of the choice of options, in units of the largest reward
TOLERANCES = (1e-7, 1e-4)  # least and largest tolerance of the master; between them a twentieth of the gap


@dataclass(frozen=True, slots=True)
class LeaseSolution:
    """A solution of the LP.

    Attributes
    ----------
    value, bound : float
        Reward of the best mixture of columns found, and the certified bound on any plan's.
    prices : LeasePrices
        Those of the bound.
    share : float64 array (rows,)
        Share in which each option is taken: s_ip.
    row : int64 array (jobs,)
        An option for each job, -1 for none, dealt in the shares of the mixture's columns (C11).
    leases : bool array (jobs, leases)
        The leases that go with it.
    columns : int
        Columns made, those of all passes together.
    passes : int
        Solves of the master.
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
    """Descent on the smoothed dual, then Dantzig-Wolfe decomposition with exact pricing in closed form.

    Jobs are dealt to groups. A column is what all jobs of a group do: dealt from the smoothed optimum, or the options
    of most worth, on the cheapest leases, at some prices. The master mixes columns: one share per group, one row per
    (GPU type, lease).

    Parameters
    ----------
    groups : int
        Groups of jobs; more of them converge in fewer passes that take longer.
    gap : float
        Relative gap between mixture and bound at which it stops.
    max_passes : int
    smoothing : float
        Weight of the best prices so far in the prices that are tried next, from 0 to below 1.
    evaluations : int
        Of the smoothed dual, at most.
    deals : int
        Columns per group that are drawn from its optimum.
    settings : copter.Settings, optional
        Of the master's solver.
    """

    groups: int = 100
    gap: float = 5e-3
    max_passes: int = 40
    smoothing: float = 0.5
    evaluations: int = 50
    deals: int = 4
    settings: Settings | None = None

    def solve(
        self,
        options: Options,
        capacity: Ints,
        start: Floats | None = None,
        origin: Draft | None = None,
        time_limit_s: float = 10.0,
    ) -> LeaseSolution:
        """Solve max sum V s over plans of whole lease sets, mixed (C10).

        Parameters
        ----------
        options : Options
        capacity : int64 array (types, leases)
        start : float64 array (types, leases), optional
            Prices to begin with: the last cycle's, moved on by the leases gone.
        origin : Draft, optional
            A plan of the same options. The promises that it keeps are kept in every mixture. Other promised jobs are
            treated as jobs without a promise: it is not known whether theirs can still be kept.
        time_limit_s : float
            Checked between passes; the bound holds whenever it ends.
        """
        until = time.perf_counter() + time_limit_s
        tail = FreeTail.of(options, capacity)
        origin = tail.origin(tail.reduced, capacity, Draft(options, capacity) if origin is None else origin)
        options = tail.reduced
        capacity = capacity[:, : tail.scarce]
        start = None if start is None else start[:, : tail.scarce]
        options = replace(options, must=options.must & (origin.row >= 0))
        master = Master(options, capacity, self.groups, self._settings(), origin)
        best = LeasePrices(np.zeros(capacity.shape) if start is None else start)
        bound = best.bound(options, capacity)
        if len(options.job):
            best, bound = self._descend(master, best, bound, cold=start is None)
        result, passes = master.price(best), 0
        while True:
            passes += 1
            value, target = master.mix()
            if bound - value <= self.gap * abs(bound) or passes >= self.max_passes or time.perf_counter() > until:
                break
            weight = self.smoothing if result <= bound or passes % 2 else 0.0
            prices = LeasePrices(weight * best.price + (1.0 - weight) * target)
            result = master.price(prices)
            if result < bound:
                bound, best = result, prices
        row, early = master.deal()
        leases, prices = tail.leases(row, early), LeasePrices(tail.prices(best.price))
        return LeaseSolution(min(value, bound), bound, prices, master.shares(), row, leases, master.made, passes)

    def _descend(self, master: Master, best: LeasePrices, bound: float, cold: bool) -> tuple[LeasePrices, float]:
        """Better prices, their bound, and columns dealt at them."""
        options, capacity = master.options, master.capacity
        mean = options.most / max(float(capacity.sum()), 1.0)
        price = np.full(capacity.shape, 0.5 * mean) if cold else best.price
        worth = SOFT_WORTH * float(options.value.max())
        for soft in SOFT_PRICES if cold else SOFT_PRICES[1:]:
            dual = SmoothedDual(options, capacity, soft * mean, worth)
            price = dual.descend(price, self.evaluations)
        mixed = dual.mixed(price)
        for number in range(self.deals):
            master.add(*dual.deal(mixed, master.order, number / self.deals))
        prices = LeasePrices(price)
        reached = prices.bound(options, capacity)
        return (prices, reached) if reached < bound else (best, bound)

    def _settings(self) -> Settings:
        if self.settings is not None:
            return self.settings
        tolerance = float(np.clip(0.05 * self.gap, *TOLERANCES))
        return Settings(
            tolerance=tolerance, absolute_tolerance=tolerance, purify=False, threads=1, sigma=100.0, warm_sigma=1e4
        )
