"""CVXPY problems with logarithms, powers and minima: the optimum and duals of Clarabel, warm, or refused by reason."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

cp = pytest.importorskip("cvxpy", reason="cvxpy is not installed: pip install copter-lp[cvxpy]")

from copter.interop.cvxpy import COPTER  # noqa: E402 - needs cvxpy

JOBS, TYPES = 8, 3
# CVXPY takes the logarithm of a variable's lower bound of zero.
pytestmark = pytest.mark.filterwarnings("ignore:divide by zero:RuntimeWarning")


def mixed(w: Any, z: Any) -> Any:
    return w[:4] @ cp.log(z[:4]) + w[4:] @ cp.minimum(3.0 * z[4:], z[4:] + 0.3, 1.2)


OBJECTIVES = {
    "log": lambda w, z: w @ cp.log(z),
    "log with a floor, an offset": lambda w, z: w @ cp.log(z + 0.1) + 0.01 * cp.sum(z) + 3.0,
    "root": lambda w, z: w @ cp.power(z, 0.5, approx=False),
    "least delay": lambda w, z: -(w @ cp.power(z + 0.05, -1, approx=False)),
    "logarithms and minima": mixed,
}


def shared(kind: str, limits: bool) -> tuple[Any, Any, Any, Any]:
    rng = np.random.default_rng(3)
    x, v = cp.Variable((JOBS, TYPES), nonneg=True), cp.Parameter((JOBS, TYPES), value=rng.uniform(0.5, 3.0, (8, 3)))
    w = cp.Parameter(JOBS, nonneg=True, value=rng.uniform(0.5, 2.0, JOBS))
    room = cp.Parameter(TYPES, value=np.full(TYPES, 1.5))
    constraints = [cp.sum(x, axis=0) <= room, *([cp.sum(x, axis=1) <= 1.0] if limits else [])]
    # CVXPY compiles no product of two parameters: weights are numbers where rates are edited.
    weights, rates = (w.value, v) if kind == "log" else (w, v.value)
    objective = OBJECTIVES[kind](weights, cp.sum(cp.multiply(rates, x), axis=1))
    return cp.Problem(cp.Maximize(objective), constraints), w, v, room


@pytest.mark.parametrize("limits", [True, False], ids=["own limits", "rows alone"])
@pytest.mark.parametrize("kind", OBJECTIVES)
def test_value_and_duals_are_clarabels_over_rounds(kind: str, limits: bool) -> None:
    problem, *parameters = shared(kind, limits)
    other = cp.Problem(problem.objective, problem.constraints)
    rng = np.random.default_rng(4)
    for step in range(3):
        value = problem.solve(solver=COPTER())
        assert problem.status == cp.OPTIMAL
        assert problem.objective.value == pytest.approx(value, rel=1e-9)
        assert problem.solver_stats.extra_stats == {"warm": step > 0}
        duals = [each.dual_value.copy() for each in problem.constraints]
        assert value == pytest.approx(other.solve(solver="CLARABEL", tol_gap_rel=1e-9, tol_gap_abs=1e-9), abs=2e-5)
        for mine, clarabels in zip(duals, other.constraints, strict=True):
            np.testing.assert_allclose(mine, clarabels.dual_value, atol=5e-3)
        for each in parameters:
            each.value = each.value * rng.uniform(0.9, 1.1, each.shape)


def test_an_equation_as_limit_and_a_plain_variable() -> None:
    x, spare = cp.Variable((4, 2), nonneg=True), cp.Variable(nonneg=True)
    constraints = [
        cp.sum(x, axis=1) == 1.0,
        cp.sum(x, axis=0) + np.array([1.0, 0.0]) * spare <= [3.0, 2.5],
        spare <= 9.0,
    ]
    total = x @ np.array([2.0, 1.0])
    problem = cp.Problem(cp.Maximize(cp.sum(cp.log(total)) + 0.1 * spare), constraints)
    value = problem.solve(solver=COPTER())
    np.testing.assert_allclose(x.value.sum(axis=1), 1.0, atol=1e-6)
    assert value == pytest.approx(problem.solve(solver="CLARABEL"), abs=1e-5)


def wrong() -> dict[str, tuple[Any, str]]:
    x, t, free = cp.Variable(2, nonneg=True), cp.Variable(), cp.Variable(2)
    whole, room = cp.Variable(2, integer=True), [cp.sum(x) <= 1.0]
    return {
        "in a row": (cp.Problem(cp.Maximize(cp.sum(cp.log(x))), [*room, cp.log(x[0]) >= -1.0]), "positive weight"),
        "least logarithm": (
            cp.Problem(cp.Maximize(t), [*room, t <= cp.log(x[0]), t <= cp.log(x[1])]),
            "positive weight",
        ),
        "shared": (cp.Problem(cp.Maximize(cp.log(x[0] + x[1]) + cp.log(x[1])), room), "share a variable"),
        "negative rate": (cp.Problem(cp.Maximize(cp.log(x[0] - 0.5 * x[1])), room), "negative rate"),
        "free": (cp.Problem(cp.Maximize(cp.log(cp.sum(free))), [cp.sum(free) <= 1.0]), "below zero"),
        "unbounded": (cp.Problem(cp.Maximize(cp.log(x[0])), [x[1] <= 1.0]), "no row bounds"),
        "other totals": (
            cp.Problem(cp.Maximize(cp.log(x[0]) + cp.minimum(x[1], 2 * free[0])), [*room, free <= 1, free >= 0]),
            "different totals",
        ),
        "entropy": (cp.Problem(cp.Maximize(cp.sum(cp.entr(x))), room), "cone is not"),
        "exponential": (cp.Problem(cp.Minimize(cp.sum(cp.exp(x))), [cp.sum(x) >= 1.0]), "cone is not|positive weight"),
        "integer": (cp.Problem(cp.Maximize(cp.sum(cp.log(whole))), [whole <= 3]), "cannot solve"),
    }


@pytest.mark.parametrize("name", wrong())
def test_problems_of_another_kind_are_refused_with_the_reason(name: str) -> None:
    problem, why = wrong()[name]
    with pytest.raises(cp.error.SolverError, match=why):
        problem.solve(solver=COPTER())


def test_jobs_that_cannot_be_served_are_infeasible() -> None:
    x = cp.Variable((2, 1), nonneg=True)
    problem = cp.Problem(cp.Maximize(cp.sum(cp.log(cp.sum(x, axis=1)))), [cp.sum(x, axis=1) == 1.0, cp.sum(x) <= 1.0])
    problem.solve(solver=COPTER())
    assert problem.status == cp.INFEASIBLE
