"""Requirement sets, the queue, the window, and what the Hops policy makes of them (HP1, HP2, HP14, HP19-HP23)."""

from __future__ import annotations

import math
from collections.abc import Sequence

import pytest
from hops_instances import RandomSpeeds
from plan_checks import check_plan

from copter.runtime.errors import SettingsError
from copter_frontends.policies.hops import (
    HopsPolicy,
    IterationTimes,
    LearningRates,
    Links,
    RequirementSet,
    ThroughputError,
    ThroughputEstimator,
)
from copter_frontends.policies.hops.data_loading import DataLoading
from copter_frontends.policies.hops.latency_ratio import RULES, LatencyQueue, Standing, age_s, age_terms, weights
from copter_frontends.policies.hops.requirements import requirements_of
from copter_frontends.policies.hops.service_window import adjust_for_sensitivity, service_window
from copter_frontends.vocabulary import Cluster, InvalidJobError, Job


def job(name: str, submit_s: float = 0.0, work: float = 1e4) -> Job:
    return Job(name, "any", submit_s, work_samples=work)


class TestRequirementSets:
    @pytest.mark.parametrize(
        ("sizes", "word"), [((), "empty"), ((4, 2), "ascending"), ((2, 2), "ascending"), ((-1, 2), "-1"), ((0,), "0")]
    )
    def test_improper_sets_are_refused(self, sizes: Sequence[int], word: str) -> None:
        with pytest.raises(InvalidJobError, match=word):
            RequirementSet.of(sizes)

    def test_steps_between_bounds_are_equal(self) -> None:
        assert RequirementSet.between(2, 16, 8).sizes == (2, 4, 6, 8, 10, 12, 14, 16)
        assert RequirementSet.between(1, 4, 8).sizes == (1, 2, 3, 4)
        assert RequirementSet.between(3, 3).sizes == (3,)
        for wrong in ((0, 4, 2), (4, 2, 2), (1, 4, 1)):
            with pytest.raises(InvalidJobError):
                RequirementSet.between(*wrong)

    def test_a_job_says_what_it_can(self) -> None:
        assert requirements_of(Job("a", "any", gpus=4)).sizes == (4,)
        assert requirements_of(Job("a", "any", max_gpus=4)).sizes == (1, 2, 3, 4)
        assert requirements_of(Job("a", "any", requested_gpus=3)).sizes == (3,)

    def test_learning_rates_scale(self) -> None:
        assert LearningRates({2: 0.1}).at(8) == pytest.approx(0.4)
        assert LearningRates({2: 0.1}, "sqrt").at(8) == pytest.approx(0.2)
        assert LearningRates({2: 0.1, 8: 0.3}).at(8) == 0.3
        for wrong in ({}, {2: -0.1}, {2: math.nan}):
            with pytest.raises(InvalidJobError):
                LearningRates(wrong)


class TestLatencyRatio:
    def test_the_age_is_a_mean_over_types_that_run_the_job(self) -> None:
        age = age_s(
            1000.0, age_terms({"fast": 10.0, "slow": 2.0, "never": 0.0}, {"fast": 3, "slow": 1, "never": 9}, 2.0)
        )
        assert age == pytest.approx(0.75 * 1000 / 20 + 0.25 * 1000 / 4)

    def test_priorities_are_renewed_every_thirty_seconds(self) -> None:
        queue, jobs = LatencyQueue(), {"a": job("a"), "b": job("b")}
        waits = {"a": 10.0, "b": 20.0}

        def standing(name: str) -> Standing:
            return Standing(waits[name], 100.0, 100.0, 0.0)

        queue.refresh(0.0, jobs, standing)
        assert queue.order(jobs) == ["b", "a"]
        waits["a"] = 90.0
        queue.refresh(29.0, jobs, standing)
        assert queue.order(jobs) == ["b", "a"]
        queue.refresh(30.0, jobs, standing)
        assert queue.order(jobs) == ["a", "b"]

    def test_finish_time_fairness_is_shared_over_isolated_time(self) -> None:
        """A job of 1000 s on its mean of 4 GPUs, 8 at most, that has waited 500 s, run 100 s and has 900 s left."""

        def rho(share: float) -> float:
            return RULES["ftf"](Standing(500.0, 1000.0, 900.0, 400.0, 100.0, share, 4.0, 8.0))

        assert rho(4.0) == pytest.approx(1500.0 / 1000.0)
        assert rho(1.0) == pytest.approx(1500.0 / 4000.0)  # alone on one GPU it takes four times as long
        assert rho(8.0) == rho(50.0) == pytest.approx(1500.0 / 500.0)  # it can use no more than 8

    def test_finish_time_fairness_orders_unlike_the_latency_ratio(self) -> None:
        """Of two with the same wait and age, the one that could use its whole share is treated worse."""
        wide = Standing(100.0, 1000.0, 1000.0, 0.0, 0.0, 16.0, 4.0, 16.0)
        narrow = Standing(110.0, 1000.0, 1000.0, 0.0, 0.0, 16.0, 4.0, 4.0)
        assert RULES["lr"](wide) < RULES["lr"](narrow)
        assert RULES["ftf"](wide) > RULES["ftf"](narrow)

    def test_the_recent_average_forgets(self) -> None:
        queue = LatencyQueue()
        queue.ended(0.0, 4.0)
        queue.ended(3000.0, 1.0)
        assert queue.recent_ratio(3500.0) == pytest.approx(2.5)
        assert queue.recent_ratio(6000.0) == pytest.approx(1.0)
        assert queue.recent_ratio(60_000.0) is None

    def test_weights_follow_lambda(self) -> None:
        values = {"new": 0.0, "old": 1.0}
        assert weights(values, 0.0) == {"new": 1.0, "old": 1.0}
        assert weights(values, 1.0) == pytest.approx({"new": 0.01 / 1.01, "old": 1.0})
        assert weights(values, 1e6)["old"] == 1.0
        assert weights(values, 1e6)["new"] > 0.0
        assert weights({"a": -5.0, "b": -1.0}, 1.0)["b"] == 1.0
        assert weights({}, 1.0) == {}


class TestServiceWindow:
    def test_it_ends_with_the_job_that_fills_the_cluster(self) -> None:
        smallest = {"a": 4, "b": 3, "c": 2, "d": 1}
        assert service_window("abcd", smallest, 8) == ["a", "b", "c"]
        assert service_window("abcd", smallest, 7) == ["a", "b"]
        assert service_window("abcd", smallest, 0) == []

    def test_jobs_that_bear_spreading_come_in_for_fragments(self) -> None:
        sensitivity = {"a": 2.0, "b": 1.1, "c": 3.0, "d": 1.0}
        smallest = dict.fromkeys("abcd", 2)
        found = adjust_for_sensitivity("abcd", ["a", "c"], smallest, sensitivity, 3)
        assert found == ["a", "c", "b", "d"]
        assert adjust_for_sensitivity("abcd", ["a", "c"], smallest, sensitivity, 2) == ["a", "c"]
        assert adjust_for_sensitivity("abcd", ["d"], smallest, sensitivity, 3) == ["d"]


class TestPolicy:
    cluster = Cluster.of({"k": (2, 4), "long": (2, 8)})

    def policy(self, **options: object) -> HopsPolicy:
        return HopsPolicy(self.cluster.copy(), RandomSpeeds(), **options)  # type: ignore[arg-type]

    def test_allocations_are_sizes_that_the_user_chose(self) -> None:
        policy = self.policy()
        for i in range(9):
            policy.add_job(job(f"job-{i}"), [2, 3, 7])
        for now_s in (0.0, 60.0, 300.0):
            plan = policy.plan(now_s)
            check_plan(plan, self.cluster)
            assert {each.gpus for each in plan.allocations.values()} <= {2, 3, 7}

    @pytest.mark.parametrize("sizes", [[], [3, 1], [-2], [1, 17]])
    def test_bad_requirement_sets_change_nothing(self, sizes: list[int]) -> None:
        policy = self.policy()
        policy.add_job(job("good"), [2])
        with pytest.raises(InvalidJobError):
            policy.add_job(job("bad"), sizes)
        with pytest.raises(InvalidJobError):
            policy.update_job("good", requirements=sizes)
        plan = policy.plan(0.0)
        assert {name: each.gpus for name, each in plan.allocations.items()} == {"good": 2}

    @pytest.mark.parametrize("value", [0.0, math.nan, -1.0, math.inf])
    def test_bad_estimates_are_refused(self, value: float) -> None:
        policy = self.policy()
        policy.book.throughputs.rate = lambda *_: value  # type: ignore[method-assign]
        with pytest.raises((InvalidJobError, ThroughputError), match="bad"):
            policy.add_job(job("bad"), [1])
        assert not policy.plan(0.0).allocations
        assert "bad" not in policy.jobs

    def test_bad_settings_are_refused(self) -> None:
        for wrong in ({"fairness": -1.0}, {"round_s": 0.0}, {"stay_bonus": math.nan}, {"priority": "age"}):
            with pytest.raises(SettingsError):
                self.policy(**wrong)

    def test_plans_within_a_round_only_give_idle_gpus_away(self) -> None:
        policy = self.policy()
        for i in range(4):
            policy.add_job(job(f"job-{i}"), [3])
        first = dict(policy.plan(0.0).allocations)
        policy.remove_job("job-0")
        policy.add_job(job("late", 50.0), [1, 2])
        second = dict(policy.plan(60.0).allocations)
        assert {name: second[name] for name in first if name != "job-0"} == {
            name: each for name, each in first.items() if name != "job-0"
        }
        assert "late" in second

    def test_the_longest_waiting_small_job_goes_first(self) -> None:
        policy = HopsPolicy(Cluster.of({"long": (1, 8)}), RandomSpeeds(), fairness=4.0)
        policy.add_job(job("short", 0.0, work=2e3), [8])
        policy.add_job(job("longer", 0.0, work=2e6), [8])
        assert list(policy.plan(1000.0).allocations) == ["short"]

    def test_a_job_that_leaves_counts_for_the_recent_ratio_and_is_forgotten(self) -> None:
        policy = HopsPolicy(Cluster.of({"long": (1, 8)}), RandomSpeeds(), stay_bonus=10.0)
        for name in ("a", "b"):
            policy.add_job(job(name), [8])
        (runs,) = policy.plan(0.0).allocations
        policy.plan(600.0)
        waits = "b" if runs == "a" else "a"
        waited_s = 600.0 - policy.service[waits].executed_s
        age_s = policy.book.age_s[waits]
        policy.remove_job(waits)
        assert waited_s > 0
        assert policy.standings.queue.recent_ratio(600.0) == pytest.approx(waited_s / age_s)
        policy.add_job(job(waits, 600.0), [8])
        policy.remove_job(waits)  # no wait is left over from the first
        assert policy.standings.queue.recent_ratio(600.0) == pytest.approx(waited_s / age_s / 2)

    def test_servers_that_are_added_are_used(self) -> None:
        policy = HopsPolicy(Cluster.of({"long": (1, 8)}), RandomSpeeds())
        for name in ("a", "b"):
            policy.add_job(job(name), [8])
        assert len(policy.plan(0.0).allocations) == 1
        policy.add_resources("long", 8)
        plan = policy.plan(300.0)
        assert len(plan.allocations) == 2
        check_plan(plan, Cluster.of({"long": (2, 8)}))
        policy.remove_resources("long", 8)
        assert len(policy.plan(600.0).allocations) == 1

    def test_the_learning_rate_is_reported_with_the_allocation(self) -> None:
        policy = self.policy()
        policy.add_job(job("job"), [4])
        policy.update_job("job", learning_rates=LearningRates({1: 0.01}))
        assert policy.learning_rate("job") is None
        policy.plan(0.0)
        assert policy.learning_rate("job") == pytest.approx(0.04)

    def test_observations_reach_the_database_and_the_plan(self) -> None:
        estimator = ThroughputEstimator()
        policy = HopsPolicy(Cluster.of({"k": (4, 4)}), estimator)
        parts = IterationTimes(0.1, 0.2, 0.01, DataLoading.steady(0.01), 1e6, 32.0, Links(1e9, 1e9))
        estimator.profile(job("job"), {"k": parts})
        policy.add_job(job("job"), [2])
        had = policy.plan(0.0).allocations["job"]
        policy.update_job("job", observed=50.0)
        server = had.nodes[0][0]
        assert estimator.per_gpu(policy.jobs["job"], "k", server, 2, 1) == pytest.approx(25.0)
        check_plan(policy.plan(300.0), Cluster.of({"k": (4, 4)}))
        with pytest.raises(ThroughputError):
            policy.update_job("job", observed=0.0)

    def test_servers_of_unlike_speed_are_groups_of_their_own(self) -> None:
        policy = HopsPolicy(self.cluster.copy(), RandomSpeeds(slow_server=0.7))
        assert [group.servers for group in policy.groups.groups] == [("k-0",), ("k-1",), ("long-0",), ("long-1",)]
        policy.add_job(job("job"), [4])
        held = policy.plan(0.0).allocations["job"]
        assert held.nodes[0][0].endswith("-0")
