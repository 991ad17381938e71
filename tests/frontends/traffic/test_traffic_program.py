"""The program in the session, row by row and after every edit; its flows, bounds and statuses; time and deadlines."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from copter import Settings
from copter_frontends.traffic import (
    OBJECTIVES,
    Network,
    Paths,
    TrafficFormulation,
    UnknownPairError,
    formulation,
    make_paths,
)
from copter_frontends.traffic.formulation import SHARE, reach_of

LINEAR = tuple(name for name in OBJECTIVES if name != "proportional")

Floats = NDArray[np.float64]


def square(most: int = 2) -> Paths:
    """a to d by b (links of 4) or by c (links of 2), d to e (8), and b to c by a or by d."""
    links = [(0, 1, 4.0), (1, 3, 4.0), (0, 2, 2.0), (2, 3, 2.0), (3, 4, 8.0)]
    return make_paths(Network.from_links(list("abcde"), links), [[0, 3], [3, 4], [1, 2]], "shortest", most)


def line() -> Paths:
    """Two links of 4: the longest pair has all of both, if it is served first."""
    network = Network.from_links(list("abc"), [(0, 1, 4.0), (1, 2, 4.0)])
    return make_paths(network, [[0, 2], [0, 1], [1, 2]])


def program_is_right(form: TrafficFormulation) -> None:
    """TE1 or TE3, written out from paths, demands and capacities."""
    paths, lp, total = form.paths, form.model.to_linear_program(), form.objective == "total"
    alive = [bool((form.capacity[paths.arcs_of(path)] > 0.0).all()) for path in range(paths.n_paths)]
    columns: list[tuple[float, Floats, float]] = []  # cost, arcs, upper bound
    sums: list[tuple[float, list[int]]] = []
    for request in form.model.requests:
        if request == SHARE:
            columns.append((1.0, -form.nominal, np.inf))
            continue
        own = range(int(paths.first[request]), int(paths.first[request + 1]))
        assert len(own)
        reach = sum(form.nominal[paths.arcs_of(path)].min() for path in own)
        demand = form.demands[request]
        wanted = min(demand, reach) if total else demand * any(alive[path] for path in own)
        sums.append((wanted, list(range(len(columns), len(columns) + len(own)))))
        for path in own:
            used = np.bincount(paths.arcs_of(path), minlength=paths.network.n_arcs)
            columns.append((float(total), used.astype(np.float64), wanted if total or alive[path] else 0.0))
    cost, arcs, upper = zip(*columns, strict=True)
    membership = np.zeros((len(sums), len(columns)))
    for row, (_, own_columns) in enumerate(sums):
        membership[row, own_columns] = 1.0
    wanted_ = np.array([wanted for wanted, _ in sums])
    capacity = form.capacity if total else np.zeros(paths.network.n_arcs)
    np.testing.assert_array_equal(lp.c, cost)
    np.testing.assert_array_equal(lp.A.toarray(), np.vstack((np.array(arcs).T, membership)))
    np.testing.assert_array_equal(lp.row_upper, np.concatenate((capacity, wanted_)))
    least = np.full(len(sums), -np.inf) if total else wanted_
    np.testing.assert_array_equal(lp.row_lower, np.concatenate((np.full(paths.network.n_arcs, -np.inf), least)))
    most = membership.T @ wanted_  # a sum bounds its columns, whether that is said of them too or not
    most[membership.sum(axis=0) == 0.0] = np.inf
    np.testing.assert_array_equal(np.minimum(lp.col_upper, most), upper)
    assert not lp.col_lower.any()
    assert lp.sense == ("max" if total else "min")
    assert [each for each in form.model.requests if each != SHARE] == form.requests or len(form.requests) == len(sums)


# The program ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("objective", LINEAR)
def test_the_program_after_every_edit(objective: str) -> None:
    form = TrafficFormulation(square(), [10.0, 3.0, 0.5], objective)
    program_is_right(form)
    network = form.paths.network
    edits: list[Any] = [
        lambda: form.set_demands([3.0, 3.0, 0.25]),
        lambda: form.set_demand("d", "e", 9.0),
        lambda: form.set_capacity([0], 5.0),
        lambda: form.set_capacity(np.arange(network.n_arcs), 2.0 * network.capacity),
        lambda: form.set_capacity(network.link(0, 1), [0.5, 0.25]),
        lambda: form.fail_link("a", "b"),
        lambda: form.fail_link("d", "e"),
        lambda: form.set_demand("d", "e", 2.0),
        lambda: form.set_capacity(network.link(3, 4), 7.0),
        lambda: form.repair_link("d", "e"),
        lambda: form.repair_link("a", "b"),
        lambda: form.fail_link("a", "c"),
        lambda: form.set_paths("a", "d", [["a", "c", "d"], ["a", "b", "d"]]),
        lambda: form.set_paths("d", "e", []),
        lambda: form.set_demands([2.0, 1.0, 1.0]),
        lambda: form.set_paths("d", "e", [["d", "e"]]),
        lambda: form.repair_link("a", "c"),
    ]
    for edit in edits:
        edit()
        program_is_right(form)
    assert form.plan().status == "optimal"
    assert form.last is not None


@pytest.mark.parametrize("objective", LINEAR)
@pytest.mark.parametrize("planned", [False, True])
def test_a_path_more_comes_after_those_that_there_are(objective: str, planned: bool) -> None:
    """Also in the flows of the last plan, where it is empty."""
    form = TrafficFormulation(square(1), [3.0, 2.0, 1.0], objective)
    if planned:
        form.plan()
    before = [form.paths.nodes_of(path) for path in range(3)]
    assert before[0] == [0, 1, 3]
    form.add_path("a", "d", ["a", "c", "d"])
    assert [form.paths.nodes_of(path) for path in range(4)] == [before[0], [0, 2, 3], *before[1:]]
    program_is_right(form)
    if planned:
        assert form.last is not None
        np.testing.assert_allclose(form.last.served, [0.0, 2.0, 1.0])
    form.add_path("b", "c", ["b", "d", "c"] if before[2] == [1, 0, 2] else ["b", "a", "c"])
    program_is_right(form)
    best = {"total": 6.0, "concurrent": 1.0, "utilisation": 2.0 / 3.0}[objective]
    plan = form.plan()
    assert plan.objective == pytest.approx(best)
    assert plan.status == "optimal"


@pytest.mark.parametrize("objective", LINEAR)
def test_pairs_without_paths_have_no_request(objective: str) -> None:
    network = Network.from_links(list("abcd"), [(0, 1, 5.0), (2, 3, 5.0)])
    form = TrafficFormulation(make_paths(network, [[0, 1], [0, 3], [2, 3]]), [2.0, 9.0, 3.0], objective)
    program_is_right(form)
    form.set_demands([2.0, 4.0, 1.0])
    form.set_demand("a", "d", 3.0)
    program_is_right(form)
    assert form.demands.tolist() == [2.0, 3.0, 1.0]
    assert form.plan().served == pytest.approx([2.0, 0.0, 1.0])


def test_paths_carry_at_most_their_narrowest_links() -> None:
    assert reach_of(square(), square().network.capacity).tolist() == [6.0, 8.0, 4.0]
    none = make_paths(square().network, [[0, 3]]).with_paths(0, [])
    assert reach_of(none, none.network.capacity).tolist() == [0.0]


def test_settings_of_the_session() -> None:
    """Without others: no vertex is looked for, and interior points may solve up to twenty million columns."""
    settings = TrafficFormulation(square(), np.ones(3)).session.settings
    assert settings.interior_columns == 20_000_000
    given = Settings(interior_rows=7)
    assert TrafficFormulation(square(), np.ones(3), settings=given).session.settings is given


def test_kernels_are_compiled_before_any_deadline(monkeypatch: pytest.MonkeyPatch) -> None:
    prepared: list[Paths] = []
    monkeypatch.setattr(formulation, "prepare", prepared.append)
    paths = square()
    TrafficFormulation(paths, np.ones(3))
    assert prepared == [paths]


def test_arcs_that_there_are_not() -> None:
    form = TrafficFormulation(square(), np.ones(3))
    for arc in (-1, 10):
        with pytest.raises(UnknownPairError, match=f"no arc {arc}: arcs are 0 to 9"):
            form.set_capacity([arc], 1.0)
    form.set_capacity([0, 9], 1.0)
    assert form.capacity[[0, 9]].tolist() == [1.0, 1.0]


# From a point to flows ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("wrong", [0.0, -1.0, np.nan, np.inf])
def test_every_demand_is_served_in_proportion_to_the_point(wrong: float) -> None:
    """What is no number or negative counts for nothing; a pair that has nothing takes its first path."""
    form = TrafficFormulation(square(), [0.5, 0.25, 0.0], "utilisation")
    assert form._shim(np.array([0.1, 0.3, 0.0, 0.0, 0.0])).tolist() == pytest.approx([0.125, 0.375, 0.25, 0.0, 0.0])
    assert form._shim(np.array([wrong, 0.1, 1.0, 0.0, 0.0])).tolist() == pytest.approx([0.0, 0.5, 0.25, 0.0, 0.0])
    assert form._shim(np.full(5, 2.0)).tolist() == pytest.approx([0.25, 0.25, 0.25, 0.0, 0.0])


def test_a_pair_that_has_nothing_takes_its_first_path_that_is_not_cut() -> None:
    form = TrafficFormulation(square(), [0.5, 0.0, 0.25], "utilisation")
    first = form.paths.nodes_of(3)
    form.fail_link("a", "b" if first == [1, 0, 2] else "d")
    expected = [0.0, 0.5, 0.0, 0.0, 0.25] if first == [1, 0, 2] else [0.5, 0.0, 0.0, 0.0, 0.25]
    assert form._shim(np.zeros(5)).tolist() == expected
    form.fail_link("b", "d")
    form.fail_link("b", "a")
    assert form._shim(np.zeros(5)).tolist() == [0.0, 0.5, 0.0, 0.0, 0.0]  # stranded


def test_a_common_share_is_the_same_for_all() -> None:
    """Links carry half of what is asked for; where they carry all, that is served as it is."""
    form = TrafficFormulation(square(), [12.0, 4.0, 0.0], "concurrent")
    assert form._shim(np.array([8.0, 4.0, 4.0, 0.0, 0.0])).tolist() == pytest.approx([4.0, 2.0, 2.0, 0.0, 0.0])
    form.set_demands([3.0, 4.0, 0.0])
    assert form._shim(np.array([2.0, 1.0, 4.0, 0.0, 0.0])).tolist() == pytest.approx([2.0, 1.0, 4.0, 0.0, 0.0])
    form.set_demands(np.zeros(3))
    assert not form._shim(np.zeros(5)).any()


@pytest.mark.parametrize("objective", LINEAR)
def test_the_better_flows_are_taken_and_the_new_ones_of_two_alike(objective: str) -> None:
    form = TrafficFormulation(square(), [3.0, 0.0, 0.0], objective)
    form.set_capacity(form.paths.network.link(0, 1), 1.0)
    good, bad = np.array([1.0, 2.0, 0.0, 0.0, 0.0]), np.array([0.5, 1.5, 0.0, 0.0, 0.0])
    if objective == "utilisation":
        bad = np.array([3.0, 0.0, 0.0, 0.0, 0.0])
    for new, kept, first in ((good, bad, True), (bad, good, False), (good.copy(), good, True)):
        flows, is_kept = form._better(new, kept)
        assert flows is (new if first else kept)
        assert is_kept is not first
    assert form._better(good, good) == (good, True)


# Plans ----------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("paths", "demands", "objective", "first", "loose", "best"),
    [
        (line(), [4.0, 3.0, 3.0], "total", 4.0, 10.0, 7.0),
        (square(), [9.0, 0.0, 0.0], "concurrent", 4.0 / 9.0, 1.0, 6.0 / 9.0),
        (square(), [3.0, 0.0, 0.0], "utilisation", 0.75, 0.0, 0.5),
    ],
)
def test_without_time_the_plan_is_the_last_one_or_a_greedy_one(
    paths: Paths, demands: list[float], objective: str, first: float, loose: float, best: float
) -> None:
    """Its bound is by the prices of an earlier plan, or holds without any."""
    form = TrafficFormulation(paths, demands, objective)
    plan = form.plan(0.0)
    assert plan.objective == pytest.approx(first)
    assert (plan.bound, plan.status, plan.iterations, len(plan.prices)) == (loose, "kept_previous", 0, 0)
    assert (plan.seconds["edit"], plan.seconds["solve"]) == (0.0, 0.0)
    plan = form.plan()
    assert plan.objective == pytest.approx(best)
    assert plan.bound == pytest.approx(best)
    assert plan.status == "optimal"
    again = form.plan(0.0)
    np.testing.assert_allclose(again.flows, plan.flows, rtol=1e-12)
    assert (again.bound, again.status) == (plan.bound, "optimal")
    assert again.seconds["edit"] == 0.0


def test_a_common_share_is_one_at_most() -> None:
    form = TrafficFormulation(square(), [3.0, 0.0, 0.0], "concurrent")
    plan = form.plan()
    assert plan.objective == pytest.approx(1.0)
    assert plan.bound == 1.0
    assert form._bound(np.zeros(10), 1.0) == 1.0


def test_stranded_pairs_count_for_no_bound() -> None:
    form = TrafficFormulation(square(), [3.0, 2.0, 1.0])
    form.fail_link("d", "e")
    plan = form.plan(0.0)
    assert plan.bound == 4.0
    assert plan.stranded.tolist() == [1]


@pytest.mark.parametrize("objective", LINEAR)
def test_nothing_is_solved_where_nothing_is_asked_for(objective: str, monkeypatch: pytest.MonkeyPatch) -> None:
    form = TrafficFormulation(square(), np.zeros(3), objective)
    monkeypatch.setattr(form.session, "solve", None)
    assert not form.plan().flows.any()
    none = TrafficFormulation(make_paths(square().network, [[0, 3]]).with_paths(0, []), [1.0], objective)
    monkeypatch.setattr(none.session, "solve", None)
    assert none.plan().stranded.tolist() == [0]


def solved(form: TrafficFormulation, flows: list[float], price: float, status: str) -> Any:
    """A solution with these flows, and one price of all links."""
    return SimpleNamespace(
        status=SimpleNamespace(value=status), solve_time_s=2.5, iterations=5,
        prices=lambda arcs: np.full(len(arcs), price), values_of=lambda _: (None, np.array(flows)),
    )  # fmt: skip


def test_a_solve_that_was_cut_short_leaves_the_last_prices(monkeypatch: pytest.MonkeyPatch) -> None:
    """Those of the last one that was not count for the bound."""
    form = TrafficFormulation(line(), [4.0, 3.0, 3.0])
    answer = [solved(form, [1.0, 3.0, 3.0], 0.0, "time_limit")]
    monkeypatch.setattr(form.session, "solve", lambda deadline_s: answer[0])
    plan = form.plan()
    assert plan.objective == pytest.approx(7.0)
    assert (plan.bound, plan.status, plan.iterations, plan.seconds["solve"]) == (10.0, "feasible", 5, 2.5)
    assert not len(form.last_price)
    answer[0] = solved(form, [1.0, 3.0, 3.0], 0.5, "optimal")  # 8 for the links of both ways, 0 + 1.5 + 1.5 of demands
    assert form.plan().bound == 10.0
    assert form.last_price.tolist() == [0.5] * 4
    form.set_demands([40.0, 3.0, 3.0])
    answer[0] = solved(form, [1.0, 3.0, 3.0], 0.0, "time_limit")
    plan = form.plan()
    assert plan.bound == 10.0
    assert form.last_price.tolist() == [0.5] * 4


def test_a_worse_solution_gives_way_to_the_last_flows(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ten per cent more of a demand, whose bound is not proven."""
    form = TrafficFormulation(square(), [3.0, 0.0, 0.0], "utilisation")
    form.plan()
    monkeypatch.setattr(
        form.session, "solve", lambda deadline_s: solved(form, [1.0, 0.0, 0.0, 0.0, 0.0], 0.0, "time_limit")
    )
    form.last_price = np.zeros(0)
    form.set_demands([3.3, 0.0, 0.0])
    plan = form.plan()
    assert plan.objective == pytest.approx(0.55)
    assert (plan.bound, plan.status) == (0.0, "kept_previous")


# Time -----------------------------------------------------------------------------------------------------------------


class Clock:
    """Stands still but for steps that take a time given."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now, self.patch = 5000.0, monkeypatch
        monkeypatch.setattr(formulation, "time", SimpleNamespace(perf_counter=lambda: self.now))

    def slow(self, owner: object, name: str, takes: float) -> None:
        does = getattr(owner, name)

        def stepped(*given: Any, **named: Any) -> Any:
            self.now += takes
            return does(*given, **named)

        self.patch.setattr(owner, name, stepped)


def test_the_time_of_edits_adds_up(monkeypatch: pytest.MonkeyPatch) -> None:
    form, clock = TrafficFormulation(square(1), [3.0, 2.0, 1.0]), Clock(monkeypatch)
    for name, takes in (("update_limits", 1.0), ("update_counts", 10.0), ("add_request", 100.0)):
        clock.slow(form.model, name, takes)
    assert form.edit_s == 0.0
    for edit, takes in (
        (lambda: form.set_demand("a", "d", 2.0), 1.0),
        (lambda: form.set_demands([1.0, 1.0, 0.5]), 1.0),
        (lambda: form.fail_link("a", "b"), 10.0),
        (lambda: form.repair_link("a", "b"), 10.0),
        (lambda: form.add_path("a", "d", ["a", "c", "d"]), 100.0),
    ):
        before = form.edit_s
        edit()
        assert form.edit_s == before + takes
    assert form.plan().seconds["edit"] == 122.0
    assert form.edit_s == 0.0


@pytest.mark.parametrize(("deadline_s", "left"), [(None, [None]), (13.0, [5.0]), (8.5, [0.5]), (7.0, [])])
def test_a_solve_has_what_edits_and_the_shim_leave_of_the_deadline(
    monkeypatch: pytest.MonkeyPatch, deadline_s: float | None, left: list[float | None]
) -> None:
    """Edits took 2, and the shim 2, which it has three times over."""
    form, clock = TrafficFormulation(line(), [4.0, 3.0, 3.0]), Clock(monkeypatch)
    clock.slow(form, "_kept_flows", 2.0)
    clock.slow(form, "flows_of", 100.0)
    form.edit_s = 2.0
    asked: list[float | None] = []
    solve = form.session.solve
    monkeypatch.setattr(form.session, "solve", lambda deadline_s: asked.append(deadline_s) or solve())  # type: ignore[func-returns-value]
    plan = form.plan(deadline_s)
    assert asked == left
    assert plan.objective == pytest.approx(7.0 if left else 4.0)
    assert plan.seconds["edit"] == 2.0
    assert plan.seconds["shim"] == (102.0 if left else 2.0)
