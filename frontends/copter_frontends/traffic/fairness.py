"""Max-min fair flows by levels that prices prove, each program re-solved from the last basis (TE14)."""

from __future__ import annotations

import time
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from copter import MaxMin, NoPlanError, Settings
from copter_frontends.traffic.errors import DemandError
from copter_frontends.traffic.formulation import TrafficFormulation
from copter_frontends.traffic.network import Floats
from copter_frontends.traffic.paths import Paths
from copter_frontends.traffic.shim import exact_sums, feasible_flows


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
    form = TrafficFormulation(paths, demands, "total", settings)
    if capacity is not None:
        form.set_capacity(np.arange(len(capacity)), capacity)
    weights = form.demands if weight == "demand" else (form.demands > 0.0).astype(np.float64)
    pairs = np.array(form.requests, dtype=np.int64)
    wanted = np.where(form.stranded, 0.0, form.demands)[pairs]
    highest = float((wanted / np.where(wanted > 0.0, weights[pairs], 1.0)).max(initial=0.0))
    fair = MaxMin(form.session, form.requests, lambda level: np.minimum(level * weights[pairs], wanted), highest)
    served, settled = np.zeros(paths.n_pairs), np.ones(paths.n_pairs, dtype=bool)
    try:
        served[pairs] = fair.run(most_levels)
    except NoPlanError as error:
        raise DemandError(f"{error}: its figures are too far apart") from None
    settled[pairs] = ~fair.rising
    flows = np.zeros(paths.n_paths) if not fair.programs else np.maximum(form.flows_of(fair.solution), 0.0)
    total = exact_sums(paths, flows)[0]
    factor = np.divide(served, total, out=np.zeros_like(total), where=total > 0.0)
    flows = feasible_flows(paths, flows * factor[paths.pair_of], served, form.capacity, refill=False)
    share = np.divide(served, weights, out=np.zeros_like(served), where=weights > 0.0)
    seconds = time.perf_counter() - started
    return FairPlan(flows, share, np.array(fair.levels), fair.programs, settled, seconds)
