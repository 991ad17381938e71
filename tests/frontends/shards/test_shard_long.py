"""A thousand rounds of loads, lost servers and deadlines: every plan keeps to all that it must."""

from __future__ import annotations

import numpy as np
import pytest
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
