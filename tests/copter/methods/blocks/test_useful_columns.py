"""Columns that another makes useless: what is left has the optimum of the whole (docs/method/blocks.md, K5)."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from test_loose_rows import dense_of, program

import copter
from copter.methods.blocks.program import BlockProgram
from copter.methods.blocks.reduced_program import ReducedProgram, has_limits_alone
from copter.methods.blocks.solve import solve_blocks
from copter.methods.blocks.useful_columns import useful_columns
from copter.runtime.settings import Settings
from copter.runtime.watch import Watch


def competing(seed: int, rows: int = 12, blocks: int = 60) -> BlockProgram:
    """A program of columns of all lengths, some without coupling rows; limits from tiny to larger than any row."""
    rng = np.random.default_rng(seed)
    found = program(seed, rows, blocks)
    n = found.n_columns
    length = rng.integers(0, 4, n)
    column = np.repeat(np.arange(n), np.diff(found.start))
    kept = np.arange(len(column)) - found.start[column] < length[column]
    start = np.concatenate(([0], np.cumsum(np.bincount(column[kept], minlength=n)))).astype(np.int32)
    upper = found.upper.copy()
    upper[:n] = np.where(rng.random(n) < 0.8, np.inf, upper[:n])
    upper[n + rows :] = np.where(rng.random(blocks) < 0.2, np.inf, 10.0 ** rng.uniform(-2.0, 3.0, blocks))
    cost = np.where(rng.random(n) < 0.5, -1.0, found.cost)
    without_rows = np.diff(start) == 0
    cost[without_rows & np.isinf(np.repeat(upper[n + rows :], np.diff(found.column_start)))] = 1.0  # else unbounded
    return replace(found, start=start, row=found.row[kept], value=found.value[kept], upper=upper, cost=cost)


def optimum(found: BlockProgram) -> float:
    """What the program of all rows and columns comes to, by another method."""
    own = np.repeat(np.arange(len(found.column_start) - 1), np.diff(found.column_start))
    limits = (own == np.arange(len(found.column_start) - 1)[:, None]).astype(np.float64)
    n = found.n_columns
    lp = copter.LinearProgram(
        found.cost, np.vstack((dense_of(found), limits)), row_upper=found.upper[n:], col_upper=found.upper[:n]
    )
    return copter.solve(lp, Settings(method="simplex")).objective


@pytest.mark.parametrize("seed", range(40))
def test_the_optimum_is_that_of_all_columns(seed: int) -> None:
    found = competing(seed)
    assert has_limits_alone(found)
    rest = ReducedProgram.of(found)
    assert rest.program.n_columns < found.n_columns
    with Watch(np.inf) as watch:
        answer = solve_blocks(found, Settings(), watch, vertex=False)
    assert answer is not None
    assert found.cost @ answer.x == pytest.approx(optimum(found), rel=1e-7)
    n, m = found.n_columns, found.n_rows
    own = np.add.reduceat(answer.x, found.column_start[:-1])
    activity = np.concatenate((dense_of(found) @ answer.x, own))
    assert (activity <= found.upper[n:] + 1e-7).all()
    assert (answer.x >= 0.0).all()
    assert (answer.x <= found.upper[:n] + 1e-9).all()
    prices = answer.y @ dense_of(found) + np.repeat(answer.private, np.diff(found.column_start))
    assert (found.cost - prices >= -1e-6)[np.isinf(found.upper[:n])].all()
    assert answer.y.max(initial=0.0) <= 1e-9
    assert len(answer.y) == m


def test_a_column_that_only_fills_a_row_makes_longer_ones_useless() -> None:
    """The first block's column alone fills the row, whatever its limit; the second's takes that row and another."""
    found = BlockProgram(
        n_rows=2,
        column_start=np.array([0, 1, 3], dtype=np.int32),
        private_start=np.array([0, 1, 2], dtype=np.int32),
        start=np.array([0, 1, 3, 4], dtype=np.int32),
        row=np.array([0, 0, 1, 1], dtype=np.int32),
        value=np.ones(4),
        own_start=np.arange(4, dtype=np.int32),
        own_row=np.zeros(3, dtype=np.int32),
        own_value=np.ones(3),
        cost=-np.ones(3),
        lower=np.array([0.0, 0.0, 0.0, -np.inf, -np.inf, -np.inf, -np.inf]),
        upper=np.array([np.inf, np.inf, np.inf, 5.0, 4.0, 9.0, 3.0]),
    )
    useful, alone = useful_columns(found)
    assert useful.tolist() == [1, 0, 1]
    assert alone.tolist() == [-1, -1]
    found.upper[5] = 5.0  # now the block may be full before the row is
    assert useful_columns(found)[0].tolist() == [1, 1, 1]


def test_a_column_without_rows_takes_its_blocks_limit() -> None:
    found = BlockProgram(
        n_rows=1,
        column_start=np.array([0, 2], dtype=np.int32),
        private_start=np.array([0, 1], dtype=np.int32),
        start=np.array([0, 0, 1], dtype=np.int32),
        row=np.array([0], dtype=np.int32),
        value=np.ones(1),
        own_start=np.arange(3, dtype=np.int32),
        own_row=np.zeros(2, dtype=np.int32),
        own_value=np.array([2.0, 1.0]),
        cost=np.array([-3.0, -1.0]),
        lower=np.array([0.0, 0.0, -np.inf, -np.inf]),
        upper=np.array([np.inf, np.inf, 1.0, 8.0]),
    )
    assert useful_columns(found)[1].tolist() == [0]
    with Watch(np.inf) as watch:
        answer = solve_blocks(found, Settings(), watch, vertex=False)
    assert answer is not None
    assert (answer.x.tolist(), answer.private.tolist(), answer.iterations) == ([4.0, 0.0], [-1.5], 0)
    found.cost[1] = -2.0  # worth more than its share of the limit: the row decides
    assert useful_columns(found)[1].tolist() == [-1]
    assert useful_columns(found)[0].tolist() == [1, 1]


def test_programs_of_another_kind_keep_their_columns() -> None:
    found = competing(1)
    n = found.n_columns
    found.lower[n] = 0.0
    assert not has_limits_alone(found)
    assert len(ReducedProgram.of(found).columns) == n
