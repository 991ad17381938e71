"""POP's split, and Sia's program by HiGHS: LP* and the exact MILP (docs/papers/baselines.md, B33-B37)."""

from __future__ import annotations

import numpy as np
import pytest
from plan_checks import check_plan

from copter.runtime.errors import SettingsError
from copter_frontends.policies.sia import SiaPolicy
from copter_frontends.vocabulary import Allocation, Cluster, InvalidClusterError, Job, PlanStatus
from copter_papers.opponents.pop import PopPolicy, deal
from copter_papers.sia.cold_highs import ColdSiaPolicy, priced_bound

NAMES = ("cifar10", "bert", "deepspeech2", "yolov3", "imagenet")
TYPES = {"t4": (5, 4), "rtx": (3, 8), "a100": (2, 8)}


def jobs(count: int, seed: int = 0) -> list[Job]:
    rng = np.random.default_rng(seed)
    return [Job(f"job-{i}", str(rng.choice(NAMES)), float(rng.integers(0, 600))) for i in range(count)]


def test_every_node_is_dealt_and_remainders_spread():
    cluster = Cluster.of(TYPES)
    shares = deal(cluster, 4)
    assert sorted(name for names in shares for name in names) == sorted(cluster.nodes)
    assert sorted(len(names) for names in shares) == [2, 2, 3, 3]
    assert shares[1][:2] == ["t4-1", "rtx-0"]  # the deal goes on where t4's five nodes ended


def test_pop_of_one_part_is_the_policy_itself():
    whole, split = SiaPolicy(Cluster.of(TYPES)), PopPolicy(Cluster.of(TYPES), SiaPolicy, 1)
    for job in jobs(20):
        whole.add_job(job)
        split.add_job(job)
    one, two = whole.plan(600.0), split.plan(600.0)
    assert dict(one.allocations) == dict(two.allocations)
    assert one.objective == two.objective


def test_parts_keep_to_their_nodes_and_sums_add_up():
    pop = PopPolicy(Cluster.of(TYPES), SiaPolicy, 3)
    for job in jobs(20):
        pop.add_job(job)
    plan = pop.plan(600.0)
    shares = deal(Cluster.of(TYPES), 3)
    assert plan.start == tuple(sorted(plan.allocations))
    assert len(plan.allocations) == 20  # 52 GPUs: every job gets some
    for job_id, held in plan.allocations.items():
        assert {node for node, _ in held.nodes} <= set(shares[pop._part_of[job_id]])
    again = [part.plan(600.0) for part in pop.parts]
    assert plan.objective == pytest.approx(sum(part.objective for part in again), rel=1e-6)
    assert set(plan.timings) == set(again[0].timings)
    assert plan.objective <= plan.bound * (1 + 1e-9) <= 1.2 * plan.objective


@pytest.mark.parametrize("seed", range(3))
def test_split_plans_are_worth_less_than_whole_ones_but_not_by_much(seed: int):
    whole, split = ColdSiaPolicy(Cluster.of(TYPES), integer=True), PopPolicy(Cluster.of(TYPES), SiaPolicy, 4)
    for job in jobs(30, seed):
        whole.add_job(job)
        split.add_job(job)
    best, parts = whole.plan(600.0), split.plan(600.0)
    check_plan(parts, Cluster.of(TYPES))
    assert len(parts.allocations) == 30
    assert parts.objective <= best.objective * (1 + 2e-4)
    assert parts.bound < best.bound  # four parts of few nodes each: the split itself costs something here
    assert parts.objective >= 0.85 * best.objective


def test_more_parts_than_nodes_are_as_many_as_nodes():
    assert len(PopPolicy(Cluster.of({"t4": (2, 4)}), SiaPolicy, 16).parts) == 2
    with pytest.raises(SettingsError, match="parts"):
        PopPolicy(Cluster.of({"t4": (2, 4)}), SiaPolicy, 0)


def test_a_pin_over_two_parts_is_refused_and_one_in_another_part_takes_the_job_there():
    pop = PopPolicy(Cluster.of({"t4": (2, 4)}), SiaPolicy, 2)
    pop.add_job(jobs(1)[0])
    pop.update_job("job-0", progress=0.3, restarts=1)
    before = pop.plan(600.0).allocations["job-0"]
    other = {"t4-0": "t4-1", "t4-1": "t4-0"}[before.nodes[0][0]]
    with pytest.raises(InvalidClusterError, match="job-0"):
        pop.pin("job-0", Allocation("t4", 8, (("t4-0", 4), ("t4-1", 4))))
    wanted = Allocation("t4", 2, ((other, 2),))
    pop.pin("job-0", wanted)
    plan = pop.plan(660.0)
    assert (plan.allocations["job-0"], plan.move, plan.start, plan.stop) == (wanted, ("job-0",), (), ())


@pytest.mark.parametrize("seed", range(3))
def test_the_relaxation_the_integer_program_and_copter_agree(seed: int):
    policies = [SiaPolicy(Cluster.of(TYPES)), *(ColdSiaPolicy(Cluster.of(TYPES), integer=i) for i in (False, True))]
    for policy in policies:
        for job in jobs(25, seed):
            policy.add_job(job)
    copter, relaxed, exact = (policy.plan(600.0) for policy in policies)
    assert relaxed.bound == pytest.approx(copter.bound, rel=1e-5)
    assert exact.objective <= relaxed.bound * (1 + 1e-6)
    assert exact.objective >= max(copter.objective, relaxed.objective) * (1 - 1e-4)
    assert exact.fractional_jobs == 0
    assert exact.bound >= exact.objective * (1 - 1e-9)


def test_prices_are_those_of_the_program_and_bound_it():
    policy, twin = ColdSiaPolicy(Cluster.of(TYPES)), SiaPolicy(Cluster.of(TYPES))
    for job in jobs(40):
        policy.add_job(job)
        twin.add_job(job)
    plan = policy.plan(600.0)
    prices = np.array([plan.prices[kind] for kind in TYPES])
    assert (prices > 0).any()
    twin.formulation.refresh_costs(600.0)
    assert priced_bound(twin.formulation.model, prices) == pytest.approx(plan.bound, rel=1e-6)
    assert priced_bound(twin.formulation.model, 2 * prices) >= plan.bound


def test_without_time_the_last_plan_is_kept():
    policy = ColdSiaPolicy(Cluster.of(TYPES), integer=True)
    for job in jobs(25):
        policy.add_job(job)
    before = policy.plan(600.0)
    hurried = policy.plan(600.0, 1e-9)
    assert hurried.objective >= before.objective * (1 - 1e-9)
    assert hurried.status in (PlanStatus.FEASIBLE, PlanStatus.OPTIMAL)


def test_limits_are_checked():
    with pytest.raises(SettingsError, match="time_limit_s"):
        ColdSiaPolicy(Cluster.of(TYPES), time_limit_s=0.0)
    with pytest.raises(SettingsError, match="relative_gap"):
        ColdSiaPolicy(Cluster.of(TYPES), relative_gap=-1.0)
