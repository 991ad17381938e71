"""Patterns, bounds and plans against enumeration and HiGHS; every scheme's plan passes the exact checker."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from copter import solve
from copter_frontends.placement.servers import (
    SCHEMES,
    CopterPlacement,
    Fleet,
    ServerError,
    ServerType,
    TaskShape,
    faults,
    generated,
    make_scheme,
    simulate_placement,
)
from copter_frontends.placement.servers.pattern_kernels import best_pattern, known_patterns
from copter_frontends.placement.servers.place_kernels import first_of_each
from copter_frontends.placement.servers.plan import PlacementPlan
from copter_frontends.placement.servers.program import proven
from copter_frontends.placement.servers.relaxation import relaxation_of
from copter_frontends.placement.servers.rivals import Milp
from copter_frontends.placement.servers.rooms import Rooms, rooms_of

NEEDS = st.tuples(st.integers(0, 5), st.integers(1, 5))


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.tuples(NEEDS, st.integers(1, 60), st.integers(0, 3)), min_size=1, max_size=4),
    st.tuples(st.integers(1, 9), st.integers(1, 9)),
)
def test_the_best_pattern_is_that_of_enumeration(
    tasks: list[tuple[tuple[int, int], int, int]], room: tuple[int, int]
) -> None:
    fleet = Fleet(
        [ServerType("s", room, 1)], [TaskShape(str(k), need, worth) for k, (need, worth, _) in enumerate(tasks)]
    )
    most = np.array([each[2] for each in tasks])
    counts = np.zeros(len(tasks), dtype=np.int64)
    best, bound = best_pattern(fleet.shapes, fleet.shapes.worth, most, 0, np.array(room), np.zeros(0, np.int64), counts)
    every = itertools.product(*(range(n + 1) for n in most))
    fits = [c for c in every if all(np.dot(c, fleet.shapes.need[:, d]) <= room[d] for d in range(2))]
    assert best == bound == max(int(np.dot(c, fleet.shapes.worth)) for c in fits)
    assert int(counts @ fleet.shapes.worth) == best
    assert tuple(counts.tolist()) in fits


def busy(seed: int, number: int = 40) -> tuple[Fleet, np.ndarray]:
    """Return a fleet that is mostly full, and tasks that wait, more than there is room for."""
    rng = np.random.default_rng(seed)
    shapes = [
        TaskShape(str(k), (int(rng.integers(1, 9)), int(rng.integers(1, 17))), int(rng.integers(5, 90)))
        for k in range(6)
    ]
    fleet = Fleet([ServerType("a", (16, 32), 6), ServerType("b", (24, 40), 5)], shapes)
    CopterPlacement(fleet).plan(fleet.arrive(rng.integers(0, 6, 25)))
    return fleet, fleet.arrive(rng.integers(0, 6, number))


@pytest.mark.parametrize("seed", range(6))
def test_the_bound_holds_for_the_integer_optimum_and_the_plan_is_near(seed: int) -> None:
    pytest.importorskip("highspy")
    fleet, waiting = busy(seed)
    twin, same = busy(seed)
    best = Milp(twin).plan(same)
    plan = CopterPlacement(fleet).plan(waiting)
    assert faults(fleet) == []
    assert plan.worth <= best.bound
    assert plan.bound >= best.worth
    assert plan.worth >= 0.97 * best.worth
    rng = np.random.default_rng(seed)
    fresh, tasks = busy(seed)
    asked = np.bincount(fresh.jobs.shape[tasks], minlength=6)
    rooms = rooms_of(fresh.board, fresh.shapes, asked)
    for _ in range(5):  # a bound at any prices
        price = rng.integers(0, 60, 6)
        assert proven(rooms, fresh.shapes, asked, price)[0] >= best.worth


def test_later_rounds_start_from_the_last_prices_and_stay_near_the_bound() -> None:
    workload = generated(60, 12, load=1.3, churn=0.05, seed=3)
    result = simulate_placement("copter", make_scheme("copter", workload), workload, check_every=1)
    gaps = [each.gap for each in result.rounds]
    assert max(gaps) <= 0.05
    assert float(np.mean(gaps)) <= 0.01
    assert all(each.used[0] <= 1.0 for each in result.rounds)


@pytest.mark.parametrize("name", [each for each in SCHEMES if each != "milp"])
def test_every_scheme_is_feasible_with_groups_failures_and_drains(name: str) -> None:
    if name.startswith("cvxcluster"):
        pytest.importorskip("highspy")
    workload = generated(20, 6, load=1.1, churn=0.1, grouped=0.4, seed=2)
    first = workload.rounds[2]
    workload.rounds[2] = type(first)(first.shape, first.group, first.rounds, (0, 1, 2), (7,))
    workload.rounds[4] = type(first)(first.shape, first.group, first.rounds, (), (), (0, 7))
    result = simulate_placement(name, make_scheme(name, workload), workload, check_every=1)
    assert all(each.worth > 0 for each in result.rounds)
    assert result.rounds[-1].used[0] > 0.6


def test_a_round_with_room_for_all_is_proven_at_once() -> None:
    fleet, _ = busy(0, 1)
    plan: PlacementPlan = CopterPlacement(Fleet(fleet.types, [TaskShape("x", (1, 1), 7)])).plan(
        np.zeros(0, dtype=np.int64)
    )
    assert (plan.worth, plan.bound, plan.status) == (0, 0, "all")
    fresh = Fleet(fleet.types, [TaskShape("x", (1, 1), 7)])
    found = CopterPlacement(fresh).plan(fresh.arrive([0] * 9))
    assert (found.worth, found.bound, found.status) == (63, 63, "all")
    assert int((fresh.board.running > 0).sum()) == 1  # wholly free servers stay free


@pytest.mark.parametrize("sizes", [(1, 8), (8, 1)])
def test_of_patterns_worth_the_same_the_one_of_larger_tasks_is_taken(sizes: tuple[int, int]) -> None:
    shapes = [TaskShape(str(size), (size, 1), 100 * size) for size in sizes]
    fleet = Fleet([ServerType("a", (8, 99), 1)], shapes)
    counts = np.zeros(2, dtype=np.int64)
    every = np.array([8, 8])
    best_pattern(fleet.shapes, fleet.shapes.worth, every, 0, fleet.capacity[0, :-1], fleet.gpus[0], counts)
    assert counts[sizes.index(8)] == 1
    assert counts[sizes.index(1)] == 0


def test_the_last_rounds_patterns_are_known_to_rooms_where_they_fit() -> None:
    fleet, tasks = busy(1)
    asked = np.bincount(fleet.jobs.shape[tasks], minlength=6)
    rooms = rooms_of(fleet.board, fleet.shapes, asked)
    pool = np.random.default_rng(0).integers(0, 3, (40, 6)) * np.random.default_rng(1).integers(0, 2, (40, 6))
    found = np.zeros((3, len(rooms.servers), 6), dtype=np.int64)
    known_patterns(fleet.shapes, rooms, pool, fleet.shapes.worth, asked, found)
    assert found.any()
    assert (found @ fleet.shapes.need <= rooms.free).all()
    assert (found <= asked).all()
    worth = found @ fleet.shapes.worth
    assert (np.diff(worth, axis=0) <= 0).all()  # those of most worth come first
    fits = ((pool @ fleet.shapes.need)[None] <= rooms.free[:, None]).all(axis=2) & (pool <= asked).all(axis=1)
    assert (worth[0] == np.where(fits, pool @ fleet.shapes.worth, 0).max(axis=1)).all()


def test_the_relaxation_of_classes_is_that_of_servers() -> None:
    fleet, tasks = busy(2)
    board, asked = fleet.board, np.bincount(fleet.jobs.shape[tasks], minlength=6)
    states = np.flatnonzero(board.state_count)
    classes = Rooms(
        board.state_kind[states], board.state_free[states], board.state_gpu[states], board.state_count[states], states
    )
    servers = Rooms(board.kind, board.free, board.gpu, np.ones(fleet.servers, dtype=np.int64), board.state)
    values = [solve(relaxation_of(each, fleet.shapes, asked).program).objective for each in (classes, servers)]
    assert values[0] == pytest.approx(values[1], rel=1e-6)


def test_groups_of_a_workload_are_spread_over_its_zones() -> None:
    workload = generated(12, 3, load=0.6, churn=0.2, grouped=1.0)
    workload.zones, workload.most = 3, 2
    scheme = make_scheme("copter", workload)
    simulate_placement("copter", scheme, workload, check_every=1)
    fleet = scheme.fleet
    runs = np.flatnonzero(fleet.jobs.server[: fleet.tasks] >= 0)
    pair = np.column_stack((fleet.jobs.group[runs], fleet.jobs.zone[fleet.jobs.server[runs]]))
    assert np.unique(pair[pair[:, 0] >= 0], axis=0, return_counts=True)[1].max() == 2
    assert len(np.unique(fleet.jobs.zone)) == 3


def test_generated_tasks_have_the_selectors_and_priorities_that_are_asked_for() -> None:
    workload = generated(12, 2, selective=0.25, priorities=(1, 5, 20))
    assert {each.worth // (each.amounts[0] // 10) for each in workload.shapes} == {1, 5, 20}
    share = sum(each.share for each in workload.shapes if each.types)
    assert share == pytest.approx(0.25 * sum(each.share for each in workload.shapes))
    for wrong in ({"selective": 1.5}, {"priorities": ()}, {"priorities": (1, 1)}, {"rounds": 0}):
        with pytest.raises(ServerError):
            generated(**({"servers": 12, "rounds": 2} | wrong))


def test_of_each_shape_the_first_tasks_are_looked_at_and_all_of_groups() -> None:
    fleet = Fleet([ServerType("s", (8,), 2)], [TaskShape("a", (1,), 3), TaskShape("b", (2,), 5)])
    tasks = fleet.arrive([0, 1, 0, 0, 1, 0], [-1, -1, 0, -1, -1, -1])
    found = first_of_each(fleet.jobs, tasks, np.array([2, 1]))
    assert found.tolist() == tasks[[0, 1, 2, 3]].tolist()
    assert first_of_each(fleet.jobs, tasks, np.array([9, 9])).tolist() == tasks.tolist()
    assert first_of_each(fleet.jobs, tasks, np.array([0, 0])).tolist() == [int(tasks[2])]


def test_a_round_like_the_last_needs_no_program(monkeypatch: pytest.MonkeyPatch) -> None:
    """One kind of task waits in every round, more than fits: after the first, its price is known."""
    fleet = Fleet([ServerType("s", (10, 10), 5)], [TaskShape("a", (3, 1), 7), TaskShape("b", (1, 3), 4)])
    scheme = CopterPlacement(fleet)
    solved = []
    own = scheme.program.solve
    monkeypatch.setattr(scheme.program, "solve", lambda *given: solved.append(1) or own(*given))
    waiting = fleet.arrive([0, 1] * 100)
    for number in range(4):
        plan = scheme.plan(waiting)
        assert plan.worth <= plan.bound
        assert plan.gap <= 0.005
        assert not faults(fleet)
        assert len(solved) <= 1
        fleet.depart(plan.started)
        waiting = np.concatenate((plan.waiting, fleet.arrive([0, 1] * (10 + number))))
