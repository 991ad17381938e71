"""Solved again from the last basis: as HiGHS, whatever has moved, with bounds written as rows."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp

import copter
from copter import LinearProgram, Settings, Status
from copter.methods.simplex.row_bounds import CrossedError, RowBounds
from copter.methods.simplex.warm_basis import WarmBasis
from copter.problem.checker import check, is_infeasibility_ray
from copter.runtime.watch import Watch


def program(seed: int, m: int = 12, n: int = 30) -> LinearProgram:
    """Rows of all kinds over half-full columns, and bounds of two thirds of the columns written as rows."""
    rng = np.random.default_rng(seed)
    A = sp.random_array((m, n), density=0.4, rng=rng, format="csc")
    single = sp.csc_array((rng.choice([-2.0, -1.0, 0.5, 3.0], n), (np.arange(n), np.arange(n))), shape=(n, n))[
        : 2 * n // 3
    ]
    x = rng.uniform(0.0, 1.0, n)
    whole = sp.csc_array(sp.vstack([A, single]))
    b, kind = whole @ x, rng.integers(0, 4, whole.shape[0])
    lower = np.where(kind == 0, -np.inf, b - 0.3 * (kind != 1))
    upper = np.where(kind == 2, np.inf, b + 0.3 * (kind != 1))
    sense = "max" if seed % 2 else "min"
    return LinearProgram(rng.normal(size=n), whole, lower, upper, np.zeros(n), rng.uniform(1.5, 3.0, n), sense=sense)


def moved(lp: LinearProgram, what: str, rng: np.random.Generator) -> LinearProgram:
    if what == "c":
        return replace(lp, c=lp.c + rng.normal(size=len(lp.c)))
    if what == "bounds":
        return replace(lp, col_upper=lp.col_upper + rng.uniform(0.0, 0.5, len(lp.c)))
    if what == "A":
        A = lp.A.copy()
        A.data = A.data * rng.uniform(0.99, 1.01, A.nnz)
        return replace(lp, A=A, row_lower=lp.row_lower - 0.2, row_upper=lp.row_upper + 0.2)
    by = rng.uniform(0.0, 0.3, len(lp.row_lower))
    return replace(lp, row_lower=lp.row_lower - by, row_upper=lp.row_upper + by)


@pytest.mark.parametrize("seed", range(12))
def test_every_kind_of_change(seed: int) -> None:
    rng, lp = np.random.default_rng(seed), program(seed)
    kept = WarmBasis(lp, copter.solve(lp).x)
    assert kept.form is not None
    assert kept.form.tableau.rows < lp.shape[0]
    for what in ("rows", "c", "bounds", "A", "rows", "c", "A", "c"):
        lp = moved(lp, what, rng)
        found, fresh = kept.solve(lp, Settings(), Watch(60.0)), copter.solve(lp)
        assert found is not None, what
        assert found.status is Status.OPTIMAL
        assert found.objective == pytest.approx(fresh.objective, rel=1e-6, abs=1e-6)
        assert check(lp, found.x, found.y).within(1e-6, 1e-6)


def test_the_same_program_takes_no_step() -> None:
    lp = program(4)
    kept = WarmBasis(lp, copter.solve(lp).x)
    kept.solve(lp, Settings(), Watch(60.0))
    again = kept.solve(replace(lp, offset=1.0), Settings(), Watch(60.0))
    assert again is not None
    assert again.iterations == 0


def transport(seed: int) -> LinearProgram:
    """Goods from 12 sources to 12 sinks, all amounts 10: degenerate, as one amount ends with the other."""
    rng, of = np.random.default_rng(seed), np.arange(144)
    rows = np.concatenate((of // 12, 12 + of % 12))
    A = sp.csc_array((np.ones(288), (rows, np.tile(of, 2))), shape=(24, 144))
    lower = np.repeat([-np.inf, 10.0], 12)
    return LinearProgram(rng.uniform(1.0, 9.0, 144), A, lower, np.repeat([10.0, np.inf], 12))


@pytest.mark.parametrize("seed", range(4))
def test_prices_complete_the_basis_of_a_degenerate_vertex(seed: int) -> None:
    lp = transport(seed)
    fresh = copter.solve(lp)
    kept = WarmBasis(lp, fresh.x, fresh.y)
    found, without = (each.solve(lp, Settings(), Watch(60.0)) for each in (kept, WarmBasis(lp, fresh.x)))
    assert found is not None
    assert without is not None
    assert found.objective == pytest.approx(fresh.objective)
    assert found.iterations < without.iterations


def test_infeasible_through_a_row_that_is_a_bound() -> None:
    A = [[1.0, 1.0], [-2.0, 0.0], [0.0, 1.0]]
    lp = LinearProgram([1.0, 1.0], A, [2.0, -8.0, -np.inf], [np.inf, np.inf, 3.0])  # x0 <= 4, x1 <= 3
    kept = WarmBasis(lp, copter.solve(lp).x)
    impossible = replace(lp, row_lower=[8.0, -8.0, -np.inf])
    found = kept.solve(impossible, Settings(), Watch(60.0))
    assert found is not None
    assert found.status is Status.PRIMAL_INFEASIBLE
    assert is_infeasibility_ray(impossible, found.ray)
    back = kept.solve(lp, Settings(), Watch(60.0))
    assert back is not None
    assert back.objective == pytest.approx(2.0)


def test_unbounded_is_proven() -> None:
    lp = LinearProgram([1.0, 1.0], [[1.0, -1.0], [1.0, 0.0]], [-1.0, 0.0])
    kept = WarmBasis(lp, copter.solve(lp).x)
    found = kept.solve(replace(lp, c=[-1.0, -1.0]), Settings(), Watch(60.0))
    assert found is not None
    assert found.status is Status.DUAL_INFEASIBLE


def test_crossed_rows_are_another_methods_business() -> None:
    lp = LinearProgram([1.0, 1.0], [[1.0, 1.0], [1.0, 0.0], [2.0, 0.0]], [1.0, 0.0, -np.inf], [np.inf, np.inf, 4.0])
    kept = WarmBasis(lp, copter.solve(lp).x)
    crossed = replace(lp, row_lower=[1.0, 3.0, -np.inf])  # x0 >= 3 and 2 x0 <= 4
    assert kept.solve(crossed, Settings(), Watch(60.0)) is None
    with pytest.raises(CrossedError):
        RowBounds(crossed)


def test_the_clock_ends_a_solve() -> None:
    lp = program(5, m=60, n=300)
    kept = WarmBasis(lp, np.zeros(300))
    found = kept.solve(replace(lp, c=-lp.c), Settings(), Watch(0.0))
    assert found is None or found.status is Status.TIME_LIMIT


def test_rows_that_are_compared_again_cost_no_tableau_row() -> None:
    """The first solve knows no weights: most of its rows turn out to be worse than they seemed."""
    rng = np.random.default_rng(0)
    A = sp.random_array((60, 4000), density=0.05, rng=rng, format="csc")
    A.data = rng.uniform(0.5, 2.0, A.nnz)
    c, b = -rng.uniform(1.0, 2.0, 4000) * np.asarray(A.sum(axis=0)).ravel(), 0.3 * np.asarray(A.sum(axis=1)).ravel()
    lp = LinearProgram(c, A, None, b, 0.0, 1.0)
    solution = copter.solve(lp)
    kept, spent = WarmBasis(lp, solution.x, solution.y), []
    assert kept.form is not None
    for _ in range(4):
        b = b * (1.0 + 0.01 * rng.uniform(-1.0, 1.0, 60))
        tableau = kept.form.tableau
        before, steps = tableau.factor.work, tableau.iterations
        with Watch(60.0) as watch:
            assert kept.solve(replace(lp, row_upper=b), Settings(), watch) is not None
        spent.append((tableau.factor.work - before) / (tableau.iterations - steps))
    assert spent[0] <= 1.2 * np.mean(spent[1:])
