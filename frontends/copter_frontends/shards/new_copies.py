"""New copies for servers that moving load between existing copies cannot bring into the band (SH9)."""

from __future__ import annotations

import heapq

import numpy as np

from copter_frontends.shards.cluster import Floats, Ints, ShardCluster, summed

WORTH = 1e-12  # a copy must serve at least this load, in mean loads


class NewCopies:
    """Adds copies one by one: from the server with the largest excess to the one with the largest shortage.

    Parameters
    ----------
    cluster : ShardCluster
    shard, server, part : ndarray (copies,)
        Existing copies, and the load that each serves, in mean loads.
    lower, upper : ndarray (servers,)
        Bounds of the band.
    """

    def __init__(
        self, cluster: ShardCluster, shard: Ints, server: Ints, part: Floats, lower: Floats, upper: Floats
    ) -> None:
        self.cluster, self.lower, self.upper = cluster, lower, upper
        self.load = summed(server, part, cluster.n_servers)
        self.room = np.where(cluster.is_up, cluster.memory - summed(server, cluster.size[shard], cluster.n_servers), -1)
        self.held = np.zeros((cluster.n_shards, cluster.n_servers), dtype=np.bool_)
        self.held[shard, server] = True
        self.part: dict[tuple[int, int], float] = {}
        self.on: list[list[int]] = [[] for _ in range(cluster.n_servers)]
        for j, i, own in zip(shard.tolist(), server.tolist(), part.tolist(), strict=True):
            self.part[j, i] = own
            if own > WORTH:
                self.on[i].append(j)

    def make(self) -> tuple[Ints, Ints, Floats]:
        """Return (shard, server, part) of all copies once every server is in the band or no copy helps."""
        up = np.flatnonzero(self.cluster.is_up).tolist()
        givers = [(-(self.load[i] - self.upper[i]), i) for i in up]
        takers = [(-(self.lower[i] - self.load[i]), i) for i in up]
        heapq.heapify(givers)
        heapq.heapify(takers)
        while givers and takers:
            (surplus, giver), (lack, taker) = givers[0], takers[0]
            if surplus >= -WORTH and lack >= -WORTH:
                break
            if giver == taker or not self._give(giver, taker):
                # Give up the server that is outside the band by less: it cannot help the other one.
                heapq.heappop(takers if -lack <= -surplus else givers)
                continue
            heapq.heapreplace(givers, (-(self.load[giver] - self.upper[giver]), giver))
            heapq.heapreplace(takers, (-(self.lower[taker] - self.load[taker]), taker))
        entries = np.array(list(self.part), dtype=np.int64).reshape(-1, 2)
        return entries[:, 0], entries[:, 1], np.array(list(self.part.values()))

    def _give(self, giver: int, taker: int) -> bool:
        """Move load to a new copy; returns whether a helpful one existed."""
        surplus, lack = self.load[giver] - self.upper[giver], self.lower[taker] - self.load[taker]
        spare, room = self.load[giver] - self.lower[giver], self.upper[taker] - self.load[taker]
        wanted = min(max(lack, min(surplus, room)), spare)
        if wanted <= WORTH:
            return False
        free, size = self.room[taker], self.cluster.size
        best, most = -1, WORTH
        for j in self.on[giver]:
            if self.part[j, giver] > most and not self.held[j, taker] and size[j] <= free * (1.0 + 1e-12):
                best, most = j, self.part[j, giver]
        if best < 0:
            return False
        amount = min(wanted, most)
        self.part[best, giver] -= amount
        self.part[best, taker] = amount
        self.held[best, taker] = True
        self.on[taker].append(best)
        self.room[taker] -= size[best]
        self.load[giver] -= amount
        self.load[taker] += amount
        return True
