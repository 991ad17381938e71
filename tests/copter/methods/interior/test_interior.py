"""The interior-point method: every kind of program, every ending, and the parts it is made of (method/interior.md)."""

from __future__ import annotations

import os
import signal
import threading
import time

import numpy as np
import pytest
import scipy.sparse as sp
from judge import assert_optimal, faults, is_improving_ray, is_infeasibility_ray

import copter.runtime.memory
from copter import LinearProgram, Session, Settings, Status, solve
from copter.methods.interior.method import InteriorSolve, cleaned
from copter.methods.interior.verdicts import elastic, recession
from copter.runtime.settings import Internals
from copter.runtime.watch import Watch
from copter.testing import sia_like_model
from tests.copter.by_highs import highs
from tests.copter.problems import ALL, INFEASIBLE, OPTIMAL, UNBOUNDED, Problem
from tests.copter.random_programs import random_program

INF = np.inf
PLAIN = Settings(method="interior", internals=Internals(presolve=False))
WAYS = {
    "auto": Settings(),
    "presolved": Settings(method="interior"),
    "interior": PLAIN,
    "accurate": Settings(
        method="interior", internals=Internals(presolve=False), tolerance=1e-9, absolute_tolerance=1e-9
    ),
    "accurate auto": Settings(internals=Internals(presolve=False), tolerance=1e-9, absolute_tolerance=1e-9),
    "proximal": Settings(method="proximal"),
}
SHAPED = {
    f"{kind} {seed}": random_program(kind, seed) for kind in ("bounded", "chain", "covering") for seed in range(3)
}

every_problem = pytest.mark.parametrize("problem", ALL, ids=str)
every_way = pytest.mark.parametrize("settings", WAYS.values(), ids=WAYS)
every_shape = pytest.mark.parametrize("lp", SHAPED.values(), ids=SHAPED)


def long_program(m: int = 250, seed: int = 0) -> LinearProgram:
    """Dense enough that one solve takes seconds."""
    rng = np.random.default_rng(seed)
    a = rng.normal(size=(m, 4 * m))
    return LinearProgram(rng.random(4 * m), a, a @ rng.random(4 * m))


# Every kind of program ------------------------------------------------------------------------------------------------


@every_problem
@every_way
def test_every_kind_ends_as_worked_out_by_hand(problem: Problem, settings: Settings) -> None:
    solution = solve(problem.lp, settings)
    assert solution.status in problem.statuses
    assert faults(problem.lp, solution, settings.tolerance) == []
    if solution.status is not Status.OPTIMAL:
        return
    assert solution.objective == pytest.approx(problem.objective, rel=3e-6, abs=3e-6)
    if problem.x is not None:
        np.testing.assert_allclose(solution.x, problem.x, atol=1e-4, rtol=1e-5)
    if problem.y is not None:
        np.testing.assert_allclose(solution.y, problem.y, atol=1e-4, rtol=1e-5)


@pytest.mark.parametrize("problem", OPTIMAL, ids=str)
def test_interior_answers_are_nearly_exact(problem: Problem) -> None:
    """Polishing (I8) leaves rounding only."""
    judged = assert_optimal(problem.lp, *pair(solve(problem.lp, PLAIN)), tolerance=1e-10)
    assert judged.objective == pytest.approx(problem.objective, rel=1e-9, abs=1e-9)


def pair(solution: copter.Solution) -> tuple[np.ndarray, np.ndarray]:
    return solution.x, solution.y


@every_shape
def test_maximised_is_the_mirror_of_minimised(lp: LinearProgram) -> None:
    other = LinearProgram(
        -lp.c, lp.A, lp.row_lower, lp.row_upper, lp.col_lower, lp.col_upper,
        sense="max" if lp.sense == "min" else "min", offset=-lp.offset,
    )  # fmt: skip
    one, two = solve(lp, PLAIN), solve(other, PLAIN)
    assert one.objective == pytest.approx(-two.objective, rel=1e-9, abs=1e-9)
    np.testing.assert_allclose(one.x, two.x, atol=1e-6)
    np.testing.assert_allclose(one.y, -two.y, atol=1e-6)


@pytest.mark.parametrize("exponent", [-6, -3, 3, 6])
@pytest.mark.parametrize("part", ["rows", "columns", "costs", "bounds"])
def test_units_do_not_matter(part: str, exponent: int) -> None:
    """Every second row, column, cost or all bounds in other units: the same optimum, in those."""
    lp, unit = SHAPED["bounded 1"], 10.0**exponent
    m, n = lp.shape
    row = np.where(np.arange(m) % 2, unit, 1.0) if part == "rows" else np.ones(m)
    column = np.where(np.arange(n) % 2, unit, 1.0) if part == "columns" else np.ones(n)
    cost, size = unit if part == "costs" else 1.0, unit if part == "bounds" else 1.0
    scaled = LinearProgram(
        cost * lp.c * column, sp.diags_array(row) @ lp.A @ sp.diags_array(column),
        size * row * lp.row_lower, size * row * lp.row_upper,
        size * lp.col_lower / column, size * lp.col_upper / column, sense=lp.sense,
    )  # fmt: skip
    best, solution = solve(lp), solve(scaled)
    assert solution.status is Status.OPTIMAL
    error = 1e-6 * (1.0 + abs(solution.objective)) + 2e-6 * (np.abs(solution.y).sum() + np.abs(solution.x).sum())
    assert abs(solution.objective - cost * size * best.objective) <= error


@pytest.mark.parametrize("seed", [234, 238, 278, 307, 309])
def test_coefficients_of_every_size(seed: int) -> None:
    """Scaled columns hide the bounds of tiny coefficients here: scaled rows only, or the other method, help."""
    lp = random_program("sizes_apart", seed)
    solution = solve(lp)
    assert solution.status is Status.OPTIMAL
    assert faults(lp, solution) == []
    assert solution.objective == pytest.approx(highs(lp)[1], rel=2e-6)


def test_a_start_that_is_too_near_to_the_bounds_is_not_the_last() -> None:
    """A chain that grows by a tenth a period: from 1 inside, steps become too short to move."""
    lp = random_program("chain", 505, most=20)
    solution = solve(lp, PLAIN)
    assert solution.status is Status.OPTIMAL
    assert faults(lp, solution) == []
    assert solution.objective == pytest.approx(highs(lp)[1], rel=1e-9)


def test_dependent_rows_do_not_throw_the_prices_away() -> None:
    """An assignment program has one row too many; its prices are fixed up to a shift, and must stay small."""
    for seed in (1, 3, 8):
        lp = random_program("assignment", seed)
        solution = solve(lp, PLAIN)
        assert solution.status is Status.OPTIMAL
        assert np.abs(solution.y).max() < 1e3
        assert solution.objective == pytest.approx(highs(lp)[1], abs=1e-9)


def test_a_gap_is_judged_in_the_units_of_the_objective_as_given() -> None:
    """Costs are scaled by 1e8 here; a gap of 1e-6 in scaled units would be one of 100."""
    lp = random_program("sizes_apart", 14)
    solution = solve(lp)
    assert solution.status is Status.OPTIMAL
    assert solution.residuals.gap_absolute < 1e-6


# Endings --------------------------------------------------------------------------------------------------------------


@every_way
def test_the_clock_ends_a_solve(settings: Settings) -> None:
    lp = long_program()
    solution = solve(
        lp,
        Settings(internals=Internals(presolve=settings.internals.presolve), method=settings.method, time_limit_s=0.02),
    )
    assert solution.status is Status.TIME_LIMIT
    assert solution.ray is None
    assert faults(lp, solution) == []


def test_the_clock_ends_a_factorisation() -> None:
    """While it is under way: the factor of a dense program takes several looks at the clock."""
    lp = long_program(400)
    calls = []

    class Impatient(Watch):
        def __call__(self) -> bool:
            calls.append(self.elapsed_s)
            return len(calls) > 2

    solution = InteriorSolve(lp, PLAIN, Impatient(INF)).run()
    assert solution.status is Status.TIME_LIMIT
    assert 3 <= len(calls) <= 6
    assert solution.iterations == 0
    assert faults(lp, solution) == []


@pytest.mark.parametrize("iterations", [1, 2, 4])
@pytest.mark.parametrize("presolve", [True, False])
def test_the_limit_of_iterations_ends_a_solve(iterations: int, presolve: bool) -> None:
    lp = random_program("covering", 1)
    solution = solve(
        lp, Settings(method="interior", internals=Internals(max_interior_iterations=iterations, presolve=presolve))
    )
    assert solution.status is Status.ITERATION_LIMIT
    assert solution.iterations == iterations
    assert faults(lp, solution) == []
    assert (solution.x >= lp.col_lower).all()
    assert (solution.x <= lp.col_upper).all()


@every_way
def test_a_callback_ends_a_solve(settings: Settings) -> None:
    lp, seen = long_program(60), []

    def callback(iterations: int, gap: float, primal: float) -> bool:
        seen.append((iterations, gap, primal))
        return len(seen) == 3

    solution = solve(lp, settings, callback)
    if solution.status is Status.OPTIMAL:  # in fewer passes than three
        assert len(seen) < 3
        return
    assert solution.status is Status.INTERRUPTED
    assert len(seen) == 3
    assert [entry[0] for entry in seen] == sorted(entry[0] for entry in seen)
    assert all(entry[1] >= 0.0 and entry[2] >= 0.0 for entry in seen)
    assert faults(lp, solution) == []
    assert solve(lp, settings).status is Status.OPTIMAL


def test_a_callback_that_raises_is_heard() -> None:
    def callback(iterations: int, gap: float, primal: float) -> bool:
        raise RuntimeError("the caller's own")

    with pytest.raises(RuntimeError, match="the caller's own"):
        solve(long_program(30), callback=callback)
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


@pytest.mark.parametrize(
    "settings", [WAYS["presolved"], WAYS["interior"], WAYS["proximal"]], ids=["presolved", "interior", "proximal"]
)
def test_ctrl_c_ends_a_solve_and_the_next_one_works(settings: Settings) -> None:
    lp = long_program(250)
    pressed = threading.Event()

    def press(iterations: int, gap: float, primal: float) -> None:
        """Ctrl-C by another thread, once the solve is under way."""
        if not pressed.is_set():
            pressed.set()
            thread = threading.Thread(target=os.kill, args=(os.getpid(), signal.SIGINT))
            thread.start()
            thread.join()

    solution = solve(lp, settings, press)
    assert solution.status is Status.INTERRUPTED
    assert faults(lp, solution) == []
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    small = OPTIMAL[0]
    assert solve(small.lp, settings).objective == pytest.approx(small.objective, rel=1e-5)


def test_ctrl_c_ends_a_sessions_solve_and_leaves_it_usable() -> None:
    model = sia_like_model(400, 512, 4)
    session = Session(model)
    stop = threading.Event()

    def press(passes: int, gap: float, primal: float) -> None:
        if passes == 1 and not stop.is_set():
            stop.set()
            os.kill(os.getpid(), signal.SIGINT)
            time.sleep(0.01)

    stopped = session.solve(callback=press)
    assert stop.is_set()
    assert stopped.status is Status.INTERRUPTED
    model.remove_request("job-3")
    solution = session.solve()
    assert solution.status is Status.OPTIMAL
    assert faults(model.to_linear_program(), solution) == []
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_a_second_ctrl_c_raises_and_a_handler_of_the_callers_is_left_alone() -> None:
    with Watch(INF) as watch:
        signal.raise_signal(signal.SIGINT)
        assert watch()
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)
    heard = []
    before = signal.signal(signal.SIGINT, lambda number, frame: heard.append(number))
    try:
        with Watch(INF) as watch:
            signal.raise_signal(signal.SIGINT)
            assert not watch()
    finally:
        signal.signal(signal.SIGINT, before)
    assert heard == [signal.SIGINT]


def test_a_watch_within_another_hears_what_that_one_caught() -> None:
    with Watch(INF) as outer:
        with Watch(INF) as inner:
            signal.raise_signal(signal.SIGINT)
            assert inner()
            assert inner.interrupted
        assert outer.interrupted
    with Watch(INF) as fresh:
        assert not fresh()


def test_a_solve_in_another_thread_leaves_signals_alone() -> None:
    found = []
    thread = threading.Thread(target=lambda: found.append(solve(OPTIMAL[0].lp)))
    thread.start()
    thread.join()
    assert found[0].status is Status.OPTIMAL


@pytest.mark.slow
@pytest.mark.parametrize("size", [1e-9, 1e-7])
def test_an_answer_that_cannot_be_had_is_no_optimum(size: float) -> None:
    """At a tolerance that double precision cannot reach the status says so, and the point's figures are true."""
    lp = random_program("huge_free", 18)
    settings = Settings(tolerance=1e-18 * size, absolute_tolerance=1e-18 * size)
    solution = solve(lp, settings)
    assert solution.status is Status.NUMERICAL_ERROR
    assert solution.ray is None
    assert faults(lp, solution) == []
    assert max(solution.residuals.primal, solution.residuals.gap) < 1e-6


# Rays -----------------------------------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("presolve", [True, False])
@pytest.mark.parametrize("kind", ["infeasible", "neither", "unbounded", "anything", "integers"])
def test_rays_prove_what_they_say(kind: str, presolve: bool) -> None:
    endings = set()
    for seed in range(12):
        lp = random_program(kind, seed)
        solution = solve(lp, Settings(internals=Internals(presolve=presolve)))
        assert faults(lp, solution) == []
        endings.add(solution.status)
    expected = {
        "infeasible": {Status.PRIMAL_INFEASIBLE},
        "neither": {Status.PRIMAL_INFEASIBLE},
        "unbounded": {Status.DUAL_INFEASIBLE},
    }
    every = {Status.OPTIMAL, Status.PRIMAL_INFEASIBLE, Status.DUAL_INFEASIBLE}
    assert endings == expected.get(kind, every)


@pytest.mark.parametrize("problem", INFEASIBLE, ids=str)
def test_the_elastic_programs_prices_are_a_farkas_ray(problem: Problem) -> None:
    """I10: feasible and bounded whatever the program is, and positive where that is infeasible."""
    program = elastic(problem.lp)
    status, violation, _, y = highs(program)
    assert "kOptimal" in str(status)
    assert violation > 0.0
    assert is_infeasibility_ray(problem.lp, y)
    assert solve(program, PLAIN).objective == pytest.approx(violation, rel=1e-6)


@pytest.mark.parametrize("problem", OPTIMAL, ids=str)
def test_the_elastic_programs_value_is_zero_where_there_is_a_point(problem: Problem) -> None:
    assert solve(elastic(problem.lp), PLAIN).objective == pytest.approx(0.0, abs=1e-7)


@pytest.mark.parametrize("problem", UNBOUNDED, ids=str)
def test_the_recession_programs_answer_is_an_improving_ray(problem: Problem) -> None:
    """I11."""
    solution = solve(recession(problem.lp), PLAIN)
    assert solution.objective < 0.0
    assert is_improving_ray(problem.lp, solution.x)


def test_a_value_of_rounding_size_proves_nothing() -> None:
    """Twelve rows of an assignment add up to zero: multipliers that are right for any feasible program."""
    lp = random_program("assignment", 8)
    y = np.concatenate((np.ones(6), -np.ones(6)))
    assert not is_infeasibility_ray(lp, y * (1.0 + 1e-16))
    assert not is_infeasibility_ray(lp, np.nextafter(y, 2.0))


def test_what_no_bound_supports_must_be_small_against_the_value() -> None:
    """x >= 0, 1e-7 x >= 1e-6 has the point 10; the multiplier 1 has value 1e-6 and 1e-7 unsupported."""
    assert not is_infeasibility_ray(LinearProgram([0.0], [[1e-7]], row_lower=[1e-6]), np.array([1.0]))
    assert is_infeasibility_ray(LinearProgram([0.0], [[1e-15]], row_lower=[1e-6]), np.array([1.0]))
    assert not is_improving_ray(LinearProgram([-1e-9, 0], [[1e-7, 1.0]], row_upper=[1.0]), np.array([1e-3, 1.0]))
    assert is_improving_ray(LinearProgram([-1.0], [[1e-9]], row_upper=[1.0]), np.array([1.0]))
    assert not is_improving_ray(LinearProgram([-1.0], [[1e-6]], row_upper=[1.0]), np.array([1.0]))
    for ray in (np.array([np.inf]), np.array([np.nan]), np.array([0.0])):
        assert not is_infeasibility_ray(LinearProgram([0.0], [[1.0]], row_lower=[1.0]), ray)
        assert not is_improving_ray(LinearProgram([-1.0], [[1.0]]), ray)


def test_a_ray_is_cleaned_of_noise_and_has_its_largest_entry_one() -> None:
    np.testing.assert_array_equal(cleaned(np.array([1e-12, -4.0, 2.0])), [0.0, -1.0, 0.5])
    assert cleaned(np.zeros(3)) is None
    assert cleaned(np.array([np.inf, 1.0])) is None
    assert cleaned(np.array([np.nan])) is None


def test_rows_that_hold_only_to_within_tolerance_end_either_way() -> None:
    """By 1e-4 infeasible, by 1e-9 optimal or infeasible with a ray, never anything that does not hold."""
    for gap in 10.0 ** np.arange(-9.0, -3.0):
        lp = LinearProgram([1.0, 2.0], [[1, 1], [1, 1]], [1.0, -INF], [INF, 1.0 - gap], 0.0, 4.0)
        solution = solve(lp, PLAIN)
        allowed = {Status.PRIMAL_INFEASIBLE} if gap > 2e-6 else {Status.PRIMAL_INFEASIBLE, Status.OPTIMAL}
        assert solution.status in allowed
        assert faults(lp, solution) == []
