"""DeDe on shards: both half steps are optimal, the two sides agree in the end, and a round is a plan."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import minimize

from copter_frontends.shards import ShardCluster, load_rounds
from copter_frontends.shards.dede import DeDeShards, servers_step, shards_step


def server_value(share: np.ndarray, target: np.ndarray, load: np.ndarray, high: float, low: float) -> float:
    """What a server minimises where copies are free."""
    total = float(load @ share)
    return float(
        0.5 * ((share - target) ** 2).sum() + 0.5 * max(total - high, 0.0) ** 2 + 0.5 * max(low - total, 0.0) ** 2
    )


@pytest.mark.parametrize("seed", range(8))
def test_a_servers_shares_are_optimal_where_copies_are_free(seed: int) -> None:
    rng = np.random.default_rng(seed)
    target, load = rng.normal(0.3, 0.5, (3, 5)), rng.uniform(0.1, 3.0, 5)
    high, low = np.array([0.5, 9.0, 3.0]), np.array([0.2, 8.0, 0.1])
    found = servers_step(target, target, load, np.zeros((3, 5)), high, low)
    for i in range(3):
        best = minimize(
            server_value, np.full(5, 0.5), (target[i], load, high[i], low[i]), bounds=[(0.0, 1.0)] * 5, tol=1e-12
        )
        assert server_value(found[i], target[i], load, high[i], low[i]) <= best.fun + 1e-7


def test_a_new_copy_is_made_where_it_is_worth_its_cost_and_only_so_many() -> None:
    target, load = np.array([[0.9, 0.4, 0.8]]), np.zeros(3)
    cost = np.array([[0.1, 0.1, 0.0]])  # a share of 0.4 gains 0.08 only
    wide = np.array([1.0]), np.array([0.0])
    assert servers_step(target, target, load, cost, *wide).tolist() == [[0.9, 0.0, 0.8]]
    assert servers_step(target, target, load, cost, *wide, most=1).tolist() == [[0.0, 0.0, 0.8]]
    assert servers_step(target + 9.0, target, load, cost, *wide).tolist() == [[1.0, 1.0, 1.0]]


@pytest.mark.parametrize("seed", range(8))
def test_a_shards_shares_are_optimal(seed: int) -> None:
    rng = np.random.default_rng(seed)
    wanted, whole = rng.normal(0.0, 0.6, (4, 6)), rng.normal(0.0, 0.5, 6)
    found = shards_step(wanted, whole)
    for j in range(6):

        def value(share: np.ndarray, j: int = j) -> float:
            return float(((share - wanted[:, j]) ** 2).sum() + (share.sum() - 1.0 + whole[j]) ** 2)

        best = minimize(value, np.full(4, 0.25), bounds=[(0.0, None)] * 4, tol=1e-12)
        assert (found[:, j] >= 0.0).all()
        assert value(found[:, j]) <= best.fun + 1e-8


def test_both_sides_agree_after_enough_steps() -> None:
    cluster = ShardCluster.round_robin(40, 8)
    scheme = DeDeShards(cluster, first_steps=3000)
    for _ in range(2):
        (load,) = load_rounds(40, 1, "stateless")
        plan = scheme.plan(load)
    assert plan.in_band
    assert np.abs(scheme.agreed.sum(axis=0) - 1.0).max() < 0.02  # the cost of a copy is no convex one


def test_rounds_stay_in_the_band_with_few_movements_and_the_same_twice() -> None:
    def run() -> list[int]:
        scheme = DeDeShards(ShardCluster.round_robin(256, 32))
        plans = [scheme.plan(load) for load in load_rounds(256, 6, "stateless")]
        assert all(plan.in_band for plan in plans)
        return [plan.movements for plan in plans]

    first = run()
    assert first == run()
    assert sum(first[1:]) < 5 * 8  # greedy makes 10 a round


def test_a_deadline_ends_the_steps() -> None:
    scheme = DeDeShards(ShardCluster.round_robin(64, 8), first_steps=10**9)
    (load,) = load_rounds(64, 1, "stateless")
    assert scheme.plan(load, deadline_s=0.05).status in ("feasible", "out_of_band")
