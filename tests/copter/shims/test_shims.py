"""The rounding shim: feasible, true gap, never worse than the previous plan; exact on small models by enumeration."""

import itertools
from collections.abc import Hashable

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from copter import EditNotAllowedError, Model, Session, UnknownHandleError
from copter.shims import IntegerPlan, RoundingShim
from copter.testing import sia_like_model


def check_plan(model: Model, plan: IntegerPlan) -> float:
    """Recompute a plan's value and use of resources; return the value."""
    lp = model.to_linear_program()
    x, at = np.zeros(lp.shape[1]), 0
    for request in model.requests:
        column = plan.column(request)
        if column is not None:
            x[at + column] = 1.0
        at += len(model.cost(request))
    assert (lp.A @ x <= lp.row_upper + 1e-9).all()
    assert (x >= lp.col_lower).all()
    assert (x <= lp.col_upper).all()
    value = float(lp.c @ x) + lp.offset
    assert plan.objective == pytest.approx(value, abs=1e-9)
    better = plan.objective <= plan.bound + 1e-6 if model.sense == "max" else plan.objective >= plan.bound - 1e-6
    assert better
    return value


def best_value(model: Model) -> float:
    """Best whole plan of all, by enumeration."""
    lp = model.to_linear_program()
    sizes = [len(model.cost(request)) for request in model.requests]
    sign = 1.0 if model.sense == "max" else -1.0
    best = -np.inf
    for choice in itertools.product(*[range(-1, n) for n in sizes]):
        x, at = np.zeros(lp.shape[1]), 0
        for column, n in zip(choice, sizes, strict=True):
            if column >= 0:
                x[at + column] = 1.0
            at += n
        if (lp.A @ x <= lp.row_upper + 1e-9).all():
            best = max(best, sign * float(lp.c @ x))
    return sign * best + lp.offset


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 10_000), st.sampled_from(["max", "min"]))
def test_plans_of_small_models_against_enumeration(seed: int, sense: str) -> None:
    rng = np.random.default_rng(seed)
    model = Model(sense=sense, offset=float(rng.normal()))  # type: ignore[arg-type]
    for k in range(2):
        model.add_resources(k, float(rng.integers(1, 8)))
    sign = 1.0 if sense == "max" else -1.0
    for request in range(4):
        usage = {k: rng.integers(0, 4, 3).astype(float) for k in range(2)}
        model.add_request(request, sign * rng.uniform(-0.5, 3.0, 3), usage, integer=True)
    plan = Session(model).solve_integer()
    value, best = check_plan(model, plan), best_value(model)
    assert sign * value <= sign * best + 1e-9
    assert sign * plan.bound >= sign * best - 1e-6
    assert sign * (value - model.offset) >= 0.99 * sign * (best - model.offset), "all of 3,000 drawn were the best"
    assert not takeable(model, plan, sign)


def takeable(model: Model, plan: IntegerPlan, sign: float) -> list[tuple[Hashable, int]]:
    """Columns of positive worth that a request without one could still have; an empty plan leaves all that fit."""
    lp, requests = model.to_linear_program(), model.requests
    left, first = lp.row_upper[: len(model.resources)].copy(), 0
    usage = lp.A[: len(model.resources)].toarray()
    idle = []
    for request in requests:
        n, column = len(model.cost(request)), plan.column(request)
        if column is None:
            idle += [(request, j, first + j) for j in range(n) if sign * lp.c[first + j] > 0]
        else:
            left -= usage[:, first + column]
        first += n
    return [(request, j) for request, j, at in idle if (usage[:, at] <= left).all()]


@pytest.mark.parametrize("seed", range(5))
def test_plans_through_edits_are_never_worse_than_keeping_the_last(seed: int) -> None:
    model = sia_like_model(60, 64, 3, seed)
    session = Session(model)
    rng = np.random.default_rng(seed)
    previous = session.solve_integer()
    for step in range(8):
        for request in rng.choice(np.array(model.requests, dtype=object), 3, replace=False):
            model.remove_request(request)
        if step == 4:
            model.remove_resources("type-0", 16)
        requests = list(model.requests)
        column = [-1 if previous.column(r) is None else previous.column(r) for r in requests]
        model.rescale_costs(
            requests, rng.uniform(0.9, 1.1, len(requests)), 0.0, column, rng.uniform(0, 1, len(requests))
        )
        kept = sum(float(model.cost(r)[c]) for r, c in zip(requests, column, strict=True) if c is not None and c >= 0)
        plan = session.solve_integer()
        value = check_plan(model, plan)
        if step != 4:
            assert value >= kept - 1e-9
        assert plan.gap < 0.01
        previous = plan


def test_gpus_that_rounding_leaves_are_filled() -> None:
    model = Model(sense="max")
    model.add_resources("gpu", 3)
    for request in range(3):
        model.add_request(request, [1.0, 1.9 + request / 100], {"gpu": [1, 2]}, integer=True)
    plan = Session(model).solve_integer()
    used = sum({0: 1, 1: 2}[c] for c in map(plan.column, range(3)) if c is not None)
    assert used == 3
    assert check_plan(model, plan) == pytest.approx(best_value(model))


def test_fixed_requests_keep_their_column() -> None:
    model = sia_like_model(40, 32, 2, 1)
    session = Session(model)
    session.solve_integer()
    model.fix("job-7", 3)
    plan = session.solve_integer()
    assert plan.column("job-7") == 3
    check_plan(model, plan)


def test_batch_of_costs_equals_one_by_one() -> None:
    one, many = sia_like_model(30, 32, 2, 4), sia_like_model(30, 32, 2, 4)
    rng = np.random.default_rng(0)
    scale, offset = rng.uniform(0.5, 2.0, 30), rng.normal(size=30)
    column, cost = rng.integers(-1, 5, 30), rng.normal(size=30)
    for at, request in enumerate(one.requests):
        single = {int(column[at]): float(cost[at])} if column[at] >= 0 else None
        one.rescale_cost(request, float(scale[at]), float(offset[at]), single)
    many.rescale_costs(many.requests, scale, offset, column, cost)
    assert np.array_equal(one.to_linear_program().c, many.to_linear_program().c)


def test_what_the_shim_cannot_do_is_said() -> None:
    model = Model()
    model.add_resources("r", 2)
    model.add_request("a", [1.0], {"r": [1]}, limit=2.0, upper=2.0, integer=True)
    plan = Session(model).solve_integer(RoundingShim())
    assert plan.shares("a") == {0: 2.0}
    with pytest.raises(EditNotAllowedError, match="takes more than one unit"):
        plan.column("a")
    other = sia_like_model(3, 8, 1)
    with pytest.raises(UnknownHandleError, match="'nobody'"):
        Session(other).solve_integer().column("nobody")
