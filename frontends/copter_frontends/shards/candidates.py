"""Initial columns of a round's program: a few of the pairs of shard and server; pricing adds missing ones."""

from __future__ import annotations

import numpy as np

from copter_frontends.shards.cluster import Bools, Floats, ShardCluster

HEAVIEST = 8  # this many heaviest shards may go to every server below the band
OF_A_SERVER = 2  # shards that may leave each server above the band
TARGETS = 48  # shards may go to this many least loaded servers


def first_columns(cluster: ShardCluster, load: Floats) -> Bools:
    """Return existing copies and likely new ones, (shards, servers)."""
    columns = cluster.holds.copy()
    up = cluster.is_up
    copies = np.maximum(columns.sum(axis=1), 1)
    server_load = np.where(up, (load / copies) @ columns, np.inf)
    order = np.argsort(server_load, kind="stable")[: int(up.sum())]
    light = order[server_load[order] < 1.0 - cluster.band]
    targets = order[: max(TARGETS, len(light))][:256]
    heavy = np.flatnonzero(up & (server_load > 1.0 + cluster.band))
    lost = np.flatnonzero(~cluster.holds.any(axis=1))
    columns[np.ix_(np.argsort(-load, kind="stable")[:HEAVIEST], light)] = True
    for server in heavy.tolist():
        own = np.flatnonzero(cluster.holds[:, server])
        own = own[np.argsort(-load[own], kind="stable")][:OF_A_SERVER]
        columns[np.ix_(own, targets[:TARGETS])] = True
    columns[np.ix_(lost, targets[:TARGETS])] = True
    fits = cluster.size[:, None] <= cluster.memory[None, :]
    columns &= (fits & up) | cluster.holds
    return columns
