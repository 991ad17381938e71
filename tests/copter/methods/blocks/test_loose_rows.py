"""Coupling rows that cannot bind: what they reach, and that no answer needs them (docs/method/blocks.md, K5)."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from copter.methods.blocks.loose_rows import reach_of_rows
from copter.methods.blocks.program import BlockProgram
from copter.methods.blocks.solve import solve_blocks
from copter.runtime.settings import Settings
from copter.runtime.watch import Watch


def program(seed: int, rows: int, blocks: int, negative: bool = False, limited: float = 1.0) -> BlockProgram:
    """A random maximisation with a limited sum for each block (as minimised)."""
    rng = np.random.default_rng(seed)
    counts = rng.integers(1, 4, blocks)
    n = int(counts.sum())
    dense = np.where(rng.random((n, rows)) < 0.4, rng.integers(1, 4, (n, rows)), 0).astype(np.float64)
    if negative:
        dense *= rng.choice([-1.0, 1.0], dense.shape)
    column, row = np.nonzero(dense)
    limits = np.where(rng.random(blocks) < limited, rng.uniform(0.1, 2.0, blocks), np.inf)
    upper = np.where(rng.random(n) < 0.3, rng.uniform(0.1, 1.0, n), np.inf)
    capacity = blocks * rng.uniform(0.1, 3.0, rows)
    return BlockProgram(
        n_rows=rows,
        column_start=np.concatenate(([0], np.cumsum(counts))).astype(np.int32),
        private_start=np.arange(blocks + 1, dtype=np.int32),
        start=np.concatenate(([0], np.cumsum((dense != 0.0).sum(axis=1)))).astype(np.int32),
        row=row.astype(np.int32),
        value=dense[column, row],
        own_start=np.arange(n + 1, dtype=np.int32),
        own_row=np.zeros(n, dtype=np.int32),
        own_value=np.ones(n),
        cost=-rng.uniform(0.5, 1.5, n),
        lower=np.concatenate((np.zeros(n), np.full(rows + blocks, -np.inf))),
        upper=np.concatenate((upper, capacity, limits)),
    )


def dense_of(found: BlockProgram) -> np.ndarray:
    matrix = np.zeros((found.n_rows, found.n_columns))
    for j in range(found.n_columns):
        own = slice(found.start[j], found.start[j + 1])
        matrix[found.row[own], j] = found.value[own]
    return matrix


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 10_000), st.booleans(), st.sampled_from([1.0, 0.5]))
def test_no_point_of_the_blocks_is_beyond_the_reach(seed: int, negative: bool, limited: float) -> None:
    found = program(seed, 5, 6, negative, limited)
    least, most = reach_of_rows(found)
    rng = np.random.default_rng(seed + 1)
    matrix, n = dense_of(found), found.n_columns
    for _ in range(20):
        x = np.minimum(rng.uniform(0.0, 3.0, n), found.upper[:n]) * (rng.random(n) < 0.5)
        for g in range(6):
            own = slice(found.column_start[g], found.column_start[g + 1])
            limit = found.upper[n + 5 + g]
            x[own] *= min(1.0, limit / max(x[own].sum(), 1e-300))
        activity = matrix @ x
        assert (activity <= most + 1e-9).all()
        assert (activity >= least - 1e-9).all()


def test_the_reach_of_a_block_is_its_limit_at_the_largest_coefficient() -> None:
    found = BlockProgram(
        n_rows=2,
        column_start=np.array([0, 2], dtype=np.int32),
        private_start=np.array([0, 1], dtype=np.int32),
        start=np.array([0, 1, 3], dtype=np.int32),
        row=np.array([0, 0, 1], dtype=np.int32),
        value=np.array([2.0, 3.0, -1.0]),
        own_start=np.array([0, 1, 2], dtype=np.int32),
        own_row=np.zeros(2, dtype=np.int32),
        own_value=np.ones(2),
        cost=-np.ones(2),
        lower=np.array([0.0, 0.0, -np.inf, -np.inf, -np.inf]),
        upper=np.array([np.inf, np.inf, 30.0, 5.0, 4.0]),
    )
    least, most = reach_of_rows(found)
    assert least.tolist() == [0.0, -4.0]
    assert most.tolist() == [12.0, 0.0]
    lean, rows = found.without_loose_rows()
    assert rows.tolist() == []
    assert lean.n_rows == 0
    assert len(lean.row) == 0


@pytest.mark.parametrize("seed", range(8))
def test_the_optimum_is_that_of_all_rows(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    found = program(seed, 12, 40)
    lean, rows = found.without_loose_rows()
    assert 0 < len(rows) < 12
    assert lean.n_rows == len(rows)
    with Watch(np.inf) as watch:
        answer = solve_blocks(found, Settings(), watch, vertex=False)
        monkeypatch.setattr(BlockProgram, "without_loose_rows", lambda self: (self, np.arange(12, dtype=np.int32)))
        whole = solve_blocks(found, Settings(), watch, vertex=False)
    assert answer is not None
    assert whole is not None
    assert found.cost @ answer.x == pytest.approx(found.cost @ whole.x, rel=1e-8)
    assert (dense_of(found) @ answer.x <= found.upper[found.n_columns : found.n_columns + 12] + 1e-8).all()
    gone = np.setdiff1d(np.arange(12), rows)
    assert (answer.y[gone] == 0.0).all()
    np.testing.assert_allclose(whole.y[gone], 0.0, atol=1e-7)


@pytest.mark.parametrize("seed", range(4))
def test_of_equal_rows_the_closest_stays(seed: int) -> None:
    """Leases far ahead are wanted by the same jobs: one row of them decides."""
    once = program(seed, 6, 40)
    m, n, order = 6, once.n_columns, np.array([0, 1, 2, 3, 4, 5, 2, 4, 2])
    columns = [np.flatnonzero(np.isin(order, once.row[once.start[j] : once.start[j + 1]])) for j in range(n)]
    value = dense_of(once)
    bound = once.upper[n : n + m]
    upper = np.concatenate((bound, [bound[2] + 1.0, bound[4] - 0.5, bound[2]]))
    found = BlockProgram(
        n_rows=9,
        column_start=once.column_start,
        private_start=once.private_start,
        start=np.concatenate(([0], np.cumsum([len(own) for own in columns]))).astype(np.int32),
        row=np.concatenate(columns).astype(np.int32),
        value=np.concatenate([value[order[own], j] for j, own in enumerate(columns)]),
        own_start=once.own_start,
        own_row=once.own_row,
        own_value=once.own_value,
        cost=once.cost,
        lower=np.concatenate((once.lower[:n], np.full(9, -np.inf), once.lower[n + m :])),
        upper=np.concatenate((once.upper[:n], upper, once.upper[n + m :])),
    )
    assert np.flatnonzero(found.repeated_rows()).tolist() == [4, 6, 8]
    assert not once.repeated_rows().any()
    with Watch(np.inf) as watch:
        answer = solve_blocks(found, Settings(), watch, vertex=False)
    assert answer is not None
    assert (dense_of(found) @ answer.x <= upper + 1e-8).all()
    assert (answer.y[[4, 6, 8]] == 0.0).all()


def test_rows_that_are_alike_by_chance_of_their_sums_are_compared_entry_by_entry(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    found = program(0, 6, 40)

    class Constant:
        def random(self, count: int) -> np.ndarray:
            return np.zeros(count)

    monkeypatch.setattr(np.random, "default_rng", lambda seed: Constant())
    assert not found.repeated_rows().any()
