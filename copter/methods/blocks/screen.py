"""Prediction, from a sample of blocks, of the coupling rows that an optimum leaves far from their bounds (K6)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from copter.methods.blocks.interior import BlockMethod
from copter.methods.blocks.loose_rows import row_terms
from copter.methods.blocks.program import BlockProgram, sums_before
from copter.problem.values import ranges

Floats = NDArray[np.float64]
Ints = NDArray[np.int32]
Places = NDArray[np.int64]
Mask = NDArray[np.bool_]

LEAST_ROWS = 64  # with fewer coupling rows, leaving some out saves less than the sample takes
LEAST_ENTRIES = 4.0  # the same holds with fewer coupling entries per column on average
BLOCKS = 3000  # least number of blocks in a sample
FEWEST, MOST = 4, 16  # a sample has one of this many blocks: least and most
WIDE = 0.25  # a block is in every sample if one column touches more than this share of the coupling rows
CLOSE = 3e-3  # relative accuracy to which the sample is solved
NEAR = 0.25  # a row may bind if its activity is this close to a bound, in units of the row's size
ROUNDING = 1e-9  # excess over a bound, as a share of the row's size, that counts as rounding


def is_worth_it(program: BlockProgram) -> bool:
    """Whether a program is so large, and its columns so long, that solving a sample is cheap in comparison."""
    n, blocks = program.n_columns, len(program.column_start) - 1
    return program.n_rows >= LEAST_ROWS and blocks >= FEWEST * BLOCKS and len(program.row) >= LEAST_ENTRIES * n


def likely_rows(program: BlockProgram, n_threads: int, must_stop: Callable[[], bool]) -> Ints | None:
    """Return the coupling rows that may bind at the optimum, judged by a sample; None if the sample is not solved.

    `must_stop` may end it by :class:`copter.runtime.watch.Stopped` even within a pass.
    """
    every = max(min(MOST, (len(program.column_start) - 1) // BLOCKS), 1)
    sample, columns, share = sample_of(program, every)
    lean, _ = sample.without_loose_rows()
    method = BlockMethod(lean.equilibrated()[0], n_threads, must_stop)
    figures, stopped = method.run(CLOSE, 100, lambda iteration, now: must_stop())
    if stopped or not figures.worst <= CLOSE:
        return None
    x = np.zeros(program.n_columns)
    x[columns] = method.state.x[: len(columns)] / share
    return np.flatnonzero(near(program, x)).astype(np.int32)


def near(program: BlockProgram, x: Floats) -> Mask:
    """Mark the coupling rows close to a bound at x: within a quarter of the row's size (K6), (rows,)."""
    low, high, activity, size = _rows(program, x)
    return np.asarray((high - activity <= NEAR * size) | (activity - low <= NEAR * size))


def exceeded(program: BlockProgram, x: Floats) -> Mask:
    """Mark the coupling rows that violate a bound, (rows,)."""
    low, high, activity, size = _rows(program, x)
    return np.asarray((activity - high > ROUNDING * size) | (low - activity > ROUNDING * size))


def _rows(program: BlockProgram, x: Floats) -> tuple[Floats, Floats, Floats, Floats]:
    """Return (lower bound, upper bound, activity, size) of every coupling row; size covers bounds and terms."""
    n, m = program.n_columns, program.n_rows
    low, high = program.lower[n : n + m], program.upper[n : n + m]
    positive, negative = row_terms(m, program.start, program.row, program.value, x)
    size = np.maximum(positive, negative)
    for bound in (low, high):
        size = np.maximum(size, np.where(np.isfinite(bound), np.abs(bound), 0.0))
    return low, high, positive - negative, size


def sample_of(program: BlockProgram, every: int) -> tuple[BlockProgram, Places, float]:
    """Return a sample of every `every`-th block with proportional row bounds: (program, its columns, the sampled
    share).

    Blocks are drawn in the order of their limits, so that the sample has large and small blocks in proportion. The
    share is that of the summed limits or, without limits, of the number of blocks.
    """
    n, m, blocks = program.n_columns, program.n_rows, len(program.column_start) - 1
    block_of = np.repeat(np.arange(blocks), np.diff(program.column_start))
    long = np.flatnonzero(np.diff(program.start)[: len(block_of)] > WIDE * m)
    wide = np.zeros(blocks, dtype=bool)
    wide[block_of[long]] = True
    others = np.flatnonzero(~wide)
    weight = np.zeros(blocks)
    has = np.diff(program.private_start) > 0
    weight[has] = program.upper[n + m + program.private_start[:-1][has]]
    weight = np.where(np.isfinite(weight) & (weight > 0.0), weight, 0.0)
    order = np.random.default_rng(0).permutation(others)
    order = order[np.argsort(-weight[order], kind="stable")]
    drawn = order[every // 2 :: every]
    total = float(weight[others].sum())
    share = float(weight[drawn].sum()) / total if total > 0.0 else len(drawn) / max(len(others), 1)
    chosen = np.sort(np.concatenate((np.flatnonzero(wide), drawn)))
    return *_of_blocks(program, chosen, max(share, 1e-9)), max(share, 1e-9)


def _of_blocks(program: BlockProgram, chosen: Places, share: float) -> tuple[BlockProgram, Places]:
    """Return (program of the chosen blocks and of all columns outside blocks, its columns)."""
    n, m = program.n_columns, program.n_rows
    columns = np.concatenate((
        ranges(program.column_start[chosen].astype(np.int64), program.column_start[chosen + 1].astype(np.int64)),
        np.arange(program.column_start[-1], n),
    ))  # fmt: skip
    private = ranges(program.private_start[chosen].astype(np.int64), program.private_start[chosen + 1].astype(np.int64))
    entries = ranges(program.start[columns].astype(np.int64), program.start[columns + 1].astype(np.int64))
    own = ranges(program.own_start[columns].astype(np.int64), program.own_start[columns + 1].astype(np.int64))
    rows = np.full(len(program.lower), 1.0)
    rows[n : n + m] = share
    stays = np.concatenate((columns, np.arange(n, n + m), n + m + private))
    sample = replace(
        program,
        column_start=sums_before(np.diff(program.column_start)[chosen]),
        private_start=sums_before(np.diff(program.private_start)[chosen]),
        start=sums_before(np.diff(program.start)[columns]),
        row=program.row[entries],
        value=program.value[entries],
        own_start=sums_before(np.diff(program.own_start)[columns]),
        own_row=program.own_row[own],
        own_value=program.own_value[own],
        cost=program.cost[columns],
        lower=(program.lower * rows)[stays],
        upper=(program.upper * rows)[stays],
    )
    return sample, columns
