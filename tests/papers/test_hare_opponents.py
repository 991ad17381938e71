"""Hare's opponents as round-based policies: the conformance suite, and what each is known by."""

from __future__ import annotations

from dataclasses import replace

import pytest
from conformance import PolicyConformance
from plan_checks import check_plan

from copter.runtime.errors import SettingsError
from copter_frontends.policies.hare.policy import HarePolicy
from copter_frontends.vocabulary import Cluster, InvalidClusterError, Job, SchedulingPolicy
from copter_papers.hare.opponent_policy import OpponentPolicy
from copter_papers.hare.opponents import RULES

ONE_NODE = {"t4": (1, 4)}


class TestOpponentsConform(PolicyConformance):
    examples = 5

    @pytest.fixture(autouse=True, params=tuple(RULES))
    def _choose_scheme(self, request: pytest.FixtureRequest) -> None:
        self.scheme: str = request.param

    def make(self, cluster: Cluster) -> SchedulingPolicy:
        return OpponentPolicy(cluster, self.scheme)


def job(name: str, gpus: int, work: float, submit_s: float = 0.0) -> Job:
    return Job(name, "cifar10", submit_s=submit_s, requested_gpus=gpus, work_samples=work)


def plan_of(scheme: str, jobs: list[Job], weights: dict[str, float] | None = None) -> set[str]:
    cluster = Cluster.of(ONE_NODE)
    policy = OpponentPolicy(cluster, scheme, weights=weights)
    for each in jobs:
        policy.add_job(each)
    plan = policy.plan(0.0)
    check_plan(plan, cluster)
    return set(plan.allocations)


def test_gavel_fifo_waits_for_its_head_and_srtf_does_not() -> None:
    jobs = [job("first", 2, 9e6), job("wide", 4, 5e6), job("short", 1, 1e6)]
    assert plan_of("gavel_fifo", jobs) == {"first"}
    assert plan_of("srtf", jobs) == {"short", "first"}


def test_sched_homo_looks_at_the_weights() -> None:
    jobs = [job("light", 4, 1e6), job("heavy", 4, 2e6)]
    assert plan_of("sched_homo", jobs) == {"light"}
    assert plan_of("sched_homo", jobs, {"heavy": 10.0}) == {"heavy"}


@pytest.mark.parametrize(("jobs", "types"), [(3, ["a100", "a100"]), (9, ["a100", "a100", "t4"])])
def test_sched_allox_lets_a_job_wait_for_a_fast_type_where_that_is_sooner(jobs: int, types: list[str]) -> None:
    cluster = Cluster.of({"t4": (1, 4), "a100": (1, 8)})
    policy = OpponentPolicy(cluster, "sched_allox")
    for n in range(jobs):
        policy.add_job(job(f"long-{n}", 4, 9e6))
    plan = policy.plan(0.0)
    check_plan(plan, cluster)
    assert sorted(held.gpu_type for held in plan.allocations.values()) == types


@pytest.mark.parametrize("scheme", RULES)
def test_a_job_that_has_started_stays_to_its_end(scheme: str) -> None:
    policy = OpponentPolicy(Cluster.of(ONE_NODE), scheme, weights={"urgent": 100.0})
    policy.add_job(job("here", 4, 9e6))
    held = policy.plan(0.0).allocations
    policy.add_job(job("urgent", 4, 1e3, submit_s=10.0))
    policy.update_job("here", progress=0.1)
    assert policy.plan(300.0).allocations == held
    policy.remove_job("here")
    assert set(policy.plan(600.0).allocations) == {"urgent"}


@pytest.mark.parametrize("scheme", RULES)
def test_a_head_that_fits_no_longer_does_not_hold_up_the_others(scheme: str) -> None:
    policy = OpponentPolicy(Cluster.of({"t4": (2, 4)}), scheme)
    policy.add_job(job("wide", 8, 1e6))
    policy.add_job(job("small", 1, 9e6, submit_s=5.0))
    policy.remove_resources("t4", 4)
    assert set(policy.plan(0.0).allocations) == {"small"}


def test_jobs_that_may_not_be_stopped_keep_their_gpus_under_hare() -> None:
    policy = HarePolicy(Cluster.of(ONE_NODE), weights={"urgent": 1000.0})
    policy.add_job(replace(job("firm", 4, 9e6), preemptible=False))
    held = policy.plan(0.0).allocations
    policy.add_job(job("urgent", 4, 1e3))
    assert policy.plan(300.0).allocations == held


def test_a_fixed_number_of_gpus_goes_before_what_was_asked_for() -> None:
    for policy in (HarePolicy(Cluster.of(ONE_NODE)), OpponentPolicy(Cluster.of(ONE_NODE), "srtf")):
        policy.add_job(replace(job("fixed", 1, 1e6), gpus=3))
        assert policy.plan(0.0).allocations["fixed"].gpus == 3


def test_bad_input_says_what() -> None:
    with pytest.raises(SettingsError, match="scheme is 'lifo', must be one of gavel_fifo, srtf, sched_homo"):
        OpponentPolicy(Cluster.of(ONE_NODE), "lifo")
    with pytest.raises(InvalidClusterError, match="no GPUs"):
        OpponentPolicy(Cluster({}, {}), "srtf")
