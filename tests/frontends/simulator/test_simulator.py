"""The round clock against numbers worked out by hand."""

from __future__ import annotations

import copy
import math
import random
from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from fake_goodput import FakeApplication, FakeGoodput

from copter_frontends.policies.baselines import FifoPolicy
from copter_frontends.simulator import RoundRecord, Simulation, SimulationError
from copter_frontends.vocabulary import Allocation, Cluster, Job, Plan, SchedulingPolicy, configurations_of
from copter_frontends.vocabulary.semantics import DEFAULT

PLAIN = FakeApplication()
SLOW_START = FakeApplication(restart_s=30.0)
LONG_START = FakeApplication(restart_s=150.0)


class Script(SchedulingPolicy):
    """A policy that plays back plans, and writes down what it is told."""

    round_s = 60.0

    def __init__(self, *plans: dict[str, Allocation]) -> None:
        self.plans = list(plans)
        self.calls: list[tuple[Any, ...]] = []

    def add_job(self, job: Job) -> None:
        self.calls.append(("add", job.id))

    def update_job(self, job_id: str, **what_changed: Any) -> None:
        self.calls.append(("update", job_id, what_changed))

    def remove_job(self, job_id: str) -> None:
        self.calls.append(("remove", job_id))

    def add_resources(self, gpu_type: str, count: int, nodes: Iterable[str] = ()) -> None:
        self.calls.append(("add_resources", gpu_type, count, list(nodes)))

    def remove_resources(self, gpu_type: str, count: int, nodes: Iterable[str] = ()) -> None:
        self.calls.append(("remove_resources", gpu_type, count, list(nodes)))

    def pin(self, job_id: str, allocation: Allocation | None) -> None:
        self.calls.append(("pin", job_id, allocation))

    def plan(self, now_s: float, deadline_s: float = 60.0) -> Plan:
        self.calls.append(("plan", now_s))
        allocations = self.plans.pop(0) if len(self.plans) > 1 else self.plans[0]
        return Plan({job: held for job, held in allocations.items() if ("remove", job) not in self.calls})


class Methods:
    """A policy with the methods of the protocol, which does not inherit from it; it wants all progress."""

    round_s, follows = 60.0, True
    add_job, update_job, remove_job = Script.add_job, Script.update_job, Script.remove_job
    add_resources, remove_resources = Script.add_resources, Script.remove_resources
    pin, plan = Script.pin, Script.plan

    def __init__(self, *plans: dict[str, Allocation]) -> None:
        self.plans = list(plans)
        self.calls: list[tuple[Any, ...]] = []


def t4(gpus: int, *nodes: tuple[str, int]) -> Allocation:
    return Allocation("t4", gpus, nodes or (("t4-0", gpus),))


def simulate(policy: Any, jobs: list[Job], applications: dict[str, FakeApplication] | None = None, **options: Any):
    cluster = Cluster.of({"t4": (2, 4), "a100": (1, 8)})
    model = FakeGoodput(configurations_of(cluster), applications or {"cifar10": PLAIN})
    return Simulation(cluster, jobs, policy, model, **options)


def job(name: str = "j", application: str = "cifar10", **fields: Any) -> Job:
    return Job(name, application, **fields)


def only(simulation: Simulation, column: str) -> float:
    return float(simulation.result().jobs[column][0])


# Training


def test_a_policy_that_has_only_the_methods_gets_the_defaults() -> None:
    policy: Any = Methods({"j": t4(2)})
    run = simulate(policy, [job()])
    records = [run.step() for _ in range(3)]
    assert [record.variables for record in records] == [0, 0, 0]
    assert [call[0] for call in policy.calls].count("update") == 2  # what it wishes itself is kept
    assert policy.learns is False
    assert policy.programs_solved is None


def test_a_policy_that_cannot_get_the_defaults_is_told_how() -> None:
    class Slotted:
        __slots__ = ()

    with pytest.raises(TypeError, match="Slotted has no `learns`: let it inherit from SchedulingPolicy"):
        simulate(Slotted(), [job()])


def test_a_job_completes_inside_the_round_to_the_float():
    simulation = simulate(Script({"j": t4(1)}), [job(work_samples=70.0)])
    first, second = simulation.step(), simulation.step()
    assert first.completed == ()
    assert second.completed == ("j",)
    assert only(simulation, "completion_s") == 70.0
    assert only(simulation, "jct_s") == 70.0
    assert only(simulation, "gpu_seconds") == 120.0  # held to the round's end
    assert second.gpus_used == {"t4": 1, "a100": 0}
    third = simulation.step()
    assert (third.active_jobs, third.gpus_used["t4"]) == (0, 0)
    assert ("remove", "j") in simulation.policy.calls


def test_a_job_with_just_the_time_that_it_needs_ends_in_its_last_round():
    """Sums of many rounds' progress are off by rounding, which must not cost a job another round."""
    for rounds in range(2, 120):
        simulation = simulate(Script({"j": t4(1)}), [job(work_samples=60.0 * rounds - 30.0)], {"cifar10": SLOW_START})
        ended = [simulation.step().completed for _ in range(rounds)]
        assert ended == [()] * (rounds - 1) + [("j",)]
        assert only(simulation, "completion_s") == pytest.approx(60.0 * rounds, abs=1e-6)
        assert only(simulation, "completion_s") <= 60.0 * rounds


def test_phases_are_crossed_exactly_within_one_round():
    staged = FakeApplication(phases=((0.25, 1.0), (0.5, 4.0), (0.75, 0.5), (1.0, 10.0)), slowdown=1.25)
    simulation = simulate(Script({"j": t4(2)}), [job(work_samples=80.0)], {"cifar10": staged})
    simulation.step()
    expected = 20 / (2 / 1.25) + 20 / (8 / 1.25) + 20 / (1 / 1.25) + 20 / (20 / 1.25)
    assert only(simulation, "completion_s") == pytest.approx(expected, rel=1e-15)


@pytest.mark.parametrize("seed", range(5))
def test_progress_agrees_with_a_slow_integration(seed):
    rng = random.Random(seed)
    ends = [*sorted(rng.random() for _ in range(5)), 1.0]
    staged = FakeApplication(phases=tuple((e, 0.2 + rng.random()) for e in ends), restart_s=7.0, slowdown=1.3)
    work = rng.uniform(200, 900)
    simulation = simulate(Script({"j": t4(2)}), [job(work_samples=work)], {"cifar10": staged}, round_s=13.0)
    while not simulation.finished:
        simulation.step()
        if simulation.now_s > 2000:
            break
    # Slow twin: walk over the phases one by one.
    clock, start = 7.0, 0.0
    for end, factor in staged.phases:
        clock += (end - start) * work * staged.slowdown / (2 * factor)
        start = end
    assert only(simulation, "completion_s") == pytest.approx(clock, rel=1e-12)


def test_the_work_of_the_application_is_used_when_the_job_gives_none():
    simulation = simulate(Script({"j": t4(4)}), [job()])
    simulation.run(rounds=60)
    assert only(simulation, "completion_s") == pytest.approx(1500.0, rel=1e-14)  # 6000 samples at 4 a second


def test_an_allocation_that_no_configuration_has_gets_its_own_rate():
    split = t4(2, ("t4-0", 1), ("t4-1", 1))
    simulation = simulate(Script({"j": split}), [job(work_samples=50.0)])
    simulation.step()
    assert only(simulation, "completion_s") == 50.0  # 2 GPUs x SPREAD


def test_a_longer_simulation_in_pieces_equals_one_in_one_piece():
    whole, pieces = [fifo_simulation(seed=3) for _ in range(2)]
    whole.run(rounds=40)
    for _ in range(4):
        pieces.run(rounds=10)
    for column, values in whole.result().jobs.items():
        np.testing.assert_array_equal(values, pieces.result().jobs[column])


# Restarts


def test_the_first_start_is_paid_but_is_not_a_restart():
    simulation = simulate(Script({"j": t4(1)}), [job(work_samples=20.0)], {"cifar10": SLOW_START})
    record = simulation.step()
    assert record.completed == ("j",)
    assert only(simulation, "completion_s") == 50.0
    assert only(simulation, "restarts") == 0


def test_a_change_of_shape_restarts_and_is_told():
    policy = Script({"j": t4(1)}, {"j": t4(2)}, {"j": t4(2)})
    simulation = simulate(policy, [job(work_samples=100.0)], {"cifar10": SLOW_START})
    for _ in range(3):
        simulation.step()
    # 30 samples in round one, 30 s x 2 in round two, 10 samples at 2 a second in round three.
    assert only(simulation, "completion_s") == 125.0
    assert only(simulation, "restarts") == 1
    assert ("update", "j", {"restarts": 1}) in policy.calls


def test_a_job_stopped_and_started_again_restarts():
    policy = Script({"j": t4(1)}, {}, {"j": t4(1)})
    simulation = simulate(policy, [job(work_samples=50.0)], {"cifar10": SLOW_START})
    records = [simulation.step() for _ in range(3)]
    assert [r.running_jobs for r in records] == [1, 0, 1]
    assert [(r.started, r.stopped) for r in records] == [(1, 0), (0, 1), (1, 0)]
    assert only(simulation, "completion_s") == 120.0 + 30.0 + 20.0
    assert (only(simulation, "restarts"), only(simulation, "queue_s")) == (1, 60.0)


@pytest.mark.parametrize(("charge", "restarts", "done_s"), [("allocation", 1, 130.0), ("type_and_count", 0, 100.0)])
def test_a_move_to_other_nodes_is_charged_as_asked(charge, restarts, done_s):
    policy = Script({"j": t4(1)}, {"j": t4(1, ("t4-1", 1))})
    simulation = simulate(policy, [job(work_samples=70.0)], {"cifar10": SLOW_START}, charge=charge)
    records = [simulation.step() for _ in range(3)]
    assert (only(simulation, "restarts"), only(simulation, "completion_s")) == (restarts, done_s)
    assert records[1].moved == 1


@pytest.mark.parametrize(
    ("after", "restarts"),
    [((("t4-0", 2), ("t4-1", 1)), 1), ((("t4-0", 3),), 1), ((("t4-0", 1), ("t4-1", 2)), 0)],
)
def test_by_shape_the_gpus_node_by_node_are_charged(after, restarts):
    policy = Script({"j": t4(3, ("t4-0", 1), ("t4-1", 2))}, {"j": t4(3, *after)})
    simulation = simulate(policy, [job()], {"cifar10": SLOW_START}, charge="type_and_shape")
    for _ in range(2):
        simulation.step()
    assert only(simulation, "restarts") == restarts


def test_by_shape_a_move_to_other_nodes_is_free():
    policy = Script({"j": t4(1)}, {"j": t4(1, ("t4-1", 1))})
    simulation = simulate(policy, [job()], {"cifar10": SLOW_START}, charge="type_and_shape")
    assert [simulation.step().moved for _ in range(2)] == [0, 1]
    assert only(simulation, "restarts") == 0


def test_without_pins_a_job_inside_its_restart_may_be_moved_and_begins_it_again():
    policy = Script({"j": t4(1)}, {"j": t4(2)})
    semantics = replace(DEFAULT, pin_restoring=False)
    simulation = simulate(policy, [job()], {"cifar10": LONG_START}, semantics=semantics)
    for _ in range(4):
        simulation.step()
    assert not [call for call in policy.calls if call[0] == "pin"]
    assert only(simulation, "restarts") == 1
    assert only(simulation, "progress") == pytest.approx(2 * 30.0 / 6000.0)  # from 60 + 150 s on


def test_jobs_inside_a_restart_are_pinned_and_unpinned_after():
    policy = Script({"j": t4(1)})
    simulation = simulate(policy, [job()], {"cifar10": LONG_START})
    for _ in range(5):
        simulation.step()
    assert [call for call in policy.calls if call[0] == "pin"] == [("pin", "j", t4(1)), ("pin", "j", None)]
    order = [call for call in policy.calls if call[0] in ("pin", "plan")]
    assert order.index(("pin", "j", t4(1))) == order.index(("plan", 60.0)) - 1
    assert order.index(("pin", "j", None)) == order.index(("plan", 180.0)) - 1  # the restart ends at 150 s
    assert only(simulation, "progress") == pytest.approx(150.0 / 6000.0)


def test_progress_is_told_when_the_phase_changes_and_only_then():
    staged = FakeApplication(work_samples=1000.0, phases=((0.1, 1.0), (1.0, 1.0)))
    policy = Script({"j": t4(1)})
    simulation = simulate(policy, [job()], {"cifar10": staged})
    for _ in range(5):
        simulation.step()
    assert [call for call in policy.calls if call[0] == "update"] == [
        ("update", "j", {"progress": pytest.approx(0.12)})
    ]


# Arrivals and jobs that cannot be simulated


def test_arrivals_wait_for_the_next_round():
    policy = FifoPolicy(Cluster.of({"t4": (2, 4), "a100": (1, 8)}))
    simulation = simulate(policy, [job("late", submit_s=61.0, work_samples=60.0), job("now", work_samples=60.0)])
    records = [simulation.step() for _ in range(3)]
    assert [r.active_jobs for r in records] == [1, 0, 1]
    jobs = simulation.result().jobs
    assert list(jobs["id"]) == ["now", "late"]
    assert list(jobs["first_start_s"]) == [0.0, 120.0]
    assert list(jobs["queue_s"]) == [0.0, 59.0]


def test_jobs_that_cannot_be_simulated_are_skipped_with_the_reason():
    jobs = [job("ok"), job("ok", submit_s=5), job("alien", "no-such-app"), job("huge", requested_gpus=99)]
    simulation = simulate(FifoPolicy(Cluster.of({"t4": (2, 4), "a100": (1, 8)})), jobs)
    result = simulation.run()
    reasons = {skipped.id: skipped.reason for skipped in result.skipped}
    assert set(reasons) == {"ok", "alien", "huge"}
    assert "same id" in reasons["ok"]
    assert "no-such-app" in reasons["alien"]
    assert "99 GPUs" in reasons["huge"]
    assert list(result.jobs["id"]) == ["ok"]
    assert result.summary()["jobs_completed"] == 1


def test_a_run_without_end_gives_up_jobs_that_are_never_started():
    simulation = simulate(Script({}), [job()])
    result = simulation.run()
    assert len(result.rounds) == 100
    assert "no GPUs" in result.skipped[0].reason
    assert simulation.finished


def test_a_run_of_rounds_or_hours_has_exactly_that_length():
    assert len(fifo_simulation().run(rounds=7).rounds) == 7
    assert len(fifo_simulation().run(hours=0.5).rounds) == 30
    assert len(fifo_simulation().run(rounds=7, hours=0.05).rounds) == 3


def test_until_the_last_job_ends():
    simulation = fifo_simulation()
    result = simulation.run()
    assert np.isfinite(result.jobs["completion_s"]).all()
    assert result.rounds[-1].completed
    assert simulation.jobs_left == 0


# Plans that cannot be carried out


BAD_PLANS = {
    "which is not in the cluster": {"ghost": t4(1)},
    "over-commits node 't4-0': 6 GPUs of 4 for jobs 'j', 'k'": {"j": t4(3), "k": t4(3)},
    "names the GPU type 'h900'": {"j": Allocation("h900", 1, (("t4-0", 1),))},
    "names node 'nowhere'": {"j": t4(1, ("nowhere", 1))},
    "'a100-0' has 'a100'": {"j": t4(1, ("a100-0", 1))},
    "add up to 3": {"j": t4(2, ("t4-0", 1), ("t4-1", 2))},
    "add up to 0": {"j": Allocation("t4", 2)},
    "takes 0 GPUs": {"j": t4(1, ("t4-0", 1), ("t4-1", 0))},
    "a node twice": {"j": t4(2, ("t4-0", 1), ("t4-0", 1))},
    "it runs on 2 to 4": {"k": t4(1)},
    "cannot run on 1 a100 GPUs": {"j": Allocation("a100", 1, (("a100-0", 1),))},
}


@pytest.mark.parametrize("fault", BAD_PLANS)
def test_a_plan_that_cannot_be_carried_out_is_named(fault):
    jobs = [job("j"), job("k", min_gpus=2, max_gpus=4)]
    application = FakeApplication(types=("t4",))
    simulation = simulate(Script({}, BAD_PLANS[fault]), jobs, {"cifar10": application})
    simulation.step()
    with pytest.raises(SimulationError, match=r"^round 1 \(at 60 s\): ") as error:
        simulation.step()
    assert fault in str(error.value)


def test_a_pinned_job_that_is_moved_is_named():
    simulation = simulate(Script({"j": t4(1)}, {"j": t4(2)}), [job()], {"cifar10": LONG_START})
    simulation.step()
    with pytest.raises(SimulationError, match="'j', which is pinned"):
        simulation.step()


def test_bad_arguments_are_errors():
    with pytest.raises(ValueError, match="round_s"):
        simulate(Script({}), [], round_s=0.0)
    with pytest.raises(ValueError, match="charge"):
        simulate(Script({}), [], charge="nothing")


# Capacity at runtime


def test_jobs_on_lost_nodes_lose_their_gpus_and_pay_a_restart():
    policy = Script({"j": t4(1)}, {"j": t4(1, ("t4-1", 1))})
    simulation = simulate(policy, [job(work_samples=60.0)], {"cifar10": SLOW_START})
    simulation.step()
    assert simulation.remove_nodes(["t4-0"]) == ["j"]
    record = simulation.step()
    assert ("remove_resources", "t4", 4, ["t4-0"]) in policy.calls
    assert record.gpus_capacity == {"t4": 4, "a100": 8}
    assert (only(simulation, "restarts"), only(simulation, "completion_s")) == (1, 120.0)


def test_a_pinned_job_on_a_lost_node_is_unpinned_first():
    policy = Script({"j": t4(1)}, {"j": t4(1)}, {"j": t4(1, ("t4-1", 1))})
    simulation = simulate(policy, [job()], {"cifar10": LONG_START})
    simulation.step()
    simulation.step()
    simulation.remove_nodes(["t4-0"])
    told = [call[0] for call in policy.calls][-2:]
    assert told == ["pin", "remove_resources"]
    simulation.step()
    assert only(simulation, "restarts") == 1


def test_added_nodes_are_passed_on_and_used():
    cluster = Cluster.of({"t4": (1, 4)})
    kept = copy.deepcopy(cluster)
    model = FakeGoodput(configurations_of(cluster), {"cifar10": PLAIN})
    jobs = [job(f"j{i}", requested_gpus=4) for i in range(2)]
    simulation = Simulation(cluster, jobs, FifoPolicy(cluster), model)
    assert simulation.step().running_jobs == 1
    assert [node.id for node in simulation.add_nodes("t4", 1)] == ["t4-1"]
    record = simulation.step()
    assert (record.running_jobs, record.gpus_capacity, record.utilisation) == (2, {"t4": 8}, 1.0)
    assert cluster == kept


# The whole


def fifo_simulation(seed: int = 0, rounds_of_jobs: int = 30) -> Simulation:
    rng = random.Random(seed)
    cluster = Cluster.of({"t4": (2, 4), "a100": (1, 8)})
    applications = {
        "cifar10": FakeApplication(2000.0, 25.0, 1.2, ((0.3, 1.0), (1.0, 0.5))),
        "bert": FakeApplication(8000.0, 130.0, 1.0, ((0.5, 1.0), (1.0, 2.0))),
    }
    jobs = [
        Job(f"j{i}", rng.choice(sorted(applications)), rng.uniform(0, 60 * rounds_of_jobs), None, rng.choice([1, 2, 4]))
        for i in range(25)
    ]
    model = FakeGoodput(configurations_of(cluster), applications)
    return Simulation(cluster, jobs, FifoPolicy(cluster), model, seed=seed)


def test_two_runs_are_equal_in_all_but_wall_clock():
    def light(record: RoundRecord) -> tuple[Any, ...]:
        return record.active_jobs, record.running_jobs, dict(record.gpus_used), record.completed, record.moved

    one, two = fifo_simulation().run(), fifo_simulation().run()
    assert [light(r) for r in one.rounds] == [light(r) for r in two.rounds]
    for column, values in one.jobs.items():
        np.testing.assert_array_equal(values, two.jobs[column])


def test_every_gpu_second_of_the_rounds_belongs_to_a_job():
    result = fifo_simulation().run()
    held = sum(60.0 * sum(record.gpus_used.values()) for record in result.rounds)
    assert result.jobs["gpu_seconds"].sum() == held > 0
    assert all(sum(r.gpus_used.values()) <= sum(r.gpus_capacity.values()) for r in result.rounds)


def test_a_job_never_ends_before_its_work_at_full_speed():
    result = fifo_simulation().run()
    ran_s = result.jobs["completion_s"] - result.jobs["first_start_s"]
    assert (ran_s >= 25.0).all()
    assert (result.jobs["queue_s"] <= result.jobs["jct_s"] + 1e-9).all()
    assert math.isclose(float(result.jobs["progress"].min()), 1.0)
