"""The progress of many jobs, told in one call: as told one by one, or not at all."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from policy_state import policy_state

from copter.runtime.errors import InvalidDataError
from copter_frontends.goodput import GoodputModel
from copter_frontends.policies.baselines.fifo import FifoPolicy
from copter_frontends.policies.chronus import ChronusPolicy
from copter_frontends.policies.hadar import HadarPolicy
from copter_frontends.policies.hare.task_policy import HareTaskPolicy
from copter_frontends.policies.hops import HopsPolicy
from copter_frontends.policies.sia import SiaPolicy
from copter_frontends.policy_kit.ageing import Ageing
from copter_frontends.simulator import Simulation
from copter_frontends.vocabulary import (
    Cluster,
    FollowsAtOnce,
    Job,
    SchedulingPolicy,
    UnknownJobError,
    configurations_of,
    tell_progress,
)

MAKE: dict[str, Callable[[Cluster], Any]] = {
    "sia": SiaPolicy,
    "hadar": HadarPolicy,
    "hops": HopsPolicy,
    "chronus": ChronusPolicy,
    "hare": HareTaskPolicy,
    "fifo": FifoPolicy,
}
shares = st.floats(0.0, 1.0)


def cluster() -> Cluster:
    return Cluster.of({"v100": (2, 4), "t4": (2, 4)})


def started(make: Callable[[Cluster], Any]) -> Any:
    policy = make(cluster())
    for n in range(5):
        policy.add_job(Job(f"j{n}", "resnet50" if make is HareTaskPolicy else "cifar10", 0.0, 2e6, 1, max_gpus=4))
    policy.plan(0.0)
    return policy


@pytest.mark.parametrize("name", MAKE)
@settings(max_examples=10, deadline=None)
@given(told=st.dictionaries(st.sampled_from([f"j{n}" for n in range(5)]), shares, max_size=5))
def test_progress_told_at_once_is_as_told_of_each(name: str, told: dict[str, float]) -> None:
    together, alone = started(MAKE[name]), started(MAKE[name])
    assert isinstance(together, FollowsAtOnce)
    together.update_progress(told)
    for job_id, share in told.items():
        alone.update_job(job_id, progress=share)
    plans = [policy.plan(600.0) for policy in (together, alone)]
    assert plans[0].allocations == plans[1].allocations
    assert policy_state(together) == policy_state(alone)


@pytest.mark.parametrize("name", MAKE)
@pytest.mark.parametrize(
    ("wrong", "error"),
    [
        ({"j1": 1.5}, InvalidDataError),
        ({"j1": float("nan")}, InvalidDataError),
        ({"j1": None}, InvalidDataError),
        ({"nobody": 0.5}, UnknownJobError),
    ],
)
def test_impossible_progress_of_one_job_changes_none(name: str, wrong: dict[str, Any], error: type[Exception]) -> None:
    policy, other = started(MAKE[name]), started(MAKE[name])
    with pytest.raises(error):
        policy.update_progress({"j0": 0.5, **wrong})
    assert policy_state(policy) == policy_state(other)
    policy.update_progress({"j0": 1})
    other.update_job("j0", progress=1)
    assert policy_state(policy) == policy_state(other)


def test_who_has_an_own_way_to_be_told_is_told_that_way() -> None:
    heard: list[str] = []

    class OfEach(HopsPolicy):
        def update_job(self, job_id: str, **what_changed: Any) -> None:
            heard.append(job_id)
            super().update_job(job_id, **what_changed)

    class OfMany(HopsPolicy):
        def update_jobs(self, told: Any) -> None:
            heard.extend(told)
            super().update_jobs(told)

    for make in (OfEach, OfMany, lambda there: Ageing(OfEach(there), there, 1e6)):
        heard.clear()
        policy: SchedulingPolicy = started(make)
        tell_progress(policy, {"j1": 0.25, "j0": 0.5})
        assert heard == ["j1", "j0"]
    plain = FifoPolicy(cluster())
    plain.add_job(Job("a", "cifar10", 0.0))
    tell_progress(plain, {"a": 0.25})
    assert plain.service["a"].progress == 0.25


@pytest.mark.parametrize("name", [name for name in MAKE if name != "hare"])
def test_a_simulated_policy_knows_the_progress_of_its_jobs(name: str) -> None:
    told: dict[str, float] = {}
    policy = MAKE[name](cluster())
    inner = policy.update_progress

    def noted(progress: dict[str, float]) -> None:
        told.update(progress)
        inner(progress)

    policy.update_progress = noted
    simulation = Simulation(
        cluster(),
        [Job(f"j{n}", "cifar10", 0.0, max_gpus=4) for n in range(3)],
        policy,
        GoodputModel(configurations_of(cluster())),
    )
    for _ in range(12):
        simulation.step()
    simulation.tell_policy()
    table = simulation.result().jobs
    assert told
    for job_id, share in told.items():
        assert share <= float(table["progress"][list(table["id"]).index(job_id)])
