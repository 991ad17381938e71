"""Newton's method on the dual of one proximal subproblem, step by step: directions, line searches, what ends it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from copter.methods.proximal import newton
from copter.methods.proximal.ascent import Ascent
from copter.methods.proximal.newton import Point, Region, Rows, Subproblem, maximise, solve_dense
from tests.copter.twins import Floats, Group, flat, working_set

INF = np.inf


def subproblem(sigma: float = 0.5, n_threads: int = 1) -> Subproblem:
    """Two groups and three rows of different scales; the first group has no limit."""
    usage = np.array([[1.0, 3.0], [0.0, 2.0], [4.0, 0.0]])
    center = np.array([0.4, 0.6])
    groups = [
        Group(np.array([-1.0, -2.0]), np.zeros(2), np.full(2, 5.0), INF, usage, center),
        Group(np.array([-3.0, -1.0]), np.zeros(2), np.full(2, 2.0), 1.0, usage[:, ::-1].copy(), center),
    ]
    problem = flat(groups)
    rows = Rows(np.array([-INF, 1.0, -INF]), np.array([4.0, 1.0, INF]), np.array([1.0, 2.0, 4.0]))
    ws = working_set(problem, problem.center)
    return Subproblem(ws, rows, problem.center, np.array([3.0, 1.0, 9.0]), sigma, n_threads)


def test_slacks_curve_where_they_are_between_their_bounds() -> None:
    """delta of equation A6 is sigma times the scale squared inside, and next to nothing at a bound or beyond."""
    problem = subproblem()
    assert problem.slack_sigma.tolist() == [0.5, 2.0, 8.0]
    tiny = newton.REGULARISATION
    point = problem.evaluate(np.array([0.2, 0.0, -0.5]))
    assert problem.slack_curvature(point) == pytest.approx(
        [0.5 * (1 + tiny), 2.0 * tiny, 8.0 * (1 + tiny)], rel=1e-15, abs=0.0
    )
    at_bound = problem.evaluate(np.array([-2.0, 0.0, 0.0]))  # target 3 + 0.5 * 2: exactly the upper bound
    assert problem.slack_curvature(at_bound)[0] == 0.5 * tiny
    problem.rows.lower[0], lowest = 2.0, problem.evaluate(np.array([2.0, 0.0, 0.0]))  # 3 - 0.5 * 2: the lower one
    assert problem.slack_curvature(lowest)[0] == 0.5 * tiny
    assert newton.REGULARISATION == 1e-12


def test_the_newton_matrix_is_the_sum_over_free_columns_and_slacks() -> None:
    problem = subproblem()
    point = problem.evaluate(np.array([0.1, -0.2, 0.05]))
    ws = problem.ws
    usage = np.zeros((3, ws.size))
    usage[ws.row, np.repeat(np.arange(ws.size), np.diff(ws.entry_start))] = ws.coefficient
    assert ws.free.any()
    wanted = np.diag(problem.slack_curvature(point))
    for g, (a, b) in enumerate(zip(ws.start[:-1], ws.start[1:], strict=True)):
        free = usage[:, a:b][:, ws.free[a:b] == 1]
        wanted += 0.5 * free @ free.T
        if ws.multiplier[g] > 0.0:
            wanted -= 0.5 * np.outer(free.sum(axis=1), free.sum(axis=1)) / free.shape[1]
    np.testing.assert_allclose(problem.matrix(problem.slack_curvature(point)), wanted, rtol=1e-12)


def test_directions_by_factorisation_and_by_conjugate_gradients(monkeypatch: pytest.MonkeyPatch) -> None:
    """The second solve the same system to a hundredth of the residual, or more where that is small."""
    problem = subproblem()
    point = problem.evaluate(np.array([0.1, -0.2, 0.05]))
    matrix = problem.matrix(problem.slack_curvature(point))
    exact = np.linalg.solve(matrix, point.residual)
    np.testing.assert_allclose(problem.newton_direction(point), exact, rtol=1e-8)
    asked: dict[str, Any] = {}
    own = newton.cg

    def watched(operator: Any, residual: Floats, **options: Any) -> Any:
        asked.update(options)
        columns = np.column_stack([operator.matvec(unit) for unit in np.eye(3)])
        np.testing.assert_allclose(columns, matrix, rtol=1e-12)
        diagonal = np.column_stack([options["M"].matvec(unit) for unit in np.eye(3)])
        ws = problem.ws
        plain = problem.slack_curvature(point).copy()
        for j in np.flatnonzero(ws.free):
            for k in range(ws.entry_start[j], ws.entry_start[j + 1]):
                plain[ws.row[k]] += problem.sigma * ws.coefficient[k] ** 2
        np.testing.assert_allclose(diagonal, np.diag(1.0 / plain), rtol=1e-12)
        return own(operator, residual, **options)

    monkeypatch.setattr(newton, "cg", watched)
    for most, method in ((3, "factorised"), (2, "by gradients")):
        asked.clear()
        monkeypatch.setattr(newton, "DENSE_ROWS", most)
        direction = problem.newton_direction(point)
        assert np.linalg.norm(matrix @ direction - point.residual) <= 0.011 * np.linalg.norm(point.residual)
        assert bool(asked) == (method == "by gradients")
    assert (asked["rtol"], asked["maxiter"]) == (1e-2, 12)
    small = Point(point.y, point.slack, 1e-5 * point.residual)
    problem.newton_direction(small)
    assert asked["rtol"] == pytest.approx(1e-5 * np.linalg.norm(point.residual), rel=1e-12, abs=0.0)


def test_conjugate_gradients_take_at_most_500_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    n, asked = 200, {}
    group = Group(np.array([-1.0]), np.zeros(1), np.ones(1), INF, np.ones((n, 1)), np.full(1, 0.5))
    problem = flat([group])
    rows = Rows(np.full(n, -INF), np.ones(n), np.ones(n))
    sub = Subproblem(working_set(problem, problem.center), rows, problem.center, np.zeros(n), 1.0)
    monkeypatch.setattr(newton, "cg", lambda operator, residual, **options: asked.update(options) or (residual, 0))
    monkeypatch.setattr(newton, "DENSE_ROWS", 10)
    sub.newton_direction(sub.evaluate(np.zeros(n)))
    assert asked["maxiter"] == 500


def test_a_system_that_breaks_down_gets_more_on_its_diagonal(monkeypatch: pytest.MonkeyPatch) -> None:
    """First as it is, then with 1e-10 of its diagonal more, then ten times that; eight tries, then the diagonal."""
    residual = np.array([1.0, -3.0])
    tried: list[Floats] = []

    def breaks(until: int) -> Any:
        def factorise(matrix: Floats, right: Floats, lower: int) -> Any:
            tried.append(matrix.copy())
            assert lower == 1
            return None, np.full(2, 7.0), int(len(tried) <= until)

        return factorise

    matrix = np.array([[2.0, 1.0], [1.0, 4.0]])
    for until in (0, 3, 99):
        tried.clear()
        monkeypatch.setattr(newton, "dposv", breaks(until))
        found = solve_dense(matrix, residual)
        assert len(tried) == min(until + 1, 8)
        for number, used in enumerate(tried):
            extra = 10.0 ** (number - 11) if number else 0.0
            np.testing.assert_allclose(used - matrix, np.diag([2.0 * extra, 4.0 * extra]), rtol=1e-4, atol=1e-16)
        assert found.tolist() == ([7.0, 7.0] if until < 8 else [0.5, -0.75])
    monkeypatch.setattr(newton, "dposv", breaks(10**9))
    assert solve_dense(np.zeros((2, 2)), residual) == pytest.approx([1e300, -3e300])
    monkeypatch.undo()
    np.testing.assert_allclose(solve_dense(matrix, residual), np.linalg.solve(matrix, residual), rtol=1e-14)


def test_threads_are_for_large_working_sets(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[int] = []
    monkeypatch.setattr(newton, "safe_threads", lambda count: asked.append(count) or 1)
    assert newton.SMALL_WORKING_SET == 50_000
    assert newton.DENSE_ROWS == 1500
    for most, threads in ((4, 3), (5, 1)):
        monkeypatch.setattr(newton, "SMALL_WORKING_SET", most)
        problem = subproblem(n_threads=3)
        assert asked[-1] == threads
        problem.evaluate(np.zeros(3))
    assert len(asked) == 2
    subproblem()
    monkeypatch.setattr(newton, "SMALL_WORKING_SET", 0)
    subproblem()
    assert asked[-1] == 1


def climbed(
    problem: Subproblem, tolerance: float = 1e-9, region: Region | None = None, **given: Any
) -> tuple[Point, int]:
    """Maximise from prices of zero."""
    region = region or Region(np.zeros(3), np.ones(3), INF)
    ascent = Ascent(problem.dual, np.full(3, tolerance), *region)
    return maximise(problem, ascent, np.zeros(3), **given)


def require_projected(problem: Subproblem, point: Point) -> None:
    """The subproblem's x, and the point's slacks and residuals, are those of the point's prices."""
    x = problem.x.copy()
    there = problem.evaluate(point.y)
    np.testing.assert_array_equal(problem.x, x)
    np.testing.assert_array_equal(there.slack, point.slack)
    np.testing.assert_array_equal(there.residual, point.residual)


def test_an_ascent_ends_when_every_row_is_within_its_tolerance() -> None:
    problem = subproblem()
    point, steps = climbed(problem)
    assert 1 <= steps < 20
    assert np.abs(point.residual).max() <= 1e-9
    require_projected(problem, point)
    start = problem.evaluate(np.zeros(3))
    assert climbed(problem, np.abs(start.residual).max())[1] == 0, "a residual at its tolerance is within it"
    assert climbed(problem, 0.999 * np.abs(start.residual).max())[1] > 0


def test_directions_from_outside_lead_to_the_same_point(monkeypatch: pytest.MonkeyPatch) -> None:
    """By LAPACK, above `FEW_ROWS` rows, and by conjugate gradients, above `DENSE_ROWS`."""
    exact, steps = climbed(subproblem())
    monkeypatch.setattr(newton, "FEW_ROWS", 2)
    outside, others = climbed(subproblem())
    assert others == steps
    np.testing.assert_allclose(outside.y, exact.y, rtol=1e-9, atol=1e-12)
    monkeypatch.setattr(newton, "DENSE_ROWS", 2)
    found, _ = climbed(subproblem())
    np.testing.assert_allclose(found.y, exact.y, rtol=1e-6, atol=1e-8)
    asked: list[Point] = []

    def noted(problem: Subproblem, point: Point) -> Floats:
        asked.append(point)
        return problem.newton_direction(point)

    monkeypatch.setattr(newton, "DENSE_ROWS", 1500)
    monkeypatch.setattr(newton, "FEW_ROWS", 64)
    problem = subproblem()
    found, count = climbed(problem, direction_at=noted)
    assert len(asked) == count == steps
    assert asked[0].y.tolist() == [0.0, 0.0, 0.0]
    assert asked[0].residual.tolist() == problem.evaluate(np.zeros(3)).residual.tolist()


def test_an_ascent_ends_when_told_when_it_leaves_and_after_its_most_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    problem = subproblem()
    point, steps = climbed(problem, stop=lambda: True)
    assert (steps, point.y.tolist()) == (0, [0.0, 0.0, 0.0])
    require_projected(problem, point)
    region = Region(np.zeros(3), np.full(3, 1e-3), 1.0)
    point, steps = climbed(problem, region=region)
    assert steps == 1
    assert not region.inside(point.y)
    assert region.inside(np.full(3, -1e-3))
    require_projected(problem, point)
    monkeypatch.setattr(newton, "MAX_NEWTON_STEPS", 2)
    assert climbed(problem, 0.0)[1] == 2
    assert climbed(problem, 0.0, direction_at=lambda problem, point: 1e-9 * point.residual)[1] == 2


def test_a_direction_that_does_not_ascend_is_replaced_by_the_scaled_residual(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(newton, "MAX_NEWTON_STEPS", 1)
    problem = subproblem()
    start = problem.evaluate(np.zeros(3))
    wanted, _ = climbed(problem, direction_at=lambda problem, point: point.residual / problem.slack_sigma)
    for wrong in (-1.0, 0.0, np.nan):
        found, steps = climbed(problem, direction_at=lambda _, point, wrong=wrong: wrong * point.residual)
        assert steps == 1
        np.testing.assert_allclose(found.y, wanted.y, rtol=1e-12)
    other, _ = climbed(problem, direction_at=lambda _, point: point.residual)
    assert not np.allclose(other.y, wanted.y)
    assert problem.dual.evaluate(other.y, np.empty(3), np.empty(3)) > problem.dual.evaluate(
        start.y, np.empty(3), np.empty(3)
    )


def test_at_the_maximum_an_ascent_stays_and_projects_x_there() -> None:
    problem = subproblem()
    best, _ = climbed(problem, 1e-12)
    point, _ = maximise(problem, Ascent(problem.dual, np.zeros(3), np.zeros(3), np.ones(3), INF), best.y)
    np.testing.assert_allclose(point.y, best.y, rtol=1e-6, atol=1e-9)
    require_projected(problem, point)
