"""What a plan uses of every row, against sums by NumPy; which slots are whole, which can be forced."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from copter import Model
from copter.shims.feasibility import exceeded
from copter.shims.greedy import integer_slots, survey
from copter.shims.tally import tally, tally_columns, tally_plain


@pytest.mark.parametrize("seed", range(5))
def test_sums_are_those_of_numpy(seed: int) -> None:
    rng = np.random.default_rng(seed)
    rows, terms = 6, 200
    row = rng.integers(0, rows - 1, terms).astype(np.int32)
    coefficient, value = rng.integers(-9, 9, terms) / rng.choice([1, 3], rows)[row], rng.integers(0, 3, terms) * 1.0
    use, size, count, whole = tally(row, coefficient, value, rows)
    product = coefficient * value
    np.testing.assert_allclose(use, np.bincount(row, weights=product, minlength=rows), rtol=1e-14, atol=1e-14)
    np.testing.assert_allclose(size, np.bincount(row, weights=np.abs(product), minlength=rows), rtol=1e-14)
    np.testing.assert_array_equal(count, np.bincount(row, minlength=rows))
    for i in range(rows):
        mine = row == i
        assert whole[i] == (coefficient[mine] == np.rint(coefficient[mine])).all()
    assert (use[-1], size[-1], count[-1], whole[-1]) == (0.0, 0.0, 0, True)


@pytest.mark.parametrize("seed", range(20))
def test_rows_are_exceeded_where_exact_sums_are(seed: int) -> None:
    """Tenths, and limits at, just above and just below their float64 sum."""
    rng = np.random.default_rng(seed)
    rows, terms = 8, 60
    row = rng.integers(0, rows, terms).astype(np.int32)
    coefficient, value = rng.integers(1, 9, terms) / 10.0, rng.integers(0, 4, terms) / 2.0
    exact = [Fraction(0)] * rows
    size = np.zeros(rows)
    for i, a, x in zip(row.tolist(), coefficient.tolist(), value.tolist(), strict=True):
        exact[i] += Fraction(a) * Fraction(x)
        size[i] += a * x
    upper = np.array([float(e) for e in exact]) + rng.choice([-1e-9, -1e-16, 0.0, 1e-16, 1e-9], rows)
    allowed = [Fraction(2.0**-53 * (s + abs(u))) for s, u in zip(size.tolist(), upper.tolist(), strict=True)]
    over = [e - Fraction(u) - a for e, u, a in zip(exact, upper.tolist(), allowed, strict=True)]
    found = set(exceeded(upper, row, coefficient, value).tolist())
    for i in range(rows):
        if abs(over[i]) > Fraction(1e-17):  # what is allowed is itself rounded
            assert (i in found) == (over[i] > 0)


def test_wrong_rows_and_lengths_are_refused() -> None:
    one = np.ones(1)
    with pytest.raises(IndexError, match="no row 2"):
        tally(np.array([2], dtype=np.int32), one, one, 2)
    with pytest.raises(ValueError, match="1 rows, 2 coefficients"):
        tally(np.zeros(1, dtype=np.int32), np.ones(2), one, 1)


def made() -> Model:
    """Two integer requests and a continuous one, on two resources; the first is removed."""
    model = Model(sense="max")
    model.add_resources("a", 4)
    model.add_resources("b", 4)
    usage = {"a": [1.0, 2.0, 0.0], "b": [0.0, 0.5, 3.0]}
    for name, rest in (("gone", {}), ("x", {"integer": True}), ("y", {"integer": True, "lower": 0.0, "upper": 0.5})):
        model.add_request(name, [1.0, 2.0, 3.0], usage=usage, **rest)
    model.add_request("z", [1.0, 2.0, 3.0], usage=usage, lower=[0.0, 0.1, 0.0])
    model.remove_request("gone")
    model.fix("x", 1)
    return model


def test_columns_are_tallied_where_they_lie() -> None:
    model = made()
    matrix, slot = model.ledger.matrix, model.ledger.slot_of
    column = np.full(matrix.n_slots, -1, dtype=np.int32)
    column[slot["x"]], column[slot["y"]] = 1, 2
    use, size, count, whole = tally_columns(matrix, column)
    rows = [model.ledger.row_of["a"], model.ledger.row_of["b"]]
    assert use[rows].tolist() == size[rows].tolist() == [2.0, 3.5]
    assert count[rows].tolist() == [1, 2]
    assert whole[rows].tolist() == [True, False]
    with pytest.raises(IndexError, match="has no column 3"):
        tally_columns(matrix, np.full(matrix.n_slots, 3, dtype=np.int32))
    with pytest.raises(ValueError, match="1 columns"):
        tally_columns(matrix, column[:1])


def test_slots_that_are_whole_and_slots_that_can_be_forced() -> None:
    model = made()
    matrix, slot = model.ledger.matrix, model.ledger.slot_of
    assert set(np.flatnonzero(integer_slots(matrix)).tolist()) == {slot["x"], slot["y"]}
    sizes, _, forcible, units = survey(matrix)
    bound = set(forcible.tolist())
    assert {slot["x"], slot["z"]} <= bound
    assert all(matrix.slabs[at] is not None for at in bound)
    assert sizes[list(slot.values())].tolist() == [3, 3, 3]
    assert sorted(sizes.tolist()) == [0, 3, 3, 3]
    assert units
    model.update_integrality("z", True)
    model.update_limit("z", 2.0)
    assert not survey(matrix)[3]


def test_plans_are_plain_where_every_slot_may_take_its_column_at_one() -> None:
    model = Model(sense="max")
    model.add_resources("a", 4)
    for name in ("gone", "x", "y"):
        model.add_request(name, [1.0, 2.0], usage={"a": [1.0, 2.0]}, integer=True)
    model.remove_request("gone")
    matrix, slot = model.ledger.matrix, model.ledger.slot_of
    column = np.full(matrix.n_slots, -1, dtype=np.int32)
    column[slot["x"]] = 1
    assert tally_plain(matrix, column) is not None
    assert tally_plain(matrix, column[:1]) is None
    for wrong in (2, -2):
        column[slot["y"]] = wrong
        assert tally_plain(matrix, column) is None
    column[slot["y"]] = -1
    model.update_limit("x", 0.5)  # the column may not be one
    assert tally_plain(matrix, column) is None
    model.update_limit("x", 1.0)
    assert tally_plain(matrix, column) is not None
    model.fix("y", 0)  # must be looked at closely: the slot takes no column
    assert tally_plain(matrix, column) is None
