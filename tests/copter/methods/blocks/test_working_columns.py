"""Columns that a session keeps of an answer: their definition, and values shrunk to limits."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from copter.methods.blocks.working_columns import working_columns
from tests.copter.methods.blocks.test_proof import program_like, whole


def kept(program, x, y, limit, slack):
    """(columns, values) that are kept."""
    blocks = len(program.column_start) - 1
    slots = np.arange(3, 3 + blocks, dtype=np.int32)
    key, value, block = working_columns(program, limit, slots, x, y, slack)
    assert (key >> 32 == slots[block]).all()
    assert (np.diff(key) > 0).all()
    return program.column_start[block] + (key & 0xFFFFFFFF), value


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 10**6), st.sampled_from([-1.0, 0.0, 0.05, 0.5]))
def test_columns_near_the_best_are_those_of_their_definition(seed, slack):
    rng = np.random.default_rng(seed)
    program = program_like(rng, int(rng.integers(1, 15)), int(rng.integers(1, 6)))
    x, y = rng.integers(0, 2, program.n_columns).astype(float), rng.normal(size=program.n_rows)
    limit = np.full(len(program.column_start) - 1, np.inf)
    found, value = kept(program, x, y, limit, slack)
    assert (value == x[found]).all()
    reduced = program.cost - whole(program).A[: program.n_rows].T @ y
    for first, last in zip(program.column_start[:-1], program.column_start[1:], strict=True):
        free = first + np.flatnonzero(program.lower[first:last] < program.upper[first:last])
        near = reduced[free].min(initial=np.inf) + slack * np.abs(program.cost[free]).max(initial=0.0) + 1e-12
        for j in range(first, last):
            if x[j] != 0.0 or program.lower[j] != 0.0:
                assert j in found
            elif slack < 0.0 or j not in free:
                assert j not in found
            elif abs(reduced[j] - near) > 1e-11:  # closer to the edge the two sums may round apart
                assert (j in found) == (reduced[j] < near)


def test_values_above_a_limit_by_rounding_are_shrunk_to_it():
    program = program_like(np.random.default_rng(1), 6, 3)
    x = np.full(program.n_columns, 1.0)
    counts = np.diff(program.column_start)
    found, value = kept(program, x, np.zeros(3), counts * (1.0 - 1e-9), -1.0)
    n = program.n_columns
    assert np.bincount(found, value, n)[: program.column_start[1]].sum() <= counts[0] * (1.0 - 1e-9) * (1 + 1e-12)
    assert ((value >= program.lower[:n][found]) & (value <= program.upper[:n][found])).all()
