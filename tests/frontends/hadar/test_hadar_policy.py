"""Hadar as a policy: what it refuses, what it leaves out, where it puts jobs, what it learns (docs/papers/hadar.md)."""

from __future__ import annotations

import math

import numpy as np
import pytest
from plan_checks import check_plan

from copter.runtime.errors import InvalidDataError, SettingsError
from copter_frontends.policies.hadar import (
    AverageJct,
    EffectiveThroughput,
    HadarPolicy,
    ThroughputEstimator,
    Unmeasured,
)
from copter_frontends.policy_kit import ThroughputTable
from copter_frontends.vocabulary import Allocation, CapacityInUseError, Cluster, InvalidJobError, Job

FAST_AND_SLOW = {"fast": 8.0, "slow": 4.0}


def cluster(fast: int = 2, slow: int = 2) -> Cluster:
    return Cluster.of({"fast": (fast, 4), "slow": (slow, 4)})


def table(**rows: dict[str, float]) -> ThroughputTable:
    """Rates of jobs by id; every job has 100,000 iterations to do."""
    return ThroughputTable(rows, dict.fromkeys(rows, 1e5))


def policy_of(source: ThroughputTable, where: Cluster | None = None, **options: object) -> HadarPolicy:
    return HadarPolicy(where or cluster(), source, **options)  # type: ignore[arg-type]


@pytest.mark.parametrize("mode", ["lp", "lp_posted", "horizon"])
def test_the_lps_seconds_are_those_of_its_edits_and_its_solve(mode: str) -> None:
    policy = policy_of(table(a={"fast": 2.0, "slow": 1.0}, b={"fast": 3.0, "slow": 1.0}), mode=mode)
    policy.add_job(Job("a", "any", requested_gpus=1))
    for now_s in (0.0, 360.0):
        plan = policy.plan(now_s)
        assert policy.last_lp_s == pytest.approx(plan.timings["edit"] + plan.timings["solve"])
    policy.add_job(Job("b", "any", requested_gpus=1))
    plan = policy.plan(720.0)
    assert policy.last_lp_s == pytest.approx(plan.timings["edit"] + plan.timings["solve"])


# What it refuses or leaves out ----------------------------------------------------------------------------------------


def test_a_job_asking_for_more_gpus_than_exist_is_refused() -> None:
    policy = policy_of(table(big=FAST_AND_SLOW))
    with pytest.raises(InvalidJobError, match="'big' fits nowhere: it asks for 17 GPUs; there are 16"):
        policy.add_job(Job("big", "any", requested_gpus=17))
    assert policy.plan(0.0).allocations == {}


def test_gpus_that_the_job_cannot_use_do_not_count() -> None:
    policy = policy_of(table(big={"fast": 8.0}))
    with pytest.raises(InvalidJobError, match="asks for 9 GPUs; there are 8"):
        policy.add_job(Job("big", "any", requested_gpus=9))


def test_a_job_may_be_larger_than_any_one_type() -> None:
    policy = policy_of(table(big=FAST_AND_SLOW))
    policy.add_job(Job("big", "any", requested_gpus=12))
    plan = policy.plan(0.0)
    check_plan(plan, cluster())
    assert (
        plan.allocations["big"].by_type == {"fast": 8, "slow": 4} or sum(plan.allocations["big"].by_type.values()) == 12
    )
    assert plan.allocations["big"].gpu_type == "slow", "the slowest type limits the job"


def test_zero_throughput_everywhere_is_refused_and_somewhere_is_avoided() -> None:
    policy = policy_of(table(dead={"fast": 0.0, "slow": 0.0}, picky={"slow": 4.0}))
    with pytest.raises(InvalidJobError, match="throughput is zero on every GPU type"):
        policy.add_job(Job("dead", "any"))
    policy.add_job(Job("picky", "any", requested_gpus=2))
    assert policy.plan(0.0).allocations["picky"].by_type == {"slow": 2}


def test_no_work_is_refused() -> None:
    policy = policy_of(ThroughputTable({"a": FAST_AND_SLOW}, {"a": 0.0}))
    with pytest.raises(InvalidJobError, match="its work is 0"):
        policy.add_job(Job("a", "any"))


@pytest.mark.parametrize("worth", [-1.0, math.nan])
def test_a_utility_that_is_negative_or_no_number_leaves_the_job_out_with_the_reason(worth: float) -> None:
    policy = policy_of(table(a=FAST_AND_SLOW), utility=lambda t, jobs: np.full(t.shape, worth))
    policy.add_job(Job("a", "any"))
    plan = policy.plan(0.0)
    assert plan.allocations == {}
    assert "utilities must be finite and >= 0" in plan.skipped["a"]


def test_a_utility_that_rises_leaves_the_job_out_with_the_reason() -> None:
    policy = policy_of(table(a=FAST_AND_SLOW), utility=lambda t, jobs: t)
    policy.add_job(Job("a", "any"))
    plan = policy.plan(0.0)
    assert plan.allocations == {}
    assert "must never rise" in plan.skipped["a"]


def test_a_job_that_lost_capacity_left_no_room_for_waits_and_the_plan_says_why() -> None:
    policy = policy_of(table(big=FAST_AND_SLOW, small=FAST_AND_SLOW))
    policy.add_job(Job("big", "any", requested_gpus=12))
    policy.add_job(Job("small", "any", requested_gpus=1))
    policy.remove_resources("fast", 8)
    plan = policy.plan(0.0)
    assert list(plan.allocations) == ["small"]
    assert plan.skipped == {"big": "it asks for 12 GPUs, but there are 8 of the types that it runs on (fast, slow)"}
    policy.add_resources("fast", 8)
    assert "big" in policy.plan(360.0).allocations


def test_a_server_that_vanishes_under_a_running_job_sends_the_job_elsewhere() -> None:
    policy = policy_of(table(a=FAST_AND_SLOW))
    policy.add_job(Job("a", "any", requested_gpus=4))
    (node, _), *_ = policy.plan(0.0).allocations["a"].nodes
    policy.remove_resources("fast", 4, [node])
    plan = policy.plan(360.0)
    assert node not in dict(plan.allocations["a"].nodes)
    assert plan.move == ("a",)


def test_a_server_under_a_pinned_mixture_cannot_go() -> None:
    policy = policy_of(table(a=FAST_AND_SLOW))
    policy.add_job(Job("a", "any", requested_gpus=4))
    mixed = Allocation("slow", 4, (("fast-1", 2), ("slow-0", 2)), (("fast", 2), ("slow", 2)))
    policy.pin("a", mixed)
    with pytest.raises(CapacityInUseError):
        policy.remove_resources("slow", 4, ["slow-0"])
    assert policy.plan(0.0).allocations["a"] == mixed
    with pytest.raises(InvalidJobError, match="do not add up"):
        policy.pin("a", Allocation("slow", 5, mixed.nodes, mixed.mixture))


@pytest.mark.parametrize(
    "options", [{"mode": "fast"}, {"spread_cost": 1.0}, {"restart_s": -1.0}, {"round_s": 0.0}, {"round_s": math.inf}]
)
def test_impossible_settings_are_refused(options: dict[str, object]) -> None:
    with pytest.raises(SettingsError):
        policy_of(table(a=FAST_AND_SLOW), **options)


def test_an_impossible_progress_is_refused_and_changes_nothing() -> None:
    policy = policy_of(table(a=FAST_AND_SLOW))
    policy.add_job(Job("a", "any"))
    with pytest.raises(InvalidDataError, match="a fraction from 0 to 1"):
        policy.update_job("a", progress=1.5)
    with pytest.raises(InvalidJobError, match="GPU type 'odd'"):
        policy.update_job("a", rates={"odd": 1.0})
    with pytest.raises(TypeError, match="colour"):
        policy.update_job("a", colour="red")
    assert policy.book.progress[0] == 0.0


def test_progress_alone_does_not_judge_the_rates_again(monkeypatch: pytest.MonkeyPatch) -> None:
    policy, judged = policy_of(table(a=FAST_AND_SLOW)), []
    policy.add_job(Job("a", "any"))
    monkeypatch.setattr(policy.book, "_check_rates", lambda job, rates: judged.append(list(rates)))
    policy.update_job("a", progress=0.5)
    assert not judged
    assert policy.book.progress[0] == 0.5
    policy.update_job("a", progress=0.75, rates={"slow": 2.0})
    assert judged
    assert set(map(tuple, judged)) == {(8.0, 2.0)}
    assert policy.book.rates[0].tolist() == [8.0, 2.0]


# Where it puts jobs ---------------------------------------------------------------------------------------------------


def test_a_gang_gets_all_its_gpus_or_none() -> None:
    rows = {f"j{i}": FAST_AND_SLOW for i in range(5)}
    policy = policy_of(table(**rows))
    for name in rows:
        policy.add_job(Job(name, "any", requested_gpus=5))
    plan = policy.plan(0.0)
    check_plan(plan, cluster())
    assert all(allocation.gpus == 5 for allocation in plan.allocations.values())
    assert len(plan.allocations) == 3


def test_three_fast_and_one_slow_are_used_together() -> None:
    where = Cluster.of({"fast": (1, 3), "slow": (1, 3)})
    policy = policy_of(table(a=FAST_AND_SLOW), where)
    policy.add_job(Job("a", "any", requested_gpus=4))
    plan = policy.plan(0.0)
    assert sum(plan.allocations["a"].by_type.values()) == 4
    assert len(plan.allocations["a"].by_type) == 2, "as in the paper's introduction: it need not wait"


def test_jobs_are_put_on_as_few_servers_as_can_be() -> None:
    rows = {f"j{i}": FAST_AND_SLOW for i in range(3)}
    policy = policy_of(table(**rows))
    for name, gpus in zip(rows, (4, 3, 1), strict=True):
        policy.add_job(Job(name, "any", requested_gpus=gpus))
    plan = policy.plan(0.0)
    assert all(len(allocation.nodes) == 1 for allocation in plan.allocations.values())


def test_a_job_takes_another_type_rather_than_be_spread_where_that_is_worth_more() -> None:
    rows = {"a": {"fast": 8.0}, "b": {"fast": 8.0}, "c": {"fast": 8.1, "slow": 8.0}}
    policy = policy_of(table(**rows), Cluster.of({"fast": (2, 4), "slow": (1, 4)}), spread_cost=0.5)
    for name, node in (("a", "fast-0"), ("b", "fast-1")):
        policy.add_job(Job(name, "any", requested_gpus=3))
        policy.pin(name, Allocation("fast", 3, ((node, 3),)))
    policy.add_job(Job("c", "any", requested_gpus=2))
    assert policy.plan(0.0).allocations["c"].nodes == (("slow-0", 2),)


def test_a_small_gain_does_not_move_a_running_job_and_a_large_one_does() -> None:
    def second_type(fast: float, restart_s: float) -> str:
        source = table(a={"fast": fast, "slow": 4.0}, b={"fast": 8.0})
        policy = policy_of(source, Cluster.of({"fast": (1, 4), "slow": (1, 4)}), restart_s=restart_s)
        policy.add_job(Job("b", "any", requested_gpus=4))
        policy.plan(0.0)
        policy.add_job(Job("a", "any", requested_gpus=4))
        assert policy.plan(360.0).allocations["a"].gpu_type == "slow"
        policy.remove_job("b")
        return policy.plan(720.0).allocations["a"].gpu_type

    assert second_type(4.05, 10.0) == "slow", "1% faster is not worth 10 seconds of 360"
    assert second_type(4.05, 0.0) == "fast"
    assert second_type(6.0, 10.0) == "fast"


def test_every_round_says_bound_value_and_gap() -> None:
    rows = {f"j{i}": {"fast": 4.0 + i, "slow": 3.0} for i in range(8)}
    policy = policy_of(table(**rows), utility=EffectiveThroughput())
    for name in rows:
        policy.add_job(Job(name, "any", requested_gpus=3))
    for k in range(4):
        plan = policy.plan(360.0 * k)
        assert plan.bound >= plan.objective > 0
        expected = (plan.bound - plan.objective) / plan.objective
        assert plan.gap == pytest.approx(expected, rel=1e-9, abs=1e-12)
        assert set(plan.prices) == {"fast", "slow"}
        assert set(plan.timings) >= {"edit", "solve", "shim", "place"}


# What it learns -------------------------------------------------------------------------------------------------------


def test_unknown_rates_are_guessed_from_jobs_alike_and_then_measured() -> None:
    rows = {f"j{i}": {"fast": 8.0 * (1 + i), "slow": 2.0 * (1 + i)} for i in range(4)}
    truth = table(**rows)
    policy = HadarPolicy(cluster(), Unmeasured(truth, ("slow",)), estimator=ThroughputEstimator(1.0))
    policy.add_job(Job("j0", "any", requested_gpus=1))
    policy.update_job("j0", rates={"fast": 8.0})
    policy.add_job(Job("j3", "any", requested_gpus=1))
    policy.plan(0.0)
    row = policy.book.row("j3")
    assert policy.book.rates[row] == pytest.approx([32.0, 8.0], rel=0.05), "four times as fast, as j0 is"
    assert policy.book.known[row].tolist() == [False, True]


def test_a_policy_that_knows_nothing_learns_by_running() -> None:
    rows = {f"j{i}": {"fast": 8.0, "slow": 2.0} if i % 2 else {"fast": 3.0, "slow": 6.0} for i in range(4)}
    truth = table(**rows)
    policy = HadarPolicy(cluster(), Unmeasured(truth), utility=AverageJct())
    for name in rows:
        policy.add_job(Job(name, "any", requested_gpus=4))
    for k in range(8):
        plan = policy.plan(360.0 * k)
        for name, allocation in plan.allocations.items():
            policy.update_job(name, observed=rows[name][allocation.gpu_type])
    assert policy.book.known.all(), "optimism makes every type worth a try"
    kinds = {name: allocation.gpu_type for name, allocation in plan.allocations.items()}
    assert kinds == {"j0": "slow", "j1": "fast", "j2": "slow", "j3": "fast"}
