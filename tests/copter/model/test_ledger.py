"""The ledger: rows with two bounds, look-ups by id, and what its check of consistency finds."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from copter import Model, Session, UnknownHandleError
from copter.runtime.errors import InternalError
from tests.copter.consistent import require_consistent
from tests.copter.plain import innards, small


def ranged() -> Model:
    """1 <= x + 2 y <= 3 and x - y = 0, maximising x + y over 0 <= x, y <= 10."""
    model = Model("max")
    model.ledger.apply("rows", ["range", "equal"], np.array([1.0, 0.0]), np.array([3.0, 0.0]))
    model.add_request("xy", [1.0, 1.0], {"range": [1, 2], "equal": [1, -1]}, limit=np.inf, upper=10.0)
    return model


def test_rows_with_two_bounds_are_solved() -> None:
    solution = Session(ranged()).solve()
    assert solution.of("xy") == pytest.approx([1.0, 1.0], abs=1e-6)
    assert (solution.price("range"), solution.price("equal")) == pytest.approx((2 / 3, 1 / 3), abs=1e-6)


def test_rows_that_are_known_get_other_bounds() -> None:
    model = ranged()
    session = Session(model)
    session.solve()
    model.ledger.apply("rows", ["range", "new"], np.array([-np.inf, 0.0]), np.array([6.0, np.inf]))
    assert model.resources == ("range", "equal", "new")
    assert session.solve().of("xy") == pytest.approx([2.0, 2.0], abs=1e-6)
    model.add_resources("range", 3.0)  # a count leaves the lower bound as it is
    program = model.to_linear_program()
    assert (program.row_lower[0], program.row_upper[0]) == (-np.inf, 9.0)


def test_a_failed_batch_takes_rows_back() -> None:
    model = small()
    before = innards(model)
    with pytest.raises(ZeroDivisionError), model.batch():  # noqa: PT012
        model.ledger.apply("rows", ["a", "new"], np.array([1.0, 2.0]), np.array([2.0, 2.0]))
        raise ZeroDivisionError
    assert innards(model) == before


def test_rows_are_journaled_and_saved(tmp_path: Path) -> None:
    model = Model("max")
    session = Session(model, journal=tmp_path / "journal")
    model.ledger.apply("rows", ["r"], np.array([-1.0]), np.array([np.inf]))
    expected = innards(model)
    session.journal(None)
    again = Session.load(tmp_path / "journal")
    assert innards(again.model) == expected
    again.journal(None)
    again.save(tmp_path / "snapshot")
    assert innards(Session.load(tmp_path / "snapshot").model) == expected


def test_look_ups_name_what_is_unknown() -> None:
    ledger = small().ledger
    assert ledger.slots(["own", "p"]).tolist() == [ledger.slot("own"), ledger.slot("p")]
    for wrong in (lambda: ledger.row("c"), lambda: ledger.slot("r"), lambda: ledger.slots(["p", "r"])):
        with pytest.raises(UnknownHandleError, match="unknown re"):
            wrong()


@pytest.mark.parametrize(
    ("spoil", "word"),
    [
        (lambda ledger: ledger.slot_of.pop("p"), "slot"),
        (lambda ledger: ledger.row_of.update(a=1), "row"),
        (lambda ledger: ledger.added_at.update(p=99), "ages"),
        (lambda ledger: ledger.matrix.slabs.reverse(), "slabs"),
    ],
)
def test_an_inconsistent_model_is_found(spoil: object, word: str) -> None:
    model = small()
    require_consistent(model.ledger)
    spoil(model.ledger)  # type: ignore[operator]
    with pytest.raises(InternalError, match=word):
        require_consistent(model.ledger)


def test_a_batch_is_in_the_journal_when_it_has_ended_and_a_failed_one_is_not(tmp_path: Path) -> None:
    model = small()
    session = Session(model, journal=tmp_path / "journal")
    with model.batch():
        model.add_resources("a", 2.0)
        with pytest.raises(ZeroDivisionError), model.batch():  # noqa: PT012
            model.remove_request("p")
            raise ZeroDivisionError
        model.update_limit("own", 2.0)
    expected = innards(model)
    with pytest.raises(ZeroDivisionError), model.batch():  # noqa: PT012
        model.remove_request("own")
        raise ZeroDivisionError
    session.journal(None)
    again = Session.load(tmp_path / "journal")
    assert innards(again.model) == expected
    again.journal(None)


def test_many_scales_change_as_a_whole_or_not_at_all() -> None:
    model = small()
    matrix, slots = model.ledger.matrix, np.array(list(model.ledger.slot_of.values()), dtype=np.int32)
    before = [(matrix.scale_of(slot), matrix.costs_of(slot).tolist()) for slot in slots.tolist()]
    column = np.zeros(len(slots), dtype=np.int32)
    column[-1] = 1000
    two, zero = np.full(len(slots), 2.0), np.zeros(len(slots))
    with pytest.raises(IndexError, match="has no column 1000"):
        matrix.rescale(slots, two, zero, column, zero)
    assert [(matrix.scale_of(slot), matrix.costs_of(slot).tolist()) for slot in slots.tolist()] == before
    column[-1] = 0
    undo = matrix.rescale(slots, two, zero, column, zero)
    assert all(matrix.costs_of(slot)[0] == 0.0 for slot in slots.tolist())
    matrix.take_back_scales(slots, *undo)
    assert [(matrix.scale_of(slot), matrix.costs_of(slot).tolist()) for slot in slots.tolist()] == before
