"""Local search as in Rebalancer (Kumar et al., OSDI 2024): whole shards, the worst server's best move first (SH13)."""

from __future__ import annotations

import time

import numpy as np
from numpy.typing import ArrayLike

from copter_frontends.shards.cluster import ShardCluster, summed
from copter_frontends.shards.greedy import homes_of
from copter_frontends.shards.plan import ShardPlan, plan_of
from copter_frontends.shards.policy import ShardBase
from copter_frontends.shards.search_kernel import search

MOVE_PRICE = 1e-3
"""Price of a moved shard, in mean loads outside the band: few moves are a second goal, far below balance."""

SLICE = 64
"""Moves between two checks of the clock."""


class LocalSearch(ShardBase):
    """Local search with one copy of every shard: move a shard, or swap two if no move improves, until nothing improves.

    Parameters
    ----------
    cluster : ShardCluster
    time_limit_s : float
        Seconds per round if no deadline is given.
    """

    def __init__(self, cluster: ShardCluster, time_limit_s: float = 600.0) -> None:
        super().__init__(cluster)
        self.time_limit_s = time_limit_s

    def plan(self, loads: ArrayLike, deadline_s: float | None = None) -> ShardPlan:
        """Return a plan for the round's loads; it may leave the band. Raises ShardError or NoRoomError."""
        started = time.perf_counter()
        checked, load = self.scaled(loads)
        cluster = self.cluster
        home = homes_of(cluster, load)
        first, stuck = home.copy(), np.zeros(cluster.n_servers, dtype=np.bool_)
        total = summed(home, load, cluster.n_servers)
        used = summed(home, cluster.size, cluster.n_servers)
        begun = time.perf_counter()
        ends = started + (self.time_limit_s if deadline_s is None else deadline_s)
        done = False
        while not done and time.perf_counter() < ends:
            _, done = search(
                home, first, load, cluster.size, total, used, cluster.memory, cluster.is_up, stuck, cluster.band,
                MOVE_PRICE, SLICE,
            )  # fmt: skip
        every = np.arange(cluster.n_shards)
        seconds = {"edit": begun - started, "solve": time.perf_counter() - begun, "shim": 0.0}
        return self.adopt(plan_of(cluster, checked, every, home, np.ones(cluster.n_shards), seconds=seconds))
