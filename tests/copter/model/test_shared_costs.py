"""Costs that many requests have together, and the worst objective coefficient of a request."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import copter
from copter import verify
from copter.runtime.errors import DimensionError, InvalidDataError
from copter.session.state import model_from, model_state


def made(sense: str = "max") -> copter.Model:
    """A model of nine requests of 70 columns each."""
    model, rng = copter.Model(sense=sense), np.random.default_rng(5)
    model.add_resources("gpu", 40)
    usage = {"gpu": np.arange(70) % 7 + 1.0}
    for request in range(9):
        model.add_request(request, rng.normal(size=70), usage)
    return model


def arrays_of(model: copter.Model) -> int:
    """Number of arrays that hold the requests' costs."""
    ledger = model.ledger
    return len({id(ledger.matrix.slabs[slot].cost) for slot in ledger.slot_of.values()})


def test_costs_that_are_one_object_are_stored_once_and_equal_ones_of_later_edits_too() -> None:
    model, rng = made(), np.random.default_rng(6)
    vectors = [rng.normal(size=70) for _ in range(2)]
    model.update_costs([0, 1, 2, 3], [vectors[0], vectors[1], vectors[0], vectors[0]])
    assert arrays_of(model) == 9 - 4 + 2
    model.update_costs([4, 5], [vectors[0].copy()] * 2)
    assert arrays_of(model) == 9 - 6 + 2
    vectors[0][:] = 7.0
    assert not (model.cost(0) == 7.0).any(), "the caller's array is not the model's"
    np.testing.assert_array_equal(model.cost(4), model.cost(2))
    model.update_cost(2, np.zeros(70))
    np.testing.assert_array_equal(model.cost(4), model.cost(0))
    assert not model.cost(2).any()


def test_shared_costs_that_do_not_fit_change_nothing() -> None:
    model = made()
    before = model.cost(0)
    with pytest.raises(DimensionError):
        model.update_costs([0, 1], [np.zeros(69)] * 2)
    with pytest.raises(InvalidDataError):
        model.update_costs([0, 1], [np.full(70, np.nan)] * 2)
    with pytest.raises(DimensionError), model.batch():  # noqa: PT012 - the edits before the wrong one are taken back
        model.update_costs([0, 1], [np.zeros(70)] * 2)
        model.rescale_costs([0, 1], 2.0, worst=0.5)
        model.update_cost(2, np.zeros(69))
    np.testing.assert_array_equal(model.cost(0), before)


@pytest.mark.parametrize("sense", ["max", "min"])
def test_the_worst_coefficient_stands_in_for_all_that_are_worse(sense: str) -> None:
    model, plain, sign = made(sense), made(sense), 1.0 if sense == "max" else -1.0
    ids, scale = list(range(9)), np.linspace(0.5, 2.0, 9)
    column = np.array([-1, 3, 5, -1, 7, 69, 0, 2, 1])
    worst = sign * np.array([0.2, 0.1, 0.3, -np.inf, 0.0, -0.5, 0.25, 0.5, 0.1])
    given = [model.cost(each) for each in ids]
    model.rescale_costs(ids, scale, 0.1, column, sign * 0.7, worst)
    expected = []
    for at in ids:
        value = scale[at] * given[at] + 0.1
        value = np.maximum(value, worst[at]) if sense == "max" else np.minimum(value, worst[at])
        if column[at] >= 0:
            value[column[at]] = sign * 0.7
        expected.append(value)
        np.testing.assert_allclose(model.cost(at), value, rtol=1e-15)
    plain.update_costs(ids, np.concatenate(expected))
    found, wanted = copter.Session(model).solve(), copter.Session(plain).solve()
    assert found.objective == pytest.approx(wanted.objective, rel=1e-6)
    assert found.bound == pytest.approx(wanted.bound, rel=1e-6)
    again = model_from(model_state(model))
    assert [again.cost(at).tolist() for at in ids] == [model.cost(at).tolist() for at in ids]
    model.rescale_costs([0], 1.0)
    np.testing.assert_array_equal(model.cost(0), given[0])
    with pytest.raises(InvalidDataError, match="worst"):
        model.rescale_costs(ids, 1.0, worst=np.nan)


def test_pricing_of_many_columns_knows_the_worst_coefficient() -> None:
    model, plain, rng = copter.Model(sense="max"), copter.Model(sense="max"), np.random.default_rng(8)
    usage = {"a": np.repeat([1.0, 0.0], 150), "b": np.repeat([0.0, 2.0], 150)}
    vectors = [rng.normal(size=300) for _ in range(5)]
    for each in (model, plain):
        each.add_resources("a", 300)
        each.add_resources("b", 200)
        template = each.add_template(usage)
        each.add_requests(list(range(900)), [vectors[at % 5] for at in range(900)], template=template)
    sessions = [copter.Session(each) for each in (model, plain)]
    for at in range(4):
        scale = rng.uniform(0.5, 1.5, 900)
        model.update_costs(list(range(900)), [vectors[(at + each) % 5] for each in range(900)])
        model.rescale_costs(list(range(900)), scale, 0.1 * at, worst=0.4)
        table = [np.maximum(scale[each] * vectors[(at + each) % 5] + 0.1 * at, 0.4) for each in range(900)]
        plain.update_costs(list(range(900)), np.concatenate(table))
        found, wanted = (session.solve() for session in sessions)
        assert found.objective == pytest.approx(wanted.objective, rel=1e-6)
        assert found.objective <= wanted.bound * (1 + 1e-9)
        assert wanted.objective <= found.bound * (1 + 1e-9)


def test_saved_and_journalled_models_share_costs_as_before(tmp_path: Path) -> None:
    model = made()
    session = copter.Session(model, journal=tmp_path / "journal")
    session.save(tmp_path / "saved")
    model.update_costs([0, 1, 2, 3], [np.linspace(-1.0, 1.0, 70)] * 4)
    model.rescale_costs([0, 1], 2.0, worst=[0.5, -np.inf])
    session.journal(None)
    loaded = copter.Session.load(tmp_path / "saved").model
    for request in range(9):
        np.testing.assert_array_equal(loaded.cost(request), model.cost(request))
    assert arrays_of(loaded) == arrays_of(model) == 6
    saved = model_from(model_state(model))
    assert arrays_of(saved) == 6


def test_a_tape_with_shared_costs_is_verified(tmp_path: Path) -> None:
    model = made()
    session = copter.Session(model)
    session.record(tmp_path / "rounds.tape")
    session.solve()
    model.update_costs([0, 1, 2, 3], [np.linspace(-1.0, 1.0, 70)] * 4)
    model.rescale_costs([0, 1, 2], [2.0, 1.0, 3.0], 0.2, [1, -1, 4], 0.9, worst=0.5)
    session.solve()
    session.record(None)
    answers = list(verify.verify(tmp_path / "rounds.tape"))
    assert len(answers) == 2
    assert verify.main([str(tmp_path / "rounds.tape")]) == 0
