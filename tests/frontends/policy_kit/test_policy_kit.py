"""The policy kit: edit clock, gap, what changes between plans, and who leaves for a pin."""

from __future__ import annotations

import pickle
from time import sleep

import pytest

from copter_frontends.policy_kit import (
    EditClock,
    NodeInventory,
    jobs_on,
    jobs_to_stop,
    plan_changes,
    relative_gap,
    status_of,
)
from copter_frontends.vocabulary import Allocation, CapacityInUseError, Cluster, PlanStatus


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
