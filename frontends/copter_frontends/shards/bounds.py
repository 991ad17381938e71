"""Lower bounds on a round's cost: from prices (SH4), and from servers that need a new copy in any plan (SH5)."""

from __future__ import annotations

import numpy as np

from copter_frontends.shards.cluster import Floats, ShardCluster

ROUNDING = 1e-9  # relative amount by which a bound is lowered to cover rounding


def price_bound(cluster: ShardCluster, load: Floats, price: Floats, memory_price: Floats) -> tuple[float, Floats]:
    """Return (bound, least reduced cost of every shard): the Lagrangian bound at any prices of servers (SH4).

    Parameters
    ----------
    cluster : ShardCluster
    load : ndarray (shards,)
        Loads in units of the mean load of a server.
    price : ndarray (servers,)
        Prices of load; positive for a server that needs more load.
    memory_price : ndarray (servers,)
        Prices of memory, at most zero.
    """
    up, memory_price = cluster.is_up, np.minimum(memory_price, 0.0)
    least = np.empty(cluster.n_shards)
    step = max(1, 4_000_000 // cluster.n_servers)
    for first in range(0, cluster.n_shards, step):
        own = slice(first, first + step)
        reduced = reduced_costs(cluster, load, price, memory_price, own)
        least[own] = reduced[:, up].min(axis=1)
    side = np.where(price > 0.0, 1.0 - cluster.band, 1.0 + cluster.band)
    found = float(least.sum()) + float((side * price)[up].sum()) + float((cluster.memory * memory_price)[up].sum())
    size = float(np.abs(least).sum() + np.abs(price).sum() * 2.0)
    return found - ROUNDING * (1.0 + size * 1e-4), least


def reduced_costs(
    cluster: ShardCluster, load: Floats, price: Floats, memory_price: Floats, own: slice = slice(None)
) -> Floats:
    """Return the cost of serving each shard on each server, at the prices, (shards of `own`, servers)."""
    found = -np.outer(load[own], price)
    found -= np.outer(cluster.size[own], memory_price)
    found += cluster.new_copy[own, None] * ~cluster.holds[own]
    return found


def copies_bound(cluster: ShardCluster, load: Floats) -> float:
    """Return a number of new copies that every plan needs (SH5).

    A server that is below the band even with the whole load of all shards it holds needs new copies: at least as many
    as it takes to fill it with the largest other shards. A shard with too few copies needs the missing ones. Both hold
    for all plans, and no copy is counted twice.
    """
    up = np.flatnonzero(cluster.is_up)
    potential = load @ cluster.holds[:, up]
    short = np.flatnonzero(potential < (1.0 - cluster.band) * (1.0 - ROUNDING))
    order = np.argsort(-load, kind="stable")[: max(64, cluster.replicas)]
    cheapest = float(cluster.new_copy.min())
    needed = 0
    for place in short.tolist():
        others = load[order][~cluster.holds[order, up[place]]]
        reach = potential[place] + np.cumsum(others)
        needed += int(np.argmax(reach >= (1.0 - cluster.band) * (1.0 - ROUNDING))) + 1 if len(reach) else 1
    missing = np.maximum(cluster.replicas - cluster.holds.sum(axis=1), 0)
    return max(needed * cheapest, float(missing @ cluster.new_copy))
