"""The lease LP: prices by descent, then exact column generation in one session (papers/chronus.md, C11 to C14)."""

from __future__ import annotations

import time
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from copter import Settings
from copter_frontends.policies.chronus.column_pool import ColumnPool
from copter_frontends.policies.chronus.draft import Draft
from copter_frontends.policies.chronus.free_tail import FreeTail
from copter_frontends.policies.chronus.lease_blocks import LeaseBlocks
from copter_frontends.policies.chronus.lease_model import LeaseModel, Mixture
from copter_frontends.policies.chronus.options import Bools, Floats, Ints, Options
from copter_frontends.policies.chronus.pricing import LeasePrices
from copter_frontends.policies.chronus.smoothing import GOLDEN, SmoothedDual
from copter_frontends.policy_kit import Edits

# softness of the choice of leases (C11), cold and warm, relative to the mean worth of a GPU-lease
SOFT_PRICES = (0.1, 0.02)
SOFT_WORTH = 0.03  # softness of the choice of options (C11), relative to the largest reward
LOOSE = 0.05  # tolerance of the engine, relative to the remaining gap
TOLERANCES = (1e-7, 1e-2)  # smallest and largest relative tolerance of the engine
STAY_SHARE = 0.25  # the jobs outside the model may together cause at most this share of the gap
# at least so many jobs are freed; all are freed if at least this share of them would be
FREE_LEAST, ALMOST_ALL = 64, 0.7
ROUNDED = 1e-9  # in dealing, a place this close to the end of a job's shares counts as beyond the end
WORTH_IT = 0.05  # least gain of a new column, relative to the product of the gap and its job's best reward


@dataclass(frozen=True, slots=True)
class LeaseSolution:
    """A solution of the LP.

    Attributes
    ----------
    value, bound : float
        Reward of the best mixture of columns found, and the certified bound on the reward of any plan.
    prices : LeasePrices
        Prices that certify the bound.
    share : float64 array (rows,)
        Share in which each option is taken: s_ip.
    row : int64 array (jobs,)
        An option for each job, -1 for none, drawn with the shares of the mixture's columns as probabilities (C14).
    leases : bool array (jobs, leases)
        The leases of the drawn options.
    columns : int
        Number of columns of the model.
    passes : int
        Number of solves of the engine.
    edits : Edits
        Edits of the engine's model.
    """

    value: float
    bound: float
    prices: LeasePrices
    share: Floats
    row: Ints
    leases: Bools
    columns: int
    passes: int
    edits: Edits

    @property
    def gap(self) -> float:
        """Bound minus value, relative to the bound."""
        return (self.bound - self.value) / max(abs(self.bound), 1e-12)


class LeaseFormulation:
    """Solver of the lease LP: descent on the smoothed dual, then decomposition by jobs with exact pricing.

    A column is a whole lease set of a job. Columns, prices and the engine's state are kept from cycle to cycle. The
    first cycle draws columns from the smoothed optimum; later cycles start from the kept columns and add attractive
    ones.

    Parameters
    ----------
    gap : float
        The solver stops at this relative gap between mixture and bound.
    max_passes : int
    smoothing : float
        Weight of the best prices so far in the prices tried next; at least 0 and below 1.
    evaluations : int
        Largest number of evaluations of the smoothed dual.
    deals : int
        Columns per job that are drawn from the smoothed optimum.
    settings : copter.Settings, optional
        Settings of the engine.

    Attributes
    ----------
    lease_model : LeaseModel
    """

    def __init__(
        self,
        gap: float = 5e-3,
        max_passes: int = 40,
        smoothing: float = 0.5,
        evaluations: int = 50,
        deals: int = 4,
        settings: Settings | None = None,
    ) -> None:
        self.gap, self.max_passes, self.smoothing = gap, max_passes, smoothing
        self.evaluations, self.deals = evaluations, deals
        tolerance = float(np.clip(LOOSE * gap, *TOLERANCES))
        self.lease_model = LeaseModel(
            settings or Settings(tolerance=tolerance, absolute_tolerance=tolerance, threads=1)
        )
        self._pool = ColumnPool()

    def solve(
        self,
        options: Options,
        capacity: Ints,
        start: Floats | None = None,
        origin: Draft | None = None,
        time_limit_s: float = 10.0,
        *,
        gap: float | None = None,
        names: Sequence[Hashable] | None = None,
        first: int = 0,
    ) -> LeaseSolution:
        """Solve max sum V s over mixtures of whole lease sets (C13).

        Parameters
        ----------
        options : Options
        capacity : int64 array (types, leases)
        start : float64 array (types, leases), optional
            Prices to start from: those of the last cycle without the past leases.
        origin : Draft, optional
            A plan of the same options. Every mixture keeps the promises that this plan keeps. Other promised jobs are
            treated as jobs without a promise, because it is unknown whether their promises can still be kept.
        time_limit_s : float
            Time limit of the whole solve; the bound is valid in any case.
        gap : float, optional
            Replaces the formulation's own gap.
        names : sequence of hashable, optional
            Names of the jobs, by which later solves recognise them; by default their numbers.
        first : int
            Absolute number of the first lease.
        """
        until, gap = time.perf_counter() + time_limit_s, self.gap if gap is None else gap
        tail = FreeTail.of(options, capacity)
        origin = Draft(options, capacity) if origin is None else origin
        options = replace(options, must=options.must & (origin.row >= 0))
        work = _Cycle(self, options, capacity, tail, gap, until, first)
        self.lease_model.begin()
        self._pool.move_to(options, list(range(options.jobs)) if names is None else names, first, tail.horizon)
        cold = start is None or not len(self._pool)
        best = LeasePrices(np.zeros(work.scarce.shape) if start is None else start[:, : tail.scarce])
        bound = best.bound(work.reduced, work.scarce)
        if len(options.job) and cold:
            best, bound = work.descend(best, bound, cold=start is None)
        return work.passes(best, bound, origin)


class _Cycle:
    """One solve of the formulation."""

    def __init__(
        self,
        owner: LeaseFormulation,
        options: Options,
        capacity: Ints,
        tail: FreeTail,
        gap: float,
        until: float,
        first: int = 0,
    ) -> None:
        self.owner, self.pool, self.model = owner, owner._pool, owner.lease_model
        self.options, self.tail, self.gap, self.until = options, tail, gap, until
        self.reduced = replace(tail.reduced, must=options.must)
        self.scarce = capacity[:, : tail.scarce]
        self.blocks = LeaseBlocks.of(first, tail.scarce)
        self.free = np.ones(options.jobs, dtype=bool)
        self.left = 0.0  # relative gap between mixture and bound

    def passes(self, best: LeasePrices, bound: float, origin: Draft) -> LeaseSolution:
        """Mix columns, add columns by price and free more jobs until the gap is closed."""
        options, owner, pool = self.options, self.owner, self.pool
        self.free = self.furthest(best, bound, origin)
        result, passes = self.price(best), 0
        mixture = Mixture(origin.reward, np.zeros(self.scarce.shape), np.zeros(len(pool)))
        freed: Bools = np.zeros(options.jobs, dtype=bool)  # jobs planned again
        while self.free.any() and bound - mixture.value > self.gap * abs(bound):
            self.left = (bound - mixture.value) / abs(bound)
            found = self.mix(origin)
            passes += 1
            if found is None:
                break
            mixture, freed, pool.resting = found, self.free, np.zeros(len(pool), dtype=bool)
            enough = bound - mixture.value <= self.gap * abs(bound)
            if enough or passes >= owner.max_passes or time.perf_counter() > self.until:
                break
            weight = owner.smoothing if result <= bound or passes % 2 else 0.0
            prices = LeasePrices(weight * best.price + (1.0 - weight) * mixture.price)
            if not self.free.all():
                self.free = self.free | self.furthest(prices, bound, origin)
            result = self.price(prices)
            if result < bound:
                bound, best = result, prices
        share = np.zeros(len(pool))
        share[: len(mixture.share)] = mixture.share
        self.free = freed  # the other jobs keep their leases of `origin`
        if freed.any():
            pool.resting = share == 0.0
        row, leases = self.deal(share, origin)
        by_option: Floats = np.zeros(len(options.job))
        np.add.at(by_option, pool.row, share)
        stay = np.flatnonzero(~self.free & (origin.row >= 0))
        by_option[origin.row[stay]] = 1.0
        whole = LeasePrices(self.tail.prices(best.price))
        count, edits = self.model.model.n_columns, self.model.edits
        return LeaseSolution(min(mixture.value, bound), bound, whole, by_option, row, leases, count, passes, edits)

    def furthest(self, prices: LeasePrices, bound: float, origin: Draft) -> Bools:
        """Return the fewest jobs to plan again such that all other jobs together regret less than a share of the gap.

        The gap is the sum of the jobs' regrets and the price of the idle GPUs.
        """
        options = self.reduced
        gain = options.best_of_jobs(prices.worth(options), must=True)[1]
        has = np.flatnonzero(origin.row >= 0)
        row, early = origin.row[has], origin.taken[has, : self.tail.scarce]
        paid = options.gpus[row] * np.einsum("nk,nk->n", early, prices.price[options.kind[row]])
        regret = gain.copy()
        regret[has] -= options.value[row] - paid
        order = np.argsort(-regret, kind="stable")
        rest = regret.sum() - np.cumsum(regret[order])
        most = STAY_SHARE * self.gap * abs(bound)
        take = max(int(np.searchsorted(-rest, -most)) + 1, FREE_LEAST)
        free = np.zeros(options.jobs, dtype=bool)
        free[order[:take]] = True
        return free if take < ALMOST_ALL * options.jobs else np.ones(options.jobs, dtype=bool)

    def mix(self, origin: Draft) -> Mixture | None:
        """Return the best mixture of the freed jobs' columns in the capacity that other jobs leave."""
        options, pool = self.options, self.pool
        stay = np.flatnonzero(~self.free & (origin.row >= 0))
        has = np.flatnonzero(self.free & (origin.row >= 0))
        pool.add(options, origin.row[has], origin.taken[has])
        room = self.scarce.copy()
        row = origin.row[stay]
        for q in range(len(room)):
            mine = np.flatnonzero(options.kind[row] == q)
            room[q] -= options.gpus[row[mine]] @ origin.taken[stay[mine], : self.tail.scarce].astype(np.int64)
        blocks = self.blocks
        room = blocks.total(room)
        self.model.set_program(options, pool, room, blocks, self.free)
        tolerance = float(np.clip(LOOSE * max(self.left, self.gap), *TOLERANCES))
        found = self.model.mix(options, pool, room, self.until - time.perf_counter(), tolerance)
        if found is None:
            return None
        value = found.value + float(options.value[row].sum())
        return replace(found, value=value, price=blocks.spread(found.price))

    def price(self, prices: LeasePrices) -> float:
        """Add columns worth more at these prices than all of their jobs' columns; returns the bound (C10)."""
        options, pool = self.reduced, self.pool
        worth = prices.worth(options)
        row, gain = options.best_of_jobs(worth, must=True)
        bound = float((self.scarce * prices.price).sum() + gain.sum())
        have = np.where(options.must, -np.inf, 0.0)
        own = self.options.value[pool.row] - self.options.gpus[pool.row] * self.cost_of(prices)
        np.maximum.at(have, pool.job, own)
        least = WORTH_IT * self.gap * options.best_of_jobs(options.value)[1] + 1e-12
        new = np.flatnonzero(self.free & (row >= 0) & (gain - have > least))
        if len(new):
            self.renew(new)
            pool.add(self.options, row[new], self.tail.leases(row[new], prices.leases(options, row[new]) > 0))
        return bound

    def cost_of(self, prices: LeasePrices) -> Floats:
        """Return the cost of every column's leases, for one GPU."""
        pool, kind = self.pool, self.options.kind[self.pool.row]
        early = pool.leases[:, : self.tail.scarce]
        cost = np.zeros(len(pool))
        for q in range(len(self.scarce)):
            mine = np.flatnonzero(kind == q)
            cost[mine] = early[mine] @ prices.price[q]
        return cost

    def renew(self, jobs: Ints) -> None:
        """Drop the resting columns of jobs that are added to the model again anyway."""
        again = np.zeros(self.options.jobs, dtype=bool)
        again[jobs] = True
        idle = self.pool.resting & again[self.pool.job]
        if idle.any():
            self.pool.drop(idle)

    def deal(self, share: Floats, origin: Draft) -> tuple[Ints, Bools]:
        """Draw one column or none for every job, with the columns' shares as probabilities (C14).

        Jobs are sorted by worth and size and drawn at evenly spread places in the shares, so that in every lease they
        together use nearly as many GPUs as the mixture.
        """
        options, pool = self.options, self.pool
        row, leases = origin.row.copy(), origin.taken.copy()
        row[self.free], leases[self.free] = -1, False
        order, start = pool.by_job(options.jobs)
        total = np.concatenate(([0.0], np.cumsum(share[order])))
        place = np.empty(options.jobs)
        place[np.lexsort((-options.size, _worth_of_a_lease(options)))] = np.mod(
            (np.arange(options.jobs) + 0.5) * GOLDEN, 1.0
        )
        held = total[start[1:]] - total[start[:-1]]
        place *= np.where(options.must, held, np.maximum(held, 1.0))
        takes = np.flatnonzero(self.free & (place < held - ROUNDED))
        column = order[np.searchsorted(total, total[start[takes]] + place[takes], side="right") - 1]
        row[takes], leases[takes] = pool.row[column], pool.leases[column]
        return row, leases

    def descend(self, best: LeasePrices, bound: float, cold: bool) -> tuple[LeasePrices, float]:
        """Return better prices and their bound, or the given ones; columns drawn at the new prices go into the pool."""
        options, capacity, owner = self.reduced, self.scarce, self.owner
        mean = options.most / max(float(capacity.sum()), 1.0)
        price = np.full(capacity.shape, 0.5 * mean) if cold else best.price
        worth = SOFT_WORTH * float(options.value.max())
        for soft in SOFT_PRICES if cold else SOFT_PRICES[1:]:
            dual = SmoothedDual(options, capacity, soft * mean, worth)
            price = dual.descend(price, owner.evaluations)
        mixed, order = dual.mixed(price), np.empty(options.jobs, dtype=np.int64)
        order[np.lexsort((-options.size, _worth_of_a_lease(options)))] = np.arange(options.jobs)
        for number in range(owner.deals):
            row, early = dual.deal(mixed, order, number / owner.deals)
            has = np.flatnonzero(row >= 0)
            self.pool.add(self.options, row[has], self.tail.leases(row, early)[has])
        prices = LeasePrices(price)
        reached = prices.bound(options, capacity)
        return (prices, reached) if reached < bound else (best, bound)


def _worth_of_a_lease(options: Options) -> Floats:
    """Return the reward per GPU-lease of each job's first option."""
    worth, first = np.zeros(options.jobs), options.rows_of()
    has = np.flatnonzero(np.diff(first) > 0)
    at = first[has]
    worth[has] = options.value[at] / (options.gpus[at] * np.maximum(options.need[at], 1))
    return worth
