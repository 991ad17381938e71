"""What made the interior-point method stall on published programs, in programs of a few rows (I5, I7)."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

from copter import LinearProgram, Settings, solve
from copter.methods.interior.iteration import figures
from copter.methods.interior.normal_equations import NormalEquations
from copter.methods.interior.point import Misfit
from copter.methods.solve import solve_relaxation
from copter.problem.checker import check
from copter.runtime.settings import Internals

MOST_ITERATIONS = 60


@pytest.mark.parametrize("method", ["auto", "interior"])
@pytest.mark.parametrize("presolve", [True, False])
@pytest.mark.parametrize("gain", [1e-4, 1e-6])
def test_a_column_that_must_go_to_a_hundred_million(gain: float, presolve: bool, method: Any) -> None:
    """Two columns that nearly undo each other, as in greenbea: the optimum is where what they lose has been lost."""
    there, back = 1.4146, 0.7069
    lost = 1.0 - there * back
    lp = LinearProgram(
        [-gain, 0.0, 0.0],
        [[there, -1.0, 0.0], [-1.0, back, 1.0]],
        [0.0, 1.0],
        [0.0, 1.0],
        col_upper=[np.inf, np.inf, 2e3],
    )
    found = solve(lp, Settings(method=method, internals=Internals(presolve=presolve)))
    assert found.status.value == "optimal"
    assert found.x[0] == pytest.approx((2e3 - 1.0) / lost, rel=1e-5)
    assert found.iterations <= MOST_ITERATIONS


@pytest.mark.parametrize("seed", range(4))
def test_entries_of_the_factor_do_not_grow(seed: int) -> None:
    """Dependent rows and weights over thirty powers of ten, as at the end of dfl001: finite and close."""
    rng = np.random.default_rng(seed)
    n = 14
    matrix = sp.csr_array(
        sp.vstack((sp.kron(sp.eye_array(n), np.ones((1, n))), sp.kron(np.ones((1, n)), sp.eye_array(n))))
    )
    matrix = sp.csr_array(sp.vstack((matrix, matrix[rng.permutation(2 * n)[:n]])))
    theta = 10.0 ** rng.uniform(-17, 14, n * n)
    system = NormalEquations(matrix)
    assert system.factorise(theta, 1e-11) == 0
    right = matrix @ (np.sqrt(theta) * rng.normal(size=n * n))
    y = system.solve(right)
    assert np.isfinite(y).all()
    assert np.linalg.norm(matrix @ (theta * (matrix.T @ y)) - right) <= 1e-5 * np.linalg.norm(right)


@pytest.mark.parametrize("method", ["auto", "interior"])
@pytest.mark.parametrize("seed", range(4))
def test_costs_of_ten_million_on_a_degenerate_program(seed: int, method: Any) -> None:
    """Partitioning with penalties, as in dfl001: rounding of large prices breaks the reduced costs' signs."""
    rng = np.random.default_rng(seed)
    rows, columns = 30, 120
    a = (rng.random((rows, columns)) < 0.12).astype(float)
    cost = rng.integers(1, 8, columns) * 1e7 + rng.integers(1, 10**5, columns)
    whole = np.hstack((a, np.eye(rows), -np.eye(rows)))
    lp = LinearProgram(np.concatenate((cost, np.full(2 * rows, 5e8))), whole, np.ones(rows), np.ones(rows))
    found = solve(lp, Settings(method=method))
    assert found.status.value == "optimal"
    assert method == "auto" or found.iterations <= MOST_ITERATIONS
    judged = check(lp, found.x, found.y)
    assert judged.gap <= 1e-6
    assert judged.dual_absolute <= 1e-6


def test_a_relaxation_alone_is_not_moved_to_a_vertex(monkeypatch: pytest.MonkeyPatch) -> None:
    """It takes about as long as the solve (seymour: 30 times as long, by keeping its blocks from being seen)."""
    looked = []
    monkeypatch.setattr("copter.methods.interior.method.vertices", lambda *_: looked.append(True) or [])
    rng = np.random.default_rng(0)
    lp = LinearProgram(np.ones(30), rng.random((10, 30)) < 0.3, row_lower=1.0, col_upper=1.0, integrality=np.ones(30))
    assert solve(lp, Settings(method="interior")).status.value == "optimal"
    assert not looked
    assert solve_relaxation(lp, Settings(method="interior")).status.value == "optimal"
    assert looked


def test_figures_below_the_goal_are_no_progress() -> None:
    none = np.zeros(1)
    misfit = Misfit(none, none, none, 1e-12, 1e-12, 1e-11, 1e-9)
    np.testing.assert_array_equal(figures(misfit, 1e-10), [1e-10, 1e-10, 1e-9, np.inf])
