"""The judge against its exact twin, and on answers that are wrong in every way that it has a figure for."""

from __future__ import annotations

import ast
import sys
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path
from types import SimpleNamespace

import judge as judge_module
import numpy as np
import pytest
import scipy.sparse as sp
from exact_judge import exact_judgement
from hypothesis import given, settings
from hypothesis import strategies as st
from judge import Judge, assert_optimal, faults, integer_violation, is_improving_ray, is_infeasibility_ray, judge

INF = np.inf


@dataclass
class Program:
    """F1 as plain arrays."""

    c: np.ndarray
    A: sp.csc_array
    row_lower: np.ndarray
    row_upper: np.ndarray
    col_lower: np.ndarray
    col_upper: np.ndarray
    sense: str = "min"
    offset: float = 0.0
    integrality: np.ndarray = field(default_factory=lambda: np.zeros(0))


def program(c, A, row_lower, row_upper, col_lower, col_upper, **rest) -> Program:
    parts = (np.array(v, dtype=np.float64) for v in (row_lower, row_upper, col_lower, col_upper))
    return Program(np.array(c, dtype=np.float64), sp.csc_array(np.array(A, dtype=np.float64)), *parts, **rest)


# max 3a + 2b, a + b <= 4, a + 3b <= 6, 0 <= a, b <= 3: a = 3, b = 1 (both rows and a's bound), value 11.
SMALL = program([3, 2], [[1, 1], [1, 3]], [-INF, -INF], [4, 6], [0, 0], [3, 3], sense="max", offset=1.0)
VALUES = st.floats(-4.0, 4.0, allow_subnormal=False)


@st.composite
def judged_programs(draw):
    m, n = draw(st.integers(0, 3)), draw(st.integers(1, 4))
    numbers = lambda k: np.array(draw(st.lists(VALUES, min_size=k, max_size=k)), dtype=np.float64)  # noqa: E731

    def sides(k):
        low, width = numbers(k), np.abs(numbers(k))
        kind = draw(st.lists(st.integers(0, 4), min_size=k, max_size=k))
        lower = np.where(np.isin(kind, (1, 3)), -INF, low)
        upper = np.where(np.isin(kind, (2, 3)), INF, np.where(np.array(kind) == 4, low, low + width))
        return lower, upper

    A = sp.csc_array(np.where(np.abs(numbers(m * n)) < 1.0, 0.0, numbers(m * n)).reshape(m, n))
    rows, columns = sides(m), sides(n)
    sense = draw(st.sampled_from(["min", "max"]))
    found = Program(numbers(n), A, *rows, *columns, sense, float(numbers(1)[0]))
    return found, numbers(n), numbers(m)


@settings(max_examples=300, deadline=None)
@given(judged_programs())
def test_figures_are_the_exact_ones_within_the_rounding_that_is_said(case) -> None:
    lp, x, y = case
    found, true = judge(lp, x, y), exact_judgement(lp, x, y)
    assert found.bound_is_certified == true.certified
    if true.certified:  # where a part is left out, rounding may decide which
        assert abs(Fraction(found.bound) - true.bound) <= Fraction(found.rounding)
        assert found.rounding <= 1e-12 * (1.0 + 1e3)
        assert (Fraction(found.safe_bound) <= true.bound) == (lp.sense == "min") or true.bound == Fraction(found.bound)
        assert found.dual_absolute == pytest.approx(float(true.dual_violation), rel=1e-12, abs=1e-13)
    assert found.objective == pytest.approx(float(true.objective), rel=1e-12, abs=1e-12)
    assert found.primal_absolute == pytest.approx(float(true.violation), rel=1e-12, abs=1e-13)


def test_an_optimum_has_no_faults() -> None:
    x, y = np.array([3.0, 1.0]), np.array([2.0, 0.0])
    found = assert_optimal(SMALL, x, y, 1e-12)
    assert found.objective == found.bound == 12.0
    assert found.bound_is_certified
    assert found.complementarity == 0.0
    residuals = SimpleNamespace(primal=0.0, dual=0.0, gap=0.0, primal_absolute=0.0, dual_absolute=0.0)
    claim = {
        "objective": 12.0,
        "bound": 12.0,
        "residuals": residuals,
        "x": x,
        "y": y,
        "ray": None,
        "bound_is_certified": True,
    }
    claim |= {"status": SimpleNamespace(value="optimal"), "reduced_costs": np.array([1.0, 0.0])}
    assert faults(SMALL, SimpleNamespace(**claim)) == []
    assert faults(SMALL, SimpleNamespace(**claim | {"objective": 13.0})) == ["objective is 12, not 13"]
    assert "reduced costs" in faults(SMALL, SimpleNamespace(**claim | {"reduced_costs": np.array([1.0, 0.5])}))[0]
    wrong = SimpleNamespace(**claim | {"bound": 14.0})
    assert faults(SMALL, wrong) == ["bound is 12, not 14"]
    wrong.bound_is_certified = False
    assert faults(SMALL, wrong) == ["bound is 12, not 14"]
    wrong.status = SimpleNamespace(value="time_limit")
    assert faults(SMALL, wrong) == []
    for off, right in ((-2.4e-8, True), (2.4e-8, False), (-2.8e-8, False), (1.2e-8, True)):
        # What a proof gives away is on the side where the bound is weaker; 13 = 1 + |bound|.
        weaker = SimpleNamespace(**claim | {"bound": 12.0 + off * (1.0 if SMALL.sense == "min" else -1.0)})
        assert (faults(SMALL, weaker) == []) is right
    worse = SimpleNamespace(**claim | {"x": np.array([3.0, 0.0])})
    assert {fault.split()[0] for fault in faults(SMALL, worse)} == {"objective", "gap", "complementarity"}


def test_every_violation_is_seen() -> None:
    zero = np.zeros(2)
    assert judge(SMALL, np.array([3.0, 1.5]), zero).primal_absolute == pytest.approx(1.5)
    assert judge(SMALL, np.array([-0.5, 0.0]), zero).primal_absolute == pytest.approx(0.5)
    wrong = judge(SMALL, zero, np.array([-0.25, 0.0]))  # no lower side would support it
    assert wrong.dual_absolute == pytest.approx(0.25)
    assert wrong.bound == judge(SMALL, zero, zero).bound == 16.0
    assert np.isnan(judge(SMALL, np.array([np.nan, 0.0]), zero).objective)
    with pytest.raises(AssertionError, match="gap"):
        assert_optimal(SMALL, zero, zero)


def test_a_bound_that_only_rounding_supports_is_not_certified() -> None:
    # d = 0.3 - 0.1 * 3 is 0 in fractions of ten, and not in doubles; x has no upper bound.
    for y, certified in ((3.0, Fraction(0.3) >= Fraction(0.1) * 3), (2.5, True)):
        lp = program([0.3], [[0.1]], [1.0], [INF], [0.0], [INF])
        assert judge(lp, np.array([10.0]), np.array([y])).bound_is_certified == certified
    free = program([0.5], [[0.25]], [1.0], [INF], [-INF], [INF])
    assert judge(free, np.array([4.0]), np.array([2.0])).bound_is_certified
    assert not judge(free, np.array([4.0]), np.array([2.0 + 1e-15])).bound_is_certified


def test_the_rounding_covers_a_cancellation() -> None:
    big = program([1e16, 1.0, -1e16], np.zeros((0, 3)), [], [], [1, 1, 1], [1, 1, 1])
    found = judge(big, np.ones(3), np.zeros(0))
    assert found.bound == 1.0  # the sum is correctly rounded
    assert 1.0 < found.rounding < 20.0


def test_parts_are_the_whole() -> None:
    rng = np.random.default_rng(3)
    shared, own, n = 4, 2, 5
    A = rng.integers(-2, 3, (shared + 2 * own, 2 * n)).astype(np.float64)
    A[shared : shared + own, n:] = 0.0
    A[shared + own :, :n] = 0.0
    lower, upper = np.where(rng.random(8) < 0.5, -INF, -1.0), rng.uniform(0, 4, 8)
    c, x, y = rng.normal(size=2 * n), rng.uniform(-1, 2, 2 * n), rng.normal(size=8)
    low, high = np.zeros(2 * n), np.full(2 * n, 1.5)
    whole = judge(Program(c, sp.csc_array(A), lower, upper, low, high, "max", 2.0), x, y)
    parts = Judge(lower[:shared], upper[:shared], y[:shared], "max", 2.0)
    for k in range(2):
        at, rows = slice(n * k, n * k + n), slice(shared + own * k, shared + own * k + own)
        block = np.concatenate((A[:shared, at], A[rows, at]))
        parts.add(c[at], sp.csc_array(block), (low[at], high[at]), x[at], (lower[rows], upper[rows], y[rows]))
    found = parts.verdict()
    for name in ("objective", "bound", "primal", "dual", "gap", "primal_absolute", "dual_absolute", "complementarity"):
        assert getattr(found, name) == pytest.approx(getattr(whole, name), rel=1e-13), name
    assert found.bound_is_certified == whole.bound_is_certified


def test_rays_prove_what_they_prove_and_no_more() -> None:
    impossible = program([1.0], [[1.0], [1.0]], [-INF, 2.0], [1.0, INF], [0.0], [INF])
    assert is_infeasibility_ray(impossible, np.array([-3.0, 3.0]))
    assert not is_infeasibility_ray(impossible, np.array([3.0, -3.0]))
    assert not is_infeasibility_ray(impossible, np.zeros(2))
    assert not is_infeasibility_ray(SMALL, np.array([-1.0, 0.0]))
    unbounded = program([-1.0, 1.0], [[1.0, -1.0]], [-INF], [3.0], [0.0, 0.0], [INF, INF])
    assert not is_improving_ray(unbounded, np.array([1.0, 1.0]))  # no slope
    assert not is_improving_ray(unbounded, np.array([1.0, 0.0]))  # the row stops it
    open_ended = program([-2.0, 1.0], [[1.0, -1.0]], [-INF], [3.0], [0.0, 0.0], [INF, INF])
    assert is_improving_ray(open_ended, np.array([7.0, 7.0]))
    assert not is_improving_ray(open_ended, np.array([np.nan, 1.0]))


def test_whole_numbers() -> None:
    lp = program([1, 1], [[1, 1]], [0], [9], [0, 0], [9, 9], integrality=np.array([1, 0]))
    assert integer_violation(lp, np.array([2.25, 0.5])) == 0.25


def test_the_judge_imports_nothing_of_copter() -> None:
    tree = ast.parse(Path(judge_module.__file__).read_text())
    names = {alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names}
    names |= {node.module or "" for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
    roots = {name.split(".")[0] for name in names}
    assert roots - set(sys.stdlib_module_names) == {"numpy", "scipy"}
