"""The shim from an LP's point to exactly feasible flows: no link or demand is exceeded in exact arithmetic (TE12)."""

from __future__ import annotations

import numpy as np

from copter_frontends.traffic.flow_kernels import compensated, dead_paths, fill, scale_to_fit
from copter_frontends.traffic.network import Floats, Ints
from copter_frontends.traffic.paths import Paths

KEEP = 1.0 - 16.0 * np.finfo(np.float64).eps
"""Share of a link or demand that scaled flows may use: what is left covers the roundings of sums and products."""

LEAST = 1e-12
"""Flows below this share of the largest demand, or capacity where that is less, are not worth an entry in a table."""

MOST_SCALINGS = 8  # most passes of scaling; paths that are over a link or demand after them become zero


def feasible_flows(
    paths: Paths, flows: Floats, demands: Floats, capacity: Floats, refill: bool = True, order: Ints | None = None
) -> Floats:
    """Flows near `flows` that exceed no link and no demand, in exact arithmetic.

    Negative and missing values are zero; a link or demand that is over is scaled down along all its paths; what is
    then left of links and demands is filled greedily.

    Parameters
    ----------
    paths : Paths
    flows : ndarray (paths,)
        Not changed.
    demands : ndarray (pairs,)
    capacity : ndarray (arcs,)
    refill : bool
        Whether to fill what is left.
    order : ndarray of pairs, optional
        In which they are filled; the largest demands first if not given.

    Returns
    -------
    ndarray (paths,)
    """
    found = np.nan_to_num(flows, nan=0.0, posinf=0.0, neginf=0.0)
    least = LEAST * min(float(demands.max(initial=0.0)), float(capacity.max(initial=0.0)))
    found[found <= least] = 0.0  # negative ones among them
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
    """Have all kernels compiled for these paths, so that no deadline meets a compiler."""
    flows, pairs, arcs = np.zeros(paths.n_paths), np.zeros(paths.n_pairs), np.zeros(paths.network.n_arcs)
    feasible_flows(paths, flows, pairs, arcs)
    scale_to_fit(paths.first, paths.start, paths.arc, flows, pairs, pairs, arcs, arcs, KEEP * KEEP)


def fit(paths: Paths, flows: Floats, demands: Floats, capacity: Floats) -> tuple[Floats, Floats]:
    """Scale flows down, in place, until none is over; a second pass handles rounding.

    Returns (flow of every pair, load of every arc) as they then are.
    """
    for _ in range(MOST_SCALINGS):
        served, load = exact_sums(paths, flows)
        if (served <= demands * KEEP).all() and (load <= capacity * KEEP).all():
            return served, load
        scale_to_fit(paths.first, paths.start, paths.arc, flows, served, demands, load, capacity, KEEP * KEEP)
    served, load = exact_sums(paths, flows)
    over = load[paths.arc] > capacity[paths.arc] * KEEP
    flows[np.unique(paths.path_of_entry[over])] = 0.0  # denormal figures, which no product brings down
    flows[(served > demands * KEEP)[paths.pair_of]] = 0.0
    return exact_sums(paths, flows)


def exact_sums(paths: Paths, flows: Floats) -> tuple[Floats, Floats]:
    """(flow of every pair, load of every arc), each correct to two roundings."""
    found = compensated(paths.first, paths.start, paths.arc, flows, paths.network.n_arcs)
    return np.asarray(found[0]), np.asarray(found[1])
