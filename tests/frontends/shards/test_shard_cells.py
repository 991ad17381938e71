"""Cells that exchange load come to the one program's optimum, and their plan put together keeps to all its rows."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy.optimize import linprog

from copter_frontends.shards import ShardCluster, ShardError, load_rounds
from copter_frontends.shards.cells import ShardCells


def loads(shards: int, servers: int, number: int) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    """A published round, in units of the mean load of a server."""
    load = list(load_rounds(shards, number + 1, "stateless"))[number].astype(np.float64)
    return np.asarray(load * servers / load.sum())


def optimum(cluster: ShardCluster, load: np.ndarray[tuple[int], np.dtype[np.float64]]) -> float:
    """SH2 with all its columns, by HiGHS."""
    d, n = cluster.holds.shape
    by_server = np.tile(np.eye(n), (1, d))
    heavy, large = by_server * np.repeat(load, n), by_server * np.repeat(cluster.size, n)
    room = np.concatenate((np.full(n, 1.0 + cluster.band), np.full(n, cluster.band - 1.0), cluster.memory))
    found = linprog(
        (cluster.new_copy[:, None] * ~cluster.holds).ravel(),
        np.vstack((heavy, -heavy, large)), room,
        np.kron(np.eye(d), np.ones(n)), np.ones(d),
    )  # fmt: skip
    return float(found.fun)


@pytest.mark.parametrize("number", range(3))
@pytest.mark.parametrize(("shards", "servers", "parts"), [(64, 8, 2), (96, 16, 5), (40, 6, 6)])
def test_cells_come_to_the_one_programs_optimum(number: int, shards: int, servers: int, parts: int) -> None:
    cluster, load = ShardCluster.round_robin(shards, servers), loads(shards, servers, number)
    split = ShardCells(cluster, load, parts)
    cells = split.cells()
    trip = cells.solve()
    best = optimum(cluster, load)
    assert trip.gap <= 1e-3
    assert trip.bound <= best + 1e-6 * (1.0 + best)
    shares = split.shares(cells.finish())
    shard, server, share = shares
    np.testing.assert_allclose(np.bincount(shard, weights=share, minlength=shards), 1.0, atol=1e-5)
    held = np.bincount(server, weights=share * load[shard], minlength=servers)
    assert held.min() >= 1.0 - cluster.band - 1e-5
    assert held.max() <= 1.0 + cluster.band + 1e-5
    assert split.cost(shares) == pytest.approx(trip.objective, rel=1e-4, abs=1e-6)
    assert best - 1e-5 <= split.cost(shares) <= best * (1.0 + 2e-3) + 1e-5


def test_wrong_cells_of_shards_are_refused() -> None:
    cluster, load = ShardCluster.round_robin(16, 4), loads(16, 4, 0)
    with pytest.raises(ShardError, match="5 cells of 4 servers"):
        ShardCells(cluster, load, 5)
    with pytest.raises(ShardError, match="shard 1 has copies in 2 cells"):
        ShardCells(ShardCluster.round_robin(16, 4, replicas=2), load, 2)


def test_load_that_does_not_fit_the_memory_is_said_so() -> None:
    """Load that is handed over brings its copies' memory, which the exchange does not price."""
    cluster = ShardCluster.round_robin(12, 4, memory=3.0)
    load = np.array([8.0, 1.0, 1.0, 1.0] + [1.0] * 8)
    load *= 4 / load.sum()
    tight = replace(cluster, size=np.where(np.arange(12) == 0, 3.0, 0.9), memory=np.full(4, 5.0), band=0.01)
    tight = replace(tight, memory=np.array([5.0, 2.71, 5.0, 2.71]))
    split = ShardCells(tight, load, 4)
    cells = split.cells()
    cells.solve()
    with pytest.raises(ShardError, match="does not fit its memory"):
        split.shares(cells.finish())
