"""Presolve: every reduction alone and all together give back the answer, its duals and its rays (presolve.md)."""

from __future__ import annotations

import os
from pathlib import Path

import highspy
import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from judge import is_improving_ray, is_infeasibility_ray
from judge import judge as check

from copter import LinearProgram, Status, read_mps
from copter.methods.presolve import Presolved, presolve
from copter.methods.presolve import reduce as reductions
from copter.methods.presolve.work import Work
from copter.runtime.errors import DimensionError
from tests.copter.by_highs import highs

INF = np.inf
ROOT = Path(__file__).parents[4]
Floats = np.ndarray
OPTIMAL = highspy.HighsModelStatus.kOptimal
INFEASIBLE = highspy.HighsModelStatus.kInfeasible
UNDECIDED = (highspy.HighsModelStatus.kUnknown, highspy.HighsModelStatus.kSolveError)
UNBOUNDED = (highspy.HighsModelStatus.kUnbounded, highspy.HighsModelStatus.kUnboundedOrInfeasible)
EXACT = 1e-9


def solved(program: LinearProgram) -> tuple[highspy.HighsModelStatus, float, Floats, Floats]:
    """HiGHS's answer, without its own presolve, so that statuses are definite; with it where HiGHS does not know."""
    answer = highs(program, presolve="off")
    return highs(program) if answer[0] in UNDECIDED else answer


def assert_complementary(lp: LinearProgram, x: Floats, y: Floats, d: Floats, scale: float) -> None:
    """Reduced costs and row duals have the sign of the side that they lean on, or vanish between the sides."""
    sign = 1.0 if lp.sense == "min" else -1.0
    for value, at, lower, upper in (
        (sign * d, x, lp.col_lower, lp.col_upper),
        (sign * y, lp.A @ x, lp.row_lower, lp.row_upper),
    ):
        room = np.where(value > 0, at - lower, upper - at)
        assert np.all(np.minimum(np.abs(value), np.abs(room)) <= 1e-8 * scale)


def assert_feasible_without_costs(lp: LinearProgram, x: Floats, y: Floats, d: Floats) -> None:
    """A feasible point, with duals of the problem without costs."""
    scale = 1.0 + float(np.abs(x).max(initial=0.0))
    costless = LinearProgram(0.0 * lp.c, lp.A, lp.row_lower, lp.row_upper, lp.col_lower, lp.col_upper, sense=lp.sense)
    judged = check(costless, x, y)
    assert max(judged.primal_absolute, judged.dual_absolute, judged.gap) <= EXACT * scale, judged
    np.testing.assert_allclose(d, -(lp.A.T @ y), atol=1e-12 * scale)


def assert_same_answer(lp: LinearProgram, reduced: Presolved) -> None:
    """The reduced problem's answer, taken back, is the original's: optimal, or a ray that holds."""
    status, objective, _, _ = solved(lp)
    if reduced.program is None:
        x, y = np.zeros(0), np.zeros(0)
        end = reduced.status
    else:
        found, _, x, y = solved(reduced.program)
        end = {OPTIMAL: Status.OPTIMAL, INFEASIBLE: Status.PRIMAL_INFEASIBLE}.get(found, Status.DUAL_INFEASIBLE)
        if end is Status.OPTIMAL and reduced.improving_ray is not None:
            end = Status.DUAL_INFEASIBLE
    if end is Status.OPTIMAL:
        assert status == OPTIMAL
        x, y, d = reduced.postsolve(x, y)
        judged = check(lp, x, y)
        scale = 1.0 + max(float(np.abs(part).max(initial=0.0)) for part in (x, y, d, lp.c))
        assert judged.objective == pytest.approx(objective, rel=EXACT, abs=EXACT * scale)
        assert max(judged.primal, judged.dual, judged.gap) <= EXACT * scale, judged
        assert max(judged.primal_absolute, judged.dual_absolute) <= EXACT * scale, judged
        np.testing.assert_allclose(d, lp.c - lp.A.T @ y, atol=1e-12 * scale)
        assert_complementary(lp, x, y, d, scale)
    elif end is Status.PRIMAL_INFEASIBLE:
        assert status == INFEASIBLE
        if reduced.program is None:
            assert reduced.ray is not None
            assert is_infeasibility_ray(lp, reduced.ray)
    else:
        assert status in (*UNBOUNDED, *UNDECIDED)  # of some HiGHS says unknown, whether it presolves or not
        if reduced.improving_ray is not None:
            assert_feasible_without_costs(lp, *reduced.postsolve(x, y))
        for ray in (reduced.ray, reduced.improving_ray):
            assert ray is None or is_improving_ray(lp, ray)


NUMBERS = st.sampled_from([-3.0, -2.0, -1.0, -0.5, 0.0, 0.0, 0.5, 1.0, 1.0, 2.0, 4.0, 1 / 3])
ENTRIES = st.sampled_from([0.0, 0.0, 0.0, 1.0, 1.0, -1.0, 2.0, -3.0, 0.7])


@st.composite
def bounds(draw: st.DrawFn, size: int, kinds: str) -> tuple[Floats, Floats]:
    """Bounds of some kinds: e(qual), l(ower), u(pper), b(oth), f(ree), z(ero to infinity)."""
    lower, upper = np.full(size, -INF), np.full(size, INF)
    for i in range(size):
        kind = draw(st.sampled_from(kinds))
        at, width = draw(NUMBERS), draw(st.sampled_from([0.0, 0.5, 1.0, 3.0]))
        if kind in "elb":
            lower[i] = at
        if kind in "eub":
            upper[i] = at + (width if kind == "b" else 0.0)
        if kind == "z":
            lower[i] = 0.0
    return lower, upper


@st.composite
def programs(draw: st.DrawFn, rows: str = "elubf", columns: str = "elubfzzz", largest: int = 6) -> LinearProgram:
    """Small programs of every shape: infeasible, unbounded and degenerate ones among them."""
    m, n = draw(st.integers(0, largest)), draw(st.integers(1, largest))
    A = np.array([draw(ENTRIES) for _ in range(m * n)]).reshape(m, n)
    for i in range(1, m):  # parallel rows and columns
        if draw(st.integers(0, 5)) == 0:
            A[i] = draw(st.sampled_from([1.0, -2.0, 1 / 3])) * A[i - 1]
    c = np.array([draw(NUMBERS) for _ in range(n)])
    for j in range(1, n):
        if draw(st.integers(0, 5)) == 0:
            ratio = draw(st.sampled_from([1.0, -1.0, 3.0, 0.1]))
            A[:, j] = ratio * A[:, j - 1]
            c[j] = ratio * c[j - 1] + draw(st.sampled_from([0.0, 0.0, 1.0, -1.0]))
    row_lower, row_upper = draw(bounds(m, rows))
    if draw(st.booleans()):  # a feasible point, so that verdicts are not most of what is tried
        point = A @ np.array([draw(NUMBERS) for _ in range(n)])
        row_lower, row_upper = np.minimum(row_lower, point), np.maximum(row_upper, point)
    col_lower, col_upper = draw(bounds(n, columns))
    sense = draw(st.sampled_from(["min", "max"]))
    return LinearProgram(
        c, sp.csc_array(A), row_lower, row_upper, col_lower, col_upper, sense=sense, offset=draw(NUMBERS)
    )


@pytest.mark.slow
@given(programs())
@settings(max_examples=200, deadline=None)
def test_all_reductions_give_the_answer_back(lp: LinearProgram) -> None:
    assert_same_answer(lp, presolve(lp))


@pytest.mark.slow
@given(programs(columns="bbz", rows="lue"))
@settings(max_examples=150, deadline=None)
def test_bounded_programs(lp: LinearProgram) -> None:
    assert_same_answer(lp, presolve(lp))


@pytest.mark.slow
@given(programs(largest=12))
@settings(max_examples=150, deadline=None)
def test_wider_programs(lp: LinearProgram) -> None:
    assert_same_answer(lp, presolve(lp))


@pytest.mark.slow
@pytest.mark.parametrize("reduction", reductions.ALL, ids=lambda reduction: reduction.__name__)
def test_each_reduction_alone(reduction: reductions.Reduction) -> None:
    used = 0

    @given(programs())
    @settings(max_examples=50, deadline=None, database=None)
    def examine(lp: LinearProgram) -> None:
        nonlocal used
        reduced = presolve(lp, reductions=(reduction,))
        used += reduced.program is None or reduced.program.shape != lp.shape
        assert_same_answer(lp, reduced)

    examine()
    if reduction is not reductions.reduce_redundant_rows:  # sides go, rows are dropped by another reduction
        assert used > 0


@pytest.mark.slow
@given(programs(rows="elub", columns="lubzf"))
@settings(max_examples=100, deadline=None)
def test_multipliers_of_an_infeasible_reduced_problem_are_taken_back(lp: LinearProgram) -> None:
    light = (reductions.reduce_slack_columns, reductions.reduce_parallel_rows)
    for some in (light, reductions.ALL):
        reduced = presolve(lp, reductions=some)
        if reduced.program is None or not reduced.program.shape[0]:
            continue
        ray = farkas_by_lp(reduced.program)
        if ray is not None:
            full = reduced.postsolve_farkas(ray)
            assert full is not None
            assert is_infeasibility_ray(lp, full)


@pytest.mark.slow
@given(programs(rows="elu", columns="lubzf"))
@settings(max_examples=100, deadline=None)
def test_directions_of_an_unbounded_reduced_problem_are_taken_back(lp: LinearProgram) -> None:
    light = (reductions.reduce_slack_columns, reductions.reduce_parallel_columns)
    for some in (light, reductions.ALL):
        reduced = presolve(lp, reductions=some)
        if reduced.program is None or reduced.improving_ray is not None:
            continue
        ray = direction_by_lp(reduced.program)
        if ray is not None:
            full = reduced.postsolve_primal_ray(ray)
            assert full is not None
            assert is_improving_ray(lp, full)


def farkas_by_lp(lp: LinearProgram) -> Floats | None:
    """Row multipliers that prove infeasibility: the duals of the least violation of the rows."""
    m, n = lp.shape
    elastic = LinearProgram(
        np.concatenate((np.zeros(n), np.ones(2 * m))),
        sp.hstack((lp.A, sp.eye_array(m), -sp.eye_array(m))),
        lp.row_lower,
        lp.row_upper,
        np.concatenate((lp.col_lower, np.zeros(2 * m))),
        np.concatenate((lp.col_upper, np.full(2 * m, INF))),
    )
    _, objective, _, y = highs(elastic, presolve="off")
    return y if objective > 1e-6 and is_infeasibility_ray(lp, y) else None


def direction_by_lp(lp: LinearProgram) -> Floats | None:
    """The best direction within a box, if it improves for ever."""

    def cone(lower: Floats, upper: Floats, most: float) -> tuple[Floats, Floats]:
        return np.where(np.isfinite(lower), 0.0, -most), np.where(np.isfinite(upper), 0.0, most)

    boxed = LinearProgram(
        lp.c, lp.A, *cone(lp.row_lower, lp.row_upper, INF), *cone(lp.col_lower, lp.col_upper, 1.0), sense=lp.sense
    )
    x = highs(boxed, presolve="off")[2]
    x[np.abs(x) < 1e-12] = 0.0
    return x if is_improving_ray(lp, x) else None


# problems that the reductions decide, each by the one it is named after, with the x and y that they must give
EXAMPLES: dict[str, tuple[LinearProgram, tuple[float, ...] | None, tuple[float, ...]]] = {
    "idle rows": (LinearProgram([1], [[0.0], [1]], [-1, -INF], [1, INF], [2], [3]), (2,), (0, 0)),
    "singleton row": (LinearProgram([3], [[2.0]], [8], col_upper=[9]), (4,), (1.5,)),
    "singleton row of a negative entry": (LinearProgram([1], [[-2.0]], row_upper=[-8]), (4,), (-0.5,)),
    "singleton row that is slack": (LinearProgram([1], [[2.0]], [1], col_lower=[1]), (1,), (0,)),
    "fixed column": (LinearProgram([1, 1], [[1.0, 2]], [5], col_lower=[3, 0], col_upper=[3, 9]), (3, 1), (0.5,)),
    "forcing row": (LinearProgram([-1, -2], [[1.0, 1]], row_upper=[0]), (0, 0), (-2,)),
    "forcing row from below": (LinearProgram([1, 4], [[1.0, 2]], [6], col_upper=[2, 2]), (2, 2), (2,)),
    "redundant row": (LinearProgram([-1], [[1.0], [1]], row_upper=[9, 3], col_upper=[2]), (2,), (0, 0)),
    "dual fixing": (LinearProgram([1, -1], [[1.0, -1]], row_upper=[4], col_upper=[1, 2]), (0, 2), (0,)),
    "slack column": (LinearProgram([2, 0], [[1.0, 1]], [5], [5], col_upper=[9, 3]), (2, 3), (2,)),
    "free column": (
        LinearProgram([1, 3], [[1.0, 2]], [4], col_lower=[0, -INF], col_upper=[1, INF]),
        (1, 1.5),
        (1.5,),
    ),
    "parallel rows": (
        LinearProgram([1, 1], [[1.0, 2], [-2, -4]], [2, -INF], [INF, -6]),
        (0, 1.5),
        (0, -0.25),
    ),
    "parallel columns": (
        LinearProgram([1, 2, 5], [[1.0, 2, 1], [0, 0, 1]], [7, 0], [7, 1], col_upper=[3, 9, 1]),
        None,
        (1, 0),
    ),
    "maximisation": (LinearProgram([3], [[2.0]], row_upper=[8], sense="max", offset=1), (4,), (1.5,)),
}


@pytest.mark.parametrize("name", EXAMPLES)
def test_answers_worked_out_by_hand(name: str) -> None:
    lp, x, y = EXAMPLES[name]
    reduced = presolve(lp)
    assert reduced.status is Status.OPTIMAL
    found = reduced.postsolve(np.zeros(0), np.zeros(0))
    if x is not None:
        np.testing.assert_allclose(found[0], x, atol=1e-14)
    np.testing.assert_allclose(found[1], y, atol=1e-14)
    assert_same_answer(lp, reduced)


@pytest.mark.parametrize(
    "lp",
    [
        LinearProgram([1], [[0.0]], [1]),
        LinearProgram([1], [[2.0]], [8], col_upper=[3]),
        LinearProgram([1], [[2.0], [-1]], [8, -3]),
        LinearProgram([1, 1], [[1.0, 1]], [5], col_upper=[2, 2]),
        LinearProgram([1, 1], [[1.0, 1], [2, 2]], [3, -INF], [INF, 4], col_lower=[-INF, -INF]),
        LinearProgram([1, 1, 0], [[1.0, 1, 1], [1, 1, 0]], [5, -INF], [5, 1], col_upper=[INF, INF, 3], sense="max"),
    ],
    ids=["empty row", "row and bound", "two rows", "activity", "parallel rows", "through a slack"],
)
def test_infeasible_programs_are_proved_so(lp: LinearProgram) -> None:
    reduced = presolve(lp)
    assert reduced.status is Status.PRIMAL_INFEASIBLE
    assert reduced.program is None
    assert is_infeasibility_ray(lp, reduced.ray)


def test_an_unbounded_program_is_proved_so() -> None:
    lp = LinearProgram([-1, 1], [[1.0, -1]], [0], col_lower=[0, 2])
    reduced = presolve(lp)
    assert reduced.status is Status.DUAL_INFEASIBLE
    assert is_improving_ray(lp, reduced.ray)


def test_unboundedness_waits_for_feasibility() -> None:
    """A column that improves for ever, beside rows that no bound decides: only feasibility is left to solve."""
    rows = [[2.0, 3, 1, 0], [3.0, 1, 2, 0], [1.0, 2, 3, 0]]
    feasible = LinearProgram(
        [1, 1, 1, -1], rows, [6, 6, 6], [6, 6, 6], col_lower=[-9, -9, -9, 0], col_upper=[9, 9, 9, INF]
    )
    reduced = presolve(feasible)
    assert reduced.status is None
    assert reduced.improving_ray is not None
    assert is_improving_ray(feasible, reduced.improving_ray)
    assert not reduced.program.c.any()
    assert_same_answer(feasible, reduced)


def test_a_contradiction_within_rounding_is_no_verdict() -> None:
    lp = LinearProgram([1], [[1.0]], [3 + 1e-13], col_upper=[3])
    reduced = presolve(lp)
    assert reduced.status is Status.OPTIMAL
    assert reduced.postsolve(np.zeros(0), np.zeros(0))[0] == pytest.approx(3)


def test_nothing_to_reduce_leaves_the_program_as_it_is() -> None:
    lp = LinearProgram([-1, -1], [[1.0, 2], [2, 1]], row_upper=[4, 4], col_lower=[-1, -1], sense="min", offset=2)
    reduced = presolve(lp)
    assert reduced.program is not None
    assert (reduced.program.A != lp.A).nnz == 0
    assert reduced.program.offset == 2
    assert_same_answer(lp, reduced)


def test_wrong_shapes_are_refused() -> None:
    reduced = presolve(LinearProgram([-1, -1], [[1.0, 2], [2, 1]], row_upper=[4, 4]))
    with pytest.raises(DimensionError, match=r"x has shape \(3,\).*\(2,\)"):
        reduced.postsolve(np.zeros(3), np.zeros(2))
    with pytest.raises(DimensionError, match=r"y has shape \(1,\).*\(2,\)"):
        reduced.postsolve_farkas(np.zeros(1))


def test_the_caller_s_arrays_are_left_alone() -> None:
    lp = EXAMPLES["parallel columns"][0]
    before = [getattr(lp, name).copy() for name in ("c", "row_lower", "row_upper", "col_lower", "col_upper")]
    first = presolve(lp).postsolve(np.zeros(0), np.zeros(0))
    reduced = presolve(lp)
    again = [reduced.postsolve(np.zeros(0), np.zeros(0)) for _ in range(2)]
    for one, two in zip(first, again[1], strict=True):
        np.testing.assert_array_equal(one, two)
    for name, value in zip(("c", "row_lower", "row_upper", "col_lower", "col_upper"), before, strict=True):
        np.testing.assert_array_equal(getattr(lp, name), value)


DATA = Path(os.environ.get("COPTER_DATA", "../shared/data"))


def read(path: Path) -> LinearProgram:
    """A program from an MPS file, or a skipped test."""
    if not path.exists():
        pytest.skip(f"no {path.name} under {DATA}: set COPTER_DATA")
    return read_mps(path)


@pytest.mark.slow
@pytest.mark.parametrize(
    "name", ["afiro", "beaconfd", "bore3d", "czprob", "forplan", "scagr25", "ship04s", "standgub", "tuff", "wood1p"]
)
def test_netlib(name: str) -> None:
    """The reduced problem is smaller, and its answer is the original's to HiGHS's own accuracy."""
    lp = read(DATA / "netlib" / f"{name}.mps.gz")
    reduced = presolve(lp)
    assert reduced.program is not None
    assert sum(reduced.program.shape) < sum(lp.shape)
    _, objective, x, y = highs(reduced.program)
    judged = check(lp, *reduced.postsolve(x, y)[:2])
    assert judged.objective == pytest.approx(objective, rel=EXACT)
    assert judged.objective == pytest.approx(highs(lp)[1], rel=1e-8)
    assert max(judged.primal, judged.dual, judged.gap) <= 1e-8, judged
    assert max(judged.primal_absolute, judged.dual_absolute) <= 1e-7, judged


@pytest.mark.slow
@pytest.mark.parametrize("name", ["bgdbg1", "galenet", "greenbea-infeas", "itest6", "pilot4i", "reactor"])
def test_netlib_infeasible(name: str) -> None:
    lp = read(DATA / "netlib_infeasible" / f"{name}.mps.gz")
    reduced = presolve(lp)
    assert reduced.status is Status.PRIMAL_INFEASIBLE
    assert is_infeasibility_ray(lp, reduced.ray)


def test_netlib_unbounded() -> None:
    lp = read(DATA / "netlib_infeasible" / "unbounded" / "gas11.mps.gz")
    reduced = presolve(lp)
    assert reduced.improving_ray is not None
    assert is_improving_ray(lp, reduced.improving_ray)
    assert_same_answer(lp, reduced)


@pytest.mark.slow
@given(programs())
@settings(max_examples=100, deadline=None)
def test_entries_and_counts_stay_those_of_what_is_left(lp: LinearProgram) -> None:
    work = Work(lp, reductions.Tolerances())
    for reduction in reductions.ALL:
        reduction(work)
        if work.conflict is not None:
            return
        left = lp.A.toarray() * np.outer(work.row_alive, work.col_alive)
        dense = sp.coo_array((work.value, (work.row, work.col)), shape=lp.shape).toarray()
        np.testing.assert_array_equal(dense, left)
        np.testing.assert_array_equal(work.row_count, np.count_nonzero(left, axis=1))
        np.testing.assert_array_equal(work.col_count, np.count_nonzero(left, axis=0))
