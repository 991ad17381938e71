"""Bounds computed from prices of links only, and so correct for any prices (TE4, TE5)."""

from __future__ import annotations

import numpy as np

from copter_frontends.traffic.flow_kernels import dead_paths
from copter_frontends.traffic.network import Floats
from copter_frontends.traffic.paths import Paths
from copter_frontends.traffic.plan import FLOOR

ROUNDING = 1e-12  # relative amount by which a bound is weakened to cover rounding


def total_flow_bound(paths: Paths, price: Floats, demands: Floats, capacity: Floats) -> float:
    """Return an upper bound on total flow: capacity at its price, plus each demand at the remaining value (TE4)."""
    price = np.maximum(np.nan_to_num(price), 0.0)
    reach = np.maximum(1.0 - paths.least(alive_lengths(paths, price, capacity), none=1.0), 0.0)
    found = float(capacity @ price) + float(demands @ reach)
    return found * (1.0 + ROUNDING)


def utilisation_bound(paths: Paths, price: Floats, demands: Floats, capacity: Floats) -> float:
    """Return a lower bound on the largest utilisation of flows that serve all demands: every demand at its cheapest
    path's price (TE5).
    """
    price = np.maximum(np.nan_to_num(price), 0.0)
    worth = float(capacity @ price)
    if worth <= 0.0:
        return 0.0
    lengths = paths.least(alive_lengths(paths, price, capacity), none=0.0)
    lengths[~np.isfinite(lengths)] = 0.0  # stranded pairs get no flow
    return float(demands @ lengths) / worth * (1.0 - ROUNDING)


def mean_share_bound(paths: Paths, price: Floats, wanted: Floats, demands: Floats, capacity: Floats) -> float:
    """Return an upper bound on the mean share: each pair takes what is best for it at its cheapest path's price (TE21).

    Parameters
    ----------
    wanted : ndarray (pairs,)
        The most that a pair's paths can carry of its demand.
    """
    price = np.maximum(np.nan_to_num(price), 0.0)
    length = paths.least(alive_lengths(paths, price, capacity), none=np.inf)
    alive = (demands > 0.0) & np.isfinite(length)
    if not alive.any():
        return 1.0
    length, demand = length[alive], demands[alive]
    best = np.divide(demand, length, out=np.full_like(demand, np.inf), where=length > 0.0) - FLOOR * demand
    share = np.clip(best, 0.0, wanted[alive]) / demand
    logs, paid = demand * np.log((share + FLOOR) / (1.0 + FLOOR)), length * share * demand
    dual = float(capacity @ price) + float((logs - paid).sum())
    rounding = ROUNDING * (float(capacity @ price) + float(np.abs(logs).sum()) + float(paid.sum()))
    return float(np.exp(min((dual + rounding) / demand.sum() + ROUNDING, 0.0)))


def alive_lengths(paths: Paths, price: Floats, capacity: Floats) -> Floats:
    """Return the sum of prices along every path, (paths,); infinite for a path with an arc without capacity."""
    return np.where(dead_paths(paths.start, paths.arc, capacity), np.inf, paths.lengths(price))
