"""Prediction, from a sample of blocks, of the coupling rows that an optimum leaves far from their bounds (K6)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from copter.methods.blocks.interior import BlockMethod
from copter.methods.blocks.loose_rows import row_terms
from copter.methods.blocks.program import BlockProgram

Floats = NDArray[np.float64]
Ints = NDArray[np.int32]
Places = NDArray[np.int64]
Mask = NDArray[np.bool_]

LEAST_ROWS = 64  # with fewer coupling rows, leaving some out saves less than the sample takes
LEAST_ENTRIES = 4.0  # the same holds with fewer coupling entries per column on average
BLOCKS = 3000  # least number of blocks in a sample
FEWEST, MOST = 4, 16  # a sample has one of this many blocks: least and most
FEW_PARTS = 2  # `FEWEST` of crowded programs, in which columns are left out too
WIDE = 0.25  # a block is in every sample if one column touches more than this share of the coupling rows
CLOSE = 3e-3  # relative accuracy to which the sample is solved
PROMISING = 0.25  # a column whose reduced cost exceeds its block's least by this share of the largest cost is left out
CROWDED = 0.9  # if more than this share of the rows is short of what is asked of them, all rows may bind
NEAR = 0.25  # a row may bind if its activity is this close to a bound, in units of the row's size
ROUNDING = 1e-9  # excess over a bound, as a share of the row's size, that counts as rounding


def is_worth_it(program: BlockProgram) -> bool:
    """Whether a program is so large, and its columns so long, that solving a sample is cheap in comparison."""
    n, blocks = program.n_columns, len(program.column_start) - 1
    if program.n_rows < LEAST_ROWS or blocks < FEW_PARTS * BLOCKS or len(program.row) < LEAST_ENTRIES * n:
        return False
    return blocks >= FEWEST * BLOCKS or is_crowded(program)


def likely_rows(program: BlockProgram, n_threads: int, must_stop: Callable[[], bool]) -> tuple[Ints, Floats] | None:
    """Return the coupling rows that may bind at the optimum and a sample's prices; None if the sample is not solved.

    `must_stop` may end it by :class:`copter.runtime.watch.Stopped` even within a pass.
    """
    every = max(min(MOST, (len(program.column_start) - 1) // BLOCKS), FEWEST)
    sample, columns, share = sample_of(program, every)
    lean, binding = sample.without_loose_rows()
    scaled, scale, factor = lean.equilibrated()
    method = BlockMethod(scaled, n_threads, must_stop)
    figures, stopped = method.run(CLOSE, 100, lambda iteration, now: must_stop())
    if stopped or not figures.worst <= CLOSE:
        return None
    x = np.zeros(program.n_columns)
    x[columns] = method.state.x[: len(columns)] / share
    prices = np.zeros(program.n_rows)
    prices[binding] = (method.state.y * scale / factor)[: len(binding)]
    close = near(program, x)
    return np.flatnonzero(close | is_crowded(program)).astype(np.int32), prices


def is_crowded(program: BlockProgram) -> bool:
    """Whether nearly all coupling rows are short of what is asked of them."""
    return bool(crowded(program).mean() > CROWDED)


def crowded(program: BlockProgram) -> Mask:
    """Mark the coupling rows that exceed their upper bound if each block's columns share its limit equally, (rows,)."""
    n, m, counts = program.n_columns, program.n_rows, np.diff(program.column_start)
    has = np.diff(program.private_start) > 0
    limit = np.zeros(len(counts))
    limit[has] = program.upper[n + m + program.private_start[:-1][has]]
    limit[~np.isfinite(limit)] = 0.0
    x = np.zeros(n)
    x[: program.column_start[-1]] = np.repeat(limit / np.maximum(counts, 1), counts)
    _, high, activity, _ = _rows(program, x)
    return np.asarray(activity > high)


def promising(program: BlockProgram, prices: Floats) -> Mask:
    """Mark the columns whose reduced cost is little above the least of their block and zero, (columns,)."""
    reduced = reduced_costs(program, prices)
    starts = program.column_start[:-1]
    least = np.minimum(np.minimum.reduceat(reduced / program.own_value, starts), 0.0)
    own = program.own_value * np.repeat(least, np.diff(program.column_start))
    return np.asarray(reduced - own <= PROMISING * np.abs(program.cost).max())


def missed(program: BlockProgram, prices: Floats, own: Floats, tolerance: float) -> Mask:
    """Mark the columns that would gain at prices of the coupling rows and of the blocks' limits, (columns,)."""
    reduced = reduced_costs(program, prices) - program.own_value * np.repeat(own, np.diff(program.column_start))
    return np.asarray(reduced < -tolerance * np.abs(program.cost).max())


def reduced_costs(program: BlockProgram, prices: Floats) -> Floats:
    """Return the columns' costs less what they use of the coupling rows at these prices, (columns,)."""
    column = np.repeat(np.arange(program.n_columns), np.diff(program.start))
    used = np.bincount(column, program.value * prices[program.row], program.n_columns)
    return np.asarray(program.cost - used)


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
    share = max(share, 1e-9)
    chosen = wide.copy()
    chosen[drawn] = True
    part, columns, _ = program.of_columns(np.concatenate((chosen[block_of], np.ones(n - len(block_of), dtype=bool))))
    rows = np.ones(len(part.lower))
    rows[part.n_columns : part.n_columns + m] = share
    return replace(part, lower=part.lower * rows, upper=part.upper * rows), columns, share
