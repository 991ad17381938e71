"""Base of schemes without a session: the round's demands and capacities."""

from __future__ import annotations

import time
from abc import ABC, abstractmethod

import numpy as np
from numpy.typing import ArrayLike

from copter_frontends.traffic.demands import checked_demands
from copter_frontends.traffic.errors import DemandError, UnknownPairError
from copter_frontends.traffic.formulation import PairNames
from copter_frontends.traffic.network import Floats
from copter_frontends.traffic.paths import Paths
from copter_frontends.traffic.plan import FlowPlan, plan_of
from copter_frontends.traffic.shim import feasible_flows


class RoundScheme(ABC):
    """Base of baselines that solve each round separately for the largest total flow.

    Parameters
    ----------
    paths : Paths
    demands : array_like (pairs,)
    """

    refill = False  # whether remaining capacity is filled greedily, as copter's shim does; opponents run as published

    def __init__(self, paths: Paths, demands: ArrayLike) -> None:
        self.paths, self.names = paths, PairNames(paths)
        self.demands = checked_demands(self.names, demands)  # type: ignore[arg-type]
        self.capacity = paths.network.capacity.copy()

    def set_demands(self, demands: ArrayLike) -> None:
        """Set the demands of all pairs; raises DemandError."""
        self.demands = checked_demands(self.names, demands)  # type: ignore[arg-type]

    def set_capacity(self, arcs: ArrayLike, capacity: ArrayLike) -> None:
        """Set the capacity of some arcs; raises NetworkError or UnknownPairError."""
        places = np.atleast_1d(np.array(arcs, dtype=np.int64))
        for arc in places[(places < 0) | (places >= len(self.capacity))][:1].tolist():
            raise UnknownPairError(f"there is no arc {arc}: arcs are 0 to {len(self.capacity) - 1}")
        given = np.broadcast_to(np.asarray(capacity, dtype=np.float64), places.shape)
        self.paths.network.require_capacities(places, given)
        self.capacity[places] = given

    def plan(self, deadline_s: float | None = None) -> FlowPlan:
        """Return flows for the round."""
        if deadline_s is not None and not deadline_s > 0.0:
            raise DemandError(f"the deadline is {deadline_s} s: give a positive number, or none")
        started = time.perf_counter()
        flows, bound, prices, solve_s = self.solve(deadline_s)
        solved = time.perf_counter()
        found = feasible_flows(self.paths, flows, self.demands, self.capacity, self.refill)
        shim_s = time.perf_counter() - solved
        spent = solved - started if solve_s is None else solve_s
        return plan_of(
            self.paths, found, self.demands, self.capacity, bound=bound, prices=prices,
            seconds={"edit": 0.0, "solve": spent, "shim": shim_s},
        )  # fmt: skip

    @abstractmethod
    def solve(self, deadline_s: float | None) -> tuple[Floats, float, Floats, float | None]:
        """Return (flows, bound or NaN, prices or empty, seconds to report or None for the measured ones)."""
