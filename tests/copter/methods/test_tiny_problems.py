"""Every kind of bound, row and ending, on programs small enough to solve by hand."""

from __future__ import annotations

import highspy
import numpy as np
import pytest
from judge import assert_optimal, is_improving_ray, is_infeasibility_ray
from judge import judge as check

from copter import LinearProgram, Settings, Status, solve
from tests.copter.by_highs import highs
from tests.copter.problems import ALL, INFEASIBLE, OPTIMAL, UNBOUNDED, Problem

by_name = pytest.mark.parametrize("problem", ALL, ids=str)
ENDINGS = {
    highspy.HighsModelStatus.kOptimal: (Status.OPTIMAL,),
    highspy.HighsModelStatus.kModelEmpty: (Status.OPTIMAL, Status.PRIMAL_INFEASIBLE),
    highspy.HighsModelStatus.kInfeasible: (Status.PRIMAL_INFEASIBLE,),
    highspy.HighsModelStatus.kUnbounded: (Status.DUAL_INFEASIBLE,),
    highspy.HighsModelStatus.kUnboundedOrInfeasible: (Status.DUAL_INFEASIBLE, Status.PRIMAL_INFEASIBLE),
}


@by_name
def test_ends_as_worked_out_by_hand(problem: Problem) -> None:
    solution = solve(problem.lp)
    assert solution.status in problem.statuses
    if solution.status is Status.PRIMAL_INFEASIBLE:
        assert solution.ray is not None
        assert is_infeasibility_ray(problem.lp, solution.ray)
        return
    if solution.status is Status.DUAL_INFEASIBLE:
        assert solution.ray is not None
        assert is_improving_ray(problem.lp, solution.ray)
        return
    assert solution.ray is None
    assert solution.objective == pytest.approx(problem.objective, rel=3e-6, abs=3e-6)
    assert_optimal(problem.lp, solution.x, solution.y)
    if problem.x is not None:
        np.testing.assert_allclose(solution.x, problem.x, atol=1e-4, rtol=1e-5)
    if problem.y is not None:
        np.testing.assert_allclose(solution.y, problem.y, atol=1e-4, rtol=1e-5)
    np.testing.assert_allclose(solution.reduced_costs, problem.lp.c - problem.lp.A.T @ solution.y, atol=1e-12)


@by_name
def test_the_worked_out_answer_is_that_of_highs(problem: Problem) -> None:
    if 0 in problem.lp.shape:
        pytest.skip("HiGHS makes a case of its own of a program without rows or columns")
    status, objective, _, y = highs(problem.lp)
    assert set(ENDINGS[status]) & set(problem.statuses)
    if problem.objective is not None:
        assert objective == pytest.approx(problem.objective, abs=1e-7)
    if problem.y is not None:
        np.testing.assert_allclose(y, problem.y, atol=1e-7)


@pytest.mark.parametrize("problem", [p for p in OPTIMAL if p.x is not None and p.y is not None], ids=str)
def test_the_checker_agrees_with_the_worked_out_answer(problem: Problem) -> None:
    judged = check(problem.lp, np.array(problem.x), np.array(problem.y))
    assert judged.objective == pytest.approx(problem.objective)
    assert judged.bound == pytest.approx(problem.objective)
    assert max(judged.primal, judged.dual, judged.gap) < 1e-12
    assert judged.bound_is_certified


@pytest.mark.parametrize("problem", OPTIMAL, ids=str)
def test_the_reported_residuals_are_those_of_the_checker(problem: Problem) -> None:
    solution = solve(problem.lp)
    if solution.status is not Status.OPTIMAL:
        assert problem.statuses != (Status.OPTIMAL,)
        return
    judged = check(problem.lp, solution.x, solution.y)
    # The engine rounds its bound to the safe side, the judge does not.
    for name in ("primal", "dual", "gap", "primal_absolute", "dual_absolute", "gap_absolute"):
        assert getattr(solution.residuals, name) == pytest.approx(getattr(judged, name), abs=1e-12)


@pytest.mark.parametrize("problem", OPTIMAL, ids=str)
@pytest.mark.parametrize("tolerance", [1e-4, 1e-9])
def test_other_tolerances(problem: Problem, tolerance: float) -> None:
    solution = solve(problem.lp, Settings(tolerance=tolerance, absolute_tolerance=tolerance))
    assert solution.status in problem.statuses
    if solution.status is Status.OPTIMAL:
        assert_optimal(problem.lp, solution.x, solution.y, tolerance)


@pytest.mark.parametrize("problem", INFEASIBLE + UNBOUNDED, ids=str)
def test_a_wrong_ray_proves_nothing(problem: Problem) -> None:
    m, n = problem.lp.shape
    assert not is_infeasibility_ray(problem.lp, np.zeros(m))
    assert not is_improving_ray(problem.lp, np.zeros(n))
    ray = solve(problem.lp).ray
    assert ray is not None
    proves = is_infeasibility_ray if problem in INFEASIBLE else is_improving_ray
    assert not proves(problem.lp, -ray)


@pytest.mark.parametrize("problem", OPTIMAL, ids=str)
def test_rays_are_not_found_where_there_are_none(problem: Problem) -> None:
    if problem.y is not None:
        assert not is_infeasibility_ray(problem.lp, np.array(problem.y, dtype=float))
    if problem.x is not None:
        assert not is_improving_ray(problem.lp, np.array(problem.x, dtype=float))


def test_dual_is_the_price_of_a_unit_in_both_senses() -> None:
    for sense, sign in (("min", -1.0), ("max", 1.0)):
        values = []
        for right in (4.0, 4.5):
            lp = LinearProgram([-sign * -3.0, sign * 2.0], [[1, 1]], row_upper=[right], col_upper=[3, 9], sense=sense)
            values.append(solve(lp))
        assert values[1].objective - values[0].objective == pytest.approx(0.5 * values[0].y[0], abs=1e-5)
        assert np.sign(values[0].y[0]) == sign
