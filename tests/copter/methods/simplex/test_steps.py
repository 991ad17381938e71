"""Every step of both simplex methods against what defines it, in dense arithmetic (method/simplex.md, D1 to D9)."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from copter import LinearProgram
from copter.methods.simplex.dual_steps import dual_steps
from copter.methods.simplex.form import Form, formed
from copter.methods.simplex.primal_steps import primal_steps
from tests.copter.random_programs import random_program

quick = settings(max_examples=150, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
DONE, BLOCKED, PAUSED, STUCK = range(4)
shaped = st.tuples(st.sampled_from(["bounded", "covering", "chain", "integers"]), st.integers(0, 2**31))


def dense(form: Form) -> NDArray[np.float64]:
    """[A I] of the form, scaled."""
    a = form.row[:, None] * form.lp.A.toarray() * form.column
    return np.hstack([a, np.eye(a.shape[0])])


def require_consistent(form: Form) -> None:
    """The rows hold, variables outside the basis are at a bound, reduced costs are those of the basis."""
    tableau, whole = form.tableau, dense(form)
    total, m = tableau.total, tableau.rows
    arrays = tableau.arrays
    x, head, place = arrays["x"][:total], arrays["head"][:m], arrays["place"][:total]
    assert sorted(head.tolist()) == np.flatnonzero(place >= 0).tolist()
    assert place[head].tolist() == list(range(m))
    outside = place < 0
    lower, upper = arrays["lower"][:total], arrays["upper"][:total]
    free = np.isinf(lower) & np.isinf(upper)
    assert ((x == lower) | (x == upper) | (free & (x == 0.0)))[outside].all()
    size = 1.0 + np.abs(x).max(initial=0.0)
    basis = whole[:, head]
    condition = np.linalg.cond(basis)
    assert np.abs(whole @ x).max() <= 1e-11 * size * (1.0 + condition)
    cost = arrays["cost"][:total]
    y = np.linalg.solve(basis.T, cost[head])
    assert np.abs(arrays["d"][:total] - (cost - whole.T @ y)).max() <= 1e-11 * condition * (1.0 + np.abs(y).max())


def dual_objective(form: Form) -> float:
    """What the reduced costs prove, with the costs of the moment."""
    arrays, total = form.tableau.arrays, form.tableau.total
    d = arrays["d"][:total]
    at = np.where(d > 0.0, arrays["lower"][:total], arrays["upper"][:total])
    return float(np.sum(np.where(np.abs(d) <= 1e-9, 0.0, d * np.where(np.isfinite(at), at, 0.0))))


@quick
@given(shaped)
def test_dual_steps_keep_the_reduced_costs_fitting_and_never_lose(program: tuple[str, int]) -> None:
    form = formed(random_program(*program))
    tableau = form.tableau
    tableau.settle(True)
    before, cost = dual_objective(form), tableau.arrays["cost"].copy()
    for _ in range(500):
        ended = dual_steps(tableau, 0.0)  # one step, or the end
        require_consistent(form)
        assert tableau.misfits() == 0
        if np.array_equal(cost, tableau.arrays["cost"]):  # a shifted cost is another program
            now = dual_objective(form)
            assert now >= before - 1e-7 * (1.0 + abs(before))
        before, cost = dual_objective(form), tableau.arrays["cost"].copy()
        if ended != PAUSED:
            break
    assert ended in (DONE, BLOCKED)
    if ended == DONE:
        assert tableau.worst_violation() == 0.0
        assert before == pytest.approx(float(tableau.arrays["cost"] @ tableau.arrays["x"]), rel=1e-6, abs=1e-6)


@quick
@given(shaped)
def test_where_dual_steps_are_blocked_one_row_alone_cannot_hold(program: tuple[str, int]) -> None:
    lp = random_program(*program)
    impossible = LinearProgram(lp.c, lp.A, lp.row_lower, lp.row_upper, lp.col_lower, lp.col_upper)
    form = formed(impossible)
    arrays, n = form.tableau.arrays, form.tableau.columns
    arrays["upper"][n] = arrays["lower"][n] = 1e7  # the first row's activity
    form.tableau.restart()
    form.tableau.settle(True)
    if dual_steps(form.tableau, 1e9) != BLOCKED:
        return
    ray, total = arrays["ray"][: form.tableau.rows], form.tableau.total
    entries = dense(form).T @ ray
    entries[np.abs(entries) <= 1e-9] = 0.0
    lower, upper = arrays["lower"][:total], arrays["upper"][:total]
    with np.errstate(invalid="ignore"):
        least = np.where(entries == 0.0, 0.0, np.minimum(entries * lower, entries * upper)).sum()
        most = np.where(entries == 0.0, 0.0, np.maximum(entries * lower, entries * upper)).sum()
    assert least > 0.0 or most < 0.0


@quick
@given(shaped)
def test_primal_steps_keep_the_values_within_their_bounds_and_never_lose(program: tuple[str, int]) -> None:
    form = formed(random_program(*program))
    tableau, arrays = form.tableau, form.tableau.arrays
    true = arrays["cost"].copy()
    arrays["cost"][:] = 0.0  # any basis fits: the dual method finds a point
    tableau.settle(True)
    if dual_steps(tableau, 1e9) != DONE:
        return
    arrays["cost"][:] = true
    tableau.renew()
    tableau.unit_weights()
    before = float(true @ arrays["x"])
    for _ in range(500):
        ended = primal_steps(tableau, 0.0)
        if ended == STUCK:
            return
        require_consistent(form)
        assert tableau.worst_violation() <= 1e-7
        now = float(true @ arrays["x"])
        assert now <= before + 1e-7 * (1.0 + abs(before))
        before = now
        if ended != PAUSED:
            break
    assert ended in (DONE, BLOCKED)
    if ended == DONE:
        assert tableau.misfits() == 0


def test_a_step_flips_the_boxes_that_its_row_can_afford() -> None:
    """min 1x + 2y + 3z, x + y + z >= 2.5, all in [0, 1]: x and y flip, z is the pivot, in one step."""
    form = formed(LinearProgram([1.0, 2.0, 3.0], [[1.0, 1.0, 1.0]], row_lower=2.5, col_upper=1.0))
    form.tableau.settle(True)
    assert dual_steps(form.tableau, 1e9) == DONE
    assert form.tableau.iterations == 1
    assert form.point().tolist() == [1.0, 1.0, 0.5]
    assert form.prices().tolist() == [3.0]


def test_a_row_that_all_boxes_together_cannot_hold_blocks() -> None:
    form = formed(LinearProgram([1.0, 2.0], [[1.0, 1.0]], row_lower=2.5, col_upper=1.0))
    form.tableau.settle(True)
    assert dual_steps(form.tableau, 1e9) == BLOCKED
    assert form.tableau.arrays["ray"][0] != 0.0


def test_a_direction_that_no_row_blocks() -> None:
    form = formed(LinearProgram([-1.0, 0.0], [[1.0, -1.0]], row_upper=1.0))
    form.tableau.renew()
    assert primal_steps(form.tableau, 1e9) == BLOCKED
    assert form.tableau.arrays["candidate"][0] in (0, 1)


@quick
@given(shaped)
def test_a_kept_basis_resumes_dual_feasible_and_takes_back_flips_that_violate_more_rows(
    program: tuple[str, int],
) -> None:
    form = formed(random_program(*program))
    tableau, arrays = form.tableau, form.tableau.arrays
    tableau.settle(True)
    if dual_steps(tableau, 1e9) != DONE:
        return
    rng = np.random.default_rng(program[1])
    arrays["cost"][:] = rng.normal(size=tableau.total) * (arrays["place"][: tableau.total] < 0)
    tableau.renew()
    before, violated = arrays["x"].copy(), np.count_nonzero(arrays["squared"][: tableau.rows])
    boxed = np.isfinite(arrays["lower"][: tableau.total]) & np.isfinite(arrays["upper"][: tableau.total])
    side = arrays["x"][: tableau.total] == arrays["upper"][: tableau.total]
    reduced = arrays["d"][: tableau.total]
    wrong = boxed & (arrays["place"][: tableau.total] < 0) & (np.abs(reduced) > 1e-9) & ((reduced < 0.0) != side)
    wrong &= arrays["lower"][: tableau.total] < arrays["upper"][: tableau.total]
    tableau.resume()
    assert tableau.misfits() == 0
    moved = arrays["x"][: tableau.total] != before[: tableau.total]
    if moved.any():
        assert (moved & (arrays["place"][: tableau.total] < 0)).sum() == wrong.sum()
        assert np.count_nonzero(arrays["squared"][: tableau.rows]) - violated <= 3 * wrong.sum()
