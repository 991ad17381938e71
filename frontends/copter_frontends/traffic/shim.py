"""The shim from an LP's point to exactly feasible flows: no link or demand is exceeded in exact arithmetic (TE12)."""

from __future__ import annotations

import numpy as np

from copter_frontends.traffic.flow_kernels import compensated, dead_paths, fill, scale_to_fit
from copter_frontends.traffic.network import Floats, Ints
from copter_frontends.traffic.paths import Paths

KEEP = 1.0 - 16.0 * np.finfo(np.float64).eps
"""Scaled flows use this share of a link or demand; the rest covers rounding errors of sums and products."""

LEAST = 1e-12
"""Flows below this share of the smaller of the largest demand and the largest capacity are set to zero: not worth a
table entry.
"""

MOST_SCALINGS = 8  # most passes of scaling; then paths over exceeded links or demands become zero


def feasible_flows(
    paths: Paths, flows: Floats, demands: Floats, capacity: Floats, refill: bool = True, order: Ints | None = None
) -> Floats:
    """Return flows near `flows` that exceed no link and no demand, in exact arithmetic.

    Negative and missing values become zero. All paths over an exceeded link or demand are scaled down. Then remaining
    capacity and demand is filled greedily.

    Parameters
    ----------
    paths : Paths
    flows : ndarray (paths,)
        The flows; not changed.
    demands : ndarray (pairs,)
    capacity : ndarray (arcs,)
    refill : bool
        Whether to fill remaining capacity and demand.
    order : ndarray of pairs, optional
        Order of filling; by default the largest demands first.

    Returns
    -------
    ndarray (paths,)
    """
    found = np.nan_to_num(flows, nan=0.0, posinf=0.0, neginf=0.0)
    least = LEAST * min(float(demands.max(initial=0.0)), float(capacity.max(initial=0.0)))
    found[found <= least] = 0.0  # this includes negative values
    found[dead_paths(paths.start, paths.arc, capacity)] = 0.0
    served, load = fit(paths, found, demands, capacity)
    if refill:
        want, room = demands * KEEP - served, capacity * KEEP - load
        if order is None:
            order = np.flatnonzero(want > least)
            order = order[np.argsort(-want[order], kind="stable")]
        fill(order, paths.first, paths.start, paths.arc, found, want, room, least)
        fit(paths, found, demands, capacity)
    return found


def prepare(paths: Paths) -> None:
    """Compile all kernels for these paths now, so that compilation delays no round."""
    flows, pairs, arcs = np.zeros(paths.n_paths), np.zeros(paths.n_pairs), np.zeros(paths.network.n_arcs)
    feasible_flows(paths, flows, pairs, arcs)
    scale_to_fit(paths.first, paths.start, paths.arc, flows, pairs, pairs, arcs, arcs, KEEP * KEEP)


def fit(paths: Paths, flows: Floats, demands: Floats, capacity: Floats) -> tuple[Floats, Floats]:
    """Scale flows down, in place, until no link or demand is exceeded; a second pass handles rounding.

    Returns the resulting (flow of every pair, load of every arc).
    """
    for _ in range(MOST_SCALINGS):
        served, load = exact_sums(paths, flows)
        if (served <= demands * KEEP).all() and (load <= capacity * KEEP).all():
            return served, load
        scale_to_fit(paths.first, paths.start, paths.arc, flows, served, demands, load, capacity, KEEP * KEEP)
    served, load = exact_sums(paths, flows)
    over = load[paths.arc] > capacity[paths.arc] * KEEP
    flows[np.unique(paths.path_of_entry[over])] = 0.0  # denormal numbers cannot be scaled down
    flows[(served > demands * KEEP)[paths.pair_of]] = 0.0
    return exact_sums(paths, flows)


def exact_sums(paths: Paths, flows: Floats) -> tuple[Floats, Floats]:
    """Return (flow of every pair, load of every arc), each exact up to two roundings."""
    found = compensated(paths.first, paths.start, paths.arc, flows, paths.network.n_arcs)
    return np.asarray(found[0]), np.asarray(found[1])
