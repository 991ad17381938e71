"""Max-min fairness as a sequence of programs, each re-solved from the last basis (TE14).

The level of all unsettled pairs is raised until a link is full, that is, to the highest level at which everything can
be served with a largest utilisation of one. The search comes from above: the duals of a program at too high a level
bound the utilisation at every level, and the level where this bound is one is tried next. A few programs suffice. Then
the pairs whose demand has a price in the last proof can rise no further and are settled.
"""

from __future__ import annotations

import time
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from copter import Settings
from copter_frontends.traffic.errors import DemandError
from copter_frontends.traffic.formulation import TrafficFormulation
from copter_frontends.traffic.network import Floats
from copter_frontends.traffic.paths import Paths
from copter_frontends.traffic.plan import is_stranded
from copter_frontends.traffic.shim import exact_sums, feasible_flows

FULL = 1e-9
"""A level is found when the largest utilisation is this close to one."""

PRICED = 1e-6
"""A demand counts as priced if its dual exceeds this share of the largest dual; smaller duals are rounding errors."""

MOST_STEPS = 60
"""Most programs for one level; then the last one is used."""

CLOSE = 1e-8
"""A program counts as solved if its relative residuals and gap are at most this, even if an absolute residual is too
large: with flows of hundreds, residuals of 1e-6 remain. The shim makes the returned flows exactly feasible.
"""


@dataclass(frozen=True, slots=True, eq=False)
class FairPlan:
    """Max-min fair flows: raising any pair's flow would lower the flow of a pair that has no more.

    Attributes
    ----------
    flows : ndarray (paths,)
        Exactly feasible flows.
    share : ndarray (pairs,)
        Level that each pair reached: its flow divided by its weight.
    levels : ndarray
        Levels at which pairs were settled, ascending.
    programs : int
        Number of programs solved.
    settled : ndarray (pairs,) of bool
        Pairs whose level is final; if `most_levels` ended the sequence, the others have at least the last level.
    seconds : float
    """

    flows: Floats
    share: Floats
    levels: Floats
    programs: int
    settled: NDArray[np.bool_]
    seconds: float


def max_min_fair(
    paths: Paths,
    demands: Floats,
    capacity: Floats | None = None,
    weight: str = "demand",
    most_levels: int = 1000,
    settings: Settings | None = None,
) -> FairPlan:
    """Compute max-min fair flows.

    Parameters
    ----------
    paths : Paths
    demands : ndarray (pairs,)
    capacity : ndarray (arcs,), optional
        Capacities; those of the network by default.
    weight : {"demand", "equal"}
        Whether to share fairly the served part of each demand, or the flow itself.
    most_levels : int
        The sequence ends after this many levels: pairs settled by then have exact shares, the others at least the last
        level.
    settings : Settings, optional

    Raises
    ------
    DemandError
    """
    if weight not in ("demand", "equal"):
        raise DemandError(f"unknown weight {weight!r}: demand or equal")
    started = time.perf_counter()
    filling = Filling(paths, demands, capacity, weight, settings)
    while filling.rising.any() and len(filling.levels) < most_levels:
        filling.raise_level()
    served = np.where(filling.rising, filling.asked(filling.level), filling.reached)
    flows = filling.flows(served)
    share = np.divide(served, filling.weight, out=np.zeros_like(served), where=filling.weight > 0.0)
    seconds = time.perf_counter() - started
    return FairPlan(flows, share, np.array(filling.levels), filling.programs, ~filling.rising, seconds)


class Filling:
    """State of the progressive filling.

    Attributes
    ----------
    rising : ndarray (pairs,) of bool
        Pairs that are not settled.
    reached : ndarray (pairs,)
        Flow of the settled pairs.
    level : float
        Level of the other pairs.
    """

    def __init__(
        self, paths: Paths, demands: Floats, capacity: Floats | None, weight: str, settings: Settings | None
    ) -> None:
        self.paths, self.demands = paths, np.asarray(demands, dtype=np.float64)
        self.form = TrafficFormulation(paths, demands, "utilisation", settings)
        if capacity is not None:
            self.form.set_capacity(np.arange(len(capacity)), capacity)
        self.capacity = self.form.capacity
        self.weight = self.demands if weight == "demand" else (self.demands > 0.0).astype(np.float64)
        self.rising = (self.demands > 0.0) & ~is_stranded(paths, self.capacity)
        self.reached, self.level = np.zeros(paths.n_pairs), 0.0
        self.levels: list[float] = []
        self.programs = 0
        self._solution: Floats = np.zeros(paths.n_paths)

    def asked(self, level: float) -> Floats:
        """Return every pair's flow when the rising pairs are at a level."""
        return np.where(self.rising, np.minimum(level * self.weight, self.demands), self.reached)

    def utilisation(self, level: float) -> tuple[float, Floats]:
        """Return (the least possible largest utilisation at a level, its derivative by every pair's flow)."""
        self.form.set_demands(self.asked(level))
        solution = self.form.session.solve()
        self.programs += 1
        rest = solution.residuals
        if solution.status.value != "optimal" and not max(rest.primal, rest.dual, rest.gap) <= CLOSE:
            raise DemandError(f"a program of the sequence ended {solution.status.value}: its figures are too far apart")
        self._solution = self.form._flows(solution)
        dual = np.zeros(self.paths.n_pairs)
        dual[self.form.requests] = solution.limit_duals(self.form.requests)
        return solution.objective, np.maximum(dual, 0.0)

    def raise_level(self) -> None:
        """Find the next level, from above, and settle the pairs that can rise no further."""
        level = float((self.demands[self.rising] / self.weight[self.rising]).max())
        used, dual = self.utilisation(level)
        binding = np.zeros(self.paths.n_pairs)
        for _ in range(MOST_STEPS):
            if used <= 1.0 + FULL:
                break
            binding = dual
            lower = self.level_at_one(dual)
            if lower >= level * (1.0 - FULL):
                level = lower
                break
            level = lower
            used, dual = self.utilisation(level)
        self.settle(level, binding)

    def level_at_one(self, dual: Floats) -> float:
        """Return the level at which the utilisation proven by these duals reaches one; higher levels are impossible.

        The proof is the duals' sum over what the pairs ask for, which is concave and piecewise linear in the level.
        """
        up = np.flatnonzero(self.rising & (dual > 0.0) & (self.weight > 0.0))
        fixed = float(dual[~self.rising] @ self.reached[~self.rising])
        ends = self.demands[up] / self.weight[up]
        order = np.argsort(ends)
        slope, ends = (dual * self.weight)[up][order], ends[order]
        at_end = fixed + np.cumsum(slope * ends) + ends * (slope.sum() - np.cumsum(slope))
        first = int(np.searchsorted(at_end, 1.0))
        if first == len(ends):
            return self.level
        before = fixed + float((slope * ends)[:first].sum())
        return max(self.level, (1.0 - before) / float(slope[first:].sum()))

    def settle(self, level: float, binding: Floats) -> None:
        """Fix the flows of the pairs that reach their full demand, or that limit the level (their demand has a
        price).
        """
        asked = self.asked(level)
        whole = self.rising & (asked >= self.demands * (1.0 - FULL))
        priced = self.rising & (binding > PRICED * float(binding.max(initial=0.0)))
        done = whole | priced
        if not done.any():  # rounding has hidden the prices: settle all rising pairs
            done = self.rising.copy()
        self.reached[done] = asked[done]
        self.level = level
        self.levels.append(level)
        self.rising &= ~done

    def flows(self, served: Floats) -> Floats:
        """Return the last program's flows, scaled to the settled flow of every pair; exactly feasible."""
        self.form.set_demands(served)
        solution = self.form.session.solve()
        self.programs += 1
        flows = np.maximum(self.form._flows(solution), 0.0)
        total = exact_sums(self.paths, flows)[0]
        factor = np.divide(served, total, out=np.zeros_like(total), where=total > 0.0)
        return feasible_flows(self.paths, flows * factor[self.paths.pair_of], served, self.capacity, refill=False)
