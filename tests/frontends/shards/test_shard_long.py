"""A thousand rounds of loads, lost servers and deadlines: every plan keeps to all that it must."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from test_shard_plans import judge

from copter_frontends.shards import CopterShards, ShardCluster, zipf_loads


@pytest.mark.parametrize("rounds", [25, pytest.param(1000, marks=pytest.mark.long)])
def test_rounds_at_any_deadline(rounds: int) -> None:
    rng = np.random.default_rng(rounds)
    policy = CopterShards(ShardCluster.round_robin(96, 12, memory=20.0))
    for _ in range(rounds):
        down = np.flatnonzero(~policy.cluster.is_up)
        if len(down) and rng.random() < 0.5:
            policy.add_server(int(down[0]))
        elif rng.random() < 0.15:
            policy.remove_server(int(rng.choice(np.flatnonzero(policy.cluster.is_up))))
        loads = zipf_loads(96, rng.uniform(0.25, 0.75)) * rng.uniform(0.9, 1.1, 96)
        deadline_s = None if rng.random() < 0.6 else float(rng.choice([0.01, 0.05, 0.2]))
        before = policy.cluster
        judge(before, policy.plan(loads, deadline_s), loads, banded=deadline_s is None)


ROUND = st.tuples(
    st.sampled_from(["loads", "loads", "drift", "lose", "gain"]), st.sampled_from([None, 0.01, 0.02, 0.2])
)


@pytest.mark.long
@settings(max_examples=100, deadline=None)
@given(
    st.integers(0, 10_000), st.integers(24, 120), st.integers(1, 3), st.booleans(),
    st.lists(ROUND, min_size=10, max_size=10),
)  # fmt: skip
def test_any_cluster_any_edits_any_deadline(
    seed: int, shards: int, replicas: int, idle: bool, rounds: list[tuple[str, float | None]]
) -> None:
    """A hundred sequences of ten rounds, drawn: every one of the thousand placements keeps to all that it must."""
    rng = np.random.default_rng(seed)
    servers = int(rng.integers(replicas + 3, 14))
    memory = float(np.ceil(shards * replicas / servers) * 2 + 4)
    policy = CopterShards(ShardCluster.round_robin(shards, servers, memory, 0.1, replicas), keep_idle=idle)
    loads = zipf_loads(shards, 0.5)
    for kind, deadline_s in rounds:
        down = np.flatnonzero(~policy.cluster.is_up)
        if kind == "lose" and len(down) < 2:
            policy.remove_server(int(rng.choice(np.flatnonzero(policy.cluster.is_up))))
        elif kind == "gain" and len(down):
            policy.add_server(int(down[0]))
        elif kind == "drift":
            loads = loads * rng.uniform(0.9, 1.1, shards)
        else:
            loads = zipf_loads(shards, rng.uniform(0.25, 0.75))
        before = policy.cluster
        judge(before, policy.plan(loads, deadline_s), loads, banded=deadline_s is None)
