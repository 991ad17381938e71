"""The result of a scheme: path flows and their quality."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from copter_frontends.traffic.flow_kernels import stranded_pairs
from copter_frontends.traffic.network import Floats, Ints
from copter_frontends.traffic.paths import Paths
from copter_frontends.traffic.shim import exact_sums

OBJECTIVES = ("total", "concurrent", "utilisation", "proportional")
"""Total flow (TE1); the largest common share of all demands (TE2); the least largest utilisation (TE3); proportional
fairness (TE21)."""
FLOOR = (
    1e-3  # share of its demand that a pair counts as served in addition, so that one without flow has a finite worth
)


@dataclass(frozen=True, slots=True, eq=False)
class FlowPlan:
    """Flows that exceed no link and no demand, in exact arithmetic.

    The objective ``utilisation`` is an exception: all demands are served, so flows may exceed capacities; the objective
    says by how much.

    Attributes
    ----------
    flows : ndarray (paths,)
    served : ndarray (pairs,)
    load : ndarray (arcs,)
    objective : float
        Total flow, common share, largest utilisation or mean share (TE21) of these flows.
    bound : float
        Certified bound: no flows have a better objective. NaN if the scheme has no bound.
    status : {"optimal", "feasible", "kept_previous"}
    prices : ndarray (arcs,)
        Change of the objective per unit of capacity; empty if the scheme has no prices.
    stranded : ndarray of pairs
        Pairs with a demand but without a path whose links all have capacity.
    seconds : dict
        Times of the round's ``edit``, ``solve`` and ``shim``.
    iterations : int
    """

    flows: Floats
    served: Floats
    load: Floats
    objective: float
    bound: float
    status: str
    prices: Floats = field(default_factory=lambda: np.zeros(0))
    stranded: Ints = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    seconds: dict[str, float] = field(default_factory=dict)
    iterations: int = 0

    @property
    def total(self) -> float:
        """Total flow of all paths."""
        return float(self.served.sum())

    @property
    def gap(self) -> float:
        """Distance of the objective from the bound, relative to the bound."""
        return abs(self.bound - self.objective) / max(abs(self.bound), 1e-12) if self.bound != self.objective else 0.0

    def utilisation(self, capacity: Floats) -> Floats:
        """Return every arc's load divided by its capacity; zero for arcs with neither."""
        return np.divide(self.load, capacity, out=np.where(self.load > 0.0, np.inf, 0.0), where=capacity > 0.0)


class TrafficScheme(Protocol):
    """Interface of every scheme, opponents included; a failed edit changes nothing."""

    paths: Paths

    def set_demands(self, demands: Floats) -> None:
        """Set the round's demands of all pairs; raises DemandError."""

    def set_capacity(self, arcs: Ints, capacity: Floats) -> None:
        """Set the capacity of some arcs, zero for failed ones; raises NetworkError."""

    def plan(self, deadline_s: float | None = None) -> FlowPlan:
        """Return flows for the round."""


def score(paths: Paths, flows: Floats, demands: Floats, capacity: Floats, objective: str) -> float:
    """Return the objective of flows; stranded pairs do not count for a common share."""
    return score_of(*exact_sums(paths, flows), paths, demands, capacity, objective)


def score_of(served: Floats, load: Floats, paths: Paths, demands: Floats, capacity: Floats, objective: str) -> float:
    """Return the objective from served demands and arc loads."""
    if objective == "total":
        return float(served.sum())
    if objective == "concurrent":
        wanted = (demands > 0.0) & ~is_stranded(paths, capacity)
        return float(np.minimum(served[wanted] / demands[wanted], 1.0).min(initial=1.0))
    if objective == "proportional":
        wanted = (demands > 0.0) & ~is_stranded(paths, capacity)
        return mean_share(np.minimum(served[wanted] / demands[wanted], 1.0), demands[wanted])
    used = load > 0.0
    with np.errstate(divide="ignore"):
        return float((load[used] / capacity[used]).max(initial=0.0))


def mean_share(share: Floats, demands: Floats) -> float:
    """Return the geometric mean of served shares, weighted by demand, each with the floor added (TE21)."""
    if not len(demands):
        return 1.0
    return float(np.exp(demands @ np.log((share + FLOOR) / (1.0 + FLOOR)) / demands.sum()))


def is_stranded(paths: Paths, capacity: Floats) -> NDArray[np.bool_]:
    """Return, for every pair, whether it has no path whose links all have capacity, (pairs,)."""
    if not paths.n_paths:
        return np.ones(paths.n_pairs, dtype=np.bool_)
    return np.asarray(stranded_pairs(paths.first, paths.start, paths.arc, capacity), dtype=np.bool_)


def plan_of(
    paths: Paths,
    flows: Floats,
    demands: Floats,
    capacity: Floats,
    objective: str = "total",
    bound: float = np.nan,
    status: str = "feasible",
    prices: Floats | None = None,
    seconds: dict[str, float] | None = None,
    iterations: int = 0,
) -> FlowPlan:
    """Return the plan of some feasible flows."""
    served, load = exact_sums(paths, flows)
    return FlowPlan(
        flows,
        served,
        load,
        score_of(served, load, paths, demands, capacity, objective),
        bound,
        status,
        np.zeros(0) if prices is None else prices,
        np.flatnonzero(is_stranded(paths, capacity) & (demands > 0.0)),
        seconds or {},
        iterations,
    )
