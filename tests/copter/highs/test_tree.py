"""The child process that searches: tasks, what it keeps, and what happens when it dies."""

from __future__ import annotations

import dataclasses
import os
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp

from copter.highs import search as module
from copter.highs.cuts import root_cuts
from copter.highs.search import Ghost, Search, Warm
from copter.highs.tree import Point, Program, Report, Task, Tree, given_back, taken
from copter.problem.linear_program import LinearProgram

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


def set_ups(items: int, seed: int) -> Program:
    """Quantities that need dear set-ups, by item and period; all items share a machine: the LP hardly pays for them."""
    rng, t = np.random.default_rng(seed), 6
    eye, zero = np.eye(t), np.zeros((t, t))
    balance = np.hstack([eye, zero, np.eye(t, k=-1) - eye])  # made + stock before - stock = demand
    opened = np.hstack([eye, -400.0 * eye, zero])
    own = sp.block_diag([np.vstack([balance, opened])] * items)
    machine = np.hstack([np.hstack([eye, 30.0 * eye, zero])] * items)
    demand = rng.integers(20, 90, (items, t)).astype(float)
    low = np.concatenate([np.full(t, -INF), *(np.append(each, np.full(t, -INF)) for each in demand)])
    high = np.concatenate([np.full(t, 130.0 * items), *(np.append(each, np.zeros(t)) for each in demand)])
    cost = np.concatenate([
        np.concatenate([np.full(t, 0.1), np.full(t, float(rng.integers(100, 300))), np.ones(t)]) for _ in range(items)
    ])  # fmt: skip
    upper = np.tile(np.concatenate([np.full(t, 400.0), np.ones(t), np.full(t, 1e4)]), items)
    return Program(
        cost, sp.csc_array(sp.vstack([machine, own])), low, high, np.zeros(len(cost)), upper,
        np.tile(np.repeat([False, True, False], t), items), np.repeat(np.arange(items, dtype=np.int32), 3 * t),
    )  # fmt: skip


def test_cuts_make_a_weak_lp_tell_good_points_and_stay_for_the_next_task() -> None:
    whole = set_ups(8, 0)
    search = search_of(whole)
    search._move_warm()
    search._load()
    search._relax(60.0)
    assert search.relaxed is not None
    weak = search.guess
    search._rounded(search.relaxed, "rounded LP")
    rounded = search.value
    search._strengthened()
    assert search.is_cut
    assert search.guess > weak + 0.5 * (search.value - weak)
    assert search.value < 0.9 * rounded
    assert search.holds(search.x)
    search._uncut()
    # one request's demand changes: its cuts are found anew, all others are kept
    side = whole.row_lower.copy()
    side[6] += 10.0
    high = whole.row_upper.copy()
    high[6] += 10.0
    edited = Program(
        whole.cost, None, side, high, whole.col_lower, whole.col_upper, whole.integrality, whole.group
    )  # fmt: skip
    full = Program(
        whole.cost, whole.matrix, side, high, whole.col_lower, whole.col_upper, whole.integrality, whole.group
    )  # fmt: skip
    columns, rows = (np.arange(k, dtype=np.int32) for k in (len(whole.cost), len(side)))
    task = Task(2, edited, columns, rows, search.x, 20.0, 1e-4)
    before = search.warm.cuts
    assert before is not None
    again = Search(task, full, search.warm, lambda _: False, lambda _: None, lambda _: None)
    again._move_warm()
    assert again.changed.tolist() == [True] + [False] * 7
    kept = search.warm.cuts
    assert kept is not None
    assert 0 < kept.matrix.shape[0] < before.matrix.shape[0]
    assert np.bincount(kept.matrix.indices, minlength=len(whole.cost))[:18].sum() == 0
    known = again._known_cuts()
    assert known is not None
    assert np.bincount(known.matrix.indices, minlength=len(whole.cost))[:18].sum() > 0


def test_cuts_that_hardly_close_the_gap_are_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = set_ups(4, 1)
    lp = LinearProgram(
        whole.cost, whole.matrix, whole.row_lower, whole.row_upper, whole.col_lower, whole.col_upper, whole.integrality
    )  # fmt: skip
    until = time.perf_counter() + 20.0
    assert root_cuts(lp, until, lambda: False) is not None
    assert root_cuts(lp, until, lambda: True) is None
    monkeypatch.setattr(module, "LEAST_GAIN", 1.1)
    search = search_of(set_ups(4, 1))
    search.run()
    assert search.warm.cuts is None
    assert search.warm.cuts_s == INF
    assert not search.is_cut


def tight_set_ups() -> Program:
    """Set-ups whose common room is dear: private rows' cuts at the requests' own costs say little of it."""
    whole = set_ups(8, 0)
    group = whole.group
    rows = sp.csr_array(whole.matrix)
    shared = [r for r in range(rows.shape[0]) if len(set(group[rows.indices[rows.indptr[r] : rows.indptr[r + 1]]])) > 1]
    high = whole.row_upper.copy()
    high[shared] *= 0.65
    return dataclasses.replace(whole, row_upper=high)


def strengthened(whole: Program) -> Search:
    """The search of a program after its cuts."""
    search = search_of(whole)
    search._move_warm()
    search._load()
    search._relax(60.0)
    assert search.relaxed is not None
    search._rounded(search.relaxed, "rounded LP")
    search._strengthened()
    return search


def test_cuts_at_the_prices_of_common_rows_raise_the_bound_and_stay_true(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = tight_set_ups()
    with monkeypatch.context() as once:
        once.setattr(module, "CUT_ROUNDS", 0)
        first = strengthened(whole)
    more = strengthened(whole)
    assert first.is_cut
    assert more.is_cut
    assert more.guess > first.guess + 1e-6 * abs(first.guess)
    exact = search_of(whole)
    exact._load()
    exact._whole(60.0, None)
    assert exact.solved
    assert more.guess <= exact.value + 1e-6 * abs(exact.value)
    assert more.warm.cuts is not None
    assert exact.x is not None
    found = more.warm.cuts.matrix @ exact.x
    assert (found >= more.warm.cuts.lower - 1e-5).all()
    assert (found <= more.warm.cuts.upper + 1e-5).all()


def test_small_trees_improve_a_point_and_get_more_nodes_where_they_find_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    search = strengthened(set_ups(8, 0))
    before = search.value
    monkeypatch.setattr(module, "IDLE_PARTS", 10**9)
    monkeypatch.setattr(Search, "over", lambda search: search.left_s < 0.0 or search.tree_nodes > module.TREE_NODES)
    search._neighbourhoods()
    assert search.tree_nodes > module.TREE_NODES
    assert search.value <= before
    assert search.x is not None
    assert search.holds(search.x)


def job_shop(weights: list[float]) -> Program:
    """Jobs of two operations: the first in slot 0 or 1 of a machine, the second in slot 1 or 2 of another, or none."""
    jobs = len(weights)
    own = np.array([[1.0, 1.0, 0.0, 0.0, 1.0], [0.0, 0.0, 1.0, 1.0, 1.0], [1.0, 2.0, -1.0, -2.0, 0.0]])
    rows = np.vstack([np.tile(np.eye(4, 5), jobs), np.kron(np.eye(jobs), own)])
    low, high = np.tile([1.0, 1.0, -INF], jobs), np.tile([1.0, 1.0, 0.0], jobs)
    cost = np.concatenate([weight * np.array([0.0, 0.0, 1.0, 2.0, 10.0]) for weight in weights])
    return Program(
        cost, sp.csc_array(rows), np.concatenate((np.full(4, -INF), low)), np.concatenate((np.ones(4), high)),
        np.zeros(5 * jobs), np.ones(5 * jobs), np.ones(5 * jobs, dtype=bool),
        np.repeat(np.arange(jobs, dtype=np.int32), 5),
    )  # fmt: skip


def test_requests_that_private_equations_tie_reply_in_turn(monkeypatch: pytest.MonkeyPatch) -> None:
    whole, nobody = job_shop([2.0, 3.0]), np.zeros(2, dtype=bool)
    none_done = np.tile([0.0, 0.0, 0.0, 0.0, 1.0], 2)
    search = search_of(whole)
    assert search.offer(none_done, "start")
    search._moved(none_done, "moves")
    assert search.value == 50.0  # one column cannot move alone
    search._replies(nobody)
    assert search.by == "one request at a time"
    assert search.x is not None
    assert search.x.tolist() == [0.0, 1.0, 0.0, 1.0, 0.0, 1.0, 0.0, 1.0, 0.0, 0.0]  # the dearest comes first
    assert search.value == 7.0
    search = search_of(whole)
    search.offer(none_done, "start")
    search._replies(np.array([True, False]))  # and a changed one before it
    assert search.value == 8.0
    part = dataclasses.replace(whole, integrality=np.arange(10) != 4)
    search = search_of(part)
    search.offer(none_done, "start")
    search._replies(nobody)  # only the request of whole columns
    assert search.value == 23.0
    monkeypatch.setattr(module, "REPLY_SHARE", 0.0)
    search = search_of(whole)
    search.offer(none_done, "start")
    search._replies(nobody)  # no time
    assert search.value == 50.0


def test_a_point_by_single_moves_where_the_first_choice_of_configurations_is_none(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    whole, none_done = job_shop([2.0, 3.0]), np.tile([0.0, 0.0, 0.0, 0.0, 1.0], 2)
    search = search_of(whole, none_done)
    search._first_point()
    assert search.by == "last plan repaired"
    assert search.value == 50.0
    search = search_of(program([5.0, 4.0, 3.0], [4.0, 3.0, 2.0], 5.0))
    search._first_point()  # without a start
    assert search.x is not None
    assert search.holds(search.x)
    asked: list[str] = []
    monkeypatch.setattr(Search, "_chosen", lambda *_: None)
    monkeypatch.setattr(Search, "_first_point", lambda _: asked.append("point"))
    monkeypatch.setattr(Search, "_by_choices", lambda *_: None)
    many = job_shop([2.0, 3.0, 1.0, 4.0])
    search = search_of(many, np.tile(none_done, 2))
    search._by_configurations(module.Configurations(many, search.lower, search.upper))
    assert asked == ["point"]


@pytest.mark.parametrize("roots", [0.0, 1e9])
def test_on_one_processor_branch_and_bound_waits_for_cuts_unless_it_would_come_too_late(
    monkeypatch: pytest.MonkeyPatch, roots: float
) -> None:
    monkeypatch.setattr(module, "available_threads", lambda: 1)
    monkeypatch.setattr(module, "TREE_ROOTS", roots)
    monkeypatch.setattr(Search, "over", lambda search: search.left_s < 0.0 or search.beside is not None)
    begun: list[bool] = []
    monkeypatch.setattr(Search, "_branch_beside", lambda search: begun.append(search.is_cut))
    monkeypatch.setattr(Search, "_whole", lambda search, seconds, start: begun.append(search.is_cut))
    between: list[str] = []
    monkeypatch.setattr(Search, "_between", lambda search, seconds: between.append("between"))
    whole, warm = set_ups(8, 0), Warm()
    task = Task(1, whole, None, None, None, 2.0, 1e-4)
    search = Search(task, whole, warm, lambda _: False, lambda _: None, lambda _: None)
    search.run()
    assert search.is_cut
    assert warm.root_s > 0.0
    assert search.x is not None
    assert (True in begun) == (roots == 0.0)
    assert (between == ["between"]) == (roots > 0.0)


def test_cuts_of_a_request_whose_private_row_has_another_entry_are_not_kept() -> None:
    whole = set_ups(8, 0)
    search = search_of(whole)
    search.run()
    assert search.warm.cuts is not None
    matrix = sp.lil_array(whole.matrix)
    row = next(r for r in range(matrix.shape[0]) if len(matrix.rows[r]) > 0 and max(matrix.rows[r]) < 18)
    matrix[row, matrix.rows[row][0]] *= 0.5
    other = dataclasses.replace(whole, matrix=sp.csc_array(matrix))
    columns, rows = (np.arange(k, dtype=np.int32) for k in (len(whole.cost), len(whole.row_lower)))
    again = Search(
        Task(2, other, columns, rows, None, 20.0, 1e-4), other, search.warm, lambda _: False, lambda _: None,
        lambda _: None,
    )  # fmt: skip
    again._move_warm()
    kept = search.warm.cuts
    assert kept is not None
    assert kept.matrix.shape[0] > 0
    assert np.bincount(kept.matrix.indices, minlength=len(whole.cost))[:18].sum() == 0


def test_cuts_given_up_are_sought_again_in_the_next_session() -> None:
    """A process that one session leaves to the next looked for no cuts any more, once they had been in vain."""
    whole, warm = set_ups(4, 1), Warm()
    warm.cuts_s = INF
    task = Task(1, whole, None, None, None, 20.0, 1e-4)
    Search(task, whole, warm, lambda _: False, lambda _: None, lambda _: None).run()
    assert warm.cuts is not None


def test_cuts_of_a_row_that_one_request_used_go_when_another_uses_it() -> None:
    """An equation of one request is private; once another fills it too, what followed from it need not hold."""
    whole = set_ups(8, 0)
    search = search_of(whole)
    search.run()
    assert search.warm.cuts is not None
    matrix = sp.lil_array(whole.matrix)
    row = next(r for r in range(matrix.shape[0]) if len(matrix.rows[r]) > 0 and max(matrix.rows[r]) < 18)
    matrix[row, 18] = 1.0
    other = dataclasses.replace(whole, matrix=sp.csc_array(matrix))
    columns, rows = (np.arange(k, dtype=np.int32) for k in (len(whole.cost), len(whole.row_lower)))
    task = Task(2, other, columns, rows, None, 20.0, 1e-4)
    Search(task, other, search.warm, lambda _: False, lambda _: None, lambda _: None)._move_warm()
    kept = search.warm.cuts
    assert kept is not None
    assert kept.matrix.shape[0] > 0
    assert np.bincount(kept.matrix.indices, minlength=len(whole.cost))[:18].sum() == 0


def test_bounds_from_cuts_are_below_the_optimum_after_edits_of_counts() -> None:
    """Cuts of private rows stay right when the rows that requests share change, or go."""
    whole, warm = set_ups(3, 2), Warm()
    columns, rows = (np.arange(k, dtype=np.int32) for k in (len(whole.cost), len(whole.row_lower)))
    shared = ~search_of(whole)._is_private
    assert shared.any()
    for number, factor in enumerate((1.0, 0.7, 3.0, np.inf, 0.8), 1):
        upper = whole.row_upper.copy()
        upper[shared] *= factor
        now = dataclasses.replace(whole, row_upper=upper)
        came = (columns, rows) if number > 1 else (None, None)
        search = Search(
            Task(number, now, *came, None, 20.0, 1e-4), now, warm, lambda _: False, lambda _: None, lambda _: None
        )
        search.run()
        fresh = search_of(now)
        fresh._load()
        fresh._whole(20.0, None)
        assert search.infeasible == fresh.infeasible == (factor == 0.7)
        if fresh.infeasible:
            continue
        assert search.solved
        assert search.value == pytest.approx(fresh.value, rel=2e-4)
        assert search.bound <= fresh.value * (1.0 + 1e-9)


def test_what_is_kept_moves_with_every_task_even_with_those_that_do_not_use_it() -> None:
    """Prices of two tasks ago were taken for the last task's, and their rows were missing in it."""
    first = program([5.0, 4.0, 3.0], [4.0, 3.0, 2.0], 5.0)
    warm = Warm()
    rows = sp.csc_array(np.vstack([first.matrix.toarray(), np.ones((1, 3)), np.eye(3)]))  # type: ignore[union-attr]
    two = Program(
        first.cost, rows, np.full(5, -INF), np.array([5.0, 2.0, 1.0, 1.0, 1.0]), np.zeros(3), np.ones(3),
        np.ones(3, dtype=bool), first.group,
    )  # fmt: skip

    def done(task: Task) -> Search:
        search = Search(task, task.program, warm, lambda _: False, lambda _: None, lambda _: None)
        search.run()
        assert search.solved
        return search

    done(Task(1, first, None, None, None, 20.0, 1e-4))
    warm.prices = np.array([1.0])
    columns = np.arange(3, dtype=np.int32)
    done(Task(2, two, columns, np.array([0, -1, -1, -1, -1], np.int32), None, 20.0, 1e-4, tree_only=True))
    assert warm.prices is not None
    assert len(warm.prices) == 5
    done(Task(3, two, columns, np.array([4, 3, 2, 1, 0], np.int32), None, 20.0, 1e-4))


def test_first_points_are_the_best_of_several_orders() -> None:
    """Bins of 10 and things of 6, 6, 4, 4: by the order of the rows, light ones first, three bins are opened."""
    weights = [4.0, 4.0, 6.0, 6.0]
    bins, n = 4, 5
    own = np.kron(np.eye(bins), [[*weights, -10.0]])
    each = np.hstack([np.hstack([np.eye(4), np.zeros((4, 1))])] * bins)
    whole = Program(
        np.tile([0.0, 0.0, 0.0, 0.0, 1.0], bins), sp.csc_array(np.vstack([each, own])),
        np.concatenate([np.ones(4), np.full(bins, -INF)]), np.concatenate([np.ones(4), np.zeros(bins)]),
        np.zeros(bins * n), np.ones(bins * n), np.ones(bins * n, dtype=bool),
        np.repeat(np.arange(bins, dtype=np.int32), n),
    )  # fmt: skip
    search = search_of(whole)
    search._from_nothing()
    assert search.value == 2.0


def test_a_first_point_where_what_costs_least_leads_nowhere() -> None:
    """A thing's steps must be in order, and the first ones tried bar the others: only leaving it out mends all rows."""
    rows = np.array([[1.0, 0.0, 1.0], [0.0, 1.0, 1.0], [1.0, -1.0, 0.0], [-1.0, 2.0, 0.0]])
    whole = Program(
        np.array([0.0, 0.0, 9.0]), sp.csc_array(rows), np.array([1.0, 1.0, -INF, -INF]),
        np.array([1.0, 1.0, 0.0, 0.0]), np.zeros(3), np.ones(3), np.ones(3, dtype=bool), np.zeros(3, np.int32),
    )  # fmt: skip
    search = search_of(whole)
    search._from_nothing()
    assert search.x is not None
    assert search.x.tolist() == [0.0, 0.0, 1.0]


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
