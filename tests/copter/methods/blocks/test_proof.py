"""The proof of a point of blocks: against exact arithmetic, and violations against their definitions."""

from __future__ import annotations

from fractions import Fraction
from math import inf

import numpy as np
import pytest
from highspy import HighsModelStatus
from hypothesis import given, settings
from hypothesis import strategies as st

from copter.methods.blocks.block_proof import prove
from copter.methods.blocks.program import BlockProgram
from tests.copter.by_highs import highs
from tests.copter.methods.blocks.test_basis import program_like, whole


def proof_of(program, x, y):
    """As the solve asks for it."""
    found = prove(program, x, y)
    names = ("objective", "violation", "largest", "size", "bound", "margin", "wrong", "wrong_most", "cost_size")
    return dict(zip(names, found, strict=True))


def signed(program, y):
    """Prices that a finite bound answers for."""
    n, m = program.n_columns, program.n_rows
    bound = np.where(y > 0.0, program.lower[n : n + m], program.upper[n : n + m])
    return np.where(np.isfinite(bound), y, 0.0)


def exact_bound(program, y) -> Fraction | float:
    """The Lagrangian's minimum over the blocks, in rational arithmetic; -inf where it has none."""
    n, m = program.n_columns, program.n_rows
    total = Fraction(0)
    for i in range(m):
        if y[i]:
            total += Fraction(y[i]) * Fraction(program.lower[n + i] if y[i] > 0 else program.upper[n + i])
    for g in range(len(program.column_start) - 1):
        columns = range(program.column_start[g], program.column_start[g + 1])
        room = program.upper[n + m + g] - sum(program.lower[j] for j in columns)
        needed = program.lower[n + m + g] - sum(program.lower[j] for j in columns)
        costs = []
        for j in columns:
            entries = range(program.start[j], program.start[j + 1])
            reduced = Fraction(program.cost[j])
            reduced -= sum(Fraction(program.value[e]) * Fraction(y[program.row[e]]) for e in entries)
            total += reduced * Fraction(program.lower[j])
            costs.append((reduced, program.upper[j] - program.lower[j]))
        for reduced, width in sorted(costs):
            take = min(width, room) if reduced < 0 else min(width, room, max(needed, 0.0))
            if take == inf:
                return -inf
            total += reduced * Fraction(take)
            room, needed = room - take, needed - take
    return total


@settings(max_examples=200, deadline=None)
@given(st.integers(0, 10**6), st.sampled_from([1.0, 1e-6, 1e8]))
def test_bounds_hold_in_exact_arithmetic(seed, size):
    rng = np.random.default_rng(seed)
    program = program_like(rng, int(rng.integers(1, 15)), int(rng.integers(1, 6)))
    y = signed(program, rng.normal(0.0, size, program.n_rows))
    n, m = program.n_columns, program.n_rows
    most = np.add.reduceat(program.upper[:n], program.column_start[:-1])
    if (program.lower[n + m :] > most).any():
        return  # no point fills such a block
    x = np.clip(rng.normal(1.0, 1.0, n), program.lower[:n], np.minimum(program.upper[:n], 9.0))
    found, exact = proof_of(program, x, y), exact_bound(program, y)
    assert np.isfinite(found["margin"])
    assert Fraction(found["bound"]) - Fraction(found["margin"]) <= exact
    assert found["bound"] == pytest.approx(float(exact), rel=1e-9, abs=1e-9 * size)


@settings(max_examples=50, deadline=None)
@given(st.integers(0, 10**6))
def test_violations_are_what_they_say(seed):
    rng = np.random.default_rng(seed)
    program = program_like(rng, int(rng.integers(1, 15)), int(rng.integers(1, 6)))
    n, lp = program.n_columns, whole(program)
    x = rng.normal(1.0, 2.0, n)
    found = proof_of(program, x, np.zeros(program.n_rows))
    activity = np.concatenate((x, lp.A @ x))
    over = np.maximum(np.maximum(activity - program.upper, program.lower - activity), 0.0)
    assert found["objective"] == pytest.approx(float(lp.c @ x))
    assert found["violation"] == pytest.approx(float(np.linalg.norm(over)))
    assert found["largest"] == pytest.approx(float(over.max()))
    assert found["cost_size"] == pytest.approx(float(np.linalg.norm(lp.c)))


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 10**6))
def test_no_bound_is_above_the_optimum(seed):
    rng = np.random.default_rng(seed)
    program = program_like(rng, int(rng.integers(1, 15)), int(rng.integers(1, 6)))
    status, value, *_ = highs(whole(program))
    if status != HighsModelStatus.kOptimal:
        return
    y = signed(program, rng.normal(0.0, 3.0, program.n_rows))
    found = proof_of(program, np.zeros(program.n_columns), y)
    assert found["bound"] - found["margin"] <= value + 1e-9 * (1.0 + abs(value))


def test_a_free_column_with_a_reduced_cost_proves_nothing():
    block, none, empty = np.array([0, 1], dtype=np.int32), np.zeros(2, dtype=np.int32), np.zeros(0, dtype=np.int32)
    entries = (none, empty, np.zeros(0))
    program = BlockProgram(0, block, none, *entries, *entries, np.ones(1), np.array([-inf]), np.array([inf]))
    found = prove(program, np.zeros(1), np.zeros(0))
    assert found[5] == inf
    assert found[6] == found[7] == 1.0
