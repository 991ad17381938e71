"""Hare through the conformance suite, and what is its own."""

import pytest
from conformance import PolicyConformance
from plan_checks import check_plan

from copter_frontends.hare.gang import Gang, gang_schedule
from copter_frontends.hare.policy import HarePolicy
from copter_frontends.vocabulary import Cluster, InvalidClusterError, Job, SchedulingPolicy


class TestHareConforms(PolicyConformance):
    examples = 5

    def make(self, cluster: Cluster) -> SchedulingPolicy:
        return HarePolicy(cluster)


def test_short_and_heavy_jobs_come_first():
    cluster = Cluster.of({"t4": (1, 4)})
    jobs = [Job(f"j{i}", "cifar10", requested_gpus=4, work_samples=1e6 * (i + 1)) for i in range(3)]
    policy = HarePolicy(cluster)
    for job in jobs[::-1]:
        policy.add_job(job)
    assert set(policy.plan(0.0).allocations) == {"j0"}
    heavy = HarePolicy(cluster, weights={"j2": 100.0})
    for job in jobs:
        heavy.add_job(job)
    plan = heavy.plan(0.0)
    check_plan(plan, cluster)
    assert set(plan.allocations) == {"j2"}


def test_progress_moves_a_job_forward():
    policy = HarePolicy(Cluster.of({"t4": (1, 4)}))
    policy.add_job(Job("long", "cifar10", requested_gpus=4, work_samples=3e6))
    policy.add_job(Job("short", "cifar10", requested_gpus=4, work_samples=2e6))
    assert set(policy.plan(0.0).allocations) == {"short"}
    policy.update_job("long", progress=0.95)
    assert set(policy.plan(300.0).allocations) == {"long"}
    with pytest.raises(TypeError, match="colour"):
        policy.update_job("long", colour="red")


def test_pins_are_checked():
    policy = HarePolicy(Cluster.of({"t4": (1, 4)}))
    policy.add_job(Job("j", "cifar10"))
    from copter_frontends.vocabulary import Allocation

    with pytest.raises(InvalidClusterError, match="t4-9"):
        policy.pin("j", Allocation("t4", 1, (("t4-9", 1),)))
    with pytest.raises(InvalidClusterError, match="no GPUs"):
        HarePolicy(Cluster({}, {}))


def test_a_gang_goes_where_it_finishes_first_and_idle_gpus_are_not_left():
    gangs = {
        "a": Gang(2, 1.0, {"fast": 10.0, "slow": 30.0}),
        "b": Gang(2, 1.0, {"fast": 10.0, "slow": 15.0}),
        "c": Gang(2, 1.0, {"fast": 10.0, "slow": 100.0}),
        "d": Gang(1, 1.0, {"slow": 50.0, "fast": 5.0}),
    }
    found = gang_schedule(gangs, ["a", "b", "c", "d"], {"fast": 2, "slow": 3})
    assert found.now == {"a": ("fast", 2), "b": ("slow", 2), "d": ("slow", 1)}
    assert found.cost == 10.0 + 15.0 + 20.0 + 25.0
