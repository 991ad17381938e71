"""Local search as in Rebalancer (Kumar et al., OSDI 2024): whole shards, the worst server's best move first (SH13)."""

from __future__ import annotations

import time

import numpy as np
from numpy.typing import ArrayLike

from copter_frontends.shards.cluster import ShardCluster
from copter_frontends.shards.greedy import homes_of
from copter_frontends.shards.plan import ShardPlan, plan_of
from copter_frontends.shards.policy import ShardBase
from copter_frontends.shards.swaps import swapped


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
        begun = time.perf_counter()
        home = swapped(cluster, load, home, started + (self.time_limit_s if deadline_s is None else deadline_s))
        every = np.arange(cluster.n_shards)
        seconds = {"edit": begun - started, "solve": time.perf_counter() - begun, "shim": 0.0}
        return self.adopt(plan_of(cluster, checked, every, home, np.ones(cluster.n_shards), seconds=seconds))
