"""FIFO through the conformance suite, and what is its own."""

from __future__ import annotations

import pytest
from conformance import PolicyConformance
from plan_checks import check_plan

from copter_frontends.policies.baselines import FifoPolicy
from copter_frontends.vocabulary import (
    CapacityInUseError,
    Cluster,
    InvalidClusterError,
    InvalidJobError,
    Job,
    SchedulingPolicy,
)


class TestFifoConforms(PolicyConformance):
    knows_applications = False

    def make(self, cluster: Cluster) -> SchedulingPolicy:
        return FifoPolicy(cluster)


class TestFifoWithoutBackfillConforms(PolicyConformance):
    knows_applications = False

    def make(self, cluster: Cluster) -> SchedulingPolicy:
        return FifoPolicy(cluster, backfill=False)


def jobs(*gpus: int) -> list[Job]:
    return [Job(f"j{i}", "cifar10", submit_s=i, requested_gpus=n) for i, n in enumerate(gpus)]


def plan_of(policy: FifoPolicy, queue: list[Job]) -> dict[str, tuple[tuple[str, int], ...]]:
    for job in queue:
        policy.add_job(job)
    return {job: held.nodes for job, held in policy.plan(0.0).allocations.items()}


def test_a_job_that_does_not_fit_holds_the_queue_only_without_backfill():
    cluster = Cluster.of({"t4": (1, 4)})
    strict, lax = FifoPolicy(cluster, backfill=False), FifoPolicy(cluster, backfill=True)
    assert set(plan_of(strict, jobs(3, 2, 1))) == {"j0"}
    assert set(plan_of(lax, jobs(3, 2, 1))) == {"j0", "j2"}


def test_submission_decides_and_not_the_order_of_the_calls():
    policy = FifoPolicy(Cluster.of({"t4": (1, 4)}))
    assert set(plan_of(policy, jobs(4, 4)[::-1])) == {"j0"}


def test_small_jobs_go_to_the_fullest_node_and_large_ones_to_whole_nodes():
    policy = FifoPolicy(Cluster.of({"t4": (4, 4)}))
    found = plan_of(policy, jobs(2, 1, 1, 6))
    assert found == {
        "j0": (("t4-0", 2),),
        "j1": (("t4-0", 1),),
        "j2": (("t4-0", 1),),
        "j3": (("t4-1", 4), ("t4-2", 2)),
    }


def test_a_job_never_spreads_over_more_nodes_than_it_needs():
    policy = FifoPolicy(Cluster.of({"t4": (2, 4)}))
    assert set(plan_of(policy, jobs(3, 3, 2))) == {"j0", "j1"}


def test_running_jobs_are_never_moved():
    policy = FifoPolicy(Cluster.of({"t4": (2, 4)}))
    first = plan_of(policy, jobs(3, 3))
    policy.remove_job("j0")
    policy.add_job(Job("late", "cifar10", requested_gpus=4))
    plan = policy.plan(60.0)
    assert plan.allocations["j1"].nodes == first["j1"]
    assert (plan.start, plan.stop, plan.move) == (("late",), (), ())


def test_the_type_with_the_most_free_gpus_is_taken_among_those_that_can_run_the_job():
    cluster = Cluster.of({"t4": (1, 4), "a100": (1, 8)})
    assert plan_of(FifoPolicy(cluster), jobs(1)) == {"j0": (("a100-0", 1),)}
    picky = FifoPolicy(cluster, can_run=lambda job, gpu_type, gpus: gpu_type == "t4")
    assert plan_of(picky, jobs(1)) == {"j0": (("t4-0", 1),)}
    with pytest.raises(InvalidJobError, match="big"):
        picky.add_job(Job("big", "cifar10", requested_gpus=8))


def test_resources_come_and_go_as_whole_nodes_only():
    policy = FifoPolicy(Cluster.of({"t4": (2, 4)}))
    with pytest.raises(InvalidClusterError, match="whole nodes of 4"):
        policy.add_resources("t4", 3)
    with pytest.raises(InvalidClusterError, match="2 nodes are named"):
        policy.remove_resources("t4", 4, ["t4-0", "t4-1"])
    with pytest.raises(InvalidClusterError, match="there already: t4-0"):
        policy.add_resources("t4", 4, ["t4-0"])
    with pytest.raises(InvalidClusterError, match="not there: t4-9"):
        policy.remove_resources("t4", 4, ["t4-9"])


def test_without_names_the_emptiest_nodes_go_first_and_new_names_are_free_ones():
    cluster = Cluster.of({"t4": (2, 4)})
    policy = FifoPolicy(cluster)
    plan_of(policy, jobs(2))
    policy.remove_resources("t4", 4)
    assert policy.plan(60.0).allocations["j0"].nodes == (("t4-0", 2),)
    policy.add_resources("t4", 4)
    policy.add_job(Job("wide", "cifar10", requested_gpus=4))
    assert policy.plan(120.0).allocations["wide"].nodes == (("t4-1", 4),)


def test_a_pin_on_gpus_in_use_is_refused_and_changes_nothing():
    policy = FifoPolicy(Cluster.of({"t4": (2, 4)}))
    plan_of(policy, jobs(4, 4))
    before = policy.plan(0.0).allocations
    with pytest.raises(CapacityInUseError, match="t4-1"):
        policy.pin("j0", before["j1"])
    assert policy.plan(60.0).allocations == before


def test_an_unknown_fact_is_an_error():
    policy = FifoPolicy(Cluster.of({"t4": (1, 4)}))
    policy.add_job(jobs(1)[0])
    with pytest.raises(TypeError, match="colour"):
        policy.update_job("j0", colour="red")


def test_a_lost_node_sends_its_jobs_back_to_their_place_in_the_queue():
    cluster = Cluster.of({"t4": (2, 4)})
    policy = FifoPolicy(cluster)
    found = plan_of(policy, jobs(4, 4, 4))
    policy.remove_resources("t4", 4, [found["j0"][0][0]])
    plan = policy.plan(60.0)
    assert (set(plan.allocations), plan.stop) == ({"j1"}, ("j0",))
    policy.remove_job("j1")
    assert set(policy.plan(120.0).allocations) == {"j0"}
    cluster.remove_nodes([found["j0"][0][0]])
    check_plan(policy.plan(180.0), cluster)
