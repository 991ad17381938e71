"""Plans of a caller's own shim."""

from __future__ import annotations

import numpy as np
import pytest

from copter import EditNotAllowedError, IntegerStatus, InvalidDataError, Model, Session, Solution, UnknownHandleError
from copter.shims import IntegerPlan, plan_of


def cluster() -> Model:
    model = Model("max")
    model.add_resources("gpu", 3)
    for job in "ab":
        model.add_request(job, [1.0, 3.0], {"gpu": [1, 2]}, integer=True)
    model.add_request("rest", [0.5, 0.25], {"gpu": [1, 1]}, limit=2.0)
    return model


def test_a_plan_of_chosen_columns() -> None:
    """a takes 2 GPUs (3.0), the continuous request 1 (0.5): 3.5 of the LP's 4.0."""
    session = Session(cluster())
    plan = session.solve_integer(lambda model, solution, _: plan_of(model, solution, {"a": 1}, {"rest": {0: 1.0}}))
    assert plan.objective == 3.5
    assert plan.column("a") == 1
    assert plan.column("b") is None
    assert plan.shares("rest") == {0: 1.0}
    assert plan.bound == pytest.approx(4.5, abs=1.0)
    assert plan.bound >= 4.0
    assert plan.bound_is_certified
    assert plan.status is IntegerStatus.FEASIBLE


def test_the_best_columns_are_proven_optimal() -> None:
    session = Session(cluster())
    plan = session.solve_integer(lambda model, solution, _: plan_of(model, solution, {"a": np.int64(1), "b": 0}))
    assert plan.objective == 4.0
    assert session.solve_integer("exact").objective == 4.0


def test_a_minimum_has_its_own_sign() -> None:
    model = Model("min", offset=2.0)
    model.set_count("load", 10.0)
    model.add_request("r", [4.0, 1.0], {"load": [1, 2]}, integer=True, at_least=1.0)
    session = Session(model)

    def dear(model: Model, solution: Solution, _: IntegerPlan | None) -> IntegerPlan:
        return plan_of(model, solution, {"r": 0})

    plan = session.solve_integer(dear)
    assert (plan.objective, plan.bound) == (6.0, pytest.approx(3.0))


def test_a_plan_that_does_not_hold_is_refused() -> None:
    session = Session(cluster())
    with pytest.raises(InvalidDataError, match="more of resource 'gpu'"):
        session.solve_integer(lambda model, solution, _: plan_of(model, solution, {"a": 1, "b": 1}))


@pytest.mark.parametrize(
    ("columns", "shares", "error", "message"),
    [
        ({"nobody": 0}, None, UnknownHandleError, "no request 'nobody'"),
        ({"a": 2}, None, InvalidDataError, "'a' has columns 0 to 1, not 2"),
        ({"a": -1}, None, InvalidDataError, "not -1"),
        ({"a": 0.0}, None, InvalidDataError, r"not 0\.0"),
        ({"a": True}, None, InvalidDataError, "not True"),
        ({"rest": 0}, None, EditNotAllowedError, "'rest' is continuous"),
        ({}, {"a": {0: 1.0}}, EditNotAllowedError, "'a' is integer"),
        ({}, {"rest": {0: float("nan")}}, InvalidDataError, "column 0 of request 'rest' has the value nan"),
        ({}, {"rest": {7: 1.0}}, InvalidDataError, "not 7"),
        ({}, {"nobody": {0: 1.0}}, UnknownHandleError, "nobody"),
    ],
)
def test_bad_choices(columns: dict, shares: dict | None, error: type[Exception], message: str) -> None:
    session = Session(cluster())
    solution = session.solve()
    with pytest.raises(error, match=message):
        plan_of(session.model, solution, columns, shares)


def test_shares_may_be_named_in_any_order() -> None:
    """Costs 1, 2 and 4 of each of three continuous requests, given backwards."""
    model = Model("max")
    model.set_count("r", 9.0)
    model.add_request("whole", [3.0, 5.0], {"r": [1, 1]}, integer=True)
    for name in "xyz":
        model.add_request(name, [1.0, 2.0, 4.0], {"r": [1, 1, 1]})
    shares = {"z": {2: 0.25}, "y": {1: 0.25, 0: 0.5}, "x": {2: 0.5, 1: 0.25, 0: 0.125}}
    plan = Session(model).solve_integer(lambda model, solution, _: plan_of(model, solution, {"whole": 1}, shares))
    assert plan.objective == 5.0 + 1.0 + (0.5 + 0.5) + (2.0 + 0.5 + 0.125)
    assert [plan.shares(name) for name in "xyz"] == [shares[name] for name in "xyz"]
    assert plan.share_key.tolist() == [slot << 32 | at for slot, at in ((1, 0), (1, 1), (1, 2), (2, 0), (2, 1), (3, 2))]
    assert (plan.fractional_requests, plan.kept_previous, plan.continuous) == (0, False, set("xyz"))


@pytest.mark.parametrize("column", [0, 1])
def test_first_and_last_columns_can_be_chosen(column: int) -> None:
    model, session = cluster(), Session(cluster())
    plan = plan_of(model, session.solve(), {"b": column, "a": None})
    assert (plan.column("a"), plan.column("b"), plan.objective) == (None, column, [1.0, 3.0][column])
    assert (plan.fractional_requests, plan.kept_previous, plan.continuous) == (0, False, {"rest"})
