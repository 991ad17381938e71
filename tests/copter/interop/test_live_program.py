"""A program kept alive: edited and solved again equals solved afresh equals HiGHS, whatever changed."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

import copter
from copter import LinearProgram, Settings, Status
from copter.interop import live_program
from copter.interop.live_program import Edits, LiveProgram, block_starts


def program(seed: int, m: int = 8, n: int = 30) -> LinearProgram:
    """A feasible, bounded program with rows of all kinds."""
    rng = np.random.default_rng(seed)
    A = sp.random_array((m, n), density=0.4, rng=rng, format="csc")
    x = rng.uniform(0.0, 1.0, n)
    b = A @ x
    kind = rng.integers(0, 4, m)
    lower = np.where(kind == 0, -np.inf, np.where(kind == 1, b, b - rng.uniform(0.0, 1.0, m)))
    upper = np.where(kind == 2, np.inf, np.where(kind == 1, b, b + rng.uniform(0.0, 1.0, m)))
    return LinearProgram(rng.normal(size=n), A, lower, upper, np.zeros(n), rng.uniform(1.0, 3.0, n), offset=2.5)


def changed(lp: LinearProgram, rng: np.random.Generator, what: str) -> LinearProgram:
    """The program with some of its numbers moved, never to where it is infeasible by construction."""
    new: dict[str, Any] = {name: getattr(lp, name) for name in ("row_lower", "row_upper", "col_lower", "col_upper")}
    c, A = lp.c.copy(), lp.A.copy()
    if what == "c":
        c[rng.integers(0, len(c), 4)] += rng.normal(size=4)
    elif what == "rows":
        new["row_upper"] = lp.row_upper + rng.uniform(0.0, 0.2, len(lp.row_upper)) * np.isfinite(lp.row_upper)
    elif what == "bounds":
        new["col_upper"] = lp.col_upper + rng.uniform(0.0, 0.5, len(c))
    elif what == "A":
        A.data = A.data * rng.uniform(0.95, 1.05, len(A.data))
        loose = 0.2 * (1.0 + np.abs(A @ np.ones(len(c))))
        new["row_lower"], new["row_upper"] = lp.row_lower - loose, lp.row_upper + loose
    return LinearProgram(c, A, *new.values(), offset=lp.offset)


def with_highs(lp: LinearProgram) -> float:
    highspy = pytest.importorskip("highspy")
    from copter.interop.highs_exchange import to_highs

    highs = to_highs(lp)
    highs.run()
    assert highs.getModelStatus() == highspy.HighsModelStatus.kOptimal
    return float(highs.getInfo().objective_function_value)


@pytest.mark.parametrize("seed", range(6))
def test_edited_equals_fresh_equals_highs(seed: int) -> None:
    rng, lp, live = np.random.default_rng(seed), program(seed), LiveProgram()
    first = live.solve(lp)
    assert (first.status, first.warm) == (Status.OPTIMAL, False)
    for step, what in enumerate(["rows", "c", "bounds", "A", "c", "rows", "A", "bounds"]):
        lp = changed(lp, rng, what)
        answer = live.solve(lp)
        assert answer.status is Status.OPTIMAL
        assert answer.warm, f"step {step}: {what}"
        expected = Edits(
            costs=what == "c", coefficients=what == "A", bounds=what == "bounds", rows=what in ("rows", "A")
        )
        assert live.edits == expected
        fresh = copter.solve(lp)
        assert answer.objective == pytest.approx(fresh.objective, rel=1e-5, abs=1e-5)
        assert answer.objective == pytest.approx(with_highs(lp), rel=1e-5, abs=1e-5)
        np.testing.assert_allclose(answer.reduced_costs, lp.c - lp.A.T @ answer.y, atol=1e-12)


def test_answers_stay_when_the_program_goes_on() -> None:
    live, lp = LiveProgram(), program(1)
    live.solve(lp)
    warm = live.solve(changed(lp, np.random.default_rng(0), "c"))
    kept = warm.x.copy()
    live.solve(changed(lp, np.random.default_rng(1), "rows"))
    np.testing.assert_array_equal(warm.x, kept)


@pytest.mark.parametrize("what", ["shape", "pattern", "sense"])
def test_another_structure_begins_anew(what: str) -> None:
    live, lp = LiveProgram(), program(2)
    live.solve(lp)
    live.solve(lp)
    assert live.is_warm
    A = lp.A.toarray()
    if what == "pattern":
        A[0, 0] = 0.0 if A[0, 0] else 1e-3
    other = {
        "shape": program(2, n=31),
        "pattern": LinearProgram(lp.c, A, lp.row_lower - 1, lp.row_upper + 1),
        "sense": None,
    }
    new = other[what] or LinearProgram(lp.c, lp.A, lp.row_lower, lp.row_upper, lp.col_lower, lp.col_upper, sense="max")
    live.solve(new)
    assert live.edits.rebuilt
    assert not live.is_warm


def test_infeasible_and_unbounded_come_and_go() -> None:
    live = LiveProgram()
    lp = LinearProgram([1.0, 1.0], [[1.0, 1.0]], [1.0], [np.inf])
    assert live.solve(lp).objective == pytest.approx(1.0)
    crossed = LinearProgram([1.0, 1.0], [[1.0, 1.0]], [1.0], [np.inf], col_upper=[0.25, 0.25])
    answer = live.solve(crossed)
    assert answer.status is Status.PRIMAL_INFEASIBLE
    assert answer.ray is not None
    assert live.solve(LinearProgram([-1.0, 1.0], [[1.0, 1.0]], [1.0], [np.inf])).status is Status.DUAL_INFEASIBLE
    assert live.solve(lp).objective == pytest.approx(1.0)


def test_a_session_that_is_too_slow_is_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(live_program, "PATIENCE", 0.0)
    monkeypatch.setattr(live_program, "LEAST_S", 1e-9)
    live, rng, lp = LiveProgram(), np.random.default_rng(3), program(3, 20, 200)
    for _ in range(5):
        lp = changed(lp, rng, "c")
        answer = live.solve(lp)
        assert answer.status is Status.OPTIMAL
        assert not answer.warm
    assert not live.is_warm


def test_time_limits_and_settings_are_heeded() -> None:
    live, lp = LiveProgram(), program(4)
    assert live.solve(lp, Settings(time_limit_s=30.0)).status is Status.OPTIMAL
    assert live.solve(lp, Settings(tolerance=1e-9)).status is Status.OPTIMAL


@pytest.mark.parametrize("n", [1, 2, 63, 64, 65, 1000])
def test_blocks_cover_all_columns(n: int) -> None:
    starts = block_starts(n)
    assert starts[0] == 0
    assert starts[-1] == n
    assert (np.diff(starts) > 0).all()


def test_without_rows_or_columns() -> None:
    live = LiveProgram()
    for lp in (LinearProgram([1.0, -1.0], np.zeros((0, 2)), col_upper=[1, 1]), LinearProgram([], np.zeros((2, 0)))):
        for _ in range(3):
            assert live.solve(lp).status is Status.OPTIMAL
    assert replace(live.edits) == live.edits
