"""Moves of running tasks: known ones by hand, and random rounds in which nothing is lost and the bound holds."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from copter_frontends.placement.servers import CopterPlacement, Fleet, ServerError, ServerType, TaskShape, faults

SMALL, LARGE = TaskShape("small", (2, 2), 2), TaskShape("large", (4, 4), 5)


def two_servers(**options: float) -> tuple[CopterPlacement, np.ndarray]:
    """Return two servers of four cores with a task of two on each, and a waiting one of four."""
    fleet = Fleet([ServerType("s", (4, 4), 2)], [SMALL, LARGE])
    for task, server in enumerate(fleet.arrive([0, 0]).tolist()):
        fleet.start(task, server)
    return CopterPlacement(fleet, opening=0.0, **options), fleet.arrive([1])


def test_a_task_is_moved_for_one_that_waits() -> None:
    policy, waiting = two_servers(migrations=0.5)
    plan = policy.plan(waiting)
    assert (plan.worth, plan.bound, plan.moved, plan.status) == (5, 5, 1, "all")
    assert len({*policy.fleet.jobs.server[:2].tolist()}) == 1
    assert faults(policy.fleet) == []


@pytest.mark.parametrize(("cost", "worth", "moved"), [(4.0, 1, 1), (5.0, 0, 0), (9.0, 0, 0)])
def test_a_move_must_be_worth_its_cost(cost: float, worth: int, moved: int) -> None:
    policy, waiting = two_servers(migrations=1.0, move_cost=cost)
    plan = policy.plan(waiting)
    assert (plan.worth, plan.moved) == (worth, moved)
    assert plan.bound == 5


@pytest.mark.parametrize("share", [0.0, 0.4])
def test_no_more_than_the_share_is_moved(share: float) -> None:
    policy, waiting = two_servers(migrations=share)
    plan = policy.plan(waiting)
    assert (plan.worth, plan.moved) == (0, 0)


def test_a_draining_server_is_left_by_its_tasks() -> None:
    policy, _ = two_servers(migrations=1.0)
    policy.fleet.drain([0])
    plan = policy.plan(np.zeros(0, dtype=np.int64))
    assert plan.moved == 1
    assert policy.fleet.board.running.tolist() == [0, 2]
    assert policy.fleet.board.status.tolist() == [1, 0]
    assert faults(policy.fleet) == []


def test_servers_are_emptied_where_opening_one_has_a_price() -> None:
    fleet = Fleet([ServerType("s", (8, 8), 3)], [SMALL])
    for task, server in zip(fleet.arrive([0] * 4).tolist(), (0, 1, 1, 2), strict=True):
        fleet.start(task, server)
    plan = CopterPlacement(fleet, migrations=1.0).plan(np.zeros(0, dtype=np.int64))
    assert plan.moved == 2
    assert np.count_nonzero(fleet.board.running) == 1


def test_members_of_a_group_are_kept_apart_by_moves() -> None:
    fleet = Fleet([ServerType("s", (4, 4), 2)], [SMALL, LARGE])
    for task, server in enumerate(fleet.arrive([0, 0], [0, 0]).tolist()):
        fleet.start(task, server)
    plan = CopterPlacement(fleet, migrations=1.0, opening=0.0).plan(fleet.arrive([1]))
    assert (plan.worth, plan.moved) == (0, 0)


def test_a_part_of_a_gpu_is_moved_for_a_whole_one() -> None:
    shapes = [TaskShape("half", (1,), 1, 1, 500), TaskShape("whole", (1,), 9, 1)]
    fleet = Fleet([ServerType("s", (9,), 2, 1)], shapes)
    for task, server in enumerate(fleet.arrive([0, 0]).tolist()):
        fleet.start(task, server)
    plan = CopterPlacement(fleet, opening=0.0, migrations=0.5).plan(fleet.arrive([1]))
    assert (plan.worth, plan.moved) == (9, 1)
    assert faults(fleet) == []


def small_fleet(rng: np.random.Generator) -> Fleet:
    shapes = [TaskShape(str(k), tuple(rng.integers(1, 9, 2).tolist()), int(rng.integers(1, 60))) for k in range(4)]
    shapes += [TaskShape("part", (1, 1), 9, 1, 300), TaskShape("gpus", (2, 2), 40, 2)]
    return Fleet([ServerType("a", (12, 12), 4, 2), ServerType("b", (16, 10), 3)], shapes)


@pytest.mark.parametrize("seed", [77, 195])
def test_no_gpu_is_used_twice_after_an_exchange_is_undone(seed: int) -> None:
    rng = np.random.default_rng(seed)
    fleet = small_fleet(rng)
    policy = CopterPlacement(fleet)
    for number in (18, 12, 9):
        policy.plan(fleet.arrive(rng.integers(0, 6, number), rng.integers(-1, 3, number)))
        assert faults(fleet) == []
        fleet.depart(rng.permutation(np.flatnonzero(fleet.jobs.server[: fleet.tasks] >= 0))[:4])


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 10_000), st.floats(0.05, 1.0), st.sampled_from([0.0, 1.0, 20.0]))
def test_nothing_is_lost_and_the_bound_holds(seed: int, share: float, cost: float) -> None:
    rng = np.random.default_rng(seed)
    fleet = small_fleet(rng)
    policy = CopterPlacement(fleet, migrations=share, move_cost=cost)
    for number in (18, 12, 9):
        running = np.flatnonzero(fleet.jobs.server[: fleet.tasks] >= 0)
        where = fleet.jobs.server[running].copy()
        tasks = fleet.arrive(rng.integers(0, 6, number), rng.integers(-1, 3, number))
        plan = policy.plan(tasks)
        assert faults(fleet) == []
        assert (fleet.jobs.server[running] >= 0).all()
        assert np.count_nonzero(fleet.jobs.server[running] != where) <= plan.moved <= share * len(running)
        assert plan.worth <= plan.bound
        assert len(plan.started) + len(plan.waiting) + len(plan.refused) == number
        fleet.depart(rng.permutation(np.flatnonzero(fleet.jobs.server[: fleet.tasks] >= 0))[:4])


@pytest.mark.parametrize("wrong", [{"migrations": 1.5}, {"migrations": -0.1}, {"move_cost": float("nan")}])
def test_wrong_figures_are_told(wrong: dict[str, float]) -> None:
    with pytest.raises(ServerError, match="give a share of 0 to 1"):
        two_servers(**wrong)


def test_explain_names_the_scarce_dimension() -> None:
    fleet = Fleet([ServerType("s", (8, 80), 1)], [TaskShape("t", (2, 2), 10)])
    policy = CopterPlacement(fleet)
    assert policy.plan(fleet.arrive([0] * 3)).status == "all"
    assert policy.explain()["s"].server == 0
    policy.plan(fleet.arrive([0] * 9))
    found = policy.explain()["s"]
    assert found.server == 40  # four more tasks on one more server
    assert found.quarter == (10, 0)  # cores are scarce, memory is not


def test_tasks_are_moved_before_others_take_the_room_that_they_need() -> None:
    """The large task is worth three times the small ones in the same room, which would be gone after them."""
    shapes = [TaskShape("small", (2, 2), 2), TaskShape("large", (4, 4), 12)]
    fleet = Fleet([ServerType("s", (4, 4), 2)], shapes)
    for task, server in enumerate(fleet.arrive([0, 0]).tolist()):
        fleet.start(task, server)
    plan = CopterPlacement(fleet, opening=0.0, migrations=0.5).plan(fleet.arrive([0, 0, 1]))
    assert (plan.worth, plan.bound, plan.moved) == (12, 12, 1)
    assert faults(fleet) == []
