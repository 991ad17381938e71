"""Rolling windows through the doors: whatever leaves, comes or changes its meaning, the answer is HiGHS's."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.optimize import linprog as scipys_linprog

from copter.interop.live_program import Edits, LiveProgram, LivePrograms
from copter.interop.scipy_linprog import linprog
from copter.problem.linear_program import LinearProgram

LONG, UNITS = 12, 3


def window(first: int, steps: int = LONG, level: float = 1.0) -> dict[str, Any]:
    """SciPy's arguments: units step by step and a store's level, whose changes serve a demand."""
    rng = np.random.default_rng(3)
    demand, price = rng.uniform(3.0, 5.0, 200), rng.uniform(1.0, 5.0, (200, UNITS))
    here = slice(first, first + steps)
    A = np.zeros((steps, (UNITS + 1) * steps))
    for step in range(steps):
        A[step, UNITS * step : UNITS * (step + 1)] = 1.0
        A[step, UNITS * steps + step] = -1.0
        if step:
            A[step, UNITS * steps + step - 1] = 1.0
    b = demand[here].copy()
    b[0] -= level
    c = np.concatenate((price[here].ravel(), np.zeros(steps)))
    return {"c": c, "A_eq": A, "b_eq": b, "bounds": [(0, 2)] * (UNITS * steps) + [(0, 4)] * steps}


def program(first: int, steps: int = LONG) -> LinearProgram:
    given = window(first, steps)
    lower, upper = np.array(given["bounds"], dtype=float).T
    return LinearProgram(given["c"], given["A_eq"], given["b_eq"], given["b_eq"], lower, upper)


@pytest.mark.usefixtures("still_clock")
@pytest.mark.parametrize("k", [1, 3, LONG // 2, LONG + 8])
@pytest.mark.parametrize("shrink", [0, 1])
def test_windows_equal_highs(k: int, shrink: int) -> None:
    result = None
    for step in range(5):
        given = window(k * step, LONG - shrink * step, 0.5 * step)
        result = linprog(**given, x0=result)
        assert result.success
        assert result.fun == pytest.approx(scipys_linprog(**given).fun, rel=1e-8)


@pytest.mark.usefixtures("still_clock")
def test_another_shape_goes_on_from_the_basis() -> None:
    live = LiveProgram()
    live.solve(program(0))
    answer = live.solve(program(2, LONG - 2))
    assert answer.warm
    assert live.edits == Edits(shifted=True)
    assert answer.objective == pytest.approx(LiveProgram().solve(program(2, LONG - 2)).objective)
    live.solve(program(150))  # nothing of the last window is in it
    assert live.edits == Edits(rebuilt=True)


@pytest.mark.usefixtures("still_clock")
def test_a_pool_hands_the_basis_on_and_keeps_the_older_structure() -> None:
    pool = LivePrograms()
    for first, steps, warm in ((0, 12, False), (1, 11, True), (2, 12, True), (3, 11, True)):
        answer = pool.solve(program(first, steps))
        assert answer.warm is warm
        assert answer.objective == pytest.approx(LiveProgram().solve(program(first, steps)).objective)


@pytest.mark.usefixtures("still_clock")
@pytest.mark.parametrize("seed", range(3))
def test_rows_that_change_their_meaning(seed: int) -> None:
    rng, result = np.random.default_rng(seed), None
    for step in range(4):
        given = window(step)
        row, column = rng.permutation(LONG), rng.permutation(len(given["c"]))
        mixed = {
            "c": given["c"][column],
            "A_eq": given["A_eq"][row][:, column],
            "b_eq": given["b_eq"][row],
            "bounds": [given["bounds"][j] for j in column],
        }
        result = linprog(**mixed, x0=result)
        assert result.fun == pytest.approx(scipys_linprog(**given).fun, rel=1e-8)
