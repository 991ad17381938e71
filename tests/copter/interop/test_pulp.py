"""PuLP's problems by copter: values, duals and slacks as PuLP's own solver gives them, also after edits in place."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

pulp = pytest.importorskip("pulp", reason="needs copter-lp[pulp]")

from copter.interop.pulp import Copter  # noqa: E402

IS_4 = hasattr(pulp.constants, "LpSolveStatus")


def variable(problem: Any, name: str, low: float = 0, high: float | None = None, cat: str = "Continuous") -> Any:
    """A variable, of the problem itself in newer PuLP."""
    if hasattr(problem, "add_variable"):
        return problem.add_variable(name, low, high, cat)
    return pulp.LpVariable(name, low, high, cat)


def rows(problem: Any) -> dict[str, Any]:
    """A problem's constraints by name."""
    return (
        {row.name: row for row in problem.constraints()} if callable(problem.constraints) else dict(problem.constraints)
    )


def transport(sense: int, costs: np.ndarray, supply: list[float], demand: list[float], cat: str = "Continuous") -> Any:
    """Ship goods from depots to shops within supply, at least the demand (or at most, for a maximisation)."""
    problem = pulp.LpProblem("transport", sense)
    ship = {(i, j): variable(problem, f"s_{i}_{j}", 0, 9, cat) for i in range(len(supply)) for j in range(len(demand))}
    problem += pulp.lpSum(float(costs[i, j]) * ship[i, j] for i, j in ship) + 7
    for i, most in enumerate(supply):
        problem += pulp.lpSum(ship[i, j] for j in range(len(demand))) <= most, f"supply_{i}"
    for j, least in enumerate(demand):
        total = pulp.lpSum(ship[i, j] for i in range(len(supply)))
        problem += (total >= least if sense == pulp.LpMinimize else total <= least), f"demand_{j}"
    return problem


def status_of(told: Any) -> str:
    """The word of what a solve returns: a number, or statistics in PuLP 4."""
    return str(told.status.name) if IS_4 else str(pulp.LpStatus[told])


def by(solver: Any, problem: Any) -> tuple[str, float | None]:
    status = status_of(problem.solve(solver))
    return status, pulp.value(problem.objective) if status == "Optimal" else None


@settings(deadline=None, max_examples=12)
@given(
    st.integers(0, 10**6),
    st.sampled_from([pulp.LpMinimize, pulp.LpMaximize]),
    st.sampled_from(["Continuous", "Integer"]),
)
def test_as_highs(seed: int, sense: int, cat: str) -> None:
    draw = np.random.default_rng(seed)
    costs, supply = draw.integers(1, 9, (3, 4)), draw.integers(1, 12, 3).tolist()
    demand = draw.integers(0, 8, 4).tolist()
    ours, theirs = (transport(sense, costs, supply, demand, cat) for _ in range(2))
    status, objective = by(Copter(threads=1), ours)
    assert (status, objective) == pytest.approx(by(pulp.HiGHS(msg=False), theirs), abs=1e-5)
    if status == "Optimal":
        for row in rows(ours).values():
            kept = IS_4 and row.sense != pulp.LpConstraintLE  # there a >= row's slack is what it has above
            assert row.slack == pytest.approx(row.value() if kept else -row.value(), abs=1e-9)
        if cat == "Continuous":
            # strong duality, with the signs that PuLP's HiGHS gives: bounds enter by the reduced costs
            duals = sum(-row.constant * row.pi for row in rows(ours).values())
            bounds = sum(each.dj * each.value() for each in ours.variables())
            assert duals + bounds + 7 == pytest.approx(objective, abs=1e-4)


def test_an_edited_problem_is_solved_from_where_it_stood() -> None:
    draw = np.random.default_rng(3)
    problem = transport(pulp.LpMinimize, draw.uniform(1, 9, (6, 8)), [20.0] * 6, [5.0] * 8)
    solver = Copter(threads=1)
    problem.solve(solver)
    for need in (6.0, 4.0, 7.0):
        rows(problem)["demand_2"].changeRHS(need)
        assert status_of(problem.resolve()) == "Optimal"
        ours = pulp.value(problem.objective)
        problem.copy().solve(pulp.HiGHS(msg=False))
        assert by(pulp.HiGHS(msg=False), problem)[1] == pytest.approx(ours, rel=1e-6)
        problem.setSolver(solver)
        problem.solve(solver)


def test_relaxation_time_and_unbounded() -> None:
    problem = pulp.LpProblem("p", pulp.LpMaximize)
    x = variable(problem, "x", 0, None, "Integer")
    problem += x
    problem += 2 * x <= 5
    assert (by(Copter(), problem), x.value()) == (("Optimal", 2.0), 2.0)
    assert (by(Copter(mip=False, timeLimit=5), problem), x.value()) == (("Optimal", 2.5), 2.5)
    free = pulp.LpProblem("free", pulp.LpMaximize)
    free += variable(free, "y")
    assert by(Copter(), free)[0] == "Unbounded"


def test_what_it_cannot_take_is_refused_with_what_to_write() -> None:
    problem = pulp.LpProblem("p", pulp.LpMaximize)
    x = variable(problem, "x", 0, 4)
    problem += x
    if IS_4:
        problem.add_sos_group(pulp._rustcore.SosKind.Sos1, "one", {x: 1})
    else:
        problem.sos1["one"] = {x: 1}
    with pytest.raises(pulp.PulpSolverError, match=r"write a binary b_k"):
        problem.solve(Copter())
    with pytest.raises(pulp.PulpSolverError, match=r"no setting 'thread'"):
        Copter(thread=1)
    with pytest.raises(pulp.PulpSolverError, match=r"threads is -1"):
        Copter(threads=-1)
