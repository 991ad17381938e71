"""No plan over-commits, breaks what has to be, or beats a bound that is called certified; in rational arithmetic."""

from __future__ import annotations

from math import isnan

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from copter import EditNotAllowedError, InvalidDataError, Model, NoPlanError, Session, Settings, Solution
from copter.runtime.settings import Internals
from copter.shims import IntegerPlan, RoundingShim
from copter.testing import sia_like_model
from tests.adversary.plan_judge import added, edited, judged

SHIMS = ("rounding", "dive", "exact")


@pytest.mark.parametrize("shim", SHIMS)
def test_a_capacity_drop_with_a_solve_that_is_cut(shim: str) -> None:
    """The LP's point is that of ten GPUs, there are five."""
    model = Model()
    model.add_resources("g", 10)
    for job in range(10):
        model.add_request(job, [1.0 + job / 10], {"g": [1]}, integer=True)
    session = Session(model)
    session.solve_integer(shim)
    model.remove_resources("g", 5)
    session.settings = Settings(internals=Internals(max_pricing_passes=1))
    plan = session.solve_integer(shim)
    judged(model, plan)
    assert sum(plan.column(job) is not None for job in range(10)) == 5
    assert plan.objective == pytest.approx(sum(1.0 + job / 10 for job in range(5, 10)))


@pytest.mark.parametrize("shim", SHIMS)
def test_a_column_that_may_only_be_half_is_not_taken(shim: str) -> None:
    model = Model()
    model.add_resources("g", 2)
    model.add_request("half", [4.0], {"g": [1]}, upper=0.5, integer=True)
    model.add_request("full", [1.0], {"g": [1]}, integer=True)
    plan = Session(model).solve_integer(shim)
    judged(model, plan)
    assert plan.column("half") is None
    assert plan.column("full") == 0


@pytest.mark.parametrize("shim", SHIMS)
def test_fixed_requests_beyond_capacity_are_named(shim: str) -> None:
    model = Model()
    model.add_resources("g", 3)
    model.add_resources("h", 3)
    for name in ("a", "b", "c"):
        model.add_request(name, [1.0], {"g": [2 if name != "c" else 0], "h": [1]}, integer=True)
    session = Session(model)
    session.solve_integer(shim)
    for name in ("a", "b", "c"):
        model.fix(name, 0)
    plan = session.solve_integer(shim)
    assert plan.status.value == "primal_infeasible"
    assert set(plan.conflict) == {"a", "b"}
    assert plan.short == ("g",)
    assert isnan(plan.objective)
    with pytest.raises(NoPlanError, match="there is no plan"):
        plan.column("a")
    model.unfix("b")
    plan = session.solve_integer(shim)
    judged(model, plan)
    assert (plan.column("a"), plan.column("b"), plan.column("c")) == (0, None, 0)


def test_a_request_that_contradicts_itself_is_named() -> None:
    model = Model()
    model.add_resources("g", 9)
    model.add_request("fine", [1.0], {"g": [1]}, integer=True)
    model.add_request("part", [1.0, 1.0], {"g": [1, 1]}, lower=[0.25, 0.0], upper=[0.5, 1.0], integer=True)
    plan = Session(model).solve_integer()
    assert plan.status.value == "primal_infeasible"
    assert plan.conflict == ("part",)
    assert plan.short == ()
    model.update_bounds("part", lower=[0.25, 0.25], upper=[1.0, 1.0])
    assert Session(model).solve_integer().conflict == ("part",)


@pytest.mark.parametrize("shim", SHIMS)
def test_mandatory_requests_are_served_first(shim: str) -> None:
    """They are worth nothing, and the LP's optimum gives them no more than it has to."""
    model = Model()
    model.add_resources("g", 4)
    model.add_request("must", [0.0, 0.0], {"g": [3, 1]}, lower=[1.0, 0.0], integer=True)
    model.add_request("some", [-1.0], {"g": [1]}, lower=0.5, integer=True)
    model.add_request("rich", [9.0], {"g": [2]}, integer=True)
    plan = Session(model).solve_integer(shim)
    judged(model, plan)
    assert (plan.column("must"), plan.column("some"), plan.column("rich")) == (0, 0, None)


@pytest.mark.parametrize("shim", SHIMS)
def test_continuous_requests_get_fractions_of_what_whole_ones_leave(shim: str) -> None:
    model = Model()
    model.add_resources("g", 5)
    model.add_request("whole", [4.0], {"g": [3]}, integer=True)
    model.add_request("shared", [1.0, 3.0], {"g": [2, 8]}, limit=2.0, upper=2.0)
    plan = Session(model).solve_integer(shim)
    judged(model, plan)
    assert plan.column("whole") == 0
    assert plan.shares("shared") == pytest.approx({0: 1.0})
    assert plan.objective == pytest.approx(5.0)
    with pytest.raises(EditNotAllowedError, match="'shared' is continuous"):
        plan.column("shared")


def test_ten_tenths_are_one() -> None:
    """Ten times 0.1 is a hair above 1 in exact arithmetic; half a last place of every figure is allowed."""
    model = Model()
    model.add_resources("g", 1)
    for job in range(11):
        model.add_request(job, [1.0], {"g": [0.1]}, integer=True)
    plan = Session(model).solve_integer()
    judged(model, plan)
    assert plan.objective == 10.0


def test_a_callers_own_shim_is_checked_too() -> None:
    model = Model()
    model.add_resources("g", 1)
    for job in range(3):
        model.add_request(job, [1.0], {"g": [1]}, integer=True)

    def greedy(model: Model, solution: Solution, previous: IntegerPlan | None) -> IntegerPlan:
        plan = RoundingShim()(model, solution, None)
        plan.column_of_slot[:] = 0
        return plan

    with pytest.raises(InvalidDataError, match="more of resource 'g'"):
        Session(model).solve_integer(greedy)


@pytest.mark.parametrize("deadline_s", [1e-3, 2e-3, 5e-3, 10e-3])
@pytest.mark.parametrize("shim", ["rounding", "dive"])
def test_plans_of_solves_that_are_out_of_time_hold(deadline_s: float, shim: str) -> None:
    """A session of 400 jobs on 2,400 GPUs under churn, whose LPs are stopped wherever they are."""
    model = sia_like_model(400, 800, 3, 0)
    session = Session(model)
    rng = np.random.default_rng(0)
    judged(model, session.solve_integer(shim, deadline_s))
    session.solve_integer()
    for step in range(6):
        names = list(model.requests)
        for request in rng.choice(np.array(names, dtype=object), 10, replace=False):
            model.rescale_cost(request, float(rng.uniform(0.2, 3.0)))
        if step == 3:
            model.remove_resources("type-1", 300)
        judged(model, session.solve_integer(shim, deadline_s))


@st.composite
def edits(draw: st.DrawFn) -> list[tuple[str, int, int]]:
    kinds = ["cost", "fix", "unfix", "remove", "less", "more", "bounds", "kind", "add"]
    return draw(st.lists(st.tuples(st.sampled_from(kinds), st.integers(0, 99), st.integers(0, 99)), max_size=5))


@settings(max_examples=60, deadline=None)
@given(
    st.integers(0, 2**32),
    st.booleans(),
    st.sampled_from(["max", "min"]),
    st.sampled_from(["rounding"] * 8 + ["dive", "exact"]),
    st.sampled_from([1, 1, 2, 200]),
    st.lists(edits(), min_size=1, max_size=3),
)
def test_random_models_edits_cut_solves_and_shims(
    seed: int, whole_numbers: bool, sense: str, shim: str, passes: int, rounds: list[list[tuple[str, int, int]]]
) -> None:
    """Whatever point the LP stopped at."""
    rng = np.random.default_rng(seed)
    model = Model(sense=sense, offset=0.5)  # type: ignore[arg-type]
    for k in range(2):
        model.add_resources(k, float(rng.integers(0, 7)) if whole_numbers else float(rng.uniform(0, 7)))
    for request in range(int(rng.integers(1, 7))):
        added(model, request, rng, whole_numbers)
    session = Session(model)
    deadline_s = None if shim == "rounding" else 0.1  # a search without one tries for seconds to improve on the best
    judged(model, session.solve_integer(shim, deadline_s))
    session.settings = Settings(internals=Internals(max_pricing_passes=passes))
    for each in rounds:
        for edit in each:
            edited(model, edit, rng, whole_numbers)
        judged(model, session.solve_integer(shim, deadline_s))


def test_a_plan_with_shares_survives_saving(tmp_path) -> None:
    model = Model()
    model.add_resources("g", 5)
    model.add_request("whole", [4.0], {"g": [3]}, integer=True)
    model.add_request("shared", [1.0], {"g": [2]})
    session = Session(model)
    plan = session.solve_integer()
    session.save(tmp_path / "s")
    again = Session.load(tmp_path / "s")._plan
    assert again is not None
    assert again.shares("shared") == plan.shares("shared")
    assert (again.status, again.bound_is_certified) == (plan.status, plan.bound_is_certified)
    model.remove_request("whole")
    session.compact()
    assert session._plan is not None
    assert session._plan.shares("shared") == plan.shares("shared")
