"""The child process that searches: tasks, what it keeps, and what happens when it dies."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp

from copter.highs.search import Ghost, Search, Warm
from copter.highs.tree import Point, Program, Report, Task, Tree, given_back, taken

pytest.importorskip("highspy")
INF = np.inf


def program(values: list[float], weights: list[float], room: float) -> Program:
    """A knapsack: take things of the largest value, as a minimisation; each thing is its own group."""
    n = len(values)
    return Program(
        -np.array(values), sp.csc_array(np.array([weights])), np.array([-INF]), np.array([room]), np.zeros(n),
        np.ones(n), np.ones(n, dtype=bool), np.arange(n, dtype=np.int32),
    )  # fmt: skip


def hard(n: int, seed: int = 0) -> Program:
    """A program that branch and bound does not finish in seconds: equal sums of large random numbers."""
    rng = np.random.default_rng(seed)
    rows = rng.integers(10_000, 100_000, (4, n)).astype(float)
    half = np.floor(rows.sum(axis=1) / 2)
    return Program(
        rng.random(n), sp.csc_array(rows), half - 40.0, half + 40.0, np.zeros(n), np.ones(n), np.ones(n, dtype=bool),
        np.arange(n, dtype=np.int32),
    )  # fmt: skip


@pytest.fixture
def tree() -> Iterator[Tree]:
    found = taken()
    assert found.wait_until_ready()
    yield found
    given_back(found)


def end_of(tree: Tree, seconds: float = 60.0) -> list[Report]:
    """All reports of the running task, to the last."""
    found: list[Report] = []
    until = time.perf_counter() + seconds
    while not tree.is_idle:
        assert time.perf_counter() < until
        found += tree.reports(0.05)
    return found


def best_of(reports: list[Report]) -> np.ndarray:
    """The last point reported: each is better than the one before."""
    return next(report.x for report in reversed(reports) if report.x is not None)


def test_a_program_an_edit_of_it_and_a_new_one(tree: Tree) -> None:
    first = program([5.0, 4.0, 3.0], [4.0, 3.0, 2.0], 5.0)
    tree.start(first, None, None, None, 60.0, 0.0)
    found = end_of(tree)
    assert best_of(found).tolist() == [0.0, 1.0, 1.0]
    assert found[-1].finished
    assert found[-1].solved
    assert found[-1].bound == pytest.approx(-7.0, abs=1e-6)
    same = np.arange(3, dtype=np.int32)
    edited = Program(
        -np.array([9.0, 4.0, 3.0]), None, first.row_lower, first.row_upper, first.col_lower, first.col_upper,
        first.integrality, first.group,
    )  # fmt: skip
    tree.start(edited, same, np.zeros(1, dtype=np.int32), np.array([0.0, 1.0, 1.0]), 60.0, 0.0)
    assert best_of(end_of(tree)).tolist() == [1.0, 0.0, 0.0]
    grown = program([9.0, 4.0, 3.0, 8.0], [4.0, 3.0, 2.0, 1.0], 5.0)
    tree.start(grown, np.array([0, 1, 2, -1], np.int32), np.zeros(1, np.int32), None, 60.0, 0.0)
    assert best_of(end_of(tree)).tolist() == [1.0, 0.0, 0.0, 1.0]


def test_no_point(tree: Tree) -> None:
    nothing = program([1.0], [1.0], 1.0)
    odd = Program(
        nothing.cost, sp.csc_array([[2.0]]), np.array([1.0]), np.array([1.0]), np.zeros(1), np.full(1, 5.0),
        np.ones(1, dtype=bool), np.zeros(1, np.int32),
    )  # fmt: skip
    tree.start(odd, None, None, None, 60.0, 0.0)
    last = end_of(tree)[-1]
    assert last.infeasible
    assert last.x is None


def test_a_stop_and_the_next_task(tree: Tree) -> None:
    tree.start(hard(60), None, None, None, 600.0, 0.0)
    tree.reports(0.3)
    tree.stop()
    end_of(tree)
    tree.start(program([5.0, 4.0], [4.0, 3.0], 4.0), None, None, None, 60.0, 0.0)
    assert best_of(end_of(tree)).tolist() == [1.0, 0.0]


def test_a_killed_process_ends_its_task() -> None:
    tree = taken()
    assert tree.wait_until_ready()
    tree.start(hard(60), None, None, None, 600.0, 0.0)
    tree.reports(0.3)
    os.kill(tree._process.pid, signal.SIGKILL)
    assert end_of(tree)[-1].finished
    tree._process.wait()
    assert not tree.is_alive
    given_back(tree)
    assert taken() is not tree


def test_a_process_that_is_given_back_serves_the_next() -> None:
    tree = taken()
    assert tree.wait_until_ready()
    given_back(tree)
    again = taken()
    assert again is tree
    assert again.is_new
    given_back(again)


def search_of(whole: Program, start: np.ndarray | None = None, point: Point | None = None) -> Search:
    """A search in this process."""
    task = Task(1, whole, None, None, start, 20.0, 1e-4)
    return Search(task, whole, Warm(), lambda _: False, lambda _: point, lambda _: None)


def test_parts_of_the_search_find_feasible_points() -> None:
    rng = np.random.default_rng(1)
    groups, each = 120, 5
    n = groups * each
    use = rng.integers(1, 9, (3, n)).astype(float)
    rows = np.vstack([use, np.kron(np.eye(groups), np.ones(each))])
    whole = Program(
        -rng.integers(5, 60, n).astype(float), sp.csc_array(rows), np.full(3 + groups, -INF),
        np.concatenate([np.full(3, 200.0), np.ones(groups)]), np.zeros(n), np.ones(n), np.ones(n, dtype=bool),
        np.repeat(np.arange(groups, dtype=np.int32), each),
    )  # fmt: skip
    search = search_of(whole)
    search.run()
    assert search.x is not None
    assert search.holds(search.x)
    assert search.bound <= search.value + 1e-6
    assert search.value - search.bound <= 0.01 * abs(search.value)
    found = search.value
    for part in (lambda: search._dive(2.0), lambda: search._near_lp(2.0), lambda: search._between(2.0)):
        search.until, search.solved, search.x, search.value = time.perf_counter() + 20.0, False, search.x, found
        part()
        assert search.x is not None
        assert search.holds(search.x)
        assert search.value <= found


def test_a_start_that_no_longer_holds_is_repaired() -> None:
    whole = program([5.0, 4.0, 3.0, 2.0], [4.0, 3.0, 2.0, 2.0], 6.0)
    search = search_of(whole, np.ones(4))
    search._load()
    search._repair(np.ones(4), np.zeros(4, dtype=bool))
    assert search.x is not None
    assert search.holds(search.x)


def test_the_parent_s_point_stands_in_for_the_lp() -> None:
    whole = program([5.0, 4.0, 3.0], [4.0, 3.0, 2.0], 5.0)
    point = Point(1, np.array([0.0, 1.0, 1.0]), np.zeros(3), -7.0)
    search = search_of(whole, point=point)
    search._load()
    search._relax(60.0)
    assert search.relaxed is not None
    assert search.bound == pytest.approx(-7.0)


def test_a_value_below_all_points_is_of_none() -> None:
    ghost = Ghost(446.56)
    assert not ghost.of(446.56)
    assert not ghost.of(np.inf)
    ghost.found(440.0)
    assert not ghost.of(440.0)
    assert ghost.of(275.69)
    assert ghost.seen
    assert not Ghost(np.inf).of(-1.0)  # without a start nothing can be made of it


def test_branch_and_bound_runs_again_without_a_start_that_it_takes_for_better(monkeypatch: pytest.MonkeyPatch) -> None:
    one = program([3.0, 5.0, 4.0], [2.0, 3.0, 2.0], 4.0)
    task = Task(1, one, None, None, np.array([1.0, 0.0, 0.0]), 10.0, 1e-6)
    search = Search(task, one, Warm(), lambda _: False, lambda _: None, lambda _: None)
    once, starts = Search._branch_once, []

    def first_wrong(self: Search, *given: object) -> object:
        starts.append(given[4])
        if given[4] is None:
            return once(self, *given)  # type: ignore[arg-type]
        ghost = given[-1]
        assert isinstance(ghost, Ghost)
        ghost.of(-100.0)
        return search.highspy.HighsModelStatus.kOptimal

    monkeypatch.setattr(Search, "_branch_once", first_wrong)
    search.offer(np.array([1.0, 0.0, 0.0]), "last plan")
    search._whole(5.0, search.x)
    assert [start is None for start in starts] == [False, True]
    assert search.solved
    assert search.value == -7.0


def children_of(parent: int) -> list[int]:
    """The processes whose parent this is."""
    found = []
    for each in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):
            number, rest = each.read_text().split(" (", 1)
            if int(rest.rpartition(")")[2].split()[1]) == parent:
                found.append(int(number))
    return found


def wait_for(condition: Callable[[], object], seconds: float = 20.0) -> bool:
    """Whether something becomes true."""
    until = time.perf_counter() + seconds
    while time.perf_counter() < until:
        if condition():
            return True
        time.sleep(0.01)
    return False


needs_proc = pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="processes are listed in /proc")


@needs_proc
def test_branch_and_bound_runs_beside_the_search_and_ends_with_its_task(tree: Tree) -> None:
    tree.start(hard(60), None, None, None, 60.0, 0.0)
    assert wait_for(lambda: children_of(tree._process.pid))
    tree.stop()
    end_of(tree)
    assert not children_of(tree._process.pid)


@needs_proc
def test_the_fork_ends_with_a_killed_child() -> None:
    tree = taken()
    assert tree.wait_until_ready()
    tree.start(hard(60), None, None, None, 60.0, 0.0)
    assert wait_for(lambda: children_of(tree._process.pid))
    forks = children_of(tree._process.pid)
    tree._process.kill()
    tree._process.wait()
    assert wait_for(lambda: not any(Path(f"/proc/{fork}").exists() for fork in forks))
    tree.close()


@needs_proc
def test_a_killed_fork_leaves_the_search_alone(tree: Tree) -> None:
    tree.start(hard(60), None, None, None, 3.0, 0.0)
    assert wait_for(lambda: children_of(tree._process.pid))
    for fork in children_of(tree._process.pid):
        os.kill(fork, signal.SIGKILL)
    assert end_of(tree)[-1].finished
    assert tree.is_alive
    tree.start(program([5.0, 4.0, 3.0], [4.0, 3.0, 2.0], 5.0), None, None, None, 60.0, 0.0)
    assert best_of(end_of(tree)).tolist() == [0.0, 1.0, 1.0]


def test_a_system_that_does_not_fork(monkeypatch: pytest.MonkeyPatch) -> None:
    def none() -> int:
        raise OSError("no processes here")

    monkeypatch.setattr(os, "fork", none)
    reports: list[Report] = []
    one = program([3.0, 5.0, 4.0, 6.0], [2.0, 3.0, 2.0, 5.0], 7.0)
    task = Task(1, one, None, None, None, 20.0, 0.0)
    Search(task, one, Warm(), lambda _: False, lambda _: None, reports.append).run()
    assert best_of(reports).tolist() == [1.0, 1.0, 1.0, 0.0]
    assert reports[-1].solved
