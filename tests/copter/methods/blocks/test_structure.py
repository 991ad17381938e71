"""Blocks found in linear programs: the split is the same program, and its optimum is HiGHS's."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp
from highspy import HighsModelStatus
from hypothesis import given, settings
from hypothesis import strategies as st

import copter
from copter import LinearProgram, Settings, Status
from copter.methods.blocks import structure
from copter.methods.blocks.structure import solve_structured, structure_of
from copter.problem.checker import check
from copter.runtime.watch import Watch
from tests.copter.by_highs import highs

FOREVER = Watch(float("inf"))


def shuffled(rng: np.random.Generator, blocks: int, coupling: int, private: int) -> LinearProgram:
    """Blocks with rows of their own and coupling rows, in any order of rows and columns; a feasible point."""
    parts, size = [], 5
    for _ in range(blocks):
        part = sp.random_array((private, size), density=0.6, rng=rng).toarray() * rng.integers(-3, 4, (private, size))
        part[0] = 1.0
        parts.append(sp.csr_array(part))
    n = blocks * size
    above = sp.random_array((coupling, n), density=0.3, rng=rng, format="csr")
    A = sp.vstack((above, sp.block_diag(parts))).tocsr()
    A = A[rng.permutation(A.shape[0])][:, rng.permutation(n)].tocsc()
    x = rng.integers(0, 4, n).astype(float)
    activity = A @ x
    lower, upper = activity - rng.integers(0, 3, len(activity)), activity + rng.integers(0, 3, len(activity))
    lower[rng.random(len(lower)) < 0.3] = -np.inf
    return LinearProgram(
        c=rng.normal(size=n), A=A, row_lower=lower, row_upper=upper, col_lower=np.zeros(n), col_upper=np.full(n, 9.0)
    )


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 10**6))
def test_what_is_found_is_the_same_program_and_ends_as_highs_does(seed):
    rng = np.random.default_rng(seed)
    lp = shuffled(rng, int(rng.integers(20, 60)), int(rng.integers(1, 9)), int(rng.integers(1, 4)))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(structure, "STRUCTURE_ENTRIES", 0)
        found, answer = structure_of(lp), solve_structured(lp, Settings(), FOREVER)
    if found is None:
        assert answer is None
        return
    program = found.program
    assert sorted(found.columns) == list(range(lp.shape[1]))
    assert sorted(found.rows) == list(range(lp.shape[0]))
    n, m = program.n_columns, program.n_rows
    above = sp.csc_array((program.value, program.row, program.start), shape=(m, n))
    block = np.repeat(program.private_start[:-1], np.diff(program.column_start))
    own_row = program.own_row + np.repeat(block, np.diff(program.own_start))
    below = sp.csc_array((program.own_value, own_row, program.own_start), shape=(lp.shape[0] - m, n))
    assert abs(sp.vstack((above, below)) - lp.A[found.rows][:, found.columns]).max() == 0.0
    assert np.array_equal(program.lower, np.concatenate((lp.col_lower[found.columns], lp.row_lower[found.rows])))
    status, value, *_ = highs(lp)
    assert status == HighsModelStatus.kOptimal
    if answer is not None:
        x, y, iterations = answer
        judged = check(lp, x, y)
        assert judged.residuals.within(1e-6, 1e-6)
        assert float(lp.c @ x) == pytest.approx(value, rel=1e-6, abs=1e-6)
        assert iterations > 0


def test_solve_uses_the_blocks_of_a_program_that_has_them(monkeypatch):
    lp, tried = shuffled(np.random.default_rng(1), 300, 6, 2), []

    def noted(*given):
        tried.append(solve_structured(*given))
        return tried[-1]

    monkeypatch.setattr("copter.methods.before_interior.solve_structured", noted)
    solution = copter.solve(lp, Settings(method="blocks"))
    assert solution.status is Status.OPTIMAL
    assert tried[0] is not None
    assert solution.iterations == tried[0][2]
    assert solution.objective == pytest.approx(highs(lp)[1], rel=1e-7)


def test_no_structure_where_rows_are_tied_at_random():
    rng = np.random.default_rng(2)
    A = sp.random_array((1000, 1500), density=0.004, rng=rng, format="csc")
    rows, columns = np.ones(1000), np.ones(1500)
    lp = LinearProgram(c=columns, A=A, row_lower=-rows, row_upper=rows, col_lower=0 * columns, col_upper=columns)
    assert structure_of(lp) is None
    assert solve_structured(lp, Settings(), FOREVER) is None


@pytest.mark.parametrize("sense", ["min", "max"])
def test_signs_are_those_of_the_sense(sense):
    lp = replace(shuffled(np.random.default_rng(3), 300, 6, 2), sense=sense)
    x, y, _ = solve_structured(lp, Settings(), FOREVER)
    assert check(lp, x, y).residuals.within(1e-6, 1e-6)
