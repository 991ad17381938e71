"""DeDe's decoupled and decomposed program: links and sources alternate (Xu et al., OSDI 2025).

Each source s has its share x_es of every link e that its paths use, and its flows f >= 0 load the link with z_es.
ADMM makes the two agree: with u the multipliers of x = z, all scaled by rho,

- (TE19) every link by itself: min 1/2 |x - z + u|^2 + 1/2 max(sum_s x_es - capacity_e + t_e, 0)^2 over x >= 0;
- (TE20) every source by itself: min -sum f / rho + 1/2 |z - x - u|^2 + 1/2 sum_d max(F_d - demand_d + w_d, 0)^2.

t and w are the multipliers of capacities and demands. Then u grows by x - z. As published (illinois-nsai/dede, the path
form of its traffic example): rho 0.05 per Mbit/s, 1,000 steps before the first round, 10 in every other, 3 of repair.
"""

from __future__ import annotations

import time

import numpy as np
from numpy.typing import ArrayLike

from copter_frontends.traffic.dede_kernels import links_step, repair_step, sources_step
from copter_frontends.traffic.network import Floats
from copter_frontends.traffic.paths import Paths
from copter_frontends.traffic.scheme import RoundScheme

RHO = 0.05  # DeDe's penalty, as published
FIRST_STEPS, STEPS, REPAIRS = 1000, 10, 3


class DeDe(RoundScheme):
    """DeDe at its published setting, each half step to convergence, started from the last round.

    Parameters
    ----------
    paths, demands
    rho : float
        Penalty, per Mbit/s.
    first_steps, steps, repairs : int
        ADMM steps in the first round, ADMM steps in later rounds, steps of the repair.
    """

    def __init__(
        self, paths: Paths, demands: ArrayLike, rho: float = RHO, first_steps: int = FIRST_STEPS, steps: int = STEPS,
        repairs: int = REPAIRS,
    ) -> None:  # fmt: skip
        super().__init__(paths, demands)
        self.rho, self.first_steps, self.steps, self.repairs = rho, first_steps, steps, repairs
        source = paths.pairs[:, 0]
        self.order = np.argsort(source, kind="stable")
        own = paths.of_pairs(self.order)
        self.own = own
        self.first_pair = np.concatenate(([0], np.flatnonzero(np.diff(source[self.order])) + 1, [own.n_pairs]))
        entry_source = own.pairs[own.pair_of[own.path_of_entry], 0]
        arcs = paths.network.n_arcs
        key, self.cell = np.unique(entry_source * arcs + own.arc, return_inverse=True)
        self.link_of = key % arcs
        self.by_link = np.argsort(self.link_of, kind="stable")
        self.first_cell = np.searchsorted(self.link_of[self.by_link], np.arange(arcs + 1))
        self.flow = np.zeros(own.n_paths)
        self.load, self.given, self.multiplier = np.zeros(len(key)), np.zeros(len(key)), np.zeros(len(key))
        self.link_price, self.demand_price = np.zeros(arcs), np.zeros(own.n_pairs)
        self.begun = False

    def solve(self, deadline_s: float | None) -> tuple[Floats, float, Floats, float | None]:
        """Run the published steps until the deadline; returns repaired flows without a bound."""
        ends = np.inf if deadline_s is None else time.perf_counter() + deadline_s
        demand = self.demands[self.order]
        for _ in range(self.steps if self.begun else self.first_steps):
            self._step(demand)
            if time.perf_counter() >= ends:
                break
        self.begun = True
        flow, load = self.flow.copy(), self.load.copy()
        total, share = np.zeros(len(self.capacity)), np.zeros(len(load))
        for _ in range(self.repairs):
            own = self.own
            repair_step(
                own.first, own.start, self.cell, self.link_of, demand, self.capacity, flow, load, total, share
            )  # fmt: skip
        found = np.zeros(self.paths.n_paths)
        found[self._places()] = flow
        return found, np.nan, np.zeros(0), None

    def _step(self, demand: Floats) -> None:
        """Do one ADMM step: multipliers, links, sources."""
        own = self.own
        self.multiplier += self.given - self.load
        wanted = self.load - self.multiplier
        links_step(self.first_cell, self.by_link, wanted, self.capacity, self.link_price, self.given)
        sources_step(
            self.first_pair, own.first, own.start, self.cell, demand, self.demand_price, self.given + self.multiplier,
            1.0 / self.rho, float(self.capacity.max(initial=0.0)), self.flow, self.load,
        )  # fmt: skip

    def _places(self) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
        """Return each ordered path's index among all paths."""
        counts = np.diff(self.own.first)
        begin = self.paths.first[self.order]
        return np.repeat(begin - self.own.first[:-1], counts) + np.arange(self.own.n_paths)
