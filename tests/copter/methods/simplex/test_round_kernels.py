"""Kernels of small rounds: the whole program's entries, the proof of a point, a basis that is carried over."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from copter.methods.blocks.program import program_of
from copter.methods.simplex.carry import carry, whole_columns
from copter.methods.simplex.form import formed
from copter.methods.simplex.proof import prove_point
from copter.methods.simplex.rounds import NOTHING
from copter.problem.checker import check
from copter.problem.linear_program import LinearProgram
from tests.copter.by_highs import highs
from tests.copter.methods.test_small_rounds import Rounds
from tests.copter.random_programs import random_program

quick = settings(max_examples=60, deadline=None, derandomize=True)


def figures_of(lp: LinearProgram, x: np.ndarray, y: np.ndarray) -> tuple[float, ...]:
    """What the proof finds of a point of a minimisation."""
    return prove_point(
        lp.A.indptr.astype(np.int32), lp.A.indices.astype(np.int32), lp.A.data, lp.c,
        np.concatenate((lp.col_lower, lp.row_lower)), np.concatenate((lp.col_upper, lp.row_upper)), x, y,
    )  # fmt: skip


@pytest.mark.parametrize("seed", range(8))
def test_entries_of_the_whole_program_are_the_models(seed: int) -> None:
    model = Rounds(seed, private=True).model
    matrix, lp = model.ledger.matrix, model.to_linear_program()
    slots = np.array(sorted(model.ledger.slot_of.values()), dtype=np.int32)
    program = program_of(matrix, slots)
    start, index, value = whole_columns(program)
    found = sp.csc_array((value, index, start), shape=lp.shape)
    np.testing.assert_array_equal(found.toarray(), lp.A.toarray())


@quick
@given(st.sampled_from(["bounded", "covering", "chain", "integers"]), st.integers(0, 2**31))
def test_a_proof_agrees_with_the_checker_and_with_no_optimum(shape: str, seed: int) -> None:
    lp, rng = random_program(shape, seed), np.random.default_rng(seed)
    if lp.sense != "min" or 0 in lp.shape:
        return
    x = np.clip(rng.normal(0.0, 2.0, lp.shape[1]), lp.col_lower - 0.5, lp.col_upper + 0.5)
    y = rng.normal(0.0, 1.0, lp.shape[0]) * (rng.random(lp.shape[0]) < 0.7)
    objective, violation, largest, _, bound, margin, *_ = figures_of(lp, x, y)
    assert np.isfinite(np.where(y > 0.0, lp.row_lower, np.where(y < 0.0, lp.row_upper, 0.0))).all()
    judged = check(lp, x, y)
    assert objective + lp.offset == pytest.approx(judged.objective, rel=1e-9, abs=1e-9)
    assert largest == pytest.approx(judged.primal_absolute, rel=1e-9, abs=1e-9)
    assert violation >= largest * (1.0 - 1e-12)
    status, optimum, *_ = highs(lp)
    if status.name == "kOptimal":
        assert bound - margin + lp.offset <= optimum + 1e-7 * (1.0 + abs(optimum))


def test_a_row_bounds_a_column_that_has_no_bound() -> None:
    lp = LinearProgram([-1.0, -1.0], [[1.0, 2.0]], row_upper=[4.0])
    *_, bound, margin, wrong, _, _ = figures_of(lp, np.array([4.0, 0.0]), np.array([-1.0 + 1e-9]))
    assert wrong == 0.0
    assert margin < 1e-12
    assert bound == pytest.approx(-4.0, abs=1e-7)
    assert bound <= -4.0
    free = LinearProgram([-1.0, -1.0], [[1.0, -2.0]], row_upper=[4.0])
    *_, margin, wrong, most, _ = figures_of(free, np.array([4.0, 0.0]), np.array([-0.5]))
    assert np.isinf(margin)
    assert wrong > 0.0
    assert most > 0.0


def test_a_new_request_begins_with_its_cheapest_column() -> None:
    """Two requests of two columns over one resource: the first column is the better one at a price of one."""
    lp = LinearProgram(
        [-3.0, -4.0, -1.0, -1.0], [[1.0, 3.0, 1.0, 1.0], [1.0, 1.0, 0.0, 0.0], [0.0, 0.0, 1.0, 1.0]],
        row_upper=[2.0, 1.0, 1.0],
    )  # fmt: skip
    starts, one = np.array([0, 2, 4], dtype=np.int32), np.array([0, 1, 2], dtype=np.int32)
    names = starts, one, np.array([3, 5], dtype=np.int32), np.ones(2, dtype=np.int64), np.ones(1, dtype=np.int64)
    for price, cheapest in ((-1.0, 0), (0.0, 1)):
        form = formed(lp)
        carry(None, form.tableau, NOTHING, names, np.array([price]) / (form.row[:1] * form.unit))
        head = form.tableau.arrays["head"][:3].tolist()
        assert cheapest in head
        assert 4 in head  # the resource's logical variable, so its price is zero
    old = form.tableau
    assert old.settle(False) == 0
    later = formed(lp)
    moved = (*names[:3], np.array([1, 2], dtype=np.int64), names[4])  # the second request is another one
    carry(old, later.tableau, names, moved, np.zeros(1))
    assert 1 in later.tableau.arrays["head"][:3]
    assert later.tableau.settle(False) == 0
