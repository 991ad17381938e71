"""Integer programs: without bounds, without end, tiny, awkward; every answer compared with SciPy's branch and bound."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time

import numpy as np
import pytest
from scipy.optimize import Bounds, LinearConstraint, milp

from copter import LinearProgram, SettingsError, solve_integer
from copter.methods.integer.clock import Clock
from copter.methods.integer.problem import IntegerProblem

INF = np.inf
SHIMS = ("dive", "exact")
AARDAL = [12223, 12224, 36674, 61119, 85569, 171137, 301512, 392841]  # an equality that branching on columns is slow on


def knapsack() -> LinearProgram:
    """Eight columns and one equality."""
    weight = np.random.default_rng(0).integers(1000, 5000, 8).astype(float)
    cost = np.arange(3.0, 11.0)
    return LinearProgram(
        cost, [weight], row_lower=[20011], row_upper=[20011], col_upper=np.full(8, 10.0), integrality=[True] * 8
    )


def hard(n: int = 60, m: int = 10, seed: int = 5) -> LinearProgram:
    """A market split problem, which no search proves in seconds."""
    rows = np.random.default_rng(seed).integers(0, 100, (m, n)).astype(float)
    half = np.floor(rows.sum(axis=1) / 2)
    a = np.hstack((rows, np.eye(m), -np.eye(m)))
    cost = np.concatenate((np.zeros(n), np.ones(2 * m)))
    upper = np.concatenate((np.ones(n), np.full(2 * m, INF)))
    return LinearProgram(
        cost, a, row_lower=half, row_upper=half, col_upper=upper, integrality=[True] * n + [False] * (2 * m)
    )


@pytest.mark.parametrize("shim", SHIMS)
@pytest.mark.parametrize("free", [False, True])
def test_an_unbounded_program_has_a_status(shim: str, free: bool) -> None:
    """The point is feasible, and the relaxation's ray leads away from it."""
    lower = [-INF, -INF] if free else [0.0, 0.0]
    lp = LinearProgram([-1.0, 0.0], [[2.0, -2.0]], row_upper=[0.5], col_lower=lower, integrality=[True, True])
    found = solve_integer(lp, shim, deadline_s=20)
    assert found.status.value == "dual_infeasible"
    assert found.bound == -INF
    assert found.x is not None
    assert 2 * found.x[0] - 2 * found.x[1] <= 0.5
    assert found.relaxation is not None
    assert lp.c @ found.relaxation.ray < 0


@pytest.mark.parametrize("shim", SHIMS)
def test_no_point_of_an_unbounded_relaxation(shim: str) -> None:
    lp = LinearProgram(
        [-1.0, 0.0], [[0.0, 2.0]], row_lower=[1.0], row_upper=[1.0], integrality=[True, True]
    )  # 2 y = 1 has no whole y
    assert solve_integer(lp, shim, deadline_s=20).status.value == "primal_infeasible"


@pytest.mark.parametrize("shim", SHIMS)
def test_equality_knapsacks_are_solved_without_a_deadline(shim: str) -> None:
    found = solve_integer(knapsack(), shim)
    assert found.status.value == "optimal"
    lp = LinearProgram(np.zeros(8), [AARDAL], row_lower=[89643481], row_upper=[89643481], integrality=[True] * 8)
    found = solve_integer(lp, shim)
    assert found.status.value == "optimal"
    assert found.x is not None
    assert AARDAL @ found.x == 89643481


def test_whole_rows_hold_exactly() -> None:
    """A ten-thousandth of a per cent of ninety million is ninety units: no integer point may be off by those."""
    x = np.array([25.0, 6936.0, 3.0, 19.0, 0.0, 7.0, 3.0, 3.0])
    side = float(AARDAL @ x)
    for off, holds in ((0.0, True), (1.0, False), (-1.0, False), (40.0, False)):
        lp = LinearProgram(np.zeros(8), [AARDAL], side + off, side + off, integrality=[True] * 8)
        assert IntegerProblem(lp, Clock(60.0)).holds(x) is holds
    loose = LinearProgram(np.zeros(8), [AARDAL], side + 40.0, side + 40.0, integrality=[True] * 7 + [False])
    assert IntegerProblem(loose, Clock(60.0)).holds(x)


def test_nothing_is_printed(capfd: pytest.CaptureFixture[str]) -> None:
    lp = LinearProgram(np.zeros(8), [AARDAL], row_lower=[89643481], row_upper=[89643481], integrality=[True] * 8)
    for shim in SHIMS:
        solve_integer(lp, shim)
    assert capfd.readouterr() == ("", "")


def random_program(seed: int) -> LinearProgram:
    """Small, with free, boxed and half-open integer and continuous columns; some infeasible, some unbounded."""
    rng = np.random.default_rng(seed)
    n, m = int(rng.integers(1, 7)), int(rng.integers(1, 5))
    a = rng.integers(-4, 5, (m, n)).astype(float) * (rng.random((m, n)) < 0.7)
    ends = rng.integers(-9, 10, (2, m)).astype(float) + rng.choice([0.0, 0.5], (2, m))
    lower = np.where(rng.random(m) < 0.5, -INF, ends.min(axis=0))
    upper = np.where(rng.random(m) < 0.5, INF, ends.max(axis=0))
    col = np.sort(rng.integers(-6, 7, (2, n)), axis=0).astype(float)
    col_lower = np.where(rng.random(n) < 0.4, -INF, col[0])
    col_upper = np.where(rng.random(n) < 0.4, INF, col[1])
    return LinearProgram(
        rng.integers(-5, 6, n).astype(float), a, lower, upper, col_lower, col_upper, integrality=rng.random(n) < 0.7
    )


def agrees(seed: int, shim: str) -> None:
    """Status and objective are those of SciPy's branch and bound."""
    lp = random_program(seed)
    found = solve_integer(lp, shim, deadline_s=20)
    rows = LinearConstraint(lp.A, lp.row_lower, lp.row_upper)
    right = milp(
        lp.c, integrality=lp.integrality.astype(int), bounds=Bounds(lp.col_lower, lp.col_upper), constraints=rows
    )
    if right.status == 0:
        assert found.status.value == "optimal"
        assert found.objective == pytest.approx(right.fun, abs=1e-6)
    elif right.status == 2:
        assert found.status.value == "primal_infeasible"
    else:  # SciPy may say "unbounded or infeasible"
        assert found.status.value in ("dual_infeasible", "primal_infeasible")


@pytest.mark.parametrize("seed", range(25))
def test_random_programs_with_and_without_bounds(seed: int) -> None:
    agrees(seed, SHIMS[seed % 2])


@pytest.mark.long
def test_a_thousand_random_programs() -> None:
    for seed in range(100, 1100):
        agrees(seed, SHIMS[seed % 2])


@pytest.mark.parametrize("shim", SHIMS)
def test_the_search_ends_at_a_gap_and_when_the_callback_says_so(shim: str) -> None:
    lp = hard(30, 3)
    found = solve_integer(lp, shim, gap=10.0, deadline_s=30)
    assert found.x is not None
    assert found.solve_time_s < 20
    told: list[tuple[float, float]] = []
    found = solve_integer(hard(), shim, callback=lambda value, bound: told.append((value, bound)) or len(told) > 10)
    assert len(told) <= 12
    assert found.status.value in ("feasible", "none_found")
    assert all(bound <= value or np.isnan(value) for value, bound in told)
    found = solve_integer(hard(), "exact", max_nodes=1, deadline_s=60)
    assert found.solve_time_s < 50
    with pytest.raises(SettingsError, match="gap"):
        solve_integer(lp, shim, gap=-1.0)
    with pytest.raises(SettingsError, match="max_nodes"):
        solve_integer(lp, shim, max_nodes=0)
    with pytest.raises(SettingsError, match="callback"):
        solve_integer(lp, shim, callback=3)  # type: ignore[arg-type]


def test_an_error_of_the_callback_is_the_callers() -> None:
    def wrong(value: float, bound: float) -> bool:
        raise ZeroDivisionError("mine")

    with pytest.raises(ZeroDivisionError, match="mine"):
        solve_integer(hard(), callback=wrong)


@pytest.mark.parametrize("seconds", [0.2, 0.5, 0.8])
@pytest.mark.parametrize("shim", SHIMS)
def test_ctrl_c_ends_a_search_in_its_first_second(shim: str, seconds: float) -> None:
    """Branch and bound runs in this process then, and HiGHS must not swallow what the handler raises."""
    lp = hard()
    threading.Timer(seconds, os.kill, (os.getpid(), signal.SIGINT)).start()
    found = solve_integer(lp, shim, deadline_s=600)
    assert found.solve_time_s < 300.0
    assert found.status.value in ("feasible", "none_found")


@pytest.mark.parametrize("seconds", [0.3, 1.5])
def test_what_a_signals_handler_raises_is_the_callers(seconds: float) -> None:
    """As of a test's own time limit; the handlers are as they were afterwards."""

    def late(number: int, frame: object) -> None:
        raise TimeoutError("too long")

    before = signal.signal(signal.SIGALRM, late)
    try:
        signal.setitimer(signal.ITIMER_REAL, seconds)
        with pytest.raises(TimeoutError, match="too long"):
            solve_integer(hard(), "exact", deadline_s=600)
        assert signal.getsignal(signal.SIGALRM) is late
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0.0)
        signal.signal(signal.SIGALRM, before)


@pytest.mark.parametrize("shim", SHIMS)
def test_ctrl_c_ends_a_search_in_branch_and_bound(shim: str) -> None:
    threading.Timer(1.0, os.kill, (os.getpid(), signal.SIGINT)).start()
    began = time.thread_time()
    found = solve_integer(hard(), shim)
    assert time.thread_time() - began < 30.0
    assert found.status.value in ("feasible", "none_found")


def test_it_needs_no_highspy() -> None:
    """Small programs go to a process of their own then, with SciPy's branch and bound."""
    program = (
        "import sys; sys.modules['highspy'] = None\n"
        "from copter import LinearProgram, solve_integer\n"
        "lp = LinearProgram([-3., -2.], [[2., 3.]], row_upper=[7.5], col_upper=[2., 2.], integrality=[True, True])\n"
        "print(solve_integer(lp, deadline_s=20).objective)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=True)
    assert float(done.stdout) == -8.0
