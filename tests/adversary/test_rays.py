"""Verdicts of infeasibility and unboundedness where coefficients go from 1e-9 to 1e12, against exact arithmetic."""

from __future__ import annotations

import numpy as np
import pytest

import copter
from copter import LinearProgram, Settings, Status
from copter.testing import is_improving_ray, is_infeasibility_ray
from tests.copter.exact import exact

BLOCK = 40


def program(seed: int) -> LinearProgram:
    """A program of any kind, its figures of all sizes."""
    rng = np.random.default_rng(seed)
    m, n = int(rng.integers(1, 6)), int(rng.integers(1, 7))
    sizes = rng.uniform(-9, 12, (m, n)) if seed % 2 else rng.integers(-9, 13, (m, n))
    entries = rng.normal(size=(m, n)) if seed % 2 else rng.choice([-1.0, 1.0], (m, n))
    matrix = entries * 10.0**sizes * (rng.random((m, n)) < 0.7)
    lower = np.where(rng.random(n) < 0.5, 0.0, -rng.exponential(1.0, n) * 10.0 ** rng.uniform(-3, 6, n))
    lower[rng.random(n) < 0.25] = -np.inf
    upper = np.where(rng.random(n) < 0.5, np.inf, rng.exponential(1.0, n) * 10.0 ** rng.uniform(-3, 6, n))
    right = rng.normal(size=m) * 10.0 ** rng.uniform(-6, 12, m) * (rng.random(m) < 0.8)
    row_lower = np.where(rng.random(m) < 0.5, -np.inf, right - rng.exponential(1.0, m) * (rng.random(m) < 0.7))
    row_upper = np.where(rng.random(m) < 0.5, np.inf, right + rng.exponential(1.0, m) * (rng.random(m) < 0.7))
    cost = rng.normal(size=n) * 10.0 ** rng.uniform(-9, 12, n) * (rng.random(n) < 0.8)
    sense = "min" if rng.random() < 0.5 else "max"
    return LinearProgram(cost, matrix, row_lower, row_upper, lower, np.maximum(lower, upper), sense=sense)


def held(lp: LinearProgram, method: str) -> Status:
    """The status of a method, after a look at what it claims against the exact one."""
    found = copter.solve(lp, Settings(method=method, time_limit_s=2.0))  # type: ignore[arg-type]
    truth, _ = exact(lp)
    if found.status is Status.PRIMAL_INFEASIBLE:
        assert truth is Status.PRIMAL_INFEASIBLE
        assert is_infeasibility_ray(lp, found.ray)
    if found.status is Status.DUAL_INFEASIBLE:
        assert truth is not Status.OPTIMAL
        assert is_improving_ray(lp, found.ray)
    return found.status


@pytest.mark.parametrize("method", ["auto", "simplex", "interior"])
@pytest.mark.parametrize("first", range(0, 3 * BLOCK, BLOCK))
def test_no_verdict_is_false(method: str, first: int) -> None:
    found = [held(program(seed), method) for seed in range(first, first + BLOCK)]
    assert sum(status in (Status.PRIMAL_INFEASIBLE, Status.DUAL_INFEASIBLE) for status in found) > BLOCK // 3


@pytest.mark.parametrize("seed", [74, 193, 387, 510, 598, 742, 823, 920, 1078])
def test_what_is_unbounded_along_a_cheap_column_is_not_called_optimal(seed: int) -> None:
    """Its reduced cost is within tolerance of the dearest one's size, and no bound stops it."""
    lp = program(seed)
    assert held(lp, "auto") is Status.DUAL_INFEASIBLE
    assert exact(lp)[0] is Status.DUAL_INFEASIBLE


def test_a_direction_of_many_columns_is_found_among_dear_ones() -> None:
    """No column improves alone; the dear one hides them all."""
    lp = LinearProgram(
        [4e9, -2e-7, 1e-8, 0.0], [[0.0, 1.0, -1.0, 0.0], [1.0, 0.0, 0.0, 1.0]],
        [0.0, 1.0], [0.0, 1.0], np.zeros(4), [np.inf, np.inf, np.inf, 0.5],
    )  # fmt: skip
    assert held(lp, "auto") is Status.DUAL_INFEASIBLE
    assert held(LinearProgram(lp.c, lp.A, lp.row_lower, lp.row_upper, 0.0, 1e3), "auto") is Status.OPTIMAL


@pytest.mark.slow
@pytest.mark.parametrize("method", ["proximal", "price_descent"])
def test_no_verdict_of_a_method_of_prices_is_false(method: str) -> None:
    found = [held(program(seed), method) for seed in range(BLOCK)]
    assert Status.PRIMAL_INFEASIBLE in found


def test_a_direction_that_breaks_a_row_of_small_entries_is_no_ray() -> None:
    lp = LinearProgram([-1.0, 0.0], [[-7.5e-6, 1.0]], [0.0], [np.inf], [0.0, 0.0], [np.inf, np.inf])
    assert not is_improving_ray(lp, np.array([1.0, 0.0]))  # the row falls by 7.5e-6 for each unit, without end
    assert is_improving_ray(lp, np.array([1.0, 7.5e-6]))


def test_an_entry_that_its_bound_stops_is_left_out_of_a_ray() -> None:
    lp = LinearProgram([-1.0, 0.0], [[-1e-3, 1e9]], [0.0], [np.inf], [0.0, 0.0], [np.inf, 9.0])
    assert not is_improving_ray(lp, np.array([1.0, 1e-12]))
    assert is_improving_ray(LinearProgram([-1.0], [[1.0]], [0.0], [np.inf], [0.0], [np.inf]), np.ones(1))


def test_multipliers_that_leave_a_small_column_unsupported_prove_nothing() -> None:
    lp = LinearProgram([0.0], [[1e-8]], [1.0], [np.inf], [0.0], [np.inf])  # x = 1e8 satisfies the row
    assert not is_infeasibility_ray(lp, np.ones(1))
    shut = LinearProgram([0.0], [[1e-8]], [1.0], [np.inf], [0.0], [1e7])
    assert is_infeasibility_ray(shut, np.ones(1))
