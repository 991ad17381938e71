"""The simplex method on whole programs: cycling examples, every ending, stops, and what it leaves to others."""

from __future__ import annotations

import signal
import time

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from judge import assert_optimal, faults, is_improving_ray, is_infeasibility_ray

import copter
from copter import LinearProgram, Settings, Solution, Status
from copter.methods import choose
from copter.methods.simplex.solve import SimplexSolve
from copter.runtime.watch import Watch
from tests.copter.by_highs import highs
from tests.copter.problems import ALL, Problem
from tests.copter.random_programs import KINDS, random_program
from tests.ctrl_c import ctrl_c_after

INF = np.inf
quick = settings(max_examples=250, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))


def by_simplex(lp: LinearProgram, most_work: float = 1e9, limit: float = INF) -> Solution | None:
    """The method alone, on the program as it stands."""
    return SimplexSolve(lp, Settings(), Watch(limit), most_work).run()


def klee_minty(n: int) -> LinearProgram:
    """Max sum 2^(n-j) x_j, 2 sum_(k<j) 2^(j-k) x_k + x_j <= 5^j: Dantzig's rule visits 2^n vertices."""
    a = np.eye(n)
    for j in range(n):
        a[j, :j] = 2.0 ** (j - np.arange(j) + 1)
    return LinearProgram(2.0 ** (n - 1 - np.arange(n)), a, row_upper=5.0 ** (1 + np.arange(n)), sense="max")


BEALE = LinearProgram(
    [-0.75, 150.0, -0.02, 6.0],
    [[0.25, -60.0, -0.04, 9.0], [0.5, -90.0, -0.02, 3.0], [0.0, 0.0, 1.0, 0.0]],
    row_upper=[0.0, 0.0, 1.0],
)
KUHN = LinearProgram(
    [-2.0, -3.0, 1.0, 12.0],
    [[-2.0, -9.0, 1.0, 9.0], [1.0 / 3.0, 1.0, -1.0 / 3.0, -2.0], [2.0, 3.0, -1.0, -12.0]],
    row_upper=[0.0, 0.0, 2.0],
)


@pytest.mark.parametrize("problem", [p for p in ALL if 0 not in p.lp.shape], ids=str)
def test_every_kind_ends_as_worked_out_by_hand(problem: Problem) -> None:
    solution = by_simplex(problem.lp)
    assert solution is not None
    assert solution.status in problem.statuses
    assert faults(problem.lp, solution) == []
    if solution.status is Status.OPTIMAL:
        assert solution.objective == pytest.approx(problem.objective, rel=1e-9, abs=1e-9)
        if problem.x is not None:
            np.testing.assert_allclose(solution.x, problem.x, atol=1e-8)
        if problem.y is not None:
            np.testing.assert_allclose(solution.y, problem.y, atol=1e-8)


@pytest.mark.parametrize(
    ("lp", "value", "x"),
    [
        (BEALE, -0.05, [0.04, 0.0, 1.0, 0.0]),
        (KUHN, -2.0, [2.0, 0.0, 2.0, 0.0]),
        *((klee_minty(n), 5.0**n, [0.0] * (n - 1) + [5.0**n]) for n in (2, 5, 10)),
    ],
    ids=["Beale", "Kuhn", "Klee-Minty 2", "Klee-Minty 5", "Klee-Minty 10"],
)
def test_programs_that_cycle_or_take_long_by_simpler_rules(lp: LinearProgram, value: float, x: list[float]) -> None:
    solution = by_simplex(lp)
    assert solution is not None
    assert solution.status is Status.OPTIMAL
    assert solution.objective == pytest.approx(value, rel=1e-9)
    np.testing.assert_allclose(solution.x, x, rtol=1e-9, atol=1e-9)
    assert_optimal(lp, solution.x, solution.y)
    assert solution.iterations <= 100


@pytest.mark.parametrize("n", [5, 30])
def test_an_assignment_polytope_which_is_degenerate_at_every_vertex(n: int) -> None:
    rng = np.random.default_rng(n)
    eye, ones = sp.eye_array(n), sp.coo_array(np.ones((1, n)))
    rows = sp.vstack((sp.kron(eye, ones), sp.kron(ones, eye)))
    lp = LinearProgram(rng.integers(0, 9, n * n).astype(float), rows, 1.0, 1.0)
    solution = by_simplex(lp)
    assert solution is not None
    assert solution.status is Status.OPTIMAL
    assert solution.objective == pytest.approx(highs(lp)[1])
    assert np.array_equal(np.unique(np.round(solution.x, 12)), [0.0, 1.0])
    assert faults(lp, solution) == []


def test_infeasible_and_unbounded_ones_have_rays() -> None:
    infeasible = LinearProgram([1.0, 1.0], [[1.0, 1.0], [1.0, -1.0], [1.0, 0.0]], [-INF, 0.0, 2.0], [3.0, 0.0, INF])
    solution = by_simplex(infeasible)
    assert solution is not None
    assert solution.status is Status.PRIMAL_INFEASIBLE
    assert is_infeasibility_ray(infeasible, solution.ray)
    unbounded = LinearProgram([-1.0, -1.0], [[1.0, -1.0]], 0.0, 1.0)
    solution = by_simplex(unbounded)
    assert solution is not None
    assert solution.status is Status.DUAL_INFEASIBLE
    assert is_improving_ray(unbounded, solution.ray)
    rows = [[1.0, 0.0, -1.0], [0.0, 1.0, 0.0], [0.0, 1.0, 0.0]]
    both = LinearProgram([-1.0, 0.0, 0.0], rows, [0, 1, -INF], [0, INF, 0])
    solution = by_simplex(both)
    assert solution is not None
    assert solution.status is Status.PRIMAL_INFEASIBLE
    assert is_infeasibility_ray(both, solution.ray)


def test_what_no_side_supports_leaves_the_ray(monkeypatch: pytest.MonkeyPatch) -> None:
    """A small value makes a multiplier of 1e-9 too large where none can be: Netlib's cplex2 had one of 1e-16."""
    lp = LinearProgram([1.0], [[1.0], [1.0], [0.0]], [-INF, 1.001, -INF], [1.0, INF, 5.0])
    noise = np.array([0.0, 0.0, 1e-9])
    monkeypatch.setattr(SimplexSolve, "multipliers", lambda self, ray: ray + noise)
    solution = by_simplex(lp)
    assert solution is not None
    assert solution.status is Status.PRIMAL_INFEASIBLE
    assert is_infeasibility_ray(lp, solution.ray)


@pytest.mark.slow
@quick
@given(st.sampled_from(sorted(KINDS)), st.integers(0, 2**31), st.sampled_from([3, 8, 25]))
def test_what_it_claims_holds_and_agrees_with_highs(kind: str, seed: int, most: int) -> None:
    lp = random_program(kind, seed, most)
    solution = by_simplex(lp) if 0 not in lp.shape else None
    if solution is None:
        return
    assert faults(lp, solution) == []
    status, value, x, _ = highs(lp)
    if solution.status is Status.OPTIMAL and str(status).endswith("kOptimal"):
        size = np.abs(solution.y).sum() + np.abs(solution.x).sum() + np.abs(x).sum()
        assert abs(solution.objective - value) <= 2e-6 * (1.0 + abs(value) + size)


def test_it_gives_up_seldom() -> None:
    """Of programs of sizes that are not far apart; the others are left to the interior-point method."""
    kinds = ("bounded", "chain", "covering", "integers")
    asked = [random_program(kind, seed, 20) for kind in kinds for seed in range(40)]
    assert sum(by_simplex(lp) is None for lp in asked) <= 2


def test_work_is_counted_and_the_interior_point_method_takes_over(monkeypatch: pytest.MonkeyPatch) -> None:
    lp = random_program("covering", 3, 30)
    assert by_simplex(lp, 100.0) is None
    whole = copter.solve(lp)
    monkeypatch.setattr(choose, "DIRECT_WORK", 100.0)
    monkeypatch.setattr(choose, "SIMPLEX_WORK", 100.0)
    monkeypatch.setattr(choose, "SPARSE_WORK", 100.0)
    solution = copter.solve(lp)
    assert solution.status is Status.OPTIMAL
    assert solution.objective == pytest.approx(whole.objective, rel=1e-6)
    assert solution.iterations < 60


def test_factors_that_fill_in_are_left_to_the_interior_point_method() -> None:
    lp = dense_program(40)
    solve = SimplexSolve(lp, Settings(), Watch(INF), 1e9)
    solve.tableau.factor.most_work = 5e3
    assert solve.run() is None


def test_a_vertex_so_far_out_that_its_objective_is_rounding_is_not_taken() -> None:
    """A face without an end, and its vertex at 1e10: terms of 1e12 leave an objective of 1e4 with a relative 1e-8."""
    lp = random_program("badly_scaled_stairs", 50_046, 27)
    solution = copter.solve(lp)
    assert solution.status is Status.OPTIMAL
    assert faults(lp, solution) == []


def dense_program(m: int) -> LinearProgram:
    """One that takes the simplex method many seconds."""
    rng = np.random.default_rng(m)
    a = rng.normal(size=(m, 3 * m))
    return LinearProgram(rng.normal(size=3 * m), a, *(2 * [a @ rng.random(3 * m)]), 0.0, 2.0)


def test_the_clock_is_asked_and_the_point_reached_is_judged() -> None:
    lp = dense_program(300)
    started = time.process_time()
    solution = by_simplex(lp, INF, 0.05)
    assert time.process_time() - started < 2.0
    assert solution is not None
    assert solution.status is Status.TIME_LIMIT
    assert faults(lp, solution) == []
    assert ((solution.x >= lp.col_lower) & (solution.x <= lp.col_upper)).all()


def test_ctrl_c_ends_it_with_the_point_reached() -> None:
    lp = dense_program(300)
    with ctrl_c_after(0.05), Watch(INF) as watch:
        solution = SimplexSolve(lp, Settings(), watch, INF).run()
    assert solution is not None
    assert solution.status is Status.INTERRUPTED
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    assert copter.solve(BEALE).status is Status.OPTIMAL


def test_sharper_tolerances_where_the_scaled_ones_do_not_do() -> None:
    """A row that counts in millions: 1e-9 of a scaled unit is not 1e-6 of one of its own."""
    rng = np.random.default_rng(4)
    lp = random_program("bounded", 12, 15)
    factor = 10.0 ** rng.integers(0, 7, lp.shape[0])
    rows = sp.csc_array(sp.diags_array(factor) @ lp.A)
    apart = LinearProgram(lp.c * 1e6, rows, lp.row_lower * factor, lp.row_upper * factor, lp.col_lower, lp.col_upper)
    solution = by_simplex(apart)
    assert solution is not None
    assert solution.status is Status.OPTIMAL
    assert faults(apart, solution) == []


@pytest.mark.parametrize("name", ["LinearProgram", "maximised"])
def test_the_answer_of_a_maximisation_has_the_signs_of_its_own_sense(name: str) -> None:
    sense, sign = ("min", 1.0) if name == "LinearProgram" else ("max", -1.0)
    lp = LinearProgram([sign * 1.0, sign * 2.0], [[1.0, 1.0]], row_lower=3.0, sense=sense, offset=5.0)
    solution = by_simplex(lp)
    assert solution is not None
    assert solution.objective == pytest.approx(sign * 3.0 + 5.0)
    assert solution.y.tolist() == [sign * 1.0]
    assert solution.x.tolist() == [3.0, 0.0]
    assert solution.bound_is_certified
