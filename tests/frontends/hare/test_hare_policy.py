"""Hare through the conformance suite, and what is its own."""

import numpy as np
import pytest
from conformance import PolicyConformance
from plan_checks import check_plan

from copter_frontends.policies.hare.formulation import sufficient_horizon_s
from copter_frontends.policies.hare.gang import Gang, gang_schedule
from copter_frontends.policies.hare.policy import RESTART_S, HarePolicy, _power_of_two
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


def two_jobs() -> HarePolicy:
    """Two jobs that each want all four GPUs of a type; the t4 are slower."""
    policy = HarePolicy(Cluster.of({"t4": (1, 4), "a100": (1, 4)}))
    for name in ("a", "b"):
        policy.add_job(Job(name, "cifar10", requested_gpus=4, work_samples=1e6))
    return policy


def test_the_order_of_the_last_round_is_kept_where_it_is_no_worse(monkeypatch):
    policy = HarePolicy(Cluster.of({"t4": (1, 4)}))
    for name in ("a", "b"):
        policy.add_job(Job(name, "cifar10", requested_gpus=4, work_samples=1e6))
    assert set(policy.plan(0.0).allocations) == {"a"}
    monkeypatch.setattr(policy, "_relaxed_order", lambda gangs, deadline_s: (["c", "b", "a"][-len(gangs) :], 7.0))
    plan = policy.plan(300.0)
    assert set(plan.allocations) == {"a"}, "both orders cost the same"
    gangs = policy._gangs()
    cost = gang_schedule(gangs, ["a", "b"], {"t4": 4}).cost
    assert (plan.objective, plan.bound) == (pytest.approx(-cost), -7.0)
    policy.add_job(Job("c", "cifar10", requested_gpus=4, work_samples=1e3))
    assert set(policy.plan(600.0).allocations) == {"c"}, "the short one first costs less"
    monkeypatch.setattr(policy, "_relaxed_order", lambda gangs, deadline_s: (["c", "b", "a"], 1e9))
    plan = policy.plan(900.0)
    assert plan.bound == plan.objective, "no bound is below the plan"


def test_moving_to_another_type_costs_a_restart_and_pinned_jobs_are_not_planned():
    policy = two_jobs()
    held = policy.plan(0.0).allocations
    assert {each.gpu_type for each in held.values()} == {"t4", "a100"}
    gangs = policy._gangs()
    for name, each in held.items():
        left = policy.seconds_left(name)
        assert gangs[name].seconds == {
            kind: left[kind] + (0.0 if kind == each.gpu_type else RESTART_S) for kind in ("t4", "a100")
        }
        assert (gangs[name].gpus, gangs[name].weight) == (4, 1.0)
    policy.pin("a", held["a"])
    assert set(policy._gangs()) == {"b"}


def test_jobs_that_fit_no_type_are_left_out_of_the_relaxation(monkeypatch):
    policy = HarePolicy(Cluster.of({"t4": (1, 4), "a100": (1, 2)}))
    gangs = {
        "wide": Gang(4, 2.0, {"t4": 10.0, "a100": 5.0}),
        "lost": Gang(8, 1.0, {"t4": 10.0}),
        "small": Gang(2, 1.0, {"t4": 10.0, "a100": 5.0}),
    }
    seen = []
    solve = policy.solver.solve

    def noted(instance, grid, deadline_s):
        seen.append((instance, grid.edges[-1], deadline_s))
        return solve(instance, grid, deadline_s)

    monkeypatch.setattr(policy.solver, "solve", noted)
    order, bound = policy._relaxed_order(gangs, 10.0)
    ((instance, horizon, deadline_s),) = seen
    assert [(job.id, job.tasks, job.rounds, job.weight, dict(job.train_s)) for job in instance.jobs] == [
        ("wide", 4, 1, 2.0, {"t4": 10.0}),
        ("small", 2, 1, 1.0, {"t4": 10.0, "a100": 5.0}),
    ]
    assert deadline_s == 8.0
    assert horizon == 2.0 ** np.ceil(np.log2(sufficient_horizon_s(instance)))
    assert sorted(order) == ["small", "wide"]
    assert 0.0 < bound <= gang_schedule(gangs, order, {"t4": 4, "a100": 2}).cost
    assert policy._relaxed_order({"lost": gangs["lost"]}, 10.0) == ([], 0.0)
    assert [_power_of_two(each) for each in (0.5, 1.0, 1.5, 2.0, 9.0)] == [1.0, 1.0, 2.0, 2.0, 16.0]


def test_a_plan_says_how_long_the_relaxation_and_the_lists_took(monkeypatch):
    """The clock is read at the beginning, after the relaxation and at the end."""
    times = iter([100.0, 103.0, 104.0])
    policy = two_jobs()
    monkeypatch.setattr("copter_frontends.policies.hare.policy.perf_counter", lambda: next(times))
    assert policy.choose(0.0, 60.0).timings == {"solve": 3.0, "shim": 1.0}
