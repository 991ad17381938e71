"""Proximal steps by coordinate descent (A12 to A14): tiny programs with known answers, HiGHS, and rounds."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, NoReturn

import highspy
import numpy as np
import pytest
from judge import assert_optimal, is_improving_ray, is_infeasibility_ray
from numpy.typing import NDArray
from scipy.sparse import csr_array

import copter.methods.block_round
import copter.methods.proximal.newton
import copter.methods.proximal.price_descent
import copter.methods.proximal_round
from copter import LinearProgram, Model, Session, Settings, Status, solve
from copter.methods.proximal.newton import Subproblem
from copter.methods.proximal.price_descent import descent_direction, sparse_matrix
from copter.methods.proximal.prices import PriceModel
from copter.runtime.errors import SettingsError
from copter.runtime.settings import Internals
from tests.copter.by_highs import highs
from tests.copter.problems import INFEASIBLE, OPTIMAL, UNBOUNDED, Problem
from tests.copter.random_programs import random_program

Floats = NDArray[np.float64]
DESCENT = Settings(method="price_descent", time_limit_s=10.0)


@pytest.mark.parametrize("problem", OPTIMAL, ids=str)
def test_tiny_programs_as_worked_out_by_hand(problem: Problem) -> None:
    solution = solve(problem.lp, DESCENT)
    assert solution.status in problem.statuses
    assert solution.objective == pytest.approx(problem.objective, rel=3e-6, abs=3e-6)
    assert_optimal(problem.lp, solution.x, solution.y)
    if problem.x is not None:
        np.testing.assert_allclose(solution.x, problem.x, atol=1e-4, rtol=1e-5)
    if problem.y is not None:
        np.testing.assert_allclose(solution.y, problem.y, atol=1e-4, rtol=1e-5)


@pytest.mark.parametrize("problem", INFEASIBLE + UNBOUNDED, ids=str)
def test_programs_without_an_optimum_are_told_with_a_ray(problem: Problem) -> None:
    solution = solve(problem.lp, DESCENT)
    assert solution.status in problem.statuses
    assert solution.ray is not None
    holds = is_infeasibility_ray if solution.status is Status.PRIMAL_INFEASIBLE else is_improving_ray
    assert holds(problem.lp, solution.ray)


@pytest.mark.parametrize("kind", ["assignment", "transport", "covering", "all_fixed"])
@pytest.mark.parametrize("seed", range(6))
def test_random_programs_against_highs(kind: str, seed: int) -> None:
    lp = random_program(kind, seed)
    status, objective, _, _ = highs(lp)
    solution = solve(lp, DESCENT)
    if status == highspy.HighsModelStatus.kOptimal:
        assert solution.status is Status.OPTIMAL
        assert solution.objective == pytest.approx(objective, rel=1e-5, abs=1e-5)
        assert_optimal(lp, solution.x, solution.y)
    else:
        assert status == highspy.HighsModelStatus.kInfeasible
        assert solution.status is Status.PRIMAL_INFEASIBLE


def job_model(rng: np.random.Generator, jobs: int = 60) -> Model:
    """Jobs that take one configuration each of GPUs of two types, more than there are."""
    model = Model("max")
    model.add_resources("a", 24)
    model.add_resources("b", 16)
    for job in range(jobs):
        add_job(model, job, rng)
    return model


SIZES = np.array([1.0, 2.0, 4.0, 8.0])


def add_job(model: Model, job: int, rng: np.random.Generator) -> None:
    """Concave values of 1 to 8 GPUs of either type."""
    value = np.concatenate([rng.uniform(0.5, 2.0) * SIZES ** rng.uniform(0.3, 0.9) for _ in "ab"])
    none = np.zeros(4)
    usage = {"a": np.concatenate((SIZES, none)), "b": np.concatenate((none, SIZES))}
    model.add_request(job, value, usage=usage, integer=True)


@pytest.mark.parametrize("seed", range(3))
def test_edited_rounds_equal_fresh_ones_equal_highs(seed: int) -> None:
    rng = np.random.default_rng(seed)
    model = job_model(rng)
    session = Session(model, DESCENT)
    for round_number in range(5):
        warm, fresh = session.solve(), Session(model, DESCENT).solve()
        lp = model.to_linear_program()
        _, objective, _, _ = highs(lp)
        for solution in (warm, fresh):
            assert solution.status is Status.OPTIMAL
            assert solution.objective == pytest.approx(objective, rel=2e-6)
            assert solution.bound_is_certified
            assert solution.bound >= objective - 1e-9 * objective
            assert_optimal(lp, solution.x, solution.y)
        if round_number:
            assert warm.iterations < fresh.iterations
        model.remove_request(round_number)
        add_job(model, 100 + round_number, rng)
        model.add_resources("a", 1)


def test_a_round_in_which_nothing_changed_is_one_pass() -> None:
    session = Session(job_model(np.random.default_rng(5)), DESCENT)
    first, again = session.solve(), session.solve()
    assert (again.pricing_passes, again.iterations) == (1, 0)
    assert again.objective == pytest.approx(first.objective, rel=1e-14)
    assert first.iterations > 0


def test_nothing_is_factorised(monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(*_: Any, **__: Any) -> NoReturn:
        raise AssertionError("a factorisation")

    session = Session(
        job_model(np.random.default_rng(7)), Settings(method="price_descent", internals=Internals(purify=False))
    )
    monkeypatch.setattr(copter.methods.proximal.newton, "solve_dense", refused)
    monkeypatch.setattr(copter.methods.proximal.newton.Subproblem, "newton_direction", refused)
    monkeypatch.setattr(copter.methods.block_round.BlockRound, "start", refused)
    monkeypatch.setattr(copter.methods.proximal_round, "InteriorStart", refused)
    assert session.solve().status is Status.OPTIMAL


def price_model(matrix: Floats) -> PriceModel:
    """The kernel's record of a dense matrix."""
    m = len(matrix)
    first, place = np.arange(0, m * m + 1, m, dtype=np.int32), np.tile(np.arange(m, dtype=np.int32), m)
    return PriceModel(first, place, matrix.ravel(), matrix.diagonal().copy())


def plain_sweeps(matrix: Floats, slope: Floats, order: NDArray[np.int64], sweeps: int) -> Floats:
    """The kernel's sweeps, without extrapolation, as written on paper."""
    move = np.zeros(len(slope))
    for _ in range(sweeps):
        for k in (*order, *order[::-1]):
            move[k] += (slope[k] - matrix[k] @ move) / matrix[k, k]
    return move


@pytest.mark.parametrize("seed", range(5))
def test_sweeps_are_those_on_paper_and_extrapolation_saves_most_of_them(seed: int) -> None:
    rng = np.random.default_rng(seed)
    factor = rng.normal(size=(12, 14))
    matrix, slope = factor @ factor.T, rng.normal(size=12)
    order, move = rng.permutation(12), np.empty(12)
    model = price_model(matrix)
    least = 1.0 - 1e-9  # the first sweep that makes every slope smaller ends it
    taken = model.ascend(order, slope, move, least, 1)
    np.testing.assert_allclose(move, plain_sweeps(matrix, slope, order, taken), rtol=1e-9)
    taken = model.ascend(order, slope, move, 1e-6, 1000)
    assert np.abs(slope - matrix @ move).max() <= 1e-6 * np.abs(slope).max() * (1.0 + 1e-6)
    plain = plain_sweeps(matrix, slope, order, 3 * taken)
    assert np.abs(slope - matrix @ plain).max() > 1e-6 * np.abs(slope).max()


def test_a_direction_is_that_of_newton_and_of_the_sparse_matrix(monkeypatch: pytest.MonkeyPatch) -> None:
    """Up to a thousandth of the residual; above `DENSE_ROWS` rows the matrix is made sparse, and is the same."""
    session = Session(job_model(np.random.default_rng(6)), DESCENT)
    session.solve()
    iterate, matrix_of = session._iterate, session.model.ledger.matrix
    slots = np.array(sorted(session.model.ledger.slot_of.values()), dtype=np.int32)
    iterate.ws.grow(matrix_of, np.repeat(slots, 8), np.tile(np.arange(8, dtype=np.int32), len(slots)))
    rows = iterate.rows(matrix_of)
    problem = Subproblem(iterate.ws, rows, 0.5 * iterate.ws.x, np.array([20.0, 12.0]), 0.6)
    point = problem.evaluate(iterate.y)
    slack = problem.slack_curvature(point)
    matrix = problem.matrix(slack)
    assert np.count_nonzero(matrix) > 2
    for each in (slack, np.array([0.5, 0.25])):
        wanted = problem.matrix(each)
        np.testing.assert_allclose(sparse_matrix(iterate.ws, 0.6, each).toarray(), wanted, rtol=1e-10)
    direction = descent_direction(problem, point)
    assert np.abs(point.residual - matrix @ direction).max() <= 1e-3 * np.abs(point.residual).max()
    monkeypatch.setattr(copter.methods.proximal.price_descent, "DENSE_ROWS", 0)
    np.testing.assert_allclose(descent_direction(problem, point), direction, rtol=1e-6)


def test_the_rows_that_gain_most_come_first(monkeypatch: pytest.MonkeyPatch) -> None:
    """By the squared residual over the curvature; up to a thousandth of the residual, with eight extrapolations."""
    asked: dict[str, Any] = {}

    class Watched:
        def __init__(self, first: Any, place: Any, entry: Any, diagonal: Any) -> None:
            asked.update(first=first.tolist(), place=place.tolist(), entry=entry.tolist(), diagonal=diagonal.tolist())

        def ascend(self, order: Any, slope: Any, move: Any, share: float, extrapolations: int) -> int:
            asked.update(order=order.tolist(), slope=slope.tolist(), share=share, extrapolations=extrapolations)
            move[:] = 7.0
            return 1

    def dense(slack: Floats) -> Floats:
        asked["by"] = "dense"
        return matrix.copy()

    def sparse(ws: Any, sigma: float, slack: Floats) -> Any:
        asked["by"] = "sparse"
        return csr_array(matrix)

    matrix = np.array([[4.0, 1.0, 2.0], [1.0, 0.25, 3.0], [2.0, 3.0, 9.0]])
    module = copter.methods.proximal.price_descent
    monkeypatch.setattr(module, "PriceModel", Watched)
    monkeypatch.setattr(module, "sparse_matrix", sparse)
    problem: Any = SimpleNamespace(slack_curvature=lambda point: np.ones(3), matrix=dense, ws=None, sigma=1.0)
    point: Any = SimpleNamespace(y=np.zeros(3), residual=np.array([3.0, -0.5, 6.0]))
    for most, by in ((3, "dense"), (2, "sparse")):
        monkeypatch.setattr(module, "DENSE_ROWS", most)
        assert descent_direction(problem, point).tolist() == [7.0] * 3
        assert (asked["by"], asked["order"], asked["slope"]) == (by, [2, 0, 1], [3.0, -0.5, 6.0])
        assert (asked["first"], asked["place"]) == ([0, 3, 6, 9], [0, 1, 2] * 3)
        assert (asked["entry"], asked["diagonal"]) == (matrix.ravel().tolist(), [4.0, 0.25, 9.0])
        assert (asked["share"], asked["extrapolations"]) == (1e-3, 8)


def test_settings_limit_the_steps() -> None:
    settings = Settings(method="price_descent", max_proximal_steps=2, internals=Internals(max_pricing_passes=2))
    solution = Session(job_model(np.random.default_rng(10)), settings).solve()
    assert solution.status is Status.ITERATION_LIMIT
    assert solution.pricing_passes == 2
    assert solution.proximal_steps <= 4


def test_a_plan_is_made_of_its_vertex() -> None:
    """At most as many jobs are split as there are rows (F12)."""
    plan = Session(job_model(np.random.default_rng(8)), DESCENT).solve_integer()
    assert plan.is_feasible
    assert plan.fractional_requests <= 2
    assert 0.0 <= plan.gap < 1e-3


def test_a_solve_that_time_ends_has_a_point_and_a_bound_that_holds() -> None:
    """The callback ends it where a clock would: after the first pass that proves a bound."""
    model = job_model(np.random.default_rng(9), 200)
    _, objective, _, _ = highs(model.to_linear_program())
    solution = Session(model, DESCENT).solve(callback=lambda passes, gap, violation: passes == 2)
    assert solution.status is Status.INTERRUPTED
    assert solution.pricing_passes == 2
    assert solution.bound >= objective - 1e-9 * objective
    assert solution.gap > DESCENT.tolerance


def test_a_time_limit_is_kept() -> None:
    """A program that takes longer: equations in many more columns."""
    rng = np.random.default_rng(3)
    A = rng.normal(size=(300, 3000))
    b = A @ rng.uniform(0.0, 1.0, 3000)
    lp = LinearProgram(rng.uniform(0.0, 1.0, 3000), A, row_lower=b, row_upper=b)
    solution = solve(lp, Settings(method="price_descent", time_limit_s=0.3))
    assert solution.status is Status.TIME_LIMIT
    assert solution.x.shape == (3000,)
    assert solution.solve_time_s < 5.0


def test_private_rows_are_refused() -> None:
    model = Model("max")
    model.add_resources("a", 3)
    model.add_request("job", [1.0, 2.0], usage={"a": [1.0, 2.0]}, at_least=0.5)
    with pytest.raises(SettingsError, match=r"price_descent.*at_least: use 'auto'"):
        Session(model, DESCENT).solve()
    assert Session(model).solve().objective == pytest.approx(2.0)
