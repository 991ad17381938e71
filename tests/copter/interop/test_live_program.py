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
from copter.interop.allowance import Allowance
from copter.interop.live_program import Edits, LiveProgram, LivePrograms, block_starts
from copter.methods.simplex.warm_basis import WarmBasis


@pytest.fixture
def live(still_clock: None) -> LiveProgram:
    """A live program that leaves no way alone."""
    return LiveProgram()


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
    from copter.highs.exchange import to_highs

    highs = to_highs(lp)
    highs.run()
    assert highs.getModelStatus() == highspy.HighsModelStatus.kOptimal
    return float(highs.getInfo().objective_function_value)


@pytest.mark.parametrize("seed", range(6))
def test_edited_equals_fresh_equals_highs(live: LiveProgram, seed: int) -> None:
    rng, lp = np.random.default_rng(seed), program(seed)
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


def test_answers_stay_when_the_program_goes_on(live: LiveProgram) -> None:
    lp = program(1)
    live.solve(lp)
    warm = live.solve(changed(lp, np.random.default_rng(0), "c"))
    kept = warm.x.copy()
    live.solve(changed(lp, np.random.default_rng(1), "rows"))
    np.testing.assert_array_equal(warm.x, kept)


@pytest.mark.parametrize("what", ["shape", "pattern", "sense"])
def test_another_structure_begins_anew(live: LiveProgram, what: str) -> None:
    lp = program(2)
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


def test_infeasible_and_unbounded_come_and_go(live: LiveProgram) -> None:
    lp = LinearProgram([1.0, 1.0], [[1.0, 1.0]], [1.0], [np.inf])
    assert live.solve(lp).objective == pytest.approx(1.0)
    crossed = LinearProgram([1.0, 1.0], [[1.0, 1.0]], [1.0], [np.inf], col_upper=[0.25, 0.25])
    answer = live.solve(crossed)
    assert answer.status is Status.PRIMAL_INFEASIBLE
    assert answer.ray is not None
    assert live.solve(LinearProgram([-1.0, 1.0], [[1.0, 1.0]], [1.0], [np.inf])).status is Status.DUAL_INFEASIBLE
    assert live.solve(lp).objective == pytest.approx(1.0)


class Ticking:
    """A clock that the solves of a test move on: by `fresh` for a fresh one, by `kept` for any other."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, fresh: float, kept: float) -> None:
        self.now, self.spent = 0.0, []
        real = {"fresh": live_program.solve, "kept": WarmBasis.solve}

        def charged(name: str, cost: float) -> Any:
            def solve(*arguments: Any) -> Any:
                self.now += cost
                return real[name](*arguments)

            return solve

        monkeypatch.setattr(live_program, "LEAST_S", 60.0)
        monkeypatch.setattr(live_program, "SESSION_S", np.inf)
        monkeypatch.setattr(live_program, "solve", charged("fresh", fresh))
        monkeypatch.setattr(WarmBasis, "solve", charged("kept", kept))

    def __call__(self) -> float:
        return self.now


@pytest.mark.parametrize(("kept", "most"), [(1.5, 1.1), (0.3, 0.4), (1.0, 1.1)])
def test_a_series_costs_at_most_a_tenth_more_than_fresh(
    monkeypatch: pytest.MonkeyPatch, kept: float, most: float
) -> None:
    clock = Ticking(monkeypatch, 1.0, kept)
    live, rng, lp = LiveProgram(clock), np.random.default_rng(3), program(3)
    for _ in range(40):
        lp = changed(lp, rng, "rows")
        assert live.solve(lp).status is Status.OPTIMAL
    assert clock.now <= most * 40
    assert live.is_warm == (kept <= 1.0)


def test_a_way_that_is_too_slow_is_abandoned_in_one_round(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Ticking(monkeypatch, 1.0, 3.0)
    live, rng, lp = LiveProgram(clock), np.random.default_rng(3), program(3)
    warm = []
    for _ in range(12):
        lp = changed(lp, rng, "c")
        warm.append(live.solve(lp).warm)
    assert warm == [False, True, *[False] * 10]
    assert not live.is_warm


@pytest.mark.parametrize(
    ("what", "by", "first"), [("row_upper", 1.001, "basis"), ("row_upper", 1.1, ""), ("c", 1.001, "")]
)
def test_small_changes_of_bounds_try_the_basis_first(
    monkeypatch: pytest.MonkeyPatch, what: str, by: float, first: str
) -> None:
    asked, real = [], Allowance.begin

    def begin(self: Allowance, name: str = "") -> Any:
        asked.append(name)
        return real(self, name)

    monkeypatch.setattr(Allowance, "begin", begin)
    live, lp = LiveProgram(), program(3)
    live.solve(lp)
    live.solve(replace(lp, **{what: getattr(lp, what) * by}))
    assert asked == [first]


@pytest.mark.parametrize(("load", "times"), [(0.1, 1.0), (2.0, 2.0), (50.0, 3.0)])
def test_a_session_has_more_time_on_a_busy_machine(monkeypatch: pytest.MonkeyPatch, load: float, times: float) -> None:
    limits: list[float] = []

    def edited(self: LiveProgram, lp: LinearProgram, settings: Settings) -> None:
        limits.append(settings.time_limit_s)

    monkeypatch.setattr(LiveProgram, "_edit", edited)
    monkeypatch.setattr(live_program, "ways_for", lambda lp, fresh_s: ["session"])
    monkeypatch.setattr("os.getloadavg", lambda: (load * live_program.os.cpu_count(), 0.0, 0.0))
    live, lp = LiveProgram(Ticking(monkeypatch, 1.0, 1.0)), program(3)
    monkeypatch.setattr(Allowance, "clock_ratio", 1.0)
    monkeypatch.setattr(live_program, "LEAST_S", 0.005)
    for step in range(2):
        live.solve(replace(lp, offset=float(step)))
    assert limits == [pytest.approx(0.8 * times)]  # of a fresh solve of one second


def test_a_proven_way_survives_one_failure_that_its_savings_pay_for() -> None:
    allowance = Allowance(["basis"])
    allowance.fresh(1.0, 1.0)
    offered = []
    for solved in (True, True, True, False, True, False):
        found = allowance.begin()
        offered.append(len(found))
        allowance.end(found[0][0], solved, 0.3 if solved else 1.0)
    assert offered == [1] * 6
    assert allowance.begin() == []  # the second failure came before the record was full again


def test_the_way_that_is_asked_for_comes_first_until_one_is_proven() -> None:
    allowance = Allowance(["session", "basis"])
    allowance.fresh(1.0, 1.0)
    ((way, _),) = allowance.begin("basis")
    assert way.name == "basis"
    allowance.end(way, True, 0.2)
    ((way, _),) = allowance.begin("session")
    assert way.name == "basis"


@pytest.mark.parametrize(("cost_s", "rivals"), [(0.5, ["session"]), (0.1, [])])
def test_a_way_that_is_much_faster_than_fresh_has_no_rivals(cost_s: float, rivals: list[str]) -> None:
    allowance = Allowance(["basis", "session"])
    allowance.fresh(1.0, 1.0)
    for _ in range(3):
        ((way, _),) = allowance.begin()
        allowance.end(way, True, cost_s)
    assert [way.name for way, _ in allowance.begin()] == [*rivals, "basis"]


@pytest.mark.usefixtures("still_clock")
def test_a_pool_keeps_several_structures() -> None:
    pool, programs = LivePrograms(), [program(seed, n=30 + seed) for seed in range(live_program.MOST_KEPT + 1)]
    for lp in programs[:-1] * 2:
        pool.solve(lp)
        assert pool.edits.rebuilt == (not pool.is_warm)
    assert pool.is_warm
    pool.solve(programs[-1])
    pool.solve(programs[0])  # the oldest has made room
    assert pool.edits.rebuilt


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


def test_a_proven_way_may_take_half_as_long_again_and_no_longer_than_a_fresh_solve() -> None:
    allowance = Allowance(["session", "basis"])
    allowance.fresh(10.0, 10.0)
    ((way, _),) = allowance.begin()
    for cost_s in (4.0, 4.0, 4.0):
        allowance.end(way, True, cost_s)
    way.parallel = 1.8
    tries = allowance.begin()
    assert tries[-1] == (way, 6.0)
    rivals = [rival for rival, _ in tries[:-1]]
    assert rivals
    assert all(rival.parallel == 1.8 for rival in rivals), "others are expected to use as many threads"
    for cost_s in (9.0, 9.0, 9.0):
        way.seconds.append(cost_s)
    assert allowance.begin()[-1] == (way, 10.0)
