"""Moves and swaps of whole shards, the worst server's best one first, until none improves (SH13)."""

from __future__ import annotations

import time

import numpy as np

from copter_frontends.shards.cluster import Floats, Ints, ShardCluster, summed
from copter_frontends.shards.search_kernel import Homes, search

MOVE_PRICE = 1e-3
"""Price of a moved shard, in mean loads outside the band: few moves are a second goal, far below balance."""

SLICE = 64
"""Moves between two checks of the clock."""


def swapped(cluster: ShardCluster, load: Floats, home: Ints, ends: float) -> Ints:
    """Move a shard, or swap two if no move improves, until nothing improves or the time is over.

    Parameters
    ----------
    load : ndarray (shards,)
        In mean loads of a server.
    home : ndarray (shards,)
        The server of each shard's one copy; left as it is.
    ends : float
        Time of `time.perf_counter`.

    Returns
    -------
    ndarray (shards,)
        The servers afterwards, all within their memory if they were.
    """
    first, found, stuck = home, home.copy(), np.zeros(cluster.n_servers, dtype=np.bool_)
    total = summed(found, load, cluster.n_servers)
    used = summed(found, cluster.size, cluster.n_servers)
    homes, done = Homes(found, first, load, cluster.size, total, used, cluster.memory, cluster.is_up), False
    while not done and time.perf_counter() < ends:
        _, done = search(homes, stuck, cluster.band, MOVE_PRICE, SLICE)
    return found
