"""Shards: loads as published, known optima, every round feasible and within its bounds, bad input."""

from __future__ import annotations

import csv
import os
from pathlib import Path

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from copter_frontends.shards import (
    CopterShards,
    NoRoomError,
    ShardCluster,
    ShardError,
    ShardFormulation,
    ShardPlan,
    UnknownServerError,
    dede_loads,
    load_rounds,
    make_scheme,
    repair,
    simulate_shards,
    zipf_loads,
)
from copter_frontends.shards.bounds import copies_bound, price_bound
from copter_frontends.shards.loads import exponents, java_uniforms
from copter_frontends.shards.simulation import ShardResult

DATA = Path(os.environ.get("COPTER_DATA", "../shared/data")) / "te"
needs_data = pytest.mark.skipif(not DATA.is_dir(), reason="the public data are not there (COPTER_DATA)")
SCHEMES = ("copter", "copter-idle", "lp-relaxed", "exact", "pop-2", "local-search", "dede", "greedy")


def judge(before: ShardCluster, plan: ShardPlan, loads: np.ndarray, banded: bool = True) -> None:
    """All that a plan must keep to, from its copies and shares alone."""
    d, n = before.holds.shape
    holds = np.zeros((d, n), dtype=bool)
    holds[plan.shard, plan.server] = True
    assert holds.sum() == len(plan.shard)  # none twice
    np.testing.assert_array_equal(plan.holds, holds)
    assert (holds.sum(axis=1) >= before.replicas).all()
    assert not holds[:, ~before.is_up].any()
    assert (plan.share >= 0.0).all()
    np.testing.assert_allclose(np.bincount(plan.shard, plan.share, d), 1.0, rtol=1e-12)
    assert (before.size @ holds <= before.memory * (1.0 + 1e-9)).all()
    new = holds & ~before.holds
    assert plan.movements == new.sum()
    assert plan.cost == pytest.approx(float(new.sum(axis=1) @ before.new_copy))
    server_load = np.bincount(plan.server, plan.share * loads[plan.shard], n)[before.is_up]
    mean = loads.sum() / before.is_up.sum()
    inside = (np.abs(server_load - mean) <= before.band * mean * (1.0 + 1e-9)).all()
    assert plan.in_band == inside
    assert inside or not banded
    assert not (inside and plan.bound > plan.cost + 1e-6)


# Loads ----------------------------------------------------------------------------------------------------------------


@needs_data
def test_the_loads_are_the_published_ones() -> None:
    with open(DATA / "shards_rounds.csv", newline="") as file:
        rows = list(csv.DictReader(file))
    draws, z = java_uniforms(), exponents("stateless", len(rows))
    for at, row in enumerate(rows):
        assert next(draws) == float(row["u"])
        assert z[at] == float(row["z"])
        for size in (256, 1024, 2048):
            assert zipf_loads(size, z[at]).sum() == float(row[f"pop_total_{size}"])
            assert dede_loads(size, z[at]).sum() == pytest.approx(float(row[f"dede_total_{size}"]), abs=1e-3)


def test_both_sequences_begin_alike_and_stay_in_range() -> None:
    assert next(java_uniforms()) == 0.7275636800328681
    free, close = exponents("stateless", 200), exponents("stateful", 200)
    assert free[0] == close[0]
    for z in (free, close):
        assert 0.25 <= min(z) < max(z) <= 0.75
    steps = np.divide(close[1:], close[:-1])
    assert (np.abs(steps - 1.0) <= 0.1 + 1e-12).all()
    with pytest.raises(ShardError, match="unknown sequence"):
        exponents("daily", 3)


# Programs and bounds --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("shards", "servers", "band", "curve", "said"),
    [(256, 32, 0.10, dede_loads, 2.420898), (256, 32, 0.05, zipf_loads, 3.197286)],
)
def test_relaxations_have_the_reference_values(shards, servers, band, curve, said) -> None:
    cluster = ShardCluster.round_robin(shards, servers, band=band)
    loads = curve(shards, exponents("stateless", 1)[0])
    found = ShardFormulation(cluster).solve(cluster, loads / loads.sum() * servers)
    assert found.objective == pytest.approx(said, abs=2e-6)
    assert found.bound == pytest.approx(said, abs=1e-5)


@needs_data
@pytest.mark.slow
def test_large_relaxations_have_the_reference_values() -> None:
    for shards, servers, said in ((1024, 128, 12.081417), (2048, 256, 23.435274)):
        cluster = ShardCluster.round_robin(shards, servers)
        loads = zipf_loads(shards, exponents("stateless", 1)[0])
        found = ShardFormulation(cluster).solve(cluster, loads / loads.sum() * servers)
        assert found.objective == pytest.approx(said, abs=2e-5)


@settings(max_examples=10, deadline=None)
@given(st.integers(0, 100_000), st.sampled_from(["unit", "size"]))
def test_the_relaxation_is_scipys_with_all_columns_and_tight_memory(seed: int, cost: str) -> None:
    from scipy.optimize import linprog

    rng = np.random.default_rng(seed)
    d, n = int(rng.integers(6, 20)), int(rng.integers(2, 6))
    size = rng.choice([1.0, 2.0, 3.0], d)
    memory = float(np.ceil(size.sum() / n * 1.3) + 3.0)
    cluster = ShardCluster.round_robin(d, n, memory, 0.1, 1, cost, size)
    load = rng.pareto(1.5, d) + 0.05
    load *= n / load.sum()
    found = ShardFormulation(cluster).solve(cluster, load)
    c = (cluster.new_copy[:, None] * ~cluster.holds).ravel()
    of_server, of_shard = np.tile(np.eye(n), d), np.repeat(np.eye(d), n, axis=1)
    loads, sizes = of_server * np.repeat(load, n), of_server * np.repeat(size, n)
    most = np.concatenate((np.full(n, 1.1), np.full(n, -0.9), cluster.memory))
    whole = linprog(c, np.vstack((loads, -loads, sizes)), most, of_shard, np.ones(d))
    if whole.status == 2:
        assert found.out_of_band > 0.0
        return
    assert found.objective == pytest.approx(whole.fun, rel=1e-5, abs=1e-6)
    assert found.bound <= whole.fun + 1e-6
    any_prices, _ = price_bound(cluster, load, rng.normal(0, 2, n), -rng.random(n))
    assert any_prices <= whole.fun + 1e-9


def test_a_tiny_balance_by_hand() -> None:
    # Two servers; the first has all of the load, in two shards of 6 and 2. One copy of the heavy one will do.
    cluster = ShardCluster(np.ones(2), np.array([4.0, 4.0]), np.array([[True, False], [True, False]]))
    policy = CopterShards(cluster)
    plan = policy.plan([6.0, 2.0])
    judge(cluster, plan, np.array([6.0, 2.0]))
    assert plan.movements == 1
    assert plan.bound == 1.0
    assert plan.status == "optimal"
    again = policy.plan([6.0, 2.0])
    assert again.movements == 0


@settings(max_examples=8, deadline=None)
@example(46)  # HiGHS ends with a plan of 3 and a bound of 2
@example(27590)  # HiGHS' shares of a shard sum to one up to 1e-12
@given(st.integers(0, 100_000))
def test_bounds_are_below_the_exact_optimum_and_plans_above(seed: int) -> None:
    pytest.importorskip("highspy")
    from copter_frontends.shards.highs_shards import Exact

    rng = np.random.default_rng(seed)
    d, n = int(rng.integers(4, 12)), int(rng.integers(2, 5))
    cluster = ShardCluster.round_robin(d, n, float(d), 0.1)
    loads = rng.pareto(1.2, d) + 0.1
    best = Exact(cluster, 30.0, gap=0.0).plan(loads)
    judge(cluster, best, loads)
    plan = CopterShards(cluster).plan(loads)
    judge(cluster, plan, loads)
    assert copies_bound(cluster, loads / loads.sum() * n) <= best.cost + 1e-6
    assert plan.bound <= best.cost + 1e-6
    least = best.cost if best.status == "optimal" else best.bound
    assert least <= plan.cost + 1e-6
    assert plan.cost <= best.cost + 2


# Full servers ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", SCHEMES)
def test_servers_that_are_exactly_full_keep_a_plan(name: str) -> None:
    """The published start with no memory to spare: what the program wants may fit nowhere, what is kept does."""
    if name not in ("copter", "copter-idle", "greedy"):
        pytest.importorskip("highspy")
    shards, servers = (128, 16) if name != "exact" else (16, 4)
    cluster = ShardCluster.round_robin(shards, servers, shards / servers)
    scheme = make_scheme(name, cluster, threads=1, time_limit_s=5.0)
    for loads in load_rounds(shards, 3):
        before = scheme.cluster
        judge(before, scheme.plan(loads), loads, banded=False)


def test_whole_shards_swap_where_servers_are_exactly_full() -> None:
    """No copy can be added anywhere, so only swaps reach the band, and they do."""
    rng = np.random.default_rng(3)
    cluster = ShardCluster.round_robin(64, 8, 8.0)
    heavy = np.repeat([2.0, 1.0], 32) + 0.1 * rng.random(64)  # rounds of eight: some servers get the heavy ones
    loads = heavy[np.argsort(np.tile(np.arange(8), 8), kind="stable")]
    plan = make_scheme("copter", cluster, threads=1).plan(loads)
    judge(cluster, plan, loads)
    assert plan.in_band
    assert len(plan.shard) == 64


def test_the_smaller_imbalance_wins_where_no_plan_is_in_the_band() -> None:
    cluster = ShardCluster.round_robin(128, 16, 8.0)
    copter, kept = make_scheme("copter", cluster, threads=1), make_scheme("greedy", cluster)
    loads = next(iter(load_rounds(128, 1)))
    plan, other = copter.plan(loads), kept.plan(loads)
    judge(cluster, plan, loads, banded=False)
    assert not plan.in_band
    assert plan.imbalance <= other.imbalance


@pytest.mark.parametrize("name", ["copter", "lp-relaxed", "greedy"])
@pytest.mark.parametrize("room", ["exactly full", "too much on some servers"])
def test_mixed_sizes_with_hardly_any_room_keep_a_plan(name: str, room: str) -> None:
    if name == "lp-relaxed":
        pytest.importorskip("highspy")
    for seed in range(25):
        rng = np.random.default_rng(seed)
        d, n = int(rng.integers(20, 60)), int(rng.integers(4, 9))
        size = rng.choice([1.0, 2.0, 3.0, 5.0], d)
        holds = ShardCluster.round_robin(d, n, 1e9, size=size).holds
        memory = size @ holds if room == "exactly full" else np.full(n, np.ceil(1.02 * size.sum() / n) + 1.0)
        scheme = make_scheme(name, ShardCluster(size, memory, holds, 0.1), threads=1)
        for _ in range(3):
            loads, before = zipf_loads(d, rng.uniform(0.25, 0.75)), scheme.cluster
            judge(before, scheme.plan(loads), loads, banded=False)


def test_shards_that_fit_nowhere_are_named_and_nothing_changes() -> None:
    """Three shards of two on servers of three: one server less leaves room for six in sum, and for two shards."""
    cluster = ShardCluster(np.full(3, 2.0), np.full(3, 3.0), np.eye(3, dtype=bool))
    policy = CopterShards(cluster)
    policy.remove_server(2)
    for _ in range(2):
        with pytest.raises(NoRoomError, match=r"server . holds more than its memory of 3"):
            policy.plan([1.0, 1.0, 1.0])
    policy.add_server(2)
    judge(policy.cluster, policy.plan([1.0, 1.0, 1.0]), np.ones(3))


# Rounds ---------------------------------------------------------------------------------------------------------------


@settings(max_examples=12, deadline=None)
@given(st.integers(0, 100_000), st.integers(1, 3), st.booleans(), st.lists(st.integers(0, 4), min_size=3, max_size=8))
def test_rounds_of_any_changes_are_feasible(seed: int, replicas: int, idle: bool, kinds: list[int]) -> None:
    rng = np.random.default_rng(seed)
    d, n = int(rng.integers(30, 70)), int(rng.integers(6, 10))
    cluster = ShardCluster.round_robin(d, n, float(np.ceil(d * replicas / n) * 2 + 4), 0.1, replicas)
    policy = CopterShards(cluster, keep_idle=idle)
    loads = zipf_loads(d, 0.5)
    for kind in kinds:
        down = np.flatnonzero(~policy.cluster.is_up)
        if kind == 0 and len(down) < 2:
            policy.remove_server(int(rng.choice(np.flatnonzero(policy.cluster.is_up))))
        elif kind == 1 and len(down):
            policy.add_server(int(down[0]))
        elif kind == 2:
            loads = loads * rng.uniform(0.5, 2.0, d)
        else:
            loads = zipf_loads(d, rng.uniform(0.25, 0.75))
        before = policy.cluster
        plan = policy.plan(loads)
        judge(before, plan, loads)
        np.testing.assert_array_equal(policy.cluster.holds, plan.holds)


@pytest.mark.parametrize("name", SCHEMES)
def test_every_scheme_keeps_the_protocol(name: str) -> None:
    pytest.importorskip("highspy")
    scheme = make_scheme(name, ShardCluster.round_robin(48, 8), time_limit_s=20.0)
    for at, loads in enumerate(load_rounds(48, 4, "stateful")):
        if at == 2:
            scheme.remove_server(3)
        before, given_ = scheme.cluster, loads.copy()
        plan = scheme.plan(loads)
        np.testing.assert_array_equal(loads, given_)
        judge(before, plan, loads, banded=name.startswith(("copter", "exact", "lp-")))
        assert scheme.cluster.holds is plan.holds


@pytest.mark.parametrize("deadline_s", [0.01, 0.05, 1.0])
def test_plans_are_feasible_at_every_deadline(deadline_s: float) -> None:
    policy = CopterShards(ShardCluster.round_robin(160, 20))
    for loads in load_rounds(160, 3):
        before = policy.cluster
        judge(before, policy.plan(loads, deadline_s), loads, banded=False)


def test_few_movements_where_the_loads_stay_close() -> None:
    results: dict[str, ShardResult] = {
        name: simulate_shards(name, make_scheme(name, ShardCluster.round_robin(128, 16)), load_rounds(128, 12), 2)
        for name in ("copter", "copter-idle", "greedy")
    }
    moved = {name: result.summary()["movements"] for name, result in results.items()}
    assert moved["copter-idle"] <= moved["copter"] < moved["greedy"]
    assert results["copter"].summary()["out_of_band_rounds"] == 0
    assert results["copter"].summary()["imbalance_max"] <= 0.1 + 1e-9


def test_the_memory_repair_moves_a_single_replica_from_a_full_server() -> None:
    holds = np.zeros((4, 3), dtype=bool)
    holds[:, 0] = True
    cluster = ShardCluster(np.ones(4), np.array([2.0, 2.0, 2.0]), holds, band=0.9)
    shard, server, share = repair(cluster, np.full(4, 0.75), np.arange(4), np.zeros(4, dtype=int), np.ones(4))
    assert np.bincount(server, minlength=3).max() <= 2
    np.testing.assert_allclose(np.bincount(shard, share), 1.0)


# Bad input ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda: ShardCluster.round_robin(4, 2, size=[1, 1, 40, 1]), "shard 2 of size 40 does not fit"),
        (lambda: ShardCluster.round_robin(4, 2, replicas=3), "3 replicas do not fit on 2 servers"),
        (lambda: ShardCluster.round_robin(40, 2), "take 40, the servers have 32"),
        (lambda: ShardCluster.round_robin(0, 2), "at least one of each"),
        (lambda: ShardCluster.round_robin(4, 2, size=[1, 1, np.nan, 1]), "size 2 is nan"),
        (lambda: ShardCluster.round_robin(4, 2, band=0.0), "the band is 0"),
        (lambda: ShardCluster.round_robin(4, 2, cost="free"), "unknown cost 'free'"),
        (lambda: ShardCluster(np.ones(2), np.ones(2) * 9, np.ones((2, 3), dtype=bool)), "holds must be"),
        (lambda: make_scheme("best", ShardCluster.round_robin(4, 2)), "unknown scheme 'best'"),
        (lambda: make_scheme("pop-9", ShardCluster.round_robin(4, 2)), "9 parts of 2 servers"),
    ],
)
def test_impossible_clusters_are_one_error_that_names_it(make, says: str) -> None:
    with pytest.raises(ShardError, match=says):
        make()


def test_bad_loads_and_servers_change_nothing() -> None:
    policy = CopterShards(ShardCluster.round_robin(16, 4))
    policy.plan(zipf_loads(16, 0.5))
    before = policy.cluster
    for value in (np.nan, -1.0, np.inf, 1e300):
        loads = np.ones(16)
        loads[5] = value
        with pytest.raises(ShardError, match="load of shard 5"):
            policy.plan(loads)
    with pytest.raises(ShardError, match="shape"):
        policy.plan(np.ones(3))
    with pytest.raises(UnknownServerError, match="no server 9"):
        policy.remove_server(9)
    with pytest.raises(UnknownServerError, match="up already"):
        policy.add_server(1)
    assert policy.cluster is before


def test_a_server_lost_under_its_only_replicas() -> None:
    policy = CopterShards(ShardCluster.round_robin(24, 4, memory=10.0))
    loads = zipf_loads(24, 0.4)
    policy.plan(loads)
    lost = np.flatnonzero(policy.cluster.holds[:, 2] & (policy.cluster.holds.sum(axis=1) == 1))
    policy.remove_server(2)
    before = policy.cluster
    plan = policy.plan(loads)
    judge(before, plan, loads)
    assert plan.movements >= len(lost) > 0
    assert plan.bound >= len(lost)
    with pytest.raises(ShardError, match="take 24, the servers have 20"):
        policy.remove_server(0)  # the rest cannot hold all shards
    assert policy.cluster.is_up.sum() == 3


def test_loads_of_zero_move_nothing() -> None:
    policy = CopterShards(ShardCluster.round_robin(16, 4))
    plan = policy.plan(np.zeros(16))
    assert plan.movements == 0
    assert plan.in_band
    one = np.zeros(16)
    one[0] = 5.0
    before = policy.cluster
    plan = policy.plan(one)
    judge(before, plan, one)
    assert plan.movements == 3


# Without a program ----------------------------------------------------------------------------------------------------


def test_the_first_round_is_in_the_band_at_any_deadline() -> None:
    """Copies are made without the program, too: no deadline is so short that the standing copies are the plan."""
    loads = next(iter(load_rounds(256, 1)))
    policy = CopterShards(ShardCluster.round_robin(256, 32))
    before = policy.cluster
    plan = policy.plan(loads, deadline_s=1e-6)
    judge(before, plan, loads)


def test_new_copies_alone_reach_the_bound() -> None:
    """From one copy each, as many new ones as servers are certain to need: the plan is optimal without a program."""
    loads = next(iter(load_rounds(1024, 1)))
    cluster = ShardCluster.round_robin(1024, 128)
    load = loads / (loads.sum() / 128)
    shard, server = np.nonzero(cluster.holds)
    shard, server, share = repair(cluster, load, shard, server, np.ones(len(shard)), reduce=False)
    new = ~cluster.holds[shard, server]
    assert new.sum() == copies_bound(cluster, load)
    served = np.bincount(server, share * load[shard], 128)
    assert np.abs(served - 1.0).max() <= cluster.band


@pytest.mark.parametrize("replicas", [1, 2])
def test_many_servers_have_no_program(monkeypatch: pytest.MonkeyPatch, replicas: int) -> None:
    """Beyond so many servers every round is the shim's alone, and still in the band."""
    monkeypatch.setattr("copter_frontends.shards.policy.MOST_SERVERS", 16)
    monkeypatch.setattr(ShardFormulation, "solve", None)
    policy = CopterShards(ShardCluster.round_robin(256, 32, memory=24.0, replicas=replicas))
    for loads in load_rounds(256, 12):
        before = policy.cluster
        judge(before, policy.plan(loads), loads)
