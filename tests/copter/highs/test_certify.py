"""Certificates by HiGHS: an optimal basis from a solution, whatever the solution's quality."""

from __future__ import annotations

import numpy as np
import pytest
from judge import assert_optimal

import copter
from copter import CopterError, DimensionError, LinearProgram, Settings, Status
from tests.copter.problems import INFEASIBLE, OPTIMAL

highspy = pytest.importorskip("highspy")


def transport(size: int, seed: int) -> LinearProgram:
    """A seeded transport program, as degenerate as these are."""
    rng = np.random.default_rng(seed)
    supply = np.kron(np.eye(size), np.ones(size))
    demand = np.kron(np.ones(size), np.eye(size))
    return LinearProgram(
        rng.integers(1, 9, size * size).astype(float),
        np.vstack((supply, demand)),
        row_lower=np.concatenate((np.full(size, -np.inf), np.full(size, 3.0))),
        row_upper=np.concatenate((np.full(size, 3.0), np.full(size, np.inf))),
    )


@pytest.mark.parametrize("problem", [p for p in OPTIMAL if min(p.lp.shape) > 0], ids=str)
def test_a_basis_of_every_tiny_problem(problem):
    solution = copter.solve(problem.lp)
    found = copter.certify_with_highs(problem.lp, solution)
    assert found.optimal, found.status
    assert found.objective == pytest.approx(problem.objective, abs=1e-6)
    assert found.col_basic.sum() + found.row_basic.sum() == problem.lp.shape[0]
    assert_optimal(problem.lp, found.x, found.y, 1e-7)


def test_dependent_rows_a_thousand_times():
    """HiGHS's crossover ended the process on such programs, once in some hundred calls."""
    lp = next(problem.lp for problem in OPTIMAL if "redundant" in str(problem))
    solution = copter.solve(lp)
    assert all(copter.certify_with_highs(lp, solution).optimal for _ in range(1000))


@pytest.mark.parametrize("seed", range(3))
def test_an_optimal_point_leads_to_a_basis_of_the_same_value(seed):
    lp = transport(8, seed)
    solution = copter.solve(lp)
    assert solution.status is Status.OPTIMAL
    found = copter.certify_with_highs(lp, solution)
    assert found.optimal
    assert found.objective == pytest.approx(solution.objective, rel=1e-6)
    assert_optimal(lp, found.x, found.y, 1e-7)


def test_a_solve_that_was_cut_short_is_a_start_too():
    lp = transport(6, 1)
    stopped = copter.solve(lp, Settings(), callback=lambda *_: True)
    assert stopped.status is Status.INTERRUPTED
    found = copter.certify_with_highs(lp, stopped, time_limit_s=20.0)
    assert found.optimal
    assert found.objective == pytest.approx(copter.solve(lp).objective, rel=1e-6)


def test_what_has_no_basis_is_said():
    lp = INFEASIBLE[0].lp
    with pytest.raises(CopterError, match="primal_infeasible has no basis"):
        copter.certify_with_highs(lp, copter.solve(lp))
    with pytest.raises(DimensionError, match="is of a program of"):
        copter.certify_with_highs(transport(3, 0), copter.solve(transport(2, 0)))


def test_without_highspy_the_error_says_what_to_install(monkeypatch):
    lp = transport(2, 0)
    solution = copter.solve(lp)
    monkeypatch.setitem(__import__("sys").modules, "highspy", None)
    with pytest.raises(CopterError, match="pip install highspy"):
        copter.certify_with_highs(lp, solution)
