"""What a finished draft says: its worth and bound, and who is in conflict where there is no plan."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp

from copter import IntegerStatus, Model, NoPlanError, Session, Solution
from copter.shims import RoundingShim
from copter.shims.draft import Draft
from copter.shims.finished import PROVEN, Worth, no_plan, planned, worth_of


def bounded(sense: str, offset: float, bound: float, certified: bool = True) -> tuple[Model, Solution]:
    """An empty model, and a solution with this bound."""
    model = Model(sense, offset=offset)  # type: ignore[arg-type]
    model.set_count("r", 1.0)
    return model, replace(Session(model).solve(), bound=bound, bound_is_certified=certified)


@pytest.mark.parametrize(
    ("sense", "terms", "bound", "objective"),
    [
        ("min", [2.0, -0.5], 3.0, 4.5),
        ("max", [-2.0, 0.5], 5.0, 4.5),
        ("min", [2.0], 5.0, 5.0),
        ("max", [-2.0], 5.0, 5.0),
    ],
)
def test_a_plan_s_worth_beside_the_bound(sense: str, terms: list[float], bound: float, objective: float) -> None:
    model, solution = bounded(sense, 3.0, bound)
    worth = worth_of(model, np.array(terms), solution)
    assert worth == (objective, bound, pytest.approx(abs(objective - bound) / objective), True, "prices")
    assert not worth_of(model, np.array(terms), replace(solution, bound_is_certified=False)).certified


@pytest.mark.parametrize(("sense", "bound"), [("min", 4.0), ("max", 2.0)])
def test_a_bound_that_the_objective_beats_is_not_certified(sense: str, bound: float) -> None:
    model, solution = bounded(sense, 3.0, bound)
    worth = worth_of(model, np.zeros(0), solution)
    assert (worth.objective, worth.bound, worth.certified) == (3.0, bound, False)


def test_where_there_is_no_bound_the_gap_is_infinite() -> None:
    model, solution = bounded("min", 0.0, -np.inf, certified=False)
    assert worth_of(model, np.zeros(0), solution) == (0.0, -np.inf, np.inf, False, "LP")


@pytest.mark.parametrize(
    ("sense", "bound", "least", "best"),
    [
        ("min", 3.0, 0.5, 3.5),  # what is proven of the terms, without the offset
        ("min", 3.0, -0.5, 3.0),
        ("min", 3.0, None, 3.0),
        ("max", 9.0, -5.0, 8.0),
        ("max", 9.0, -7.0, 9.0),
    ],
)
def test_the_better_bound_is_told(sense: str, bound: float, least: float | None, best: float) -> None:
    model, solution = bounded(sense, 3.0, bound)
    assert worth_of(model, np.zeros(0), solution, least).bound == best


def test_a_proof_of_no_more_leaves_the_bound_to_the_last_bit() -> None:
    model, solution = bounded("min", 0.7, 0.1)
    assert (0.1 - 0.7) + 0.7 != 0.1
    assert worth_of(model, np.zeros(0), solution, 0.1 - 0.7).bound == 0.1


def test_plans_within_a_millionth_of_a_certified_bound_are_optimal() -> None:
    assert PROVEN == 1e-6
    assert Worth(0.0, 0.0, 1e-6, True).status is IntegerStatus.OPTIMAL
    assert Worth(0.0, 0.0, 1.001e-6, True).status is IntegerStatus.FEASIBLE
    assert Worth(0.0, 0.0, 0.0, False).status is IntegerStatus.FEASIBLE


def test_a_plan_of_shares_has_them_and_one_without_has_none() -> None:
    model = Model("max")
    model.set_count("r", 4.0)
    model.add_request("a", [3.0], {"r": [2]}, integer=True)
    solution = Session(model).solve()
    plan = planned(model, Draft(model), solution, 7, True, -2.5)
    assert (plan.fractional_requests, plan.kept_previous, plan.bound) == (7, True, 2.5)
    assert (plan.share_key.tolist(), plan.share.tolist(), plan.continuous) == ([], [], frozenset())
    model.add_request("b", [1.0], {"r": [1]})
    plan = Session(model).solve_integer(RoundingShim())
    assert (plan.shares("a"), plan.shares("b"), plan.continuous) == ({0: 1.0}, {0: pytest.approx(1.0)}, {"b"})
    assert (plan.fractional_requests, plan.kept_previous) == (0, False)


# No plan --------------------------------------------------------------------------------------------------------------


def short(resources: str = "rs", counts: float = 4.0) -> Model:
    model = Model("max")
    for name in resources:
        model.set_count(name, counts)
    return model


def test_who_is_in_conflict_over_which_resource() -> None:
    """r: 5.5 of 4 are forced. Others have to be too, but use nothing of it, or give it back, or need not be."""
    model = short("rst")
    model.add_request("gives", [1.0], {"r": [-1.0], "s": [1.0]}, integer=True)
    model.add_request("large", [1.0], {"r": [5.0]}, integer=True)
    model.add_request("small", [1.0], {"r": [0.5], "t": [1.0]}, integer=True)
    model.add_request("other", [1.0], {"s": [1.0]}, integer=True)
    zero = sp.csc_array((np.array([0.0, 1.0]), np.array([0, 1]), np.array([0, 2])), shape=(2, 1))
    model.add_request("zero", [1.0], zero, resources=["r", "s"], integer=True)
    model.add_request("free", [1.0], {"r": [1.0]}, integer=True)
    for name in ("large", "small", "other", "zero", "gives"):
        model.update_bounds(name, lower=1.0)
    model.add_request("more", [1.0], {"r": [1.0]}, lower=0.25)
    model.add_request("none", [1.0, 1.0], {"r": [1.0, 0.0], "t": [1.0, 1.0]}, lower=[0.0, 0.25])
    model.add_request("back", [1.0], {"r": [-0.5]}, lower=0.5)
    model.add_request("far", [1.0], {"t": [1.0]}, lower=0.5)
    model.add_request("nil", [1.0], zero, resources=["r", "s"], lower=0.5)
    plan = Session(model).solve_integer(RoundingShim())
    assert (plan.conflict, plan.short) == (("large", "small", "more"), ("r",))
    assert plan.status is IntegerStatus.NONE_FOUND, "one gives r back"
    assert (plan.fractional_requests, plan.kept_previous, plan.continuous) == (
        0,
        False,
        {"more", "none", "back", "far", "nil"},
    )
    assert np.isnan([plan.objective, plan.gap]).all()
    with pytest.raises(NoPlanError, match="'r'; requests in conflict: 'large', 'small', 'more'"):
        plan.column("large")


def test_where_nobody_gives_back_no_plan_is_proven() -> None:
    model = short()
    model.add_request("large", [1.0], {"r": [5.0]}, integer=True, lower=1.0)
    model.add_request("other", [1.0], {"s": [1.0]}, integer=True)
    plan = no_plan(model, Draft(model))
    assert (plan.status, plan.conflict, plan.short) == (IntegerStatus.PRIMAL_INFEASIBLE, ("large",), ("r",))
    assert plan.continuous == frozenset()
    assert (plan.fractional_requests, plan.kept_previous) == (0, False)


def test_only_those_that_contradict_themselves_are_named() -> None:
    """What gives r back does not help who must take two columns."""
    model = short()
    model.add_request("gives", [1.0], {"r": [-1.0]}, integer=True)
    model.add_request("large", [1.0], {"r": [5.0]}, integer=True, lower=1.0)
    model.add_request("two", [1.0, 1.0], {"r": [1.0, 1.0]}, integer=True, lower=0.5)
    plan = no_plan(model, Draft(model))
    assert (plan.status, plan.conflict) == (IntegerStatus.PRIMAL_INFEASIBLE, ("two",))
