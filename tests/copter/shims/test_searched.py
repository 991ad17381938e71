"""Plans of models with rows that drafts do not know: against all plans that there are, and what is said without one."""

from __future__ import annotations

import time
from dataclasses import replace

import numpy as np
import pytest

from copter import EditNotAllowedError, InvalidDataError, LinearProgram, Model, PrivateRows, Session, Settings
from copter.highs.tree import Report
from copter.shims import IntegerPlan, RestrictedShim, RoundingShim, require_feasible
from copter.shims.draft import drafts_know
from copter.shims.exact_points import ExactPoints
from copter.verify import verify
from tests.adversary.structures import Tinker
from tests.copter.shims.brute_plans import best_plan

INF = np.inf
SHIMS = ("rounding", "dive", "exact")
NEAR = 1e-6


def random_model(seed: int) -> Model:
    """A model of up to three requests with every kind of row, bound and sign."""
    rng = np.random.default_rng(seed)
    tinker = Tinker(rng, ("whole", "decimal")[seed % 2], int(rng.integers(1, 4)))
    for _ in range(int(rng.integers(0, 6))):
        tinker.step()
    return tinker.model


def verdict(model: Model, plan: IntegerPlan) -> str:
    """What a plan is beside all plans there are: "best", "worse", "none", "missed", "unbounded" or "untried"."""
    everything = best_plan(model)
    if plan.is_feasible:
        require_feasible(model, plan)
    if everything is None:
        return "untried"
    found, best = everything
    if not plan.is_feasible:
        assert not (found and plan.status.value == "primal_infeasible")
        return "missed" if found else "none"
    if best is None:
        return "unbounded"
    assert found
    sign, size = 1 if model.sense == "max" else -1, 1.0 + abs(float(best))
    off = sign * (float(best) - plan.objective)
    assert off >= -NEAR * size
    assert sign * (plan.bound - float(best)) >= -(1e-9 if plan.bound_is_certified else NEAR) * size, "a false bound"
    assert plan.status.value != "optimal" or off <= 2 * NEAR * size
    return "best" if off <= NEAR * size else "worse"


@pytest.mark.parametrize("first", range(0, 280, 70))
def test_small_models_get_the_best_plan_or_nearly_always(first: int) -> None:
    verdicts = [verdict(model, Session(model).solve_integer()) for model in map(random_model, range(first, first + 70))]
    assert verdicts.count("missed") == 0
    assert verdicts.count("best") >= 20
    assert verdicts.count("worse") <= 3
    assert verdicts.count("none") >= 5


def test_a_model_without_columns_has_the_empty_plan_whatever_the_child_says(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("copter.highs.tree.Tree.reports", lambda self, wait_s=0.0: [Report(finished=True)])
    model = Model(sense="min")
    model.add_resource("row", 2.0)
    model.set_count("row", 2.0, lower=0.0)
    plan = Session(model).solve_integer()
    assert (plan.is_feasible, plan.objective, plan.status.value) == (True, 0.0, "optimal")


@pytest.mark.long
@pytest.mark.parametrize("first", range(1000, 7000, 500))
def test_thousands_of_small_models(first: int) -> None:
    verdicts = []
    for seed in range(first, first + 500):
        model = random_model(seed)
        shim = SHIMS[seed % 3] if seed % 10 == 0 else None
        verdicts.append(verdict(model, Session(model).solve_integer(shim, None if shim is None else 5.0)))
    assert verdicts.count("missed") <= 1
    assert verdicts.count("best") > 100


@pytest.mark.parametrize("shim", [RoundingShim(), RestrictedShim("dive", 5.0)])
def test_every_kind_of_row(shim: RoundingShim | RestrictedShim) -> None:
    model = Model()
    model.add_resources("g", 4.0, 2.0)
    model.add_resources("h", 3.0)
    model.add_request("least", [-1.0, -2.0], {"g": [1, 2]}, at_least=1.0, integer=True)
    model.add_request("two", [3.0, 1.0], {"g": [2, 1], "h": [1, 0]}, limit=2.0, upper=2.0, integer=True)
    model.add_request("gives", [-0.5], {"g": [-1], "h": [1]}, integer=True)
    model.add_request(
        "tied", [1.0, 1.0], {"h": [0.3, 0.1]}, limit=INF, upper=3.0, private_rows=PrivateRows([[1.0, -0.7]], 0.1, 0.1)
    )
    session = Session(model)
    plan = session.solve_integer(shim)
    require_feasible(model, plan)
    found, best = best_plan(model) or (False, None)
    assert found
    assert best is not None
    assert plan.objective == pytest.approx(float(best), abs=1e-6)
    assert sum(plan.shares("two").values()) == 2.0
    with pytest.raises(EditNotAllowedError, match="more than one unit"):
        plan.column("two")
    assert plan.column("least") == 0
    assert plan.columns_of(["two", "least"]).tolist() == [-1, 0]
    again = session.solve_integer(shim)
    assert again.objective >= plan.objective


def test_whole_columns_may_be_below_zero() -> None:
    model = Model()
    model.add_resources("g", 5.0)
    model.add_request("r", [4.0, -3.0], {"g": [5, -3]}, lower=[0.0, -2.0], upper=[2.0, -1.0], integer=True)
    assert not drafts_know(model)
    plan = Session(model).solve_integer()
    assert (plan.is_feasible, plan.objective) == (True, 3.0)
    assert plan.shares("r") == {1: -1.0}
    model = random_model(1376)
    assert verdict(model, Session(model).solve_integer()) == "best"


def test_a_part_may_exceed_its_limit_by_the_rounding_of_a_sum() -> None:
    model = Model()
    model.add_resources("g", 5.0)
    model.add_request("whole", [1.0], {"g": [1]}, integer=True)
    model.add_request("part", [1.0], {"g": [0.5]}, upper=2.0)
    plan = Session(model).solve_integer()
    assert plan.shares("part") == {0: 1.0}
    require_feasible(model, replace(plan, share=np.array([1.0 + 2.0**-52])))
    with pytest.raises(InvalidDataError, match="breaks a bound or the limit"):
        require_feasible(model, replace(plan, share=np.array([1.0 + 2.0**-51])))
    model = random_model(3493)  # a search corrects its points by such an amount
    assert Session(model).solve_integer().is_feasible


def test_models_that_drafts_know() -> None:
    model = Model()
    model.add_resources("g", 4.0)
    model.add_request("r", [1.0], {"g": [1]}, integer=True)
    model.add_request("s", [1.0], {"g": [1]}, limit=3.0)
    assert drafts_know(model)
    model.update_limit("s", 3.0, 1.0)
    assert not drafts_know(model)
    model.update_limit("s", 3.0, -INF)
    model.set_count("g", 4.0, 0.0)
    assert not drafts_know(model)
    model.set_count("g", 4.0, -INF)
    model.update_limit("r", 2.0)
    assert not drafts_know(model)


def test_the_previous_plan_is_kept_where_it_holds() -> None:
    model = Model()
    model.add_resources("g", 10.0, 1.0)
    for name in range(6):
        model.add_request(name, [1.0 + name, 2.0], {"g": [3, 2]}, at_least=0.0, integer=True)
    session = Session(model)
    first = session.solve_integer()
    model.add_resources("g", 1.0)
    second = session.solve_integer(deadline_s=1e-4)  # no time to search
    assert second.is_feasible
    assert second.objective >= first.objective
    model.remove_request(5)
    require_feasible(model, session.solve_integer())


def test_a_contradiction_names_who_is_in_it() -> None:
    model = Model()
    model.add_resources("g", 2.0)
    for name in "ab":
        model.add_request(name, [1.0], {"g": [2]}, at_least=1.0, integer=True)
    model.add_request("c", [1.0], {"g": [1]}, integer=True)
    plan = Session(model).solve_integer()
    assert plan.status.value == "primal_infeasible"
    assert set(plan.conflict) == {"a", "b"}
    assert plan.short == ("g",)


def test_a_model_without_a_whole_point_has_no_plan() -> None:
    model = Model()
    model.add_resources("g", 3.0, 3.0)
    for name in "ab":
        model.add_request(name, [1.0], {"g": [2]}, integer=True)
    plan = Session(model).solve_integer()
    assert plan.status.value == "primal_infeasible"
    assert plan.conflict == ()
    model.add_request("c", [0.0], {"g": [-1]}, integer=True)
    assert Session(model).solve_integer().objective == 2.0


def test_requests_that_give_make_up_for_forced_ones() -> None:
    """Drafts give up where forced requests use more than there is; others give some back."""
    model = Model()
    model.add_resources("g", 1.0)
    model.add_request("must", [1.0], {"g": [3]}, lower=1.0, integer=True)
    for name in range(4):
        model.add_request(name, [-1.0 - name], {"g": [-1]}, integer=True)
    for shim in SHIMS:
        plan = Session(model).solve_integer(shim)
        assert plan.objective == -2.0, shim
        require_feasible(model, plan)


def test_equations_of_decimals_hold_exactly() -> None:
    """What the relaxation leaves is off by rounding; the correction ends at the point nearest to the exact one."""
    rng = np.random.default_rng(5)
    made = 0
    for _ in range(40):
        matrix = np.round(rng.uniform(-2, 2, (3, 7)), 1)
        inside = rng.uniform(0.1, 0.9, 7)
        side = np.round(matrix @ inside, 2)
        inside += np.linalg.lstsq(matrix, side - matrix @ inside, rcond=None)[0]
        lp = LinearProgram(np.zeros(7), matrix, side, side, 0.0, 1.0)
        points = ExactPoints(lp)
        if not ((inside >= 0) & (inside <= 1)).all():
            continue
        near = np.clip(inside + 1e-9 * rng.normal(size=7), 0.0, 1.0)
        exact = points(near)
        assert exact is not None
        assert points.holds(exact)
        assert not points.holds(near)
        assert np.abs(exact - near).max() < 1e-7
        made += 1
    assert made > 20
    points = ExactPoints(LinearProgram([0.0], [[1.0]], [0.5], [0.5], integrality=1))
    assert points(np.ones(1)) is None
    assert points.refused == 0, "it is too far away to count"
    assert points(np.full(1, 0.5 + 1e-9)) is None
    assert points.refused == 1


def test_a_part_of_an_integer_column_is_refused() -> None:
    model = Model()
    model.add_resources("g", 3.0)
    model.add_request("r", [1.0], {"g": [1]}, limit=2.0, upper=2.0, integer=True)

    def halves(*given: object) -> IntegerPlan:
        plan = RoundingShim()(*given)  # type: ignore[arg-type]
        plan.share[:] = 1.5
        return plan

    with pytest.raises(InvalidDataError, match="a part of a column"):
        Session(model).solve_integer(halves)


def test_the_verifier_accepts_such_plans(tmp_path: object) -> None:
    path = f"{tmp_path}/tape"
    model = random_model(12)
    session = Session(model)
    session.record(path)
    for seed in range(4):
        session.solve_integer()
        model.set_count("a", 5.0 + seed)
    session.record(None)  # a thread of its own writes the rounds: now all are there
    checked = [what for _, what, faults in verify(path) if not faults]
    assert len(checked) == 4


def large(requests: int) -> Model:
    """Requests of five kinds on six resources with lower bounds."""
    rng = np.random.default_rng(0)
    model = Model()
    for k in range(6):
        model.add_resources(k, 1.2 * requests, 0.3 * requests)
    for i in range(requests):
        n, kind = int(rng.integers(2, 6)), i % 5
        usage = {k: rng.integers(0, 4, n) * (rng.random(n) < 0.7) for k in range(6)}
        usage[0] = -usage[0] if kind == 3 else usage[0]
        rows = PrivateRows(rng.integers(-2, 3, (1, n)), -1.0, 1.0) if kind == 2 else None
        model.add_request(
            i, rng.uniform(0, 5, n), usage, limit=2.0 if kind == 1 else 1.0, upper=2.0 if kind == 1 else 1.0,
            at_least=1.0 if kind == 0 else -INF, private_rows=rows, integer=kind != 4,
        )  # fmt: skip
    return model


def test_a_large_model_keeps_to_its_deadline() -> None:
    model = large(1500)
    session = Session(model, Settings(threads=1))
    session.solve()
    began = time.thread_time()
    plan = session.solve_integer(deadline_s=5.0)
    assert time.thread_time() - began < 6.0
    assert plan.is_feasible
    require_feasible(model, plan)
    assert plan.gap < 0.05


def test_a_column_off_zero_by_rounding_does_not_spoil_a_point() -> None:
    """`x <= 400 z` with z = 0 and x = 4e-14: no correction of a share of x makes it hold, zero does."""
    lp = LinearProgram(
        [0.1, 300.0, 0.1, 300.0], [[1.0, 0.0, 1.0, 0.0], [1.0, -400.0, 0.0, 0.0], [0.0, 0.0, 1.0, -400.0]],
        [7.0, -np.inf, -np.inf], [7.0, 0.0, 0.0], [0.0] * 4, [400.0, 1.0, 400.0, 1.0], integrality=[0, 1, 0, 1],
    )  # fmt: skip
    points = ExactPoints(lp)
    found = points(np.array([7.0 - 4e-14, 1.0, 4e-14, 0.0]))
    assert found is not None
    assert found.tolist() == [7.0, 1.0, 0.0, 0.0]
    assert points.refused == 0
