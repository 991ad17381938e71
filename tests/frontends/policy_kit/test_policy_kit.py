"""The policy kit: edit clock, gap, what changes between plans, and who leaves for a pin."""

from __future__ import annotations

import pickle
from time import sleep

import pytest

from copter_frontends.policies.baselines.fifo import FifoPolicy
from copter_frontends.policy_kit import (
    EditClock,
    NodeInventory,
    jobs_on,
    jobs_to_stop,
    plan_changes,
    relative_gap,
    status_of,
)
from copter_frontends.vocabulary import Allocation, CapacityInUseError, Cluster, Job, PlanStatus


def on(node: str, gpus: int, gpu_type: str = "t4") -> Allocation:
    return Allocation(gpu_type, gpus, ((node, gpus),))


def test_the_gap_is_that_of_plans() -> None:
    assert relative_gap(9.0, 10.0) == pytest.approx(1.0 / 9.0)
    assert relative_gap(-12.0, -10.0) == pytest.approx(2.0 / 12.0)
    assert relative_gap(10.0, 9.0) == 0.0  # a plan above the bound is rounding, not a negative gap


def test_a_plan_is_optimal_where_its_lp_was_solved_and_the_gap_is_closed() -> None:
    assert status_of(1e-7, solved=True) is PlanStatus.OPTIMAL
    assert status_of(1e-7, solved=False) is PlanStatus.FEASIBLE
    assert status_of(1e-5, solved=True) is PlanStatus.FEASIBLE
    assert status_of(0.0, solved=True, kept=True) is PlanStatus.KEPT_PREVIOUS


def test_a_plan_touches_the_service_of_jobs_with_gpus_only() -> None:
    """The service of the others is what a loop over all jobs would find, and nothing of theirs is written."""
    policy = FifoPolicy(Cluster.of({"t4": (1, 4)}))
    for n in range(30):
        policy.add_job(Job(f"j{n}", "cifar10", 10.0 * n, requested_gpus=1 + n % 3))
    waiting, executed, planned = dict.fromkeys(policy.jobs, 0.0), dict.fromkeys(policy.jobs, 0.0), set[str]()
    last_s = None
    for now_s in (0.0, 60.0, 200.0, 260.0, 320.0):
        if now_s == 260.0:
            gone = next(iter(policy.held))
            policy.remove_job(gone)
        running = planned & policy.held.keys()
        for job_id, job in policy.jobs.items():
            elapsed_s = 0.0 if last_s is None else now_s - last_s
            if job_id in running:
                executed[job_id] += elapsed_s
                waiting[job_id] = 0.0
            else:
                waiting[job_id] += min(elapsed_s, max(now_s - job.submit_s, 0.0))
        before = {job_id: had.waits_from_s for job_id, had in policy.service.items()}
        planned, last_s = set(policy.plan(now_s).allocations), now_s
        for job_id, had in policy.service.items():
            assert had.waiting_s == pytest.approx(waiting[job_id])
            assert had.executed_s == pytest.approx(executed[job_id])
            if job_id not in running and now_s > 0.0:
                assert had.waits_from_s == before[job_id]
    had = policy.service[min(policy.jobs)]
    had.waiting_s = 5.0
    assert had.waiting_s == pytest.approx(5.0)


def test_changes_are_by_job_and_sorted() -> None:
    before = {"b": on("n0", 1), "a": on("n0", 1), "d": on("n1", 2), "c": on("n1", 2)}
    now = {"z": on("n0", 1), "d": on("n1", 2), "c": on("n2", 2), "y": on("n0", 1)}
    changes = plan_changes(before, now)
    assert (changes.start, changes.stop, changes.move) == (("y", "z"), ("a", "b"), ("c",))


def test_the_clock_counts_an_edit_within_an_edit_once_and_survives_a_failed_one() -> None:
    clock = EditClock()
    with clock:
        with clock:
            sleep(0.02)
        inner = clock.seconds
    assert inner == 0.0
    assert clock.seconds >= 0.02
    once = clock.seconds
    with pytest.raises(ValueError, match="no"), clock:
        raise ValueError("no")
    assert clock.seconds > once
    with pickle.loads(pickle.dumps(clock)) as copy:
        pass
    assert copy.seconds > clock.seconds
    clock.reset()
    assert clock.seconds == 0.0


def test_a_pin_moves_others_but_no_pinned_job() -> None:
    nodes = NodeInventory(Cluster.of({"t4": (2, 4)}))
    held = {"kept": on("t4-0", 2), "other": on("t4-0", 2), "far": on("t4-1", 4), "own": on("t4-0", 0)}
    pins = {"kept": held["kept"]}
    assert jobs_on({"t4-1"}, held) == ["far"]
    assert jobs_to_stop(nodes, "own", [on("t4-0", 2)], held, pins) == ["other"]
    with pytest.raises(CapacityInUseError, match="own"):
        jobs_to_stop(nodes, "own", [on("t4-0", 3)], held, pins)
    assert jobs_to_stop(nodes, "kept", [on("t4-0", 4)], held, pins) == ["other", "own"]
