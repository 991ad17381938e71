"""A window that shifts: rows and columns are found again, and the kept basis follows them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp

import copter
from copter import LinearProgram, Settings, Status
from copter.methods.simplex.shift import looks_shifted, recognise
from copter.methods.simplex.warm_basis import WarmBasis
from copter.problem.checker import check
from copter.runtime.watch import Watch

UNITS, LONG = 5, 24


def window(first: int, steps: int = LONG, level: float = 3.0) -> LinearProgram:
    """A store and units that serve a demand of so many steps; columns by kind, then step.

    Columns: units (step by step), charge, discharge, level. Rows: balance, then the store's level, of each step.
    """
    rng = np.random.default_rng(7)
    hours = 400
    demand, price = rng.uniform(4.0, 9.0, hours), rng.uniform(1.0, 5.0, (hours, UNITS))
    here = slice(first, first + steps)
    eye = sp.identity(steps, format="csr")
    balance = sp.hstack([sp.kron(eye, np.ones((1, UNITS))), -eye, eye, 0.0 * eye])
    carried = sp.diags_array([-np.ones(steps), np.full(steps - 1, 0.99)], offsets=[0, -1])
    store = sp.hstack([sp.csr_array((steps, UNITS * steps)), 0.9 * eye, -eye, carried])
    A = sp.csc_array(sp.vstack([balance, store]))
    A.eliminate_zeros()
    start = np.zeros(steps)
    start[0] = -0.99 * level
    c = np.concatenate((price[here].ravel(), np.full(2 * steps, 0.01), np.zeros(steps)))
    upper = np.concatenate((np.full(UNITS * steps, 2.0), np.full(2 * steps, 1.5), np.full(steps, 6.0)))
    rows = np.concatenate((demand[here], start))
    return LinearProgram(c, A, rows, rows, np.zeros(len(c)), upper)


def kept_at(lp: LinearProgram) -> WarmBasis:
    kept = WarmBasis(lp, copter.solve(lp).x)
    assert kept.solve(lp, Settings(), Watch(60.0)) is not None
    return kept


@pytest.mark.parametrize("k", [1, 3, LONG // 2])
def test_rows_and_columns_are_found_where_they_were(k: int) -> None:
    found = recognise(window(0), window(k))
    assert found is not None
    stay = LONG - k
    np.testing.assert_array_equal(found.rows[:stay], np.arange(stay) + k)
    np.testing.assert_array_equal(found.columns[: UNITS * stay], np.arange(UNITS * stay) + UNITS * k)
    assert looks_shifted(window(0), window(k))


def test_new_steps_of_one_kind_do_not_follow_into_the_next_kind() -> None:
    k = LONG // 2
    found = recognise(window(0), window(k))
    assert found is not None
    charge = UNITS * LONG + np.arange(LONG)
    np.testing.assert_array_equal(found.columns[charge[1 : LONG - k]], charge[k + 1 :])
    np.testing.assert_array_equal(found.columns[charge[LONG - k :]], charge[LONG - k :])  # not those of the discharge


@pytest.mark.parametrize("k", [1, 3])
def test_the_basis_follows_in_fewer_steps_than_in_place(k: int, monkeypatch: pytest.MonkeyPatch) -> None:
    series = [window(k * step) for step in range(5)]
    steps = {}
    for follows in (True, False):
        if not follows:
            monkeypatch.setattr("copter.methods.simplex.warm_basis.looks_shifted", lambda old, new: False)
        kept, steps[follows] = kept_at(series[0]), 0
        for lp in series[1:]:
            found = kept.solve(lp, Settings(), Watch(60.0))
            assert found is not None
            assert found.objective == pytest.approx(copter.solve(lp).objective, rel=1e-8)
            assert check(lp, found.x, found.y).within(1e-6, 1e-6)
            steps[follows] += found.iterations
    assert 2 * steps[True] < steps[False]


@pytest.mark.parametrize("steps", [LONG - 5, LONG + 5])
def test_windows_that_become_shorter_or_longer(steps: int) -> None:
    kept, lp = kept_at(window(0)), window(2, steps)
    found = kept.solve(lp, Settings(), Watch(60.0))
    assert found is not None
    assert found.status is Status.OPTIMAL
    assert found.objective == pytest.approx(copter.solve(lp).objective, rel=1e-8)


def test_a_window_beyond_the_last_one_is_no_shift() -> None:
    assert not looks_shifted(window(0), window(100))
    shorter = window(100, LONG - 5)
    kept = kept_at(window(0))
    found = kept.solve(shorter, Settings(), Watch(60.0))
    assert found is None or found.objective == pytest.approx(copter.solve(shorter).objective, rel=1e-8)


def test_a_sweep_or_another_program_is_no_shift() -> None:
    lp = window(0)
    swept = replace(lp, c=lp.c * np.random.default_rng(1).uniform(0.9, 1.1, len(lp.c)))
    assert not looks_shifted(lp, swept)
    assert recognise(lp, lp) is None
    assert recognise(lp, replace(lp, sense="max")) is None
    assert recognise(lp, LinearProgram([1.0], [[1.0]], [1.0])) is None


@pytest.mark.parametrize("seed", range(4))
def test_rows_and_columns_that_change_places_are_found(seed: int) -> None:
    rng, lp = np.random.default_rng(seed), window(0)
    row, column = rng.permutation(lp.shape[0]), rng.permutation(lp.shape[1])
    A = sp.csc_array(lp.A[row][:, column])
    A.sort_indices()
    mixed = LinearProgram(
        lp.c[column], A, lp.row_lower[row], lp.row_upper[row], lp.col_lower[column], lp.col_upper[column]
    )
    found = kept_at(lp).solve(mixed, Settings(), Watch(60.0))
    assert found is not None
    assert found.objective == pytest.approx(copter.solve(lp).objective, rel=1e-8)
    shift = recognise(lp, mixed)
    assert shift is not None
    assert np.mean(shift.columns == column) > 0.9
