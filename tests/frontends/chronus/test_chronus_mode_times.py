"""Promises where phases differ in speed by GPU type, and in a lease that other jobs join."""

from __future__ import annotations

import numpy as np
import pytest

from copter_frontends.goodput import GoodputModel
from copter_frontends.policies.chronus import ChronusPolicy, Standing, StepReward
from copter_frontends.policies.chronus.lease_room import LeaseRoom
from copter_frontends.policies.chronus.mode_times import ModeTimes
from copter_frontends.policies.chronus.packing import Parcel, pack
from copter_frontends.policy_kit import NodeInventory, ThroughputTable, TrainingThroughputs
from copter_frontends.vocabulary import Allocation, Cluster, Job, configurations_of
from copter_frontends.vocabulary.named_clusters import scaled_cluster
from tests.frontends.cli.test_cli_deadlines import summaries


def test_times_of_modes_are_linear_between_the_ends_of_phases() -> None:
    times = ModeTimes.of([([0.0, 0.5, 1.0], [0.0, 0.8, 1.0]), ([0.0, 0.25, 1.0], [0.0, 0.1, 1.0])])
    assert times.done(0.5) == pytest.approx([0.8, 0.4])
    assert times.done(0.25) == pytest.approx([0.4, 0.1])
    assert times.done(-0.1).tolist() == [0.0, 0.0]
    assert times.done(1.0).tolist() == [1.0, 1.0]
    assert times.after(0, 0.9) == pytest.approx([0.9, times.done(0.75)[1]])
    assert times.after(1, 0.1) == pytest.approx([0.4, 0.1])
    assert ModeTimes.even(3).done(0.3).tolist() == [0.3] * 3
    assert len(ModeTimes.even(0).done(0.5)) == 0


def test_the_rest_of_a_job_is_counted_in_the_time_of_each_gpu_type() -> None:
    """A job that did half of its work has another share of its time left on an A100 than on a T4."""
    cluster = scaled_cluster(56)
    rates = TrainingThroughputs(cluster, GoodputModel(configurations_of(cluster)))
    policy = ChronusPolicy(cluster, rates)
    job = Job("j", "cifar10", requested_gpus=1)
    policy.set_reward("j", StepReward.strict(40 * 3600.0))
    policy.add_job(job)
    policy.update_job("j", progress=0.5)
    record = policy.book.records["j"]
    kinds = [policy.nodes.types[mode.kind] for mode in record.modes]
    assert record.done == pytest.approx([rates.time_done(job, kind, 1, 0.5) for kind in kinds])
    assert np.ptp(record.done) > 1e-3
    options = policy.book.options([record], 0, 500, begins=True)
    for row in range(len(options.job)):
        mode = int(options.mode[row])
        left_s = record.modes[mode].total_s * (1.0 - record.done[mode])
        need = np.ceil((left_s - 1e-3) / (1200.0 - max(30.0, rates.restart_s(job))))
        assert options.need[row] == max(need, 1)


def test_promises_hold_where_jobs_change_their_gpu_type() -> None:
    (found,) = summaries("simulate", "chronus", "--gpus", "112", "--hours", "1", "--jobs", "6000")
    deadlines = found["deadlines"]
    assert isinstance(deadlines, dict)
    assert deadlines["promised"] > 30
    assert (deadlines["demoted"], deadlines["late"]) == (0, 0)


def test_parcels_that_stay_come_before_larger_ones() -> None:
    nodes = NodeInventory(Cluster.of({"v100": (2, 8)}))
    first = next(iter(nodes.free_by_node("v100")))
    held = Allocation("v100", 2, ((first, 2),))
    small, large = Parcel("small", "v100", 2, 2, held, stays=True), Parcel("large", "v100", 8, 8)
    assert pack(nodes, [large, small])["small"] == held
    nodes = NodeInventory(Cluster.of({"v100": (2, 8)}))
    spread = Allocation("v100", 4, tuple((node, 2) for node in nodes.free_by_node("v100")))
    assert pack(nodes, [Parcel("spread", "v100", 4, 4, spread, stays=True)])["spread"] == spread


def test_room_for_a_job_that_joins_is_consolidated() -> None:
    nodes = NodeInventory(Cluster.of({"v100": (3, 8)}))
    one, two, _ = nodes.free_by_node("v100")
    nodes.take(Allocation("v100", 6, ((one, 3), (two, 3))))
    room = LeaseRoom(nodes)
    assert room.largest(0) == 8  # 18 GPUs are free
    room.take(0, 8)
    assert room.largest(0) == 5
    room.take(0, 4)
    room.take(0, 4)
    assert room.largest(0) == 1


def test_a_running_job_is_not_moved_for_one_that_joins_its_lease() -> None:
    """Three jobs of 4 GPUs on two nodes, of which one ends: a job of 8 gets no half of each node, and moves nobody."""
    policy = ChronusPolicy(Cluster.of({"v100": (2, 8)}), ThroughputTable({"any": {"v100": 1.0}}), first_lease="now")
    for name, gpus in (("a", 4), ("b", 4), ("c", 4), ("d", 4)):
        policy.set_reward(name, StepReward.strict(6000.0))
        policy.add_job(Job(name, "any", work_samples=3000.0, requested_gpus=gpus))
    before = policy.plan(0.0).allocations
    mates: dict[str, list[str]] = {}
    for name, held in before.items():
        mates.setdefault(held.nodes[0][0], []).append(name)
    assert sorted(map(len, mates.values())) == [2, 2]
    for pair in mates.values():
        policy.remove_job(pair[0])
    policy.plan(300.0)
    policy.set_reward("large", StepReward.strict(1190.0))
    policy.add_job(Job("large", "any", work_samples=200.0, requested_gpus=8))
    assert policy.last_admission is not None
    assert policy.last_admission.standing is not Standing.GUARANTEED  # 4 GPUs are free on each node
    after = policy.plan(600.0).allocations
    assert all(after[pair[1]] == before[pair[1]] for pair in mates.values())
    policy.set_reward("small", StepReward.strict(590.0))
    policy.add_job(Job("small", "any", submit_s=600.0, work_samples=100.0, requested_gpus=4))
    assert policy.last_admission.standing is Standing.GUARANTEED
    assert len(policy.plan(900.0).allocations["small"].nodes) == 1


def test_nodes_that_go_leave_no_room_until_the_next_plan() -> None:
    policy = ChronusPolicy(Cluster.of({"v100": (2, 8)}), ThroughputTable({"any": {"v100": 1.0}}))
    policy.plan(0.0)
    policy.remove_resources("v100", 8, [policy.nodes.node_ids("v100")[0]])
    assert policy.placer.room is None
    policy.plan(300.0)
    assert policy.placer.room is not None
    assert policy.placer.room.largest(0) == 8
