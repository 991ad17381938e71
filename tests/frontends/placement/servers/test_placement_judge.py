"""Rounds on tiny fleets beside a judge that tries every plan: parts of GPUs, groups, selectors, lost servers."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from copter_frontends.placement.servers import CopterPlacement, Fleet, ServerError, ServerType, TaskShape, faults
from copter_frontends.placement.servers.board import UP

TYPES = [ServerType("plain", (4, 6), 2), ServerType("gpu", (6, 8), 1, gpus=2)]
ZONES = [0, 1, 1]
SHAPES = [
    TaskShape("small", (1, 1), 7),
    TaskShape("tall", (1, 4), 13),
    TaskShape("wide", (3, 2), 17),
    TaskShape("part", (1, 1), 20, gpus=1, gpu_milli=600),
    TaskShape("third", (1, 1), 9, gpus=1, gpu_milli=300),
    TaskShape("pair", (2, 2), 40, gpus=2),
    TaskShape("chosen", (2, 1), 11, types=("plain",)),
    TaskShape("huge", (7, 1), 90),
]


@dataclass
class Judge:
    """Tries every server and every GPU for every task; `best` is the most worth."""

    fleet: Fleet
    tasks: list[int]
    free: np.ndarray
    gpu: np.ndarray
    server: np.ndarray
    best: int = 0
    keep: int = 0
    """Tasks in front that run, and must; they count nothing."""
    limits: dict[int, tuple[int, bool]] = field(default_factory=dict)
    seen: set[tuple[int, bytes, bytes, bytes]] = field(default_factory=set)

    def found(self) -> int:
        """Return the most worth of the tasks that can start."""
        self._try(0, 0)
        return self.best

    def _try(self, at: int, worth: int) -> None:
        self.best = max(self.best, worth) if at >= self.keep else self.best
        key = (at, worth.to_bytes(4, "big") + self.server.tobytes(), self.free.tobytes(), self.gpu.tobytes())
        left = sum(SHAPES[self.fleet.jobs.shape[task]].worth for task in self.tasks[at:])
        if at == len(self.tasks) or (worth + left <= self.best and at >= self.keep) or key in self.seen:
            return
        self.seen.add(key)
        task = self.tasks[at]
        shape, group = SHAPES[self.fleet.jobs.shape[task]], self.fleet.jobs.group[task]
        for server in range(self.fleet.servers):
            kind = TYPES[self.fleet.board.kind[server]]
            if self.fleet.board.status[server] != UP or (shape.types is not None and kind.name not in shape.types):
                continue
            if self._is_full(group, server) or (self.free[server] < shape.amounts).any():
                continue
            for gpus in self._gpus(server, shape):
                self.free[server] -= shape.amounts
                self.gpu[server, gpus] -= shape.gpu_milli
                self.server[task] = server
                self._try(at + 1, worth + (shape.worth if at >= self.keep else 0))
                self.server[task] = -1
                self.gpu[server, gpus] += shape.gpu_milli
                self.free[server] += shape.amounts
        if at >= self.keep:
            self._try(at + 1, worth)

    def _is_full(self, group: int, server: int) -> bool:
        """Return whether as many of the group run there, on the server or in its zone, as may."""
        most, by_zone = self.limits.get(group, (1, False))
        same = [ZONES[s] == ZONES[server] if by_zone else s == server for s in range(3)]
        runs = np.flatnonzero(self.server >= 0)
        own = self.server[runs][self.fleet.jobs.group[runs] == group]
        return group >= 0 and sum(same[s] for s in own.tolist()) >= most

    def _gpus(self, server: int, shape: TaskShape) -> list[list[int]]:
        """Return the choices of GPUs on which a task fits."""
        fits = [int(g) for g in np.flatnonzero(self.gpu[server] >= shape.gpu_milli)]
        if shape.gpus == 0:
            return [[]]
        if shape.gpus == 1:
            return [[g] for g in fits]
        return [fits[: shape.gpus]] if len(fits) >= shape.gpus else []


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_plans_are_feasible_and_no_plan_is_worth_more_than_the_bound(data: st.DataObject) -> None:
    fleet = Fleet(TYPES, SHAPES, ZONES)
    limits = data.draw(st.dictionaries(st.integers(0, 1), st.tuples(st.integers(1, 3), st.booleans())))
    for each, limit in limits.items():
        fleet.limit(each, *limit)
    scheme = CopterPlacement(fleet, opening=data.draw(st.sampled_from([0.0, 0.2])))
    waiting = np.zeros(0, dtype=np.int64)
    for _ in range(data.draw(st.integers(1, 3))):
        new = data.draw(st.lists(st.integers(0, len(SHAPES) - 1), min_size=1, max_size=7))
        group = data.draw(st.lists(st.integers(-1, 1), min_size=len(new), max_size=len(new)))
        running = np.flatnonzero(fleet.jobs.server[: fleet.tasks] >= 0)
        gone = data.draw(st.lists(st.sampled_from(running.tolist()), unique=True)) if len(running) else []
        fleet.depart(np.array(gone, dtype=np.int64))
        servers = st.lists(st.integers(0, 2), unique=True, max_size=2)
        fleet.repair(data.draw(servers))
        fleet.drain(data.draw(servers))
        lost = fleet.fail(data.draw(servers))
        asking = np.concatenate((waiting, lost, fleet.arrive(new, group)))[-8:]
        was = [each.copy() for each in (fleet.board.free, fleet.board.gpu, fleet.jobs.server)]
        plan = scheme.plan(asking)
        waiting = plan.waiting
        best = Judge(fleet, [task for task in asking.tolist() if task not in plan.refused], *was, limits=limits).found()
        assert faults(fleet) == []
        assert plan.worth == sum(SHAPES[k].worth for k in fleet.jobs.shape[plan.started].tolist())
        assert plan.worth <= best <= plan.bound
        assert sorted([*plan.started, *plan.waiting, *plan.refused]) == sorted(asking)
        for task, why in plan.refused.items():
            assert ("larger" in why) == (SHAPES[fleet.jobs.shape[task]].name == "huge")
            assert "larger" in why or "of a group" in why


def test_of_a_group_with_more_members_than_servers_those_of_least_worth_are_refused() -> None:
    fleet = Fleet([ServerType("s", (9, 9), 2)], [TaskShape("low", (1, 1), 1), TaskShape("high", (1, 1), 5)])
    plan = CopterPlacement(fleet).plan(fleet.arrive([0, 0, 1, 1], [0] * 4))
    assert plan.worth == plan.bound == 10
    assert sorted(plan.refused) == [0, 1]
    assert "2 servers" in plan.refused[0]


@settings(max_examples=30, deadline=None)
@given(st.data())
def test_with_moves_no_plan_is_worth_more_than_the_bound_wherever_the_running_tasks_go(data: st.DataObject) -> None:
    fleet = Fleet(TYPES, SHAPES)
    scheme = CopterPlacement(fleet, migrations=1.0)
    shapes = st.lists(st.integers(0, len(SHAPES) - 2), min_size=1, max_size=4)
    scheme.plan(fleet.arrive(data.draw(shapes)))
    running = np.flatnonzero(fleet.jobs.server[: fleet.tasks] >= 0)
    tasks = fleet.arrive(data.draw(shapes))
    empty = Fleet(TYPES, SHAPES)
    every = empty.arrive(np.concatenate((fleet.jobs.shape[running], fleet.jobs.shape[tasks])))
    judge = Judge(empty, every.tolist(), empty.board.free.copy(), empty.board.gpu.copy(), empty.jobs.server.copy())
    judge.keep = len(running)
    plan = scheme.plan(tasks)
    assert faults(fleet) == []
    assert (fleet.jobs.server[running] >= 0).all()
    assert plan.worth <= judge.found() <= plan.bound


def test_at_most_two_of_a_group_share_a_zone_and_the_limit_stands_while_they_run() -> None:
    fleet = Fleet([ServerType("s", (9, 9), 4)], [TaskShape("t", (1, 1), 1)], zones=["a", "a", "b", "b"])
    fleet.limit(3, 2, by_zone=True)
    plan = CopterPlacement(fleet).plan(fleet.arrive([0] * 6, [3] * 6))
    assert len(plan.started) == 4
    assert all("at most 2 together; there are 2 zones" in why for why in plan.refused.values())
    assert np.bincount(fleet.jobs.zone[fleet.jobs.server[plan.started]]).tolist() == [2, 2]
    with pytest.raises(ServerError, match="running tasks"):
        fleet.limit(3, 9)
    with pytest.raises(ServerError, match="at most 0"):
        fleet.limit(4, 0)
    fleet.jobs.server[plan.started] = 0
    assert any("more of their group" in fault for fault in faults(fleet))


def test_zones_must_be_one_for_each_server() -> None:
    with pytest.raises(ServerError, match="give one for each server"):
        Fleet([ServerType("s", (9, 9), 4)], [TaskShape("t", (1, 1), 1)], zones=[0, 1])


@pytest.mark.parametrize("by_zone", [False, True])
def test_the_bound_knows_that_fellows_of_a_group_do_not_share_a_server_or_a_zone(by_zone: bool) -> None:
    shapes = [TaskShape("t", (1, 1), 5), TaskShape("whole", (4, 4), 90)]
    zones = [0, 0, 1, 1] if by_zone else None
    fleet = Fleet([ServerType("s", (4, 4), 4 if by_zone else 3)], shapes, zones, by_zone=by_zone)
    scheme = CopterPlacement(fleet, opening=0.0)
    scheme.plan(fleet.arrive([1]))
    scheme.plan(fleet.arrive([0], [0]))  # one of the group runs
    plan = scheme.plan(fleet.arrive([0, 0], [0, 0]))
    assert (plan.worth, plan.bound) == (5, 5)
    assert len(plan.waiting) == 1
