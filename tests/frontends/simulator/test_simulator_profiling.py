"""Profiling that occupies GPUs: who waits, what is held, and when jobs join."""

from __future__ import annotations

from dataclasses import replace

import pytest

from copter.runtime.errors import SettingsError
from copter_frontends.goodput import GoodputModel
from copter_frontends.policies.baselines.fifo import FifoPolicy
from copter_frontends.policies.sia import SiaPolicy
from copter_frontends.simulator import Simulation, SimulationError
from copter_frontends.simulator.cluster_events import ClusterEvent
from copter_frontends.simulator.profiling import ProfilingQueue
from copter_frontends.vocabulary import Allocation, Cluster, Job, configurations_of
from copter_frontends.vocabulary.named_clusters import named_cluster
from copter_frontends.vocabulary.semantics import SIA_ARTIFACT, Semantics

SHARED = replace(SIA_ARTIFACT, profiling="bootstrap", profiling_s=20.0, profiling_share=0.25)


def held(probe: Job) -> dict[str, Allocation]:
    """An allocation of what a probe reserves."""
    assert probe.reservation is not None
    kind, gpus = probe.reservation
    return {probe.id: Allocation(kind, gpus, (("node", gpus),))}


def test_a_gpu_measures_three_jobs_a_round_and_a_quarter_of_a_type_at_most() -> None:
    queue = ProfilingQueue({"a": 8, "b": 2}, SHARED, 60.0)
    for row in range(8):
        queue.enter(row, Job(f"j{row}", "bert"), ["a", "b", "absent"])
    probes = queue.new_probes()
    assert [(job.reservation, queue.probes[job.id].rows) for job in probes] == [
        (("a", 1), (0, 1, 2)),
        (("a", 1), (3, 4, 5)),
        (("b", 1), (0, 1, 2)),
    ]
    assert queue.new_probes() == []
    assert queue.end_round(held(probes[0])) == ["profiling 0 of j0"]
    assert queue.take_ready() == []  # not measured on b yet
    queue.end_round(held(probes[2]))
    assert queue.take_ready() == [0, 1, 2]
    assert len(queue) == 5
    assert [(job.reservation, queue.probes[job.id].rows) for job in queue.new_probes()] == [
        (("a", 1), (6, 7)),
        (("b", 1), (3, 4, 5)),
    ]


def test_long_profiling_holds_a_gpu_for_several_rounds() -> None:
    queue = ProfilingQueue({"a": 1}, replace(SHARED, profiling_s=130.0), 60.0)
    queue.enter(0, Job("j", "bert"), ["a"])
    (probe,) = queue.new_probes()
    mine = held(probe)
    assert [queue.end_round(mine), queue.end_round({}), queue.end_round(mine)] == [[], [], []]
    assert queue.end_round({probe.id: Allocation("b", 1, (("node", 1),))}) == []  # another GPU measures nothing
    assert queue.end_round(mine) == [probe.id]
    assert queue.take_ready() == [0]


def test_a_refused_probe_is_made_again_for_the_same_jobs() -> None:
    queue = ProfilingQueue({"a": 4}, SHARED, 60.0)
    for row in range(4):
        queue.enter(row, Job(f"j{row}", "bert"), ["a"])
    (probe,) = queue.new_probes()
    queue.refused(probe.id)
    (again,) = queue.new_probes()
    assert queue.probes[again.id].rows == (0, 1, 2)


def run_of(semantics: Semantics, jobs: list[Job], **other: object) -> Simulation:
    cluster = named_cluster("sia-het")
    policy = SiaPolicy(cluster, semantics=semantics)
    return Simulation(cluster, jobs, policy, GoodputModel(configurations_of(cluster)), semantics=semantics, **other)  # type: ignore[arg-type]


def test_probes_hold_a_gpu_of_each_type_for_the_round_before_a_job_joins() -> None:
    simulation = run_of(SHARED, [Job("j", "cifar10")])
    first, second = simulation.step(), simulation.step()
    assert first.gpus_used == {"t4": 1, "rtx": 1, "a100": 1}
    assert (first.active_jobs, first.running_jobs) == (0, 0)
    assert (second.active_jobs, second.running_jobs) == (1, 1)
    assert sum(second.gpus_used.values()) == 1  # the smallest configuration (thesis 3.3.1)
    result = simulation.run()
    assert result.summary()["jobs_completed"] == 1
    assert result.jobs["queue_s"][0] == 60.0
    free = run_of(replace(SHARED, profiling_share=None), [Job("j", "cifar10")]).run()
    assert free.jobs["first_start_s"][0] == 60.0


def test_every_job_of_a_burst_is_profiled_and_ends() -> None:
    jobs = [Job(f"j{i}", "cifar10", 10.0 * i) for i in range(12)]
    simulation = run_of(SHARED, jobs)
    most = 0
    while not simulation.finished:
        record = simulation.step()
        probes = sum(name.startswith("profiling") for name in simulation._occupancy.allocations)
        assert probes == 0  # they are gone at the end of their round
        most = max(most, record.active_jobs)
    assert simulation.result().summary()["jobs_completed"] == 12
    assert most > 6


def test_a_failed_node_makes_profiling_wait_for_another() -> None:
    cluster = Cluster.of({"a100": (2, 8)})
    long = replace(SHARED, profiling_s=130.0)
    policy = SiaPolicy(cluster, semantics=long)
    model = GoodputModel(configurations_of(cluster))
    simulation = Simulation(cluster, [Job("j", "cifar10")], policy, model, semantics=long)
    simulation.step()
    ((name, allocation),) = simulation._occupancy.allocations.items()
    node = allocation.nodes[0][0]
    assert name.startswith("profiling")
    simulation._events = [ClusterEvent(60.0, "fail", "a100", nodes=(node,))]
    simulation.step()
    assert simulation._occupancy.allocations[name].nodes[0][0] != node
    assert simulation.run().summary()["jobs_completed"] == 1


def test_a_policy_without_reservations_is_refused_with_the_reason() -> None:
    cluster = named_cluster("sia-het")
    model = GoodputModel(configurations_of(cluster))
    simulation = Simulation(cluster, [Job("j", "cifar10")], FifoPolicy(cluster), model, semantics=SHARED)
    with pytest.raises(SimulationError, match="a policy that keeps reservations"):
        simulation.run()


def test_impossible_shares_are_refused() -> None:
    with pytest.raises(SettingsError, match="needs profiling='bootstrap'"):
        replace(SIA_ARTIFACT, profiling_share=0.5)
    with pytest.raises(SettingsError, match=r"profiling_share is 0\.0, must be above 0"):
        replace(SHARED, profiling_share=0.0)
