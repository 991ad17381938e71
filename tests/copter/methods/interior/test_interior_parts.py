"""The parts of the interior-point method, each against the equation that it stands for (docs/method/interior.md)."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest
import scipy.sparse as sp
from judge import assert_optimal, faults
from judge import judge as check

import copter.runtime.memory
from copter import LinearProgram, Settings, Status, solve
from copter.methods.interior.column_equations import ColumnEquations, suits
from copter.methods.interior.dense_columns import dense_columns, without_dense_columns
from copter.methods.interior.divergence import is_farkas
from copter.methods.interior.iteration import PredictorCorrector, longest
from copter.methods.interior.normal_equations import NormalEquations
from copter.methods.interior.point import Point, misfit_of
from copter.methods.interior.polish import face_of, polished
from copter.methods.interior.refinement import error_program, magnification
from copter.methods.interior.standard_form import StandardForm, standard_form
from copter.runtime.settings import Internals
from tests.copter.by_highs import highs
from tests.copter.problems import ALL, Problem
from tests.copter.random_programs import random_program

INF = np.inf
PLAIN = Settings(method="interior", internals=Internals(presolve=False))
SHAPED = {
    f"{kind} {seed}": random_program(kind, seed) for kind in ("bounded", "chain", "covering") for seed in range(3)
}

every_problem = pytest.mark.parametrize("problem", ALL, ids=str)
every_shape = pytest.mark.parametrize("lp", SHAPED.values(), ids=SHAPED)


def form_of(lp: LinearProgram) -> StandardForm:
    return standard_form(lp)


@every_problem
def test_the_standard_form_says_the_same(problem: Problem) -> None:
    """I1: any t within its bounds is a point of the program, with the same objective and the same rows."""
    lp, form = problem.lp, form_of(problem.lp)
    rng = np.random.default_rng(0)
    t = np.where(form.free, rng.normal(size=len(form.cost)), rng.random(len(form.cost)) * np.minimum(form.width, 3.0))
    x = form.values(lp, t)
    sign = 1.0 if lp.sense == "min" else -1.0
    assert form.cost @ t + form.constant == pytest.approx(sign * (lp.c @ x + lp.offset))
    assert (x >= lp.col_lower - 1e-12).all()
    assert (x <= lp.col_upper + 1e-12).all()
    activity = (lp.A @ x)[form.row]
    equation = lp.row_lower[form.row] == lp.row_upper[form.row]
    slack = form.origin[len(form.column) :] + form.sign[len(form.column) :] * t[len(form.column) :]
    expected = lp.row_lower[form.row].copy()
    expected[~equation] = slack
    np.testing.assert_allclose(form.matrix @ t - form.right, activity - expected, atol=1e-10)


@every_shape
def test_an_optimum_of_the_form_has_no_misfit(lp: LinearProgram) -> None:
    """I2 and I3 vanish at the answer, and the bound of the form is that of the program."""
    form = form_of(lp)
    progress = PredictorCorrector(form, 1e-9, 100, lambda iteration, misfit: False).run()
    assert progress.converged
    assert not progress.stopped
    assert progress.misfit.worst <= 1e-9
    point = progress.point
    assert misfit_of(form, point).worst == progress.misfit.worst
    assert (point.t[~form.free] > 0).all()
    assert (point.z[~form.free] > 0).all()
    sign = 1.0 if lp.sense == "min" else -1.0
    assert sign * (form.cost @ point.t + form.constant) == pytest.approx(highs(lp)[1], rel=1e-7, abs=1e-7)


@every_shape
def test_the_start_is_inside(lp: LinearProgram) -> None:
    """I6."""
    form = form_of(lp)
    method = PredictorCorrector(form, 1e-9, 100, lambda iteration, misfit: False)
    point = method.starting_point()
    boxed = np.isfinite(form.width)
    for part, exists in ((point.t, ~form.free), (point.w, boxed), (point.z, ~form.free), (point.v, boxed)):
        assert (part[exists] > 0.0).all()


@every_shape
def test_a_direction_solves_newtons_equations(lp: LinearProgram) -> None:
    """I4, with what the proximal weight adds."""
    form = form_of(lp)
    method = PredictorCorrector(form, 1e-9, 100, lambda iteration, misfit: False)
    point = method.starting_point()
    misfit = misfit_of(form, point)
    bounded, boxed = ~form.free, np.isfinite(form.width)
    weight = np.where(bounded, 1e-13, 1e-7)
    theta = 1.0 / (np.where(bounded, point.z / point.t, 0.0) + point.v / point.w + weight)
    method.factorise(theta)
    lower, upper = np.where(bounded, 0.1 - point.t * point.z, 0.0), np.where(boxed, 0.1 - point.w * point.v, 0.0)
    step = method.direction(point, misfit, theta, lower, upper)
    np.testing.assert_allclose(form.matrix @ step.t, misfit.primal, atol=1e-8)
    np.testing.assert_allclose(np.where(boxed, step.t + step.w, 0.0), misfit.ends, atol=1e-9)
    np.testing.assert_allclose(form.matrix.T @ step.y + step.z - step.v, misfit.dual + weight * step.t, atol=1e-6)
    np.testing.assert_allclose(np.where(bounded, point.z * step.t + point.t * step.z, 0.0), lower, atol=1e-9)
    np.testing.assert_allclose(np.where(boxed, point.v * step.w + point.w * step.v, 0.0), upper, atol=1e-9)


def test_the_longest_step_stays_inside() -> None:
    assert longest(np.array([1.0, 2.0]), np.array([-4.0, 1.0])) == 0.25
    assert longest(np.array([1.0]), np.array([0.0])) == INF


@every_shape
def test_polishing_reaches_the_face(lp: LinearProgram) -> None:
    """I8: from a point good to 1e-5 to one good to 1e-9 or better."""
    form = form_of(lp)
    method = PredictorCorrector(form, 1e-5, 100, lambda iteration, misfit: False)
    progress = method.run()
    before = check(lp, form.values(lp, progress.point.t), sign_of(lp) * form.prices(lp, progress.point.y))
    figures = []
    for t, y in polished(form, method.system, progress.point):
        judged = check(lp, np.clip(form.values(lp, t), lp.col_lower, lp.col_upper), sign_of(lp) * form.prices(lp, y))
        figures.append(max(judged.primal, judged.dual, judged.gap))
        face = face_of(form, progress.point, 1.0)
        assert ((t >= 0) | form.free).all()
        assert (t[~face.inside & (face.t == 0)] == 0).all() or len(figures) > 1
    assert min(figures) < 1e-9
    assert min(figures) <= max(before.primal, before.dual, before.gap)


def sign_of(lp: LinearProgram) -> float:
    return 1.0 if lp.sense == "min" else -1.0


@pytest.mark.parametrize("size", [0.0, 1e-12, 1e-6, 1e-3, 1.0, 7.0])
def test_magnification_is_a_power_of_two_that_brings_to_about_one(size: float) -> None:
    factor = magnification(size)
    assert np.log2(factor) == np.round(np.log2(factor))
    assert factor <= 1e8
    assert factor * size <= 1.0
    assert factor * size > 0.49 or factor > 0.49e8


@every_shape
def test_the_error_program_is_solved_by_the_error(lp: LinearProgram) -> None:
    """I12: from any pair, its answer leads to the optimum."""
    rng = np.random.default_rng(3)
    x = np.clip(rng.normal(size=lp.shape[1]), lp.col_lower, lp.col_upper)
    y = rng.normal(size=lp.shape[0])
    error = solve(error_program(lp, x, y, 8.0, 4.0), PLAIN)
    assert error.status is Status.OPTIMAL
    assert_optimal(lp, x + error.x[: lp.shape[1]] / 8.0, y + error.y / 4.0, 1e-6)


def test_refinement_gives_digits_that_one_solve_does_not(monkeypatch: pytest.MonkeyPatch) -> None:
    """With refinement off the answer is worse, or the same."""
    figures = []
    for refinements in (0, 3):
        monkeypatch.setattr("copter.methods.interior.method.REFINEMENTS", refinements)
        settings = Settings(internals=Internals(presolve=False), tolerance=1e-12, absolute_tolerance=1e-12)
        worst = 0.0
        for seed in range(6):
            lp = random_program("big_numbers", seed)
            residuals = solve(lp, settings).residuals
            worst = max(worst, residuals.primal, residuals.dual, residuals.gap)
        figures.append(worst)
    assert figures[1] <= figures[0]
    assert figures[1] < 1e-9


def test_prices_that_run_off_along_a_ray_end_the_method() -> None:
    """x >= 0, x = -1: any large negative price is a Farkas ray; of x = 1 none is."""
    for right, expected in ((-1.0, True), (1.0, False)):
        form = form_of(LinearProgram([1.0], [[1.0]], [right], [right]))
        for price in (-1e6, 1e6):
            point = Point(np.ones(1), np.ones(1), np.array([price]), np.ones(1), np.zeros(1))
            assert is_farkas(form, point) == (expected and price < 0)


# Dense columns --------------------------------------------------------------------------------------------------------


def with_dense_columns(m: int, dense: int, seed: int = 0) -> LinearProgram:
    """A band and a few full columns: bounded, boxed and free; a known optimum."""
    rng = np.random.default_rng(seed)
    band = sp.diags_array([rng.uniform(1, 2, m), rng.uniform(-1, 1, m)], offsets=[0, 1], shape=(m, m))
    order = rng.permutation(m)
    a = sp.hstack((sp.csr_array(band)[order], sp.csc_array(rng.uniform(-1, 1, (m, dense)))), format="csc")
    lower, upper = np.zeros(m + dense), np.full(m + dense, INF)
    lower[m], upper[-1] = -INF, 0.7
    x = np.where(rng.random(m + dense) < 0.7, rng.random(m + dense), 0.0)
    x[m], x[-1] = -0.3, 0.7
    reduced = np.where(x > 0, 0.0, rng.random(m + dense))
    reduced[m], reduced[-1] = 0.0, -0.5
    return LinearProgram(a.T @ rng.normal(size=m) + reduced, a, a @ x, a @ x, lower, upper)


def test_dense_columns_are_cut_into_pieces_that_add_up() -> None:
    """I14: with all pieces equal the equations are the old ones, and the links hold."""
    form = form_of(with_dense_columns(2000, 3))
    cut = without_dense_columns(form)
    np.testing.assert_array_equal(dense_columns(form), [2000, 2001, 2002])
    m, n = form.matrix.shape
    extra = cut.matrix.shape[1] - n
    assert cut.matrix.shape[0] == m + extra
    assert extra == 3 * (-(-m // 64) - 1)
    assert np.bincount(cut.matrix.indices).max() <= 66
    link = cut.matrix[m:].toarray()
    np.testing.assert_array_equal(np.sort(link, axis=1)[:, [0, -1]], np.tile([-1.0, 1.0], (extra, 1)))
    t = np.random.default_rng(0).random(n)
    owner = np.arange(n + extra)
    for one in range(extra):
        before, own = np.flatnonzero(link[one] == 1.0)[0], np.flatnonzero(link[one] == -1.0)[0]
        owner[own] = owner[before]
    both = t[owner]
    np.testing.assert_allclose(cut.matrix @ both, np.concatenate((form.matrix @ t, np.zeros(extra))), atol=1e-10)
    assert cut.cost @ both == pytest.approx(form.cost @ t)
    np.testing.assert_array_equal(cut.width, form.width[owner])
    np.testing.assert_array_equal(cut.free, form.free[owner])
    assert without_dense_columns(cut) is cut


@pytest.mark.parametrize("m", [400, 2000])
def test_programs_with_dense_columns_have_the_same_optimum(m: int) -> None:
    lp = with_dense_columns(m, 3)
    solution = solve(lp, PLAIN)
    assert solution.status is Status.OPTIMAL
    assert faults(lp, solution) == []
    assert solution.objective == pytest.approx(highs(lp)[1], rel=1e-7)


def test_columns_are_left_whole_where_cutting_gains_nothing() -> None:
    rng = np.random.default_rng(0)
    full = form_of(LinearProgram(np.ones(400), rng.random((350, 400)), np.ones(350)))
    sparse = form_of(SHAPED["covering 1"])
    assert without_dense_columns(full) is full
    assert without_dense_columns(sparse) is sparse


def test_a_dense_column_does_not_fill_the_factor() -> None:
    form = form_of(with_dense_columns(3000, 1))
    assert NormalEquations(without_dense_columns(form).matrix).factor.nonzeros < 0.1 * 3000**2


def test_what_does_not_fit_into_memory_goes_to_the_proximal_method(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(copter.runtime.memory, "memory_bytes", lambda: 10.0)
    lp = SHAPED["bounded 1"]
    with pytest.raises(MemoryError, match=r"would take .* GiB"):
        NormalEquations(form_of(lp).matrix)
    solution = solve(lp, PLAIN)
    assert solution.status is Status.OPTIMAL
    assert solution.pricing_passes > 0
    assert faults(lp, solution) == []


# Columns' equations ---------------------------------------------------------------------------------------------------


def many_rows(seed: int) -> LinearProgram:
    """Inequalities of every kind, three for a column; boxed, bounded and free columns."""
    rng = np.random.default_rng(seed)
    m, n = 60, 15
    a, x = sp.random_array((m, n), density=0.3, rng=rng), rng.random(n)
    kind, activity = rng.integers(0, 3, m), np.asarray(a @ x)
    low, high = np.where(kind == 1, -INF, activity - rng.random(m)), np.where(kind == 0, INF, activity + rng.random(m))
    col_low = np.where(np.arange(n) % 5 == 0, -INF, 0.0)
    return LinearProgram(rng.normal(size=n), a, low, high, col_low, np.where(np.arange(n) % 2, INF, 3.0))


@pytest.mark.parametrize("seed", range(4))
def test_the_columns_equations_give_the_same_step(seed: int) -> None:
    """I15 against I5, and against both of the equations that a step solves."""
    form = form_of(many_rows(seed))
    assert suits(form)
    rng = np.random.default_rng(seed)
    theta = 10.0 ** rng.uniform(-3, 3, len(form.cost))
    short, known = rng.normal(size=len(form.right)), rng.normal(size=len(form.cost))
    one, other = ColumnEquations(form), NormalEquations(form.matrix)
    one.factorise(theta, 0.0)
    other.factorise(theta, 0.0)
    for found, expected in zip(one.step(short, known), other.step(short, known), strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-8)
    dt, dy = one.step(short, known)
    np.testing.assert_allclose(form.matrix @ dt, short, atol=1e-9)
    np.testing.assert_allclose(form.matrix.T @ dy - dt / theta, known, atol=1e-8)
    np.testing.assert_allclose(form.matrix @ (theta * (form.matrix.T @ one.solve(short))), short, atol=1e-7)


@pytest.mark.parametrize("seed", range(6))
def test_programs_of_many_inequalities_have_the_same_optimum(seed: int) -> None:
    lp = many_rows(seed)
    solution = solve(lp, PLAIN)
    ended, best, _, _ = highs(lp)
    assert faults(lp, solution) == []
    assert (solution.status is Status.OPTIMAL) == ("kOptimal" in str(ended))
    if solution.status is Status.OPTIMAL:
        assert solution.objective == pytest.approx(best, rel=1e-8, abs=1e-8)


def test_equalities_and_few_rows_stay_with_the_rows_equations() -> None:
    lp = many_rows(0)
    equal = LinearProgram(lp.c, lp.A, lp.row_lower, np.where(np.arange(60) == 3, lp.row_lower, lp.row_upper))
    assert not suits(form_of(equal))
    assert not suits(form_of(LinearProgram(np.ones(50), np.ones((60, 50)), np.ones(60))))
    assert not suits(form_of(LinearProgram([1.0], [[1.0]], col_lower=1.0, col_upper=1.0, row_upper=[2.0])))


@pytest.mark.slow
def test_an_interpreter_ends_in_peace_around_a_factor_of_another_thread() -> None:
    program = (
        "import scipy.sparse as sp\n"
        "from copter.methods.interior import sparse_lu\n"
        "sparse_lu.SMALL = 0\n"
        "kept = sparse_lu.SparseLU(sp.csc_matrix(sp.eye(50) * 2.0), lambda: False)\n"
        "print(kept.solve(sp.csc_matrix(sp.eye(50)).toarray()[0])[0])\n"
    )
    for _ in range(2):
        ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
        assert (ended.returncode, ended.stdout, ended.stderr) == (0, "0.5\n", "")
