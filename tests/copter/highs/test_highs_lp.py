"""HiGHS in this process: however many threads whoever ran it last asked for."""

from __future__ import annotations

import subprocess
import sys

import highspy
import pytest

from copter import LinearProgram, solve_integer
from copter.highs.lp import highs_lp, run_highs

LP = LinearProgram([3.0, 2.0], [[1.0, 1.0], [1.0, 3.0]], row_upper=[4.0, 8.0], col_upper=[3.0, 8.0], sense="max")


def solver_of(threads: int) -> highspy.Highs:
    solver = highspy.Highs()
    solver.silent()
    solver.setOptionValue("threads", threads)
    solver.passModel(highs_lp(LP))
    return solver


def test_another_number_of_threads_is_no_refusal() -> None:
    """Of any number after any other, also of solvers that are kept."""
    solvers = {threads: solver_of(threads) for threads in (0, 1, 2, 3)}
    for threads in (2, 1, 3, 0, 1, 2, 2, 0, 3, 1):
        solvers[threads].clearSolver()
        run_highs(solvers[threads])
        assert solvers[threads].getModelStatus() == highspy.HighsModelStatus.kOptimal
        assert solvers[threads].getInfo().objective_function_value == pytest.approx(11.0)


def test_a_search_goes_on_whatever_ran_before() -> None:
    for threads in (2, 1, 3):
        run_highs(solver_of(threads))
        whole = LinearProgram(
            [-3.0, -2.0], [[2.0, 3.0]], row_upper=[7.5], col_upper=[2.0, 2.0], integrality=[True, True]
        )
        assert solve_integer(whole, "exact", deadline_s=60).objective == pytest.approx(-8.0)


def test_the_first_object_of_a_process_prints_nothing() -> None:
    pytest.importorskip("highspy")
    code = "from copter.highs.lp import silent_highs as made; print('before'); made(); made(); print('after')"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.split() == ["before", "after"]
