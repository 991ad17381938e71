"""E-Store's greedy balance: move the heaviest shards from the most to the least loaded server (SH12)."""

from __future__ import annotations

import time

import numpy as np
from numpy.typing import ArrayLike

from copter_frontends.shards.cluster import Floats, Ints, ShardCluster, summed
from copter_frontends.shards.plan import ShardPlan, plan_of
from copter_frontends.shards.policy import ShardBase, with_homes
from copter_frontends.shards.shim import Copies, memory_repaired


def homes_of(cluster: ShardCluster, load: Floats) -> Ints:
    """Return the single server of every shard, (shards,); shards are moved off servers whose memory is exceeded.

    Raises
    ------
    NoRoomError
    """
    held = cluster.holds.argmax(axis=1)
    there = np.flatnonzero(cluster.holds.any(axis=1))
    shard, server, share = with_homes(cluster, there, held[there], np.ones(len(there)))
    first = memory_repaired(cluster, load, Copies.of(shard, server, share * load[shard]))
    home = np.empty(cluster.n_shards, dtype=np.int64)
    home[first.shard] = first.server
    return home


class EStore(ShardBase):
    """E-Store's balancing with exactly one copy of every shard."""

    def plan(self, loads: ArrayLike, deadline_s: float | None = None) -> ShardPlan:
        """Return a plan for the round's loads; it may leave the band. Raises NoRoomError."""
        started = time.perf_counter()
        checked, load = self.scaled(loads)
        cluster = self.cluster
        home = homes_of(cluster, load)
        limit = 1.0 + cluster.band
        total = np.where(cluster.is_up, summed(home, load, cluster.n_servers), np.nan)
        used = summed(home, cluster.size, cluster.n_servers)
        stuck = np.zeros(cluster.n_servers, dtype=np.bool_)
        while True:
            fullest = int(np.nanargmax(np.where(stuck, np.nan, total))) if not stuck[cluster.is_up].all() else -1
            if fullest < 0 or total[fullest] <= limit:
                break
            own = np.flatnonzero((home == fullest) & (load > 0.0))
            for each in own[np.argsort(-load[own], kind="stable")].tolist():
                target = int(np.nanargmin(total))
                fits = used[target] + cluster.size[each] <= cluster.memory[target]
                if target != fullest and total[target] + load[each] <= limit and fits:
                    home[each] = target
                    total[fullest] -= load[each]
                    total[target] += load[each]
                    used[fullest] -= cluster.size[each]
                    used[target] += cluster.size[each]
                    if total[fullest] <= limit:
                        break
            stuck[fullest] = True
        seconds = {"edit": 0.0, "solve": time.perf_counter() - started, "shim": 0.0}
        every = np.arange(cluster.n_shards)
        return self.adopt(plan_of(cluster, checked, every, home, np.ones(len(every)), seconds=seconds))
