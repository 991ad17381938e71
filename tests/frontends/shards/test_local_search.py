"""The local search: no single move or swap of its answer gains, memory holds, it ends in time."""

from __future__ import annotations

import numpy as np
import pytest

from copter_frontends.shards import ShardCluster
from copter_frontends.shards.local_search import LocalSearch
from copter_frontends.shards.search_kernel import LEAST_GAIN
from copter_frontends.shards.swaps import MOVE_PRICE


def outside(cluster: ShardCluster, home: np.ndarray, load: np.ndarray, first: np.ndarray) -> float:
    """What the search makes small."""
    total = np.bincount(home, load, cluster.n_servers)
    over = np.maximum(total - (1 + cluster.band), 0) + np.maximum((1 - cluster.band) - total, 0)
    return float(over.sum() + MOVE_PRICE * (home != first).sum())


@pytest.mark.parametrize("seed", range(6))
def test_no_move_and_no_swap_of_the_answer_gains(seed: int) -> None:
    rng = np.random.default_rng(seed)
    shards, servers = 18, 4
    cluster = ShardCluster.round_robin(shards, servers, memory=6.0, band=0.05, size=rng.uniform(0.5, 1.2, shards))
    loads = rng.pareto(1.5, shards) + 0.1
    first = cluster.holds.argmax(axis=1)
    plan = LocalSearch(cluster).plan(loads)
    assert len(plan.shard) == shards
    assert (cluster.size @ plan.holds <= cluster.memory + 1e-9).all()
    home = plan.holds.argmax(axis=1)
    load = loads / (loads.sum() / servers)
    found = outside(cluster, home, load, first)
    assert found <= outside(cluster, first, load, first) + 1e-9
    total = np.bincount(home, load, servers)
    off = np.abs(total - 1.0) > cluster.band

    def gains(other: np.ndarray) -> bool:
        fits = (np.bincount(other, cluster.size, servers) <= cluster.memory).all()
        return bool(fits) and outside(cluster, other, load, first) < found - LEAST_GAIN - 1e-12

    for shard in range(shards):
        for target in range(servers):
            other = home.copy()
            other[shard] = target
            assert not ((off[home[shard]] or off[target]) and gains(other))
        for partner in range(shards):
            other = home.copy()
            other[[shard, partner]] = home[[partner, shard]]
            assert not ((off[home[shard]] or off[home[partner]]) and gains(other))


def test_a_swap_is_made_where_no_move_fits() -> None:
    """Full servers: 3 + 3 and 1 + 1 become 3 + 1 and 3 + 1."""
    holds = np.array([[True, False], [True, False], [False, True], [False, True]])
    cluster = ShardCluster(np.ones(4), np.full(2, 2.0), holds)
    plan = LocalSearch(cluster).plan([3.0, 3.0, 1.0, 1.0])
    assert plan.in_band
    assert plan.movements == 2


def test_a_deadline_ends_it_with_what_it_has() -> None:
    cluster = ShardCluster.round_robin(400, 40)
    plan = LocalSearch(cluster).plan(np.random.default_rng(1).pareto(1.2, 400) + 0.1, deadline_s=1e-9)
    assert plan.movements == 0
    assert plan.status == "out_of_band"
