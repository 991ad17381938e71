"""Plans of the tree road: its bounds, its starts, what it does without a process, and rows that keep the fast road."""

from __future__ import annotations

import os
import signal
import threading
from itertools import product

import numpy as np
import pytest

from copter import CopterError, Model, NoPlanError, PrivateRows, Session, SettingsError
from copter.highs import tree as trees
from copter.methods.integer.solution import IntegerStatus
from copter.problem.linear_program import LinearProgram
from copter.problem.residuals import plan_gap
from copter.problem.solution import Status
from copter.runtime.errors import EditNotAllowedError, InvalidDataError, UnknownHandleError
from copter.shims import tree_road
from copter.shims.checked import require_feasible
from copter.shims.draft import drafts_know
from copter.shims.exact_points import ExactPoints
from copter.shims.tree_road import Sent, kept_numbers

INF = np.inf
STEPS = np.array([0.5, 1.0, 1.5])


def packing(units: float = 4.0) -> Model:
    """Three requests that may take two columns each: off the fast road."""
    model = Model("max")
    model.add_resources("gpu", units)
    for name in "abc":
        model.add_request(name, [3.0, 5.0], {"gpu": [1, 2]}, limit=2.0, upper=1.0, integer=True)
    return model


def test_a_plan_its_bound_and_the_road() -> None:
    session = Session(packing())
    plan = session.solve_integer()
    assert plan
    assert plan.objective == 11.0
    assert plan.bound == pytest.approx(11.0, rel=1e-4)
    assert plan.why.startswith("tree road")
    assert plan.gap == plan_gap(plan.objective, plan.bound)
    again = session.solve_integer()
    assert again.objective == 11.0
    model = Model("max")
    model.add_resources("gpu", 3)
    model.add_request("a", [1.0], {"gpu": [1]}, integer=True)
    assert Session(model).solve_integer().why.startswith("fast road")


@pytest.mark.parametrize("name", ["rounding", "dive", "exact"])
def test_every_name_takes_the_road(name: str) -> None:
    pytest.importorskip("highspy")
    plan = Session(packing()).solve_integer(name, deadline_s=60.0)
    assert plan.objective == 11.0


def test_exact_is_exact_on_the_whole_program() -> None:
    pytest.importorskip("highspy")
    rng = np.random.default_rng(3)
    model = Model("max")
    model.add_resources("gpu", 17)
    cost, use = rng.integers(5, 50, (5, 4)), rng.integers(2, 9, (5, 4))
    for at in range(5):
        model.add_request(at, cost[at].astype(float), {"gpu": use[at].astype(float)}, integer=True)
    best = max(
        sum(cost[at, j] for at, j in enumerate(choice) if j < 4)
        for choice in product(range(5), repeat=5)
        if sum(use[at, j] for at, j in enumerate(choice) if j < 4) <= 17
    )
    plan = Session(model).solve_integer("exact", deadline_s=60.0)
    assert plan.objective == best
    assert plan.status is IntegerStatus.OPTIMAL
    assert plan.bound == pytest.approx(best, rel=1e-6)


def test_a_gap_that_rounding_does_not_reach_is_sought_by_the_tree() -> None:
    model = Model("max")
    model.add_resources("gpu", 10)
    for at in range(30):
        model.add_request(at, [7.0, 11.0], {"gpu": [3, 4]}, integer=True)
    session = Session(model)
    assert session.solve_integer(gap=0.9).why.startswith("fast road")
    plan = session.solve_integer(gap=0.0, deadline_s=60.0)
    assert plan.objective == 25.0
    assert plan.bound >= 25.0 - 1e-6
    with pytest.raises(SettingsError, match="gap is -1"):
        session.solve_integer(gap=-1)


def test_no_plan_is_no_plan() -> None:
    model = packing()
    model.set_count("gpu", 4, lower=4)
    model.add_request("odd", [0.0], {"gpu": [0]}, limit=INF, upper=5.0, integer=True,
                      private_rows=PrivateRows([[2.0]], 1.0, 1.0))  # fmt: skip
    last = Session(packing()).solve_integer()
    plan = Session(model).solve_integer(deadline_s=60.0)
    assert not plan
    assert plan.status is IntegerStatus.PRIMAL_INFEASIBLE
    assert (plan or last) is last
    for asked in (
        lambda: plan.column("a"),
        lambda: plan.shares("a"),
        lambda: plan.columns_of(["a"]),
        lambda: plan.shares_of(["a"]),
    ):
        with pytest.raises(NoPlanError, match=r"there is no plan \(primal_infeasible\): no whole columns fit"):
            asked()


def test_the_error_names_the_resources_in_conflict() -> None:
    model = packing()
    model.add_request("must", [1.0], {"gpu": [9]}, at_least=1.0, integer=True)
    plan = Session(model).solve_integer(deadline_s=60.0)
    with pytest.raises(NoPlanError, match="resources in conflict: 'gpu'; requests in conflict: 'must'"):
        plan.column("a")


def test_out_of_time_keeps_the_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tree_road.TreeRoad, "_begin", lambda *_: None)
    session = Session(packing())
    plan = session.solve_integer(deadline_s=60.0)
    assert plan.status is IntegerStatus.NONE_FOUND
    assert plan.bound == pytest.approx(session.last_solution.bound)  # type: ignore[union-attr]
    assert plan.bound_is_certified
    assert "without a process" in plan.why


def test_a_start_by_request() -> None:
    session = Session(packing())
    heard: list[tuple[float, float]] = []
    plan = session.solve_integer(
        start={"a": 1, "b": {0: 1.0, 1: 1.0}, "c": None}, callback=lambda *news: heard.append(news) or False, gap=0.5
    )
    assert plan.objective >= 8.0
    with pytest.raises(UnknownHandleError, match="'z'"):
        session.solve_integer(start={"z": 0})
    with pytest.raises(InvalidDataError, match="columns 0 to 1"):
        session.solve_integer(start={"a": 7})
    with pytest.raises(InvalidDataError, match="has the value nan"):
        session.solve_integer(start={"a": {0: float("nan")}})
    with pytest.raises(InvalidDataError, match="start is a list"):
        session.solve_integer(start=[1])  # type: ignore[arg-type]


def test_news_of_the_search(capsys: pytest.CaptureFixture[str]) -> None:
    heard: list[tuple[float, float]] = []

    def hear(objective: float, bound: float) -> bool:
        heard.append((objective, bound))
        return False

    plan = Session(packing()).solve_integer(callback=hear, verbose=True, gap=0.0)
    assert heard
    assert all(np.isnan(objective) or objective <= 11.0 for objective, _ in heard)
    assert "copter" in capsys.readouterr().err
    assert plan.objective == 11.0
    ended = Session(packing()).solve_integer(callback=lambda *_: True)
    assert "callback" in ended.why or ended.is_feasible


def test_a_killed_process_costs_one_round_at_most() -> None:
    model = packing()
    session = Session(model)
    assert session.prepare()
    tree = session._tree_road.tree  # type: ignore[union-attr]
    os.kill(tree._process.pid, signal.SIGKILL)  # type: ignore[union-attr]
    tree._process.wait()  # type: ignore[union-attr]
    plan = session.solve_integer()
    assert plan.objective == 11.0


def test_no_process_at_all(monkeypatch: pytest.MonkeyPatch) -> None:
    def none() -> trees.Tree:
        raise OSError("no processes here")

    monkeypatch.setattr(tree_road, "taken", none)
    session = Session(packing())
    assert not session.prepare()
    plan = session.solve_integer(deadline_s=30.0)
    assert not plan
    assert "without a process" in plan.why


def test_a_deadline_of_a_millisecond() -> None:
    model = packing()
    session = Session(model)
    assert session.prepare()
    plan = session.solve_integer(deadline_s=1e-3)
    assert plan.status in (IntegerStatus.NONE_FOUND, IntegerStatus.FEASIBLE, IntegerStatus.OPTIMAL)
    if plan:
        require_feasible(model, plan)
    tree = session._tree_road.tree  # type: ignore[union-attr]
    assert tree is None or settled(tree), "nothing goes on after the deadline"
    assert session.solve_integer(deadline_s=60.0).objective == 11.0


def settled(tree: trees.Tree) -> bool:
    """Whether the child ends what it was at."""
    return any(tree.settle() for _ in range(100))


def partition(size: int) -> Model:
    """Requests of which each takes two units of two resources in whole, in rows that need an odd number of units."""
    model = Model("max")
    rng = np.random.default_rng(3)
    for at in range(size):
        model.set_count(at, 5.0, lower=5.0)
    for at in range(2 * size):
        usage = {at % size: [2.0, 0.0], (at + 1) % size: [0.0, 2.0]}
        model.add_request(at, rng.random(2), usage, limit=INF, upper=3.0, integer=True)
    return model


def test_equations_that_no_whole_plan_meets() -> None:
    session = Session(partition(6))
    plan = session.solve_integer(deadline_s=60.0)
    assert plan.status is IntegerStatus.PRIMAL_INFEASIBLE
    assert "no whole columns fit" in plan.why
    assert session.solve().status is Status.OPTIMAL, "shares would fit"


def test_a_process_killed_in_the_middle_of_a_search() -> None:
    model = Model("max")
    rng = np.random.default_rng(2)
    for at in range(20):
        model.add_resources(at, 60.0)
    for name in range(200):  # far more than a quarter of a second's work
        usage = {at: rng.integers(1, 12, 4) for at in range(20)}
        model.add_request(name, rng.integers(10, 50, 4), usage, limit=2.0, upper=1.0, integer=True)
    session = Session(model)
    assert session.prepare()
    road = session._tree_road
    process = road.tree._process  # type: ignore[union-attr]
    timer = threading.Timer(0.25, process.kill)
    timer.start()
    plan = session.solve_integer(deadline_s=20.0, gap=0.0)
    timer.join()
    assert process.wait(timeout=10.0) == -signal.SIGKILL, "nothing is left running"
    assert plan.status in (IntegerStatus.NONE_FOUND, IntegerStatus.FEASIBLE)
    if plan:
        require_feasible(model, plan)
    again = session.solve_integer(deadline_s=1.0)
    if again:
        require_feasible(model, again)
    road.close()  # type: ignore[union-attr]


def test_an_unbounded_whole_column_and_a_count_beyond_32_bits() -> None:
    model = Model("max")
    model.add_resources("gpu", 3e9)
    model.add_request("many", [1.0], {"gpu": [1]}, limit=INF, integer=True)
    plan = Session(model).solve_integer(deadline_s=60.0)
    assert plan.shares("many") == {0: 3e9}
    endless = Model("max")
    endless.add_resources("gpu", 3)
    endless.add_request("free", [1.0], {"gpu": [0]}, limit=INF, integer=True)
    plan = Session(endless).solve_integer(deadline_s=60.0)
    assert plan.status is IntegerStatus.FEASIBLE, "any plan, since there is no best one"
    assert plan.gap == INF


def test_whole_and_continuous_columns_of_one_request() -> None:
    model = Model("max")
    model.add_resources("gpu", 3.5)
    model.add_request("mixed", [2.0, 1.0], {"gpu": [1, 1]}, limit=INF, upper=[5.0, 9.0], integer=[True, False])
    plan = Session(model).solve_integer(deadline_s=60.0)
    assert plan.shares("mixed") == {0: 3.0, 1: 0.5}
    assert model.integrality("mixed").tolist() == [True, False]
    model.update_integrality("mixed", [False, True])
    assert Session(model).solve_integer(deadline_s=60.0).shares("mixed") == {0: 3.5}
    with model.batch():
        model.update_integrality("mixed", True)
    assert model.integrality("mixed").all()
    with pytest.raises(InvalidDataError, match="neither True nor False"):
        model.update_integrality("mixed", [2, 0])


def test_integrality_of_columns_is_saved_and_undone(tmp_path: object) -> None:
    model = Model()
    model.add_resources("gpu", 3.5)
    model.add_request("mixed", [-2.0, -1.0], {"gpu": [1, 1]}, limit=INF, integer=[True, False])

    def failing() -> None:
        with model.batch():
            model.update_integrality("mixed", [True, True])
            model.remove_request("nobody")

    with pytest.raises(UnknownHandleError):
        failing()
    assert model.integrality("mixed").tolist() == [True, False]
    with pytest.raises(EditNotAllowedError, match="some of its columns are whole"):
        model.update_columns(["mixed"], [1], [1.0], {"gpu": [1.0]}, kept=-1)
    session = Session(model)
    session.save(f"{tmp_path}/session")
    assert Session.load(f"{tmp_path}/session").model.integrality("mixed").tolist() == [True, False]


def equation(lower: bool, cost: float = 0.0) -> Model:
    """Requests on rows of units and of power; with `lower`, an equation that a free request fills."""
    model, rng = Model("max"), np.random.default_rng(5)
    model.add_resources("gpu", 12)
    model.set_count("power", 9.3, lower=9.3 if lower else -INF)
    if lower:
        model.add_request("unused", [cost], {"power": [1.0]}, limit=INF)
    for at in range(12):
        model.add_request(at, rng.random(3) + STEPS, {"gpu": [1, 2, 3], "power": [0.7, 1.3, 1.9]}, integer=True)
    return model


def test_an_equation_that_a_free_request_fills_keeps_the_fast_road() -> None:
    model = equation(True)
    assert drafts_know(model)
    assert not drafts_know(equation(True, -1.0))
    plan, without = Session(model).solve_integer(), Session(equation(False)).solve_integer()
    require_feasible(model, plan)
    assert plan.objective == pytest.approx(without.objective, abs=1e-9)
    used = sum((0.7, 1.3, 1.9)[c] for at in range(12) if (c := plan.column(at)) is not None)
    assert plan.shares("unused")[0] == pytest.approx(9.3 - used)
    model.update_bounds("unused", upper=[0.5])
    assert not drafts_know(model)


def test_points_on_rows_with_one_side_only_are_made_exact() -> None:
    # Rows without an upper side were taken for rows at it, so that no correction was ever found.
    lp = LinearProgram(
        [1.0, 1.0, 0.0], [[0.3, 0.1, 0.0], [1.0, 0.0, 1.0]], [0.7, 0.5], [INF, INF], col_upper=[9.0, 9.0, 1.0],
        integrality=[0, 0, 1],
    )  # fmt: skip
    points = ExactPoints(lp)
    x = np.array([2.0, 1.0 - 1e-9, 0.0])
    assert not points.holds(x)
    exact = points(x)
    assert exact is not None
    assert points.holds(exact)
    assert np.abs(exact - x).max() < 1e-7


def test_numbers_of_columns_that_stay() -> None:
    lp = LinearProgram([0.0], [[1.0]])

    def sent(slots: list[int], ages: list[int], first: list[int], own: list[int], rows: list[str]) -> Sent:
        return Sent(
            np.array(slots, np.int32),
            np.array(ages),
            np.array(first),
            np.array(own),
            {r: at for at, r in enumerate(rows)},
            lp,
        )

    last = sent([4, 7, 2], [1, 1, 3], [0, 2, 3, 5], [2, 3, 3, 4], ["g", "h"])
    now = sent([7, 2, 4], [1, 3, 2], [0, 1, 3, 5], [1, 1, 2, 3], ["h"])
    columns, rows = kept_numbers(last, now)
    assert columns.tolist() == [2, 3, 4, -1, -1]
    assert rows.tolist() == [1, 3, -1]


def test_exact_without_highspy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "highspy", None)
    with pytest.raises(CopterError, match="highspy"):
        Session(packing()).solve_integer("exact")


@pytest.mark.parametrize(
    ("objective", "bound", "gap"),
    [(2.0, 3.0, 0.5), (-2.0, -3.0, 0.5), (0.0, 0.0, 0.0), (0.0, 1.0, INF), (5.0, 5.0, 0.0)],
)
def test_the_gap_is_highs_s(objective: float, bound: float, gap: float) -> None:
    assert plan_gap(objective, bound) == gap
