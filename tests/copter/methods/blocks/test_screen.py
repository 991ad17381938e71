"""Coupling rows left out on the word of a sample: the optimum is that of all rows (docs/method/blocks.md, K6)."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from test_loose_rows import dense_of, program

from copter.methods.blocks import screen, solve
from copter.methods.blocks.loose_rows import row_terms
from copter.methods.blocks.program import BlockProgram
from copter.methods.blocks.screen import exceeded, is_worth_it, likely_rows, near, sample_of
from copter.methods.blocks.solve import solve_blocks
from copter.runtime.settings import Internals, Settings
from copter.runtime.watch import Watch


@pytest.fixture
def small_samples(monkeypatch: pytest.MonkeyPatch) -> None:
    """Programs of a hundred blocks are worth a sample."""
    for name, value in {"LEAST_ROWS": 8, "LEAST_ENTRIES": 1.0, "BLOCKS": 25}.items():
        monkeypatch.setattr(screen, name, value)
    monkeypatch.setattr(solve, "MOST_SHARE", 0.95)


def network(seed: int, rows: int = 40, blocks: int = 400) -> BlockProgram:
    """A program of short columns, of which a few rows bind and many could; one column runs over most rows."""
    rng = np.random.default_rng(seed)
    dense = program(seed, rows, blocks)
    kept = rng.random(len(dense.row)) < 0.25
    kept[: dense.start[1]] = True
    column = np.repeat(np.arange(dense.n_columns), np.diff(dense.start))[kept]
    start = np.concatenate(([0], np.cumsum(np.bincount(column, minlength=dense.n_columns)))).astype(np.int32)
    found = replace(dense, start=start, row=dense.row[kept], value=dense.value[kept])
    n = found.n_columns
    used = dense_of(found).sum(axis=1) * 0.4
    found.upper[n : n + rows] = used * rng.choice([0.15, 0.9, 1.5], rows, p=[0.2, 0.4, 0.4])
    found.upper[:n] = np.inf
    return found


def answer_of(found: BlockProgram, accept: solve.Accept | None = None):
    with Watch(np.inf) as watch:
        return solve_blocks(found, Settings(internals=Internals(purify=False)), watch, vertex=False, accept=accept)


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 10_000), st.booleans())
def test_terms_of_rows_are_those_of_the_matrix(seed: int, negative: bool) -> None:
    found = program(seed, 5, 6, negative)
    x = np.random.default_rng(seed).normal(size=found.n_columns)
    terms = dense_of(found) * x
    positive, less = row_terms(5, found.start, found.row, found.value, x)
    np.testing.assert_allclose(positive, np.maximum(terms, 0.0).sum(axis=1), rtol=1e-12)
    np.testing.assert_allclose(less, np.maximum(-terms, 0.0).sum(axis=1), rtol=1e-12)


def test_near_and_exceeded_rows_by_hand() -> None:
    found = program(0, 3, 4)
    n = found.n_columns
    x = np.ones(n)
    activity = dense_of(found) @ x
    found.upper[n : n + 3] = activity * [2.0, 1.1, 0.9]
    assert near(found, x).tolist() == [False, True, True]
    assert exceeded(found, x).tolist() == [False, False, True]
    found.upper[n] = 0.0  # a link that is cut binds whatever runs over it
    assert near(found, np.zeros(n))[0]


@pytest.mark.parametrize("every", [2, 5])
def test_a_sample_is_a_part_of_the_program(every: int) -> None:
    found = network(1)
    n, m = found.n_columns, found.n_rows
    sample, columns, share = sample_of(found, every)
    assert sample.n_columns == len(columns)
    np.testing.assert_array_equal(dense_of(sample), dense_of(found)[:, columns])
    np.testing.assert_allclose(sample.upper[sample.n_columns : sample.n_columns + m], share * found.upper[n : n + m])
    drawn = found.upper[n + m :].sum() * share
    assert drawn == pytest.approx(sample.upper[sample.n_columns + m :].sum(), rel=0.1)  # but for the wide blocks
    assert share == pytest.approx(1.0 / every, rel=0.1)


def test_a_block_across_most_rows_is_in_every_sample() -> None:
    found = network(2)
    wide = np.flatnonzero(np.diff(found.start) > screen.WIDE * found.n_rows)
    sample, columns, _ = sample_of(found, 5)
    assert 0 in wide
    assert len(wide) < 0.05 * found.n_columns
    assert np.isin(wide, columns).all()
    assert sample.n_columns <= found.n_columns


@pytest.mark.usefixtures("small_samples")
@pytest.mark.parametrize("seed", range(12))
def test_the_optimum_is_that_of_all_rows(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    found = network(seed)
    assert is_worth_it(found.without_loose_rows()[0])
    answer = answer_of(found)
    monkeypatch.setattr(screen, "LEAST_ROWS", 1_000)
    whole = answer_of(found)
    assert answer is not None
    assert whole is not None
    assert found.cost @ answer.x == pytest.approx(found.cost @ whole.x, rel=1e-7)
    n = found.n_columns
    assert (dense_of(found) @ answer.x <= found.upper[n : n + found.n_rows] * (1.0 + 1e-7)).all()


@pytest.mark.usefixtures("small_samples")
@pytest.mark.parametrize("accepting", [False, True])
def test_a_wrong_guess_is_mended(accepting: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """A guess without any row is exceeded, and the rows that it was wrong about come in."""
    found = network(3)
    best = answer_of(found)
    guesses: list[int] = []

    def none_at_all(program: BlockProgram, n_threads: int, must_stop: object) -> tuple[np.ndarray, np.ndarray]:
        guesses.append(program.n_rows)
        return np.zeros(0, dtype=np.int32), np.zeros(program.n_rows)

    monkeypatch.setattr(solve, "likely_rows", none_at_all)
    asked: list[bool] = []

    def accept(answer: solve.BlockAnswer) -> bool:
        asked.append(bool(exceeded(found, answer.x).any()))
        return True

    answer = answer_of(found, accept=accept if accepting else None)
    assert guesses
    assert answer is not None
    assert best is not None
    assert found.cost @ answer.x == pytest.approx(found.cost @ best.x, rel=1e-5)
    assert not exceeded(found, answer.x).any()
    assert asked == [False] * len(asked)  # what breaks a row is shown to nobody


def test_a_sample_that_is_stopped_tells_nothing() -> None:
    assert likely_rows(network(5), 1, lambda: True) is None


@pytest.mark.usefixtures("small_samples")
@pytest.mark.parametrize("accepting", [False, True])
@pytest.mark.parametrize("seed", range(6))
def test_columns_that_prices_wrongly_leave_out_come_in(
    seed: int, accepting: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With few columns at first, the missed ones are found by the answer's prices, and nobody is shown less."""
    found = network(seed)
    found.upper[found.n_columns : found.n_columns + found.n_rows] *= 0.2
    best = answer_of(found)
    sizes: list[int] = []
    usual = screen.promising

    def few(program: BlockProgram, prices: np.ndarray) -> np.ndarray:
        sizes.append(program.n_columns)
        return np.arange(program.n_columns) % 9 == 0 if len(sizes) == 1 else usual(program, prices)

    monkeypatch.setattr(solve, "promising", few)
    shown: list[float] = []

    def accept(answer: solve.BlockAnswer) -> bool:
        shown.append(float(found.cost @ answer.x))
        return True

    answer = answer_of(found, accept=accept if accepting else None)
    assert len(sizes) > 1
    assert answer is not None
    assert best is not None
    assert found.cost @ answer.x == pytest.approx(found.cost @ best.x, rel=1e-5)
    assert shown == pytest.approx([found.cost @ best.x] * len(shown), rel=1e-5)


def test_promising_columns_are_the_best_of_their_blocks() -> None:
    """At prices of zero only the cheapest column of a block can be needed, and those nearly as cheap."""
    found = network(4)
    costs = np.split(found.cost, found.column_start[1:-1])
    near_best = np.concatenate([each - min(each.min(), 0.0) for each in costs])
    expected = near_best <= screen.PROMISING * np.abs(found.cost).max()
    assert (screen.promising(found, np.zeros(found.n_rows)) == expected).all()
    assert 0.1 < expected.mean() < 0.9


def test_a_full_network_keeps_all_its_rows() -> None:
    found = network(6)
    rows = slice(found.n_columns, found.n_columns + found.n_rows)
    assert not screen.crowded(found).all()
    found.upper[rows] *= 1e-3
    assert screen.crowded(found).mean() > screen.CROWDED
    assert len(likely_rows(found, 1, lambda: False)[0]) == found.n_rows
