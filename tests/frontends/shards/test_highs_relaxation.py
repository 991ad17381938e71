"""HiGHS's relaxation for shards keeps its basis from round to round, and gives what a new one gives."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("highspy")

from copter_frontends.shards import ShardCluster
from copter_frontends.shards.highs_shards import LpRelaxed, Relaxation


def cluster_of(shards: int, servers: int, seed: int) -> ShardCluster:
    """Shards of different sizes, each with a copy on one server."""
    rng = np.random.default_rng(seed)
    holds = np.zeros((shards, servers), dtype=np.bool_)
    holds[np.arange(shards), rng.integers(servers, size=shards)] = True
    return ShardCluster(rng.uniform(0.5, 1.5, shards), np.full(servers, 30.0), holds, band=0.1)


def test_a_kept_relaxation_has_the_optimum_of_a_new_one_by_fewer_steps() -> None:
    cluster, rng = cluster_of(40, 6, 1), np.random.default_rng(2)
    load = rng.lognormal(size=40)
    kept, steps = Relaxation(), {"kept": 0, "new": 0}
    for at in range(6):
        load = load * rng.uniform(0.95, 1.05, 40)
        now = load * 6 / load.sum()
        new = Relaxation()
        (shares, bound), (_, expected) = kept.solve(cluster, now, 60.0), new.solve(cluster, now, 60.0)
        assert shares is not None
        assert bound == pytest.approx(expected, abs=1e-7)
        assert np.bincount(shares[0], shares[2], 40) == pytest.approx(np.ones(40))
        carried = np.bincount(shares[1], shares[2] * now[shares[0]], 6)
        assert np.all(np.abs(carried - 1.0) <= cluster.band + 1e-6)
        if at:
            steps["kept"] += kept.highs.getInfo().simplex_iteration_count
            steps["new"] += new.highs.getInfo().simplex_iteration_count
    assert steps["kept"] < steps["new"]


def test_servers_that_go_and_come_back_begin_anew() -> None:
    cluster = cluster_of(30, 5, 3)
    policy, load = LpRelaxed(cluster), np.ones(30)
    for down in ([], [1], [1], []):
        policy.cluster.is_up[:] = True
        policy.cluster.is_up[down] = False
        shares, bound = policy.relaxation.solve(policy.cluster, load * (5 - len(down)) / 30, 60.0)
        assert shares is not None
        assert not set(shares[1].tolist()) & set(down)
        assert bound == pytest.approx(
            Relaxation().solve(policy.cluster, load * (5 - len(down)) / 30, 60.0)[1], abs=1e-7
        )
