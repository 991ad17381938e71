"""Shims on the restricted program: feasible, never worse than rounding or the last plan, near branch and bound."""

from __future__ import annotations

import numpy as np
import pytest
from test_shims import check_plan

from copter import InvalidDataError, Model, Session
from copter.shims import RestrictedShim, RoundingShim, shim_by_name
from copter.testing import sia_like_model


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("shim", ["dive", "exact"])
def test_better_than_rounding_and_within_the_bound(seed, shim):
    if shim == "exact":
        pytest.importorskip("highspy")
    model = sia_like_model(40, 32, 2, seed)
    rounded = Session(model).solve_integer("rounding")
    plan = Session(model).solve_integer(shim, deadline_s=3.0)
    assert check_plan(model, plan) >= rounded.objective - 1e-9
    assert plan.gap <= rounded.gap + 1e-12
    if shim == "exact":
        assert plan.gap < 1e-3


@pytest.mark.slow
def test_never_worse_than_the_last_plan_through_edits():
    model = sia_like_model(30, 32, 2, 5)
    session = Session(model)
    rng = np.random.default_rng(0)
    previous = session.solve_integer("dive", deadline_s=1.0)
    for _ in range(4):
        model.remove_request(model.requests[int(rng.integers(len(model.requests)))])
        kept = 0.0
        for request in model.requests:
            column = previous.column(request)
            kept += float(model.cost(request)[column]) if column is not None else 0.0
        previous = session.solve_integer("dive", deadline_s=1.0)
        assert check_plan(model, previous) >= kept - 1e-9


@pytest.mark.slow
def test_fixed_requests_keep_their_column():
    model = sia_like_model(30, 32, 2, 1)
    session = Session(model)
    session.solve_integer()
    model.fix("job-7", 3)
    plan = session.solve_integer("dive", deadline_s=2.0)
    assert plan.column("job-7") == 3
    check_plan(model, plan)


def test_the_example_that_rounding_gets_wrong():
    model = Model(sense="max")
    model.add_resources("gpu", 10)
    model.add_request("big", [10.0], {"gpu": [7]}, integer=True)
    for name in ("one", "two"):
        model.add_request(name, [6.9], {"gpu": [5]}, integer=True)
    solution = Session(model).solve()
    assert RoundingShim()(model, solution).objective == pytest.approx(10.0)
    plan = RestrictedShim("dive")(model, solution)
    assert check_plan(model, plan) == pytest.approx(13.8)


def test_no_time_left_is_the_rounded_plan():
    model = sia_like_model(20, 32, 2, 0)
    solution = Session(model).solve()
    plan = RestrictedShim("dive", time_limit_s=0.0)(model, solution)
    assert plan.objective == RoundingShim()(model, solution).objective


def test_empty_models_and_unknown_names():
    assert Session(Model()).solve_integer("dive").objective == 0.0
    with pytest.raises(InvalidDataError, match="'magic', must be one of rounding, dive, exact"):
        Session(Model()).solve_integer("magic")
    assert isinstance(shim_by_name("rounding", 1.0), RoundingShim)
