"""solve_integer: feasible points, true bounds and gaps against enumeration and HiGHS; deadlines; what cannot be."""

from __future__ import annotations

import itertools
import math
import os
import re
import time
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from judge import integer_violation
from judge import judge as check

import copter
from copter import CopterError, IntegerStatus, InvalidDataError, LinearProgram, Settings, SettingsError
from copter.highs.branch_and_bound import Report, Task, by_highspy, by_scipy
from copter.highs.process import end_spare
from copter.methods.integer.clock import Clock
from copter.methods.integer.first_fail import FirstFail
from copter.methods.integer.problem import Domain, IntegerProblem
from copter.methods.integer.relaxation import Relaxation
from copter.runtime.settings import Internals

INF = math.inf


def assert_holds(lp: LinearProgram, found: copter.IntegerSolution) -> None:
    """The point satisfies the program, its objective is its own, and bound and gap belong to it."""
    assert found.x is not None
    judged = check(lp, found.x, np.zeros(lp.shape[0]))
    assert judged.primal_absolute <= 1e-6 * (1.0 + np.abs(found.x).max(initial=0.0))
    assert integer_violation(lp, found.x) == 0.0
    assert found.objective == pytest.approx(judged.objective, rel=1e-12, abs=1e-9)
    sign = 1.0 if lp.sense == "min" else -1.0
    assert sign * found.bound <= sign * found.objective + 1e-9 * (1 + abs(found.objective))
    if np.isfinite(found.bound):
        apart = abs(found.objective - found.bound)
        expected = apart / abs(found.objective) if found.objective else (np.inf if apart else 0.0)
        assert found.gap == pytest.approx(expected)
    else:
        assert np.isnan(found.gap)


def random_program(seed: int, continuous: int = 0) -> LinearProgram:
    """A small program with rows of every kind, general and binary integer columns."""
    rng = np.random.default_rng(seed)
    m, n = int(rng.integers(1, 5)), 5 + continuous
    matrix = rng.integers(-4, 5, (m, n)).astype(float)
    inside = matrix @ rng.integers(0, 3, n)
    kind = rng.integers(0, 4, m)
    lower = np.where(kind == 0, -INF, inside - (kind == 3) * 2)
    upper = np.where(kind == 1, INF, inside + (kind == 3) * 2)
    return LinearProgram(
        rng.integers(-5, 6, n).astype(float),
        matrix,
        lower,
        upper,
        col_upper=3.0,
        integrality=np.arange(n) < 5,
        sense="max" if seed % 2 else "min",
        offset=float(seed % 7),
    )


def best_value(lp: LinearProgram) -> float:
    """Best value of a pure integer program with columns from 0 to 3, by enumeration."""
    points = np.array(list(itertools.product(range(4), repeat=lp.shape[1])), dtype=float)
    activity = points @ lp.A.toarray().T
    holds = ((activity >= lp.row_lower - 1e-9) & (activity <= lp.row_upper + 1e-9)).all(axis=1)
    values = points[holds] @ lp.c + lp.offset
    return float(values.min() if lp.sense == "min" else values.max())


@pytest.mark.slow
@settings(max_examples=25, deadline=None)
@given(st.integers(0, 100_000))
def test_small_programs_against_enumeration(seed):
    lp = random_program(seed)
    best, sign = best_value(lp), 1.0 if lp.sense == "min" else -1.0
    found = copter.solve_integer(lp, deadline_s=10.0)
    assert_holds(lp, found)
    assert sign * found.objective >= sign * best - 1e-6
    assert sign * found.bound <= sign * best + 1e-6
    if found.status is IntegerStatus.OPTIMAL:
        assert found.objective == pytest.approx(best, abs=1e-5)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("shim", ["rounding", "dive", "exact"])
def test_mixed_programs_against_branch_and_bound(seed, shim):
    pytest.importorskip("highspy")
    lp = random_program(seed, continuous=4)
    exact = copter.solve_integer(lp, "exact")
    assert exact.status is IntegerStatus.OPTIMAL
    found = copter.solve_integer(lp, shim, deadline_s=5.0)
    sign = 1.0 if lp.sense == "min" else -1.0
    assert sign * found.bound <= sign * exact.objective + 1e-5
    if found.x is not None:
        assert_holds(lp, found)
        assert sign * found.objective >= sign * exact.objective - 1e-5


@pytest.mark.slow
@pytest.mark.parametrize(("columns", "rows", "seed"), [(60, 5, 0), (200, 10, 1)])
def test_knapsacks_come_near_their_bound(columns, rows, seed):
    rng = np.random.default_rng(seed)
    weight = rng.integers(5, 60, (rows, columns)).astype(float)
    lp = LinearProgram(
        rng.integers(10, 90, columns).astype(float),
        weight,
        row_upper=weight.sum(axis=1) // 3,
        col_upper=1.0,
        integrality=1,
        sense="max",
    )
    found = copter.solve_integer(lp, deadline_s=4.0)
    assert_holds(lp, found)
    assert found.bound_is_certified or found.bound_by == "HiGHS"
    assert found.gap < 0.04  # of the objective: about twice the gap over the sum of objective and bound


@pytest.mark.slow
def test_a_set_partition_is_found():
    sets = [c for r in (1, 2, 3) for c in itertools.combinations(range(8), r)]
    matrix = np.array([[float(i in members) for members in sets] for i in range(8)])
    cost = [1.0 + 0.3 * len(members) ** 2 + (sum(members) % 3) for members in sets]
    lp = LinearProgram(cost, matrix, row_lower=1.0, row_upper=1.0, col_upper=1.0, integrality=1)
    found = copter.solve_integer(lp, deadline_s=5.0)
    assert_holds(lp, found)
    assert (matrix @ found.x == 1.0).all()


@pytest.mark.slow
def test_no_worse_with_the_whole_search_than_with_rounding():
    for seed in range(4):
        lp = random_program(seed, continuous=2)
        sign = 1.0 if lp.sense == "min" else -1.0
        rounded, searched = (copter.solve_integer(lp, shim, deadline_s=5.0) for shim in ("rounding", "dive"))
        if rounded.x is not None:
            assert sign * searched.objective <= sign * rounded.objective + 1e-9


@pytest.mark.slow
@pytest.mark.parametrize(
    "lp",
    [
        LinearProgram([1.0], [[2.0]], row_lower=1.0, row_upper=1.0, col_upper=5.0, integrality=1),
        LinearProgram([1.0], [[1.0]], row_lower=7.0, col_upper=5.0, integrality=1),
        LinearProgram([1.0, 1.0], [[1.0, 1.0], [1.0, -1.0]], [3.0, 0.0], [3.0, 0.0], integrality=1),
        LinearProgram([0.0], [[1.0]], col_lower=0.2, col_upper=0.8, integrality=1),
    ],
    ids=["odd", "beyond its bound", "halves", "no whole number between the bounds"],
)
def test_infeasible_programs_have_no_point(lp):
    found = copter.solve_integer(lp, deadline_s=3.0)
    assert found.x is None
    assert found.status in (IntegerStatus.PRIMAL_INFEASIBLE, IntegerStatus.NONE_FOUND)
    assert math.isnan(found.objective)
    assert math.isnan(found.gap)


def test_programs_without_integers_rows_or_columns():
    plain = LinearProgram([1.0, 2.0], [[1.0, 1.0]], row_lower=3.0)
    found = copter.solve_integer(plain)
    assert found.status is IntegerStatus.OPTIMAL
    assert found.objective == pytest.approx(3.0, abs=1e-5)
    boxed = LinearProgram([1.0, -2.0], np.zeros((0, 2)), col_upper=4.0, integrality=1)
    assert copter.solve_integer(boxed).objective == -8.0
    empty = LinearProgram([], np.zeros((1, 0)), row_upper=1.0, offset=2.0)
    assert copter.solve_integer(empty).objective == 2.0


def test_the_same_seed_gives_the_same_point():
    lp = random_program(11, continuous=3)
    one, two = copter.solve_integer(lp, seed=4), copter.solve_integer(lp, seed=4)
    assert (one.status, one.objective) == (two.status, two.objective)


@pytest.mark.slow
def test_an_untold_infinity_is_no_bound():
    lp = LinearProgram([-1.0, 0.0], [[1.0, -1.0]], row_upper=0.0, integrality=1)
    found = copter.solve_integer(lp, deadline_s=2.0)
    assert found.bound == -INF
    assert found.status is IntegerStatus.DUAL_INFEASIBLE


def test_the_deadline_ends_the_search():
    rng = np.random.default_rng(0)
    matrix = (rng.random((60, 300)) < 0.1).astype(float)
    lp = LinearProgram(rng.integers(1, 20, 300).astype(float), matrix, row_lower=2.0, col_upper=1.0, integrality=1)
    copter.solve_integer(lp, deadline_s=0.5)
    for deadline_s in (0.01, 0.3):
        started = time.perf_counter()
        found = copter.solve_integer(lp, deadline_s=deadline_s)
        # Generous, as the machine may be busy: without a deadline the search takes many seconds.
        assert time.perf_counter() - started < deadline_s + 2.0
        if found.x is not None:
            assert_holds(lp, found)


def knapsack() -> LinearProgram:
    rng = np.random.default_rng(3)
    weight = rng.integers(5, 60, (4, 80)).astype(float)
    cost = rng.integers(10, 90, 80).astype(float)
    return LinearProgram(cost, weight, row_upper=weight.sum(1) // 3, col_upper=1.0, integrality=1, sense="max")


@pytest.mark.parametrize("how", ["between relaxations", "in a relaxation"])
def test_ctrl_c_ends_the_search_with_the_best_point(monkeypatch, how):
    solve, calls = copter.solve, []

    def interrupted(lp, asked=None, callback=None):
        calls.append(lp)
        if len(calls) < 3:
            return solve(lp, asked, callback)
        if how == "between relaxations":
            raise KeyboardInterrupt
        return solve(lp, asked, lambda *_: True)

    monkeypatch.setattr("copter.methods.integer.search.SMALL_INTEGERS", 0)
    for caller in ("search.solve_relaxation", "relaxation.solve"):
        monkeypatch.setattr(f"copter.methods.integer.{caller}", interrupted)
    lp = knapsack()
    found = copter.solve_integer(lp)
    assert len(calls) == 3
    assert_holds(lp, found)
    assert found.bound_is_certified or found.bound_by == "HiGHS"


def test_bad_arguments_are_said(monkeypatch):
    lp = random_program(0)
    with pytest.raises(InvalidDataError, match="'magic', must be one of rounding, dive, exact"):
        copter.solve_integer(lp, "magic")
    with pytest.raises(SettingsError, match="deadline_s is 0"):
        copter.solve_integer(lp, deadline_s=0)
    monkeypatch.setitem(__import__("sys").modules, "highspy", None)
    with pytest.raises(CopterError, match="pip install highspy"):
        copter.solve_integer(lp, "exact")


def test_cited_statements_exist():
    root = Path(__file__).parents[4]
    pages = [(root / "docs" / "method" / f"{page}.md").read_text() for page in ("integer", "plans")]
    numbered = {number for page in pages for number in re.findall(r"\*\*(M\d+)\.", page)}
    sources = [path for path in Path(copter.__file__).parent.rglob("*.py*") if path.suffix in (".py", ".pyx")]
    cited = {number for path in sources for number in re.findall(r"\bM\d{1,2}\b", path.read_text())}
    assert numbered == cited == {f"M{i}" for i in range(1, 21)}


# Branch and bound beside the search ----------------------------------------------------------------------------------


def tours(clusters: int, seed: int) -> LinearProgram:
    """One stop in each cluster of three, in one tour; the stops' order is kept by columns without upper bounds."""
    rng = np.random.default_rng(seed)
    stops = 3 * clusters
    arcs = [(i, j) for i in range(stops) for j in range(stops) if i // 3 != j // 3]
    n = len(arcs) + clusters
    matrix = np.zeros((clusters + stops + clusters * clusters, n))
    lower, upper = np.full(len(matrix), -INF), np.full(len(matrix), INF)
    for k, (i, j) in enumerate(arcs):
        matrix[j // 3, k] = 1.0
        matrix[clusters + i, k] += 1.0
        matrix[clusters + j, k] -= 1.0
        matrix[clusters + stops + (i // 3) * clusters + j // 3, k] = clusters
    lower[:clusters] = upper[:clusters] = 1.0
    lower[clusters : clusters + stops] = upper[clusters : clusters + stops] = 0.0
    for a in range(clusters):
        for b in range(1, clusters):  # the first cluster is where the tour ends
            row = clusters + stops + a * clusters + b
            if a != b:
                matrix[row, len(arcs) + a], matrix[row, len(arcs) + b] = 1.0, -1.0
                upper[row] = clusters - 1.0
    cost = np.concatenate((rng.uniform(1, 10, len(arcs)), np.zeros(clusters)))
    integer = np.arange(n) < len(arcs)
    return LinearProgram(cost, matrix, lower, upper, 0.0, np.where(integer, 1.0, INF), integrality=integer)


def test_first_fail_finds_a_tour_by_itself():
    lp = tours(6, 1)
    problem = IntegerProblem(lp, Clock(60.0))
    relaxation = Relaxation(problem, Settings())
    x = np.clip(copter.solve(lp).x, problem.root.lower, problem.root.upper)
    assert FirstFail(problem, relaxation).run(x, np.random.default_rng(0), 30.0)
    assert problem.x is not None
    assert problem.holds(problem.x)


def test_branch_and_bound_proves_what_the_search_does_not():
    lp = tours(5, 2)
    alone = copter.solve_integer(lp, settings=Settings(internals=Internals(hand_over_s=0.0)))
    both = copter.solve_integer(lp, deadline_s=60.0)
    assert_holds(lp, both)
    assert both.status is IntegerStatus.OPTIMAL
    assert both.bound_by in ("HiGHS", "relaxation", "prices")
    assert alone.bound <= both.bound + 1e-6
    assert alone.x is None or both.objective <= alone.objective + 1e-6


def parity() -> LinearProgram:
    """Twice a sum is odd: no rounding, propagation or relaxation sees it."""
    return LinearProgram(np.ones(8), 2.0 * np.ones((1, 8)), 7.0, 7.0, 0.0, 1.0, integrality=1)


@pytest.mark.slow
def test_what_has_no_point_is_proven_by_branch_and_bound():
    found = copter.solve_integer(parity(), deadline_s=60.0)
    assert (found.status, found.bound_by) == (IntegerStatus.PRIMAL_INFEASIBLE, "HiGHS")
    alone = copter.solve_integer(parity(), settings=Settings(internals=Internals(hand_over_s=0.0)))
    assert (alone.status, alone.bound_by) == (IntegerStatus.NONE_FOUND, "prices")


@pytest.mark.slow
@pytest.mark.parametrize("by", ["highspy", "scipy"])
@pytest.mark.parametrize("with_start", [False, True])
def test_both_ways_of_branching_report_the_same(by, with_start):
    if by == "highspy":
        pytest.importorskip("highspy")
    lp = random_program(12, continuous=3)
    problem = IntegerProblem(lp, Clock(60.0))
    best = copter.solve_integer(lp, deadline_s=60.0)
    assert best.status is IntegerStatus.OPTIMAL
    if with_start:
        assert problem.offer(best.x, "known")
    reports: list[Report] = []
    task = Task(
        problem.cost, lp.A, lp.row_lower, lp.row_upper, lp.col_lower, lp.col_upper, lp.integrality,
        problem.x, float(problem.row_upper[-1]), 30.0,
    )  # fmt: skip
    (by_highspy if by == "highspy" else by_scipy)(task, reports.append)
    assert reports[-1].finished
    assert reports[-1].solved
    assert not reports[-1].infeasible
    value = problem.sign * (best.objective - lp.offset)
    assert max(report.bound for report in reports) == pytest.approx(value, rel=1e-3, abs=1e-3)
    points = [report.x for report in reports if report.x is not None]
    if not with_start:
        assert min(float(problem.cost @ x) for x in points) == pytest.approx(value, rel=1e-5, abs=1e-5)


@pytest.mark.slow
def test_a_process_that_cannot_be_started_is_done_without(monkeypatch):
    end_spare()
    monkeypatch.setattr("sys.executable", "/nowhere/python")
    monkeypatch.setattr("copter.methods.integer.search.SMALL_INTEGERS", 0)
    lp = random_program(3, continuous=2)
    found = copter.solve_integer(lp, deadline_s=5.0)
    assert found.found_by != "HiGHS"
    assert found.x is None or problem_holds(lp, found.x)


def problem_holds(lp: LinearProgram, x: np.ndarray) -> bool:
    """Whether a point satisfies the program."""
    return IntegerProblem(lp, Clock(INF)).holds(x)


@pytest.mark.slow
def test_no_process_is_left_behind():
    children = Path(f"/proc/{os.getpid()}/task/{os.getpid()}/children")
    if not children.exists():
        pytest.skip("the system does not list a process's children")
    before = set(children.read_text().split())  # another test's resource tracker, say
    found = copter.solve_integer(tours(9, 3), deadline_s=3.0)
    assert found.solve_time_s < 10.0
    end_spare()
    assert set(children.read_text().split()) <= before


# Propagation against a slow twin --------------------------------------------------------------------------------------


def slowly_propagated(lp: LinearProgram, lower: np.ndarray, upper: np.ndarray) -> bool:
    """M2 for integer columns, over and over; False if a row contradicts the bounds."""
    a = lp.A.toarray()
    for _ in range(200):
        before = lower.copy(), upper.copy()
        for i in range(lp.shape[0]):
            for j in np.flatnonzero(a[i]):
                rest = [k for k in np.flatnonzero(a[i]) if k != j]
                least = sum(a[i, k] * (lower[k] if a[i, k] > 0 else upper[k]) for k in rest)
                most = sum(a[i, k] * (upper[k] if a[i, k] > 0 else lower[k]) for k in rest)
                ends = (lp.row_upper[i] - least) / a[i, j], (lp.row_lower[i] - most) / a[i, j]
                high, low = ends if a[i, j] > 0 else ends[::-1]
                upper[j], lower[j] = min(upper[j], np.floor(high + 1e-6)), max(lower[j], np.ceil(low - 1e-6))
                if lower[j] > upper[j]:
                    return False
        if np.array_equal(before[0], lower) and np.array_equal(before[1], upper):
            return True
    return True


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 100_000))
def test_propagation_against_its_twin(seed):
    lp = random_program(seed)
    problem = IntegerProblem(lp, Clock(INF))
    lower, upper = lp.col_lower.copy(), lp.col_upper.copy()
    holds = slowly_propagated(lp, lower, upper)
    assert problem.feasible == holds
    if holds:
        assert np.array_equal(problem.root.lower, lower)
        assert np.array_equal(problem.root.upper, upper)


def test_a_restriction_that_cannot_be_changes_nothing():
    lp = LinearProgram([1.0, 1.0, 1.0], [[1.0, 1.0, 0.0], [0.0, 1.0, 1.0]], [1, 1], [1, 1], col_upper=1, integrality=1)
    domain = IntegerProblem(lp, Clock(INF)).root
    assert domain.restrict(1, 0.0, 0.0)
    assert (domain.lower.tolist(), domain.upper.tolist()) == ([1, 0, 1], [1, 0, 1])
    before = Domain(domain.problem, domain.lower.copy(), domain.upper.copy())
    assert not domain.restrict(0, 0.0, 0.0)
    assert np.array_equal(domain.lower, before.lower)
    assert np.array_equal(domain.upper, before.upper)
