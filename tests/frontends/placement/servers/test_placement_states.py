"""Classes of servers in one state, edits in place, and what is refused."""

from __future__ import annotations

from typing import cast

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from copter_frontends.placement.servers import (
    CopterPlacement,
    Fleet,
    ServerError,
    ServerType,
    TaskShape,
    faults,
    generated,
    make_scheme,
)
from copter_frontends.placement.servers.score_kernels import fragments
from copter_frontends.placement.servers.workload import Workload

TYPES = [ServerType("small", (4, 8), 3, 1), ServerType("large", (8, 32), 2, 2)]
SHAPES = [
    TaskShape("one", (1, 2), 10),
    TaskShape("part", (1, 1), 30, gpus=1, gpu_milli=400),
    TaskShape("gpu", (2, 2), 50, gpus=1),
    TaskShape("two", (2, 8), 90, gpus=2),
    TaskShape("picky", (1, 1), 15, types=("large",)),
]


def classes(fleet: Fleet) -> dict[tuple[int, ...], int]:
    """Count servers by state, from the servers' own amounts."""
    found: dict[tuple[int, ...], int] = {}
    board = fleet.board
    for server in range(fleet.servers):
        if board.status[server] == 0:
            gpus = sorted(board.gpu[server].tolist(), reverse=True)
            key = (int(board.kind[server]), *board.free[server].tolist(), *gpus)
            found[key] = found.get(key, 0) + 1
    return found


def kept(fleet: Fleet) -> dict[tuple[int, ...], int]:
    """Count servers by state, from the classes' lists."""
    board, found = fleet.board, {}
    for state in range(int(board.made[0])):
        server, count = board.state_head[state], 0
        while server >= 0:
            assert board.state[server] == state
            server, count = board.after[server], count + 1
        assert count == board.state_count[state]
        if count:
            own = (board.state_kind[state], *board.state_free[state], *board.state_gpu[state])
            found[tuple(int(each) for each in own)] = count
    return found


@settings(max_examples=25, deadline=None)
@given(st.data())
def test_classes_and_checker_agree_with_the_servers_after_any_edits(data: st.DataObject) -> None:
    fleet = Fleet(TYPES, SHAPES)
    scheme = CopterPlacement(fleet)
    waiting = np.zeros(0, dtype=np.int64)
    for _ in range(data.draw(st.integers(1, 5))):
        shapes = data.draw(st.lists(st.integers(0, len(SHAPES) - 1), max_size=8))
        groups = data.draw(st.lists(st.integers(-1, 1), min_size=len(shapes), max_size=len(shapes)))
        waiting = scheme.plan(np.concatenate((waiting, fleet.arrive(shapes, groups)))).waiting
        running = np.flatnonzero(fleet.jobs.server[: fleet.tasks] >= 0).tolist()
        if running:
            gone = data.draw(st.lists(st.sampled_from(running), unique=True))
            fleet.depart(np.array(gone, dtype=np.int64))
        server = data.draw(st.integers(0, fleet.servers - 1))
        edit = data.draw(st.sampled_from(["fail", "drain", "repair", "none"]))
        if edit == "fail":
            waiting = np.concatenate((waiting, fleet.fail([server])))
        elif edit != "none":
            getattr(fleet, edit)([server])
        assert faults(fleet) == []
        assert classes(fleet) == kept(fleet)


def test_the_checker_finds_what_is_wrong() -> None:
    fleet = Fleet(TYPES, SHAPES)
    plan = CopterPlacement(fleet).plan(fleet.arrive([0, 1, 2, 3, 0, 0], [0, -1, -1, -1, 0, 0]))
    assert len(plan.started) == 6
    assert faults(fleet) == []
    jobs = fleet.jobs
    home = jobs.server[[0, 3, 4]].copy()
    jobs.server[4] = jobs.server[0]
    assert any("share a server" in each for each in faults(fleet))
    jobs.server[4] = home[2]
    jobs.server[3] = 0
    assert any("dimension 1 is miscounted" in each for each in faults(fleet))
    jobs.server[3] = home[1]
    jobs.bits[2] = 0
    assert any("number of GPUs" in each for each in faults(fleet))


def test_tasks_that_can_never_run_are_refused_with_a_reason() -> None:
    shapes = [
        TaskShape("fits", (1, 1), 1),
        TaskShape("huge", (9, 1), 5),
        TaskShape("nowhere", (5, 1), 5, types=("small",)),
    ]
    fleet = Fleet(TYPES, shapes)
    plan = CopterPlacement(fleet).plan(fleet.arrive([0, 1, 2, *[0] * 7], [-1, -1, -1, *[0] * 7]))
    assert "larger than any server" in plan.refused[1]
    assert "dimension 0 of 'large': 9 of 8" in plan.refused[1]
    assert "dimension 0 of 'small': 5 of 4" in plan.refused[2]
    repelled = [why for task, why in plan.refused.items() if task > 2]
    assert len(repelled) == 2  # of 7 tasks that repel each other on 5 servers
    assert "of a group, at most 1 together; there are 5 servers" in repelled[0]
    assert len(plan.started) == 6
    assert plan.gap == 0.0


def test_all_servers_of_a_type_are_lost_and_come_back() -> None:
    fleet = Fleet(TYPES, SHAPES)
    scheme = CopterPlacement(fleet)
    scheme.plan(fleet.arrive([3, 4, 0]))
    lost = fleet.fail([3, 4])
    plan = scheme.plan(lost)
    assert 0 in plan.waiting  # two GPUs
    assert 1 in plan.waiting  # its selector
    assert faults(fleet) == []
    assert len(fleet.fail([0, 1, 2])) + len(plan.waiting) == 3
    everything = scheme.plan(np.arange(3))
    assert len(everything.started) == 0
    assert everything.bound == 0
    fleet.repair(np.arange(5))
    assert scheme.plan(np.arange(3)).status == "all"


@pytest.mark.parametrize(
    ("types", "shapes", "said"),
    [
        ([ServerType("bare", (4, 0), 1)], SHAPES, "type 'bare': dimension 1 is 0"),
        ([], SHAPES, "no servers"),
        ([ServerType("a", (4, 8), 1), ServerType("b", (4,), 1)], SHAPES, "'b' has 1 dimensions"),
        ([ServerType("a", (4, 8), 1), ServerType("a", (8, 8), 1)], SHAPES, "same name"),
        (TYPES, [TaskShape("odd", (1,), 1)], "shape 'odd' has 1 dimensions"),
        (TYPES, [TaskShape("less", (-1, 1), 1)], "shape 'less': needs"),
        (TYPES, [TaskShape("two halves", (1, 1), 1, gpus=2, gpu_milli=500)], "500 thousandths of 2 GPUs"),
        (TYPES, [TaskShape("lost", (1, 1), 1, types=("medium",))], "asks for type 'medium'"),
        (TYPES, [TaskShape("free", (1, 1), -1)], "worth -1"),
        (TYPES, [], "no task shapes"),
    ],
)
def test_bad_servers_and_shapes(types: list[ServerType], shapes: list[TaskShape], said: str) -> None:
    with pytest.raises(ServerError, match=said):
        Fleet(types, shapes)


def test_bad_edits_change_nothing() -> None:
    fleet = Fleet(TYPES, SHAPES)
    fleet.arrive([0])
    for call, said in (
        (lambda: fleet.arrive([7]), "shape 7"),
        (lambda: fleet.arrive([0], [-2]), "group -2"),
        (lambda: fleet.arrive([0], [1, 2]), "give one of each"),
        (lambda: fleet.fail([9]), "server 9: there are 5"),
        (lambda: fleet.depart(np.array([3])), "task 3: there are 1"),
        (lambda: make_scheme("best", Workload("", TYPES, SHAPES)), "unknown scheme 'best'"),
    ):
        with pytest.raises(ServerError, match=said):
            call()
    assert fleet.tasks == 1
    assert kept(fleet) == classes(fleet)


def test_fragments_are_those_of_the_paper() -> None:
    shapes = [
        TaskShape("half", (1, 1), 1, 1, 500, share=3.0),
        TaskShape("whole", (4, 1), 1, 1, share=1.0),
        TaskShape("cpu", (1, 1), 1, share=4.0),
    ]
    fleet = Fleet([ServerType("node", (3, 8), 1, 2)], shapes)
    free, gpu = np.array([3, 8]), np.array([1000, 300])
    # half: 300 are too few for it; whole: no room for 4 cores, so all 1,300; tasks without GPU use none of the 1,300
    expected = 3 / 8 * 300 + 1 / 8 * 1300 + 4 / 8 * 1300
    assert fragments(fleet.shapes, 0, free, gpu) == pytest.approx(expected)


@pytest.mark.parametrize("wrong", [float("nan"), 1.5, -1, 1 << 41])
def test_sizes_and_counts_that_are_no_whole_numbers_in_range_are_told(wrong: float) -> None:
    number = cast("int", wrong)
    for types, shapes in (
        ([ServerType("odd", (number, 8), 1)], SHAPES[:1]),
        ([ServerType("odd", (8, 8), number)], SHAPES[:1]),
        ([ServerType("odd", (8, 8), 1, gpus=number)], SHAPES[:1]),
        (TYPES, [TaskShape("odd", (1, number), 1)]),
        (TYPES, [TaskShape("odd", (1, 1), number)]),
        (TYPES, [TaskShape("odd", (1, 1), 1, gpus=1, gpu_milli=number)]),
    ):
        with pytest.raises(ServerError, match="'odd'"):
            Fleet(types, shapes)
    fleet = Fleet(TYPES, SHAPES)
    for call in (
        lambda: fleet.arrive([number]),
        lambda: fleet.arrive([0], [number if number != -1 else -2]),
        lambda: fleet.limit(number, 1),
        lambda: fleet.limit(0, number),
        lambda: fleet.fail([number]),
        lambda: fleet.drain([number]),
        lambda: fleet.depart([number]),
        lambda: Fleet(TYPES, SHAPES, most=number),
        lambda: Fleet(TYPES, SHAPES, zones=[float("nan")] * 5),
        lambda: generated(number, 2),
        lambda: generated(4, 2, priorities=(number,)),
    ):
        with pytest.raises(ServerError):
            call()
    assert fleet.tasks == 0


def test_only_waiting_tasks_each_named_once_are_planned() -> None:
    fleet = Fleet(TYPES, SHAPES)
    scheme = CopterPlacement(fleet)
    running = scheme.plan(fleet.arrive([0])).started
    new = fleet.arrive([0])
    for tasks, said in ((running, "task 0 runs"), ([*new, *new], "named twice"), ([9], "task 9: there are 2")):
        with pytest.raises(ServerError, match=said):
            scheme.plan(np.array(tasks))
    with pytest.raises(ServerError, match="task 0 runs"):
        fleet.start(0, 0)
    assert faults(fleet) == []
    assert len(scheme.plan(new).started) == 1


def test_tasks_whose_servers_are_all_lost_or_draining_wait_with_that_reason() -> None:
    shapes = [TaskShape("any", (1, 1), 1), TaskShape("chosen", (1, 1), 5, types=("large",))]
    fleet = Fleet(TYPES, shapes)
    scheme = CopterPlacement(fleet)
    large = np.flatnonzero([fleet.types[kind].name == "large" for kind in fleet.board.kind])
    fleet.fail(large[:1])
    fleet.drain(large[1:])
    plan = scheme.plan(fleet.arrive([0, 1, 1]))
    assert plan.held_up == dict.fromkeys([1, 2], "all servers that it fits on are lost or draining: 'large'")
    assert plan.waiting.tolist() == [1, 2]
    assert (plan.worth, plan.bound, plan.status) == (1, 1, "feasible")
    fleet.repair(large)
    assert scheme.plan(plan.waiting).status == "all"


def test_a_type_without_servers_holds_nothing() -> None:
    types = [ServerType("some", (4, 4), 2), ServerType("none", (9, 9), 0)]
    fleet = Fleet(types, [TaskShape("big", (8, 8), 1)])
    plan = CopterPlacement(fleet).plan(fleet.arrive([0]))
    assert "dimension 0 of 'some': 8 of 4; there is no 'none'" in plan.refused[0]


def test_waiting_tasks_may_be_a_list_and_shapes_of_one_name_are_told() -> None:
    fleet = Fleet([ServerType("s", (4, 4), 2)], [TaskShape("t", (1, 1), 3)])
    assert CopterPlacement(fleet).plan(fleet.arrive([0, 0]).tolist()).worth == 6  # type: ignore[arg-type]
    with pytest.raises(ServerError, match="same name"):
        Fleet([ServerType("s", (4, 4), 2)], [TaskShape("t", (1, 1), 3), TaskShape("t", (2, 1), 3)])
