"""A run under any policy can be saved in its middle and goes on as if it had not been."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from copter import Settings
from copter_frontends.goodput import GoodputModel
from copter_frontends.policies.registry.names import POLICY_NAMES
from copter_frontends.policies.registry.policies import POLICIES
from copter_frontends.simulator import Simulation
from copter_frontends.simulator.saved_run import load_run, save_run
from copter_frontends.vocabulary import Cluster, Job, configurations_of

CLUSTER = {"t4": (2, 4), "a100": (1, 8)}


def run(name: str) -> Simulation:
    cluster = Cluster.of(CLUSTER)
    model = GoodputModel(configurations_of(cluster))
    policy = POLICIES[name].build(cluster, model, "full", Settings(threads=1))
    jobs = [Job(f"j{i}", ("cifar10", "bert")[i % 2], 50.0 * i, requested_gpus=(1, 2, 4)[i % 3]) for i in range(9)]
    return Simulation(cluster, jobs, policy, model, policy.round_s, deadline_s=1e6)


@pytest.mark.parametrize("name", POLICY_NAMES)
def test_a_saved_run_goes_on_the_same(name: str, tmp_path: Path) -> None:
    whole, halved = run(name), run(name)
    for _ in range(5):
        whole.step()
        halved.step()
    save_run(halved, tmp_path / "run")
    again = load_run(tmp_path / "run")
    for _ in range(5):
        one, two = whole.step(), again.step()
        assert one.gpus_used == two.gpus_used
        assert one.objective == pytest.approx(two.objective, rel=1e-6)
    np.testing.assert_array_equal(whole.result().jobs["gpu_seconds"], again.result().jobs["gpu_seconds"])
