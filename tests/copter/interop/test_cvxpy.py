"""The CVXPY solver: CVXPY's own standard tests from the installed package, and problems that are solved again."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

cp = pytest.importorskip("cvxpy", reason="cvxpy is not installed: pip install copter-lp[cvxpy]")
helpers = pytest.importorskip("cvxpy.tests.solver_test_helpers")

from copter.interop.cvxpy import COPTER  # noqa: E402 - needs cvxpy

# Up to CVXPY 1.5 the mixed-integer ones were a class of their own.
CLASSES = [
    getattr(helpers, name) for name in ("StandardTestLPs", "StandardTestMixedIntegerLPs") if hasattr(helpers, name)
]
NAMES = [(suite, name) for suite in CLASSES for name in dir(suite) if name.startswith("test_")]
SHORT = (
    "test_lp_0",
    "test_lp_1",
    "test_lp_2",
    "test_lp_3",
    "test_lp_4",
    "test_lp_5",
    "test_lp_bound_attr",
    "test_mi_lp_0",
)
NEEDS = {"test_lp_7": "sdpap"}  # CVXPY's example needs another package
CASES = [pytest.param(suite, name, marks=() if name in SHORT else pytest.mark.long, id=name) for suite, name in NAMES]


@pytest.mark.parametrize(("suite", "name"), CASES)
def test_cvxpys_standard_tests(suite: Any, name: str) -> None:
    if name in NEEDS:
        pytest.importorskip(NEEDS[name], reason=f"{name} needs the package {NEEDS[name]}")
    getattr(suite, name)(solver=COPTER())


@pytest.mark.parametrize("name", ["test_lp_ineq_constraints", "test_lp_eq_constraints"])
def test_cvxpys_infeasible_problems(name: str) -> None:
    suite = getattr(helpers, "StandardTestInfeasibleProblems", None)
    if suite is None or not hasattr(suite, name):
        pytest.skip("this CVXPY has no such test")
    getattr(suite(), name)(COPTER())


def parametrised(kind: str) -> tuple[Any, Any, Any]:
    rng = np.random.default_rng(0)
    A, x = rng.uniform(0.5, 1.0, (4, 12)), cp.Variable(12, bounds=[0.0, 1.0])
    values = {"c": rng.uniform(1.0, 2.0, 12), "b": np.full(4, 3.0), "A": A, "bounds": np.ones(12)}
    p = cp.Parameter(values[kind].shape, value=values[kind])
    c, b, rows = values["c"], values["b"], A
    if kind == "c":
        c = p
    elif kind == "b":
        b = p
    elif kind == "A":
        rows = p
    else:
        x = cp.Variable(12, bounds=[0.0, p])
    return cp.Problem(cp.Maximize(c @ x), [rows @ x <= b]), p, x


@pytest.mark.usefixtures("still_clock")
@pytest.mark.parametrize("kind", ["c", "b", "A", "bounds"])
def test_a_changed_parameter_becomes_edits(kind: str) -> None:
    problem, p, _ = parametrised(kind)
    other, q, _ = parametrised(kind)
    rng = np.random.default_rng(1)
    for step in range(4):
        p.value = q.value = p.value * rng.uniform(0.9, 1.1, p.shape)
        value = problem.solve(solver=COPTER())
        assert problem.status == cp.OPTIMAL
        assert problem.solver_stats.extra_stats == {"warm": step > 0}
        assert value == pytest.approx(other.solve(solver=cp.CLARABEL), rel=1e-5)
        np.testing.assert_allclose(problem.constraints[0].dual_value, other.constraints[0].dual_value, atol=1e-4)


def test_warm_start_can_be_left_out() -> None:
    problem, p, _ = parametrised("c")
    for _ in range(3):
        p.value = p.value * 1.01
        problem.solve(solver=COPTER(), warm_start=False)
        assert problem.solver_stats.extra_stats == {"warm": False}


def test_statuses() -> None:
    x = cp.Variable(2)
    infeasible = cp.Problem(cp.Minimize(cp.sum(x)), [x >= 1, x <= 0])
    infeasible.solve(solver=COPTER())
    assert infeasible.status == cp.INFEASIBLE
    unbounded = cp.Problem(cp.Minimize(cp.sum(x)), [x <= 0])
    unbounded.solve(solver=COPTER())
    assert unbounded.status == cp.UNBOUNDED
    whole = cp.Variable(2, integer=True)
    problem = cp.Problem(cp.Maximize(cp.sum(whole)), [2 * whole <= 5, whole >= 0])
    assert problem.solve(solver=COPTER()) == pytest.approx(4.0)


def test_bad_input_is_a_solver_error() -> None:
    x = cp.Variable(2)
    problem = cp.Problem(cp.Minimize(cp.sum(x)), [x >= 1])
    with pytest.raises(cp.SolverError, match="no option 'tolerence'"):
        problem.solve(solver=COPTER(), tolerence=1e-6)
    with pytest.raises(cp.SolverError, match="tolerance"):
        problem.solve(solver=COPTER(), tolerance=-1.0)
    with pytest.raises(cp.SolverError):
        cp.Problem(cp.Minimize(cp.norm(x)), [x >= 1]).solve(solver=COPTER())
    with pytest.raises(cp.SolverError, match="take other units"):
        cp.Problem(cp.Minimize(cp.sum(x)), [1e250 * x >= 1]).solve(solver=COPTER())
    assert problem.solve(solver=COPTER()) == pytest.approx(2.0)
