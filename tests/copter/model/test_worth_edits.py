"""Edits of concave worths: in place, taken back, named when wrong."""

from __future__ import annotations

import pickle
import warnings
from pathlib import Path

import numpy as np
import pytest

from copter import (
    DimensionError,
    EditNotAllowedError,
    InvalidDataError,
    Model,
    PrivateRows,
    Session,
    Status,
    UnknownHandleError,
    worth,
)


def two_jobs() -> Model:
    model = Model(sense="max")
    model.add_resources("gpu", 6)
    for job in ("a", "b"):
        model.add_request(job, [0.0], {"gpu": [1]}, limit=10, worth=worth.log(), rates=[1.0])
    return model


def test_weights_and_rates_are_edited_in_place() -> None:
    model = two_jobs()
    session = Session(model)
    assert session.solve().of("a") == pytest.approx([3.0], rel=2e-3)
    model.update_worth("a", worth.log(weight=2.0))
    solution = session.solve()
    assert (solution.of("a")[0], solution.of("b")[0]) == pytest.approx((4.0, 2.0), rel=5e-3)
    assert solution.price("gpu") == pytest.approx(0.5, rel=2e-3)
    model.update_worth("a", rates=[5.0])  # a logarithm's share does not depend on its rate
    assert session.solve().of("a") == pytest.approx([4.0], rel=2e-3)
    assert (model.worth("a"), model.rates("a")) == (worth.log(weight=2.0), [5.0])


def test_a_failed_batch_takes_worths_back() -> None:
    model = two_jobs()

    def edit() -> None:
        with model.batch():
            model.update_worth("a", worth.power(2.0))
            model.remove_request("b")
            model.drop_worth("a")
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        edit()
    assert model.requests == ("a", "b")
    assert model.worth("a") == model.worth("b") == worth.log()
    assert Session(model).solve().of("b") == pytest.approx([3.0], rel=2e-3)


def test_a_wrong_worth_adds_no_request() -> None:
    model = two_jobs()
    version = model.version
    with pytest.raises(InvalidDataError, match="all rates are zero"):
        model.add_request("c", [0.0], {"gpu": [1]}, worth=worth.log(), rates=[0.0])
    assert (model.requests, model.version) == (("a", "b"), version)
    assert len(model.ledger.worths) == 2


def test_a_slot_that_is_used_again_has_no_old_worth() -> None:
    model = two_jobs()
    model.remove_request("b")
    model.add_request("c", [2.0], {"gpu": [1]}, limit=10)
    assert model.worth("c") is None
    solution = Session(model).solve()  # log a + 2 c: the marginal worth of a is 2
    assert solution.of("a") == pytest.approx([0.5], rel=5e-3)
    assert solution.of("c") == pytest.approx([5.5], rel=5e-3)


def test_without_worths_the_model_is_linear_again() -> None:
    model = two_jobs()
    session = Session(model)
    session.solve()
    for job in model.requests:
        model.drop_worth(job)
        model.update_cost(job, [1.0])
    solution = session.solve()
    assert (solution.status, solution.objective) == (Status.OPTIMAL, pytest.approx(6.0))
    assert model.to_linear_program().c.tolist() == [1.0, 1.0]


def test_snapshots_journals_and_copies_keep_worths(tmp_path: Path) -> None:
    model = two_jobs()
    session = Session(model, journal=tmp_path / "journal")
    model.update_worths(["a", "b"], [worth.log(3.0), worth.piecewise([(0, 0), (1, 4), (9, 8)])])
    expected = session.solve().objective
    session.save(tmp_path / "state")
    model.update_worth("b", worth.quadratic(4.0, 1.0))
    later = session.solve().objective
    session.close() if hasattr(session, "close") else model.ledger.journal.close()  # type: ignore[union-attr]
    loaded = Session.load(tmp_path / "state", journal=None)
    assert loaded.solve().objective == pytest.approx(expected, rel=1e-6)
    replayed = Session.load(tmp_path / "state", journal=tmp_path / "journal")
    assert replayed.model.worth("b") == worth.quadratic(4.0, 1.0)
    assert replayed.solve().objective == pytest.approx(later, rel=1e-6)
    assert Session(pickle.loads(pickle.dumps(model))).solve().objective == pytest.approx(later, rel=1e-6)


def test_compaction_moves_worths_with_their_requests() -> None:
    model = two_jobs()
    session = Session(model)
    model.remove_request("a")
    model.update_worth("b", worth.quadratic(4.0, 1.0))
    session.compact()
    assert model.worth("b") == worth.quadratic(4.0, 1.0)
    assert session.solve().of("b") == pytest.approx([4.0], rel=2e-3)


@pytest.mark.parametrize(
    ("edit", "error", "says"),
    [
        (lambda m: m.update_worth("z", worth.log()), UnknownHandleError, "unknown request 'z'"),
        (lambda m: m.update_worth("a"), InvalidDataError, "give a worth, rates, or both"),
        (lambda m: m.update_worth("a", 3.0), InvalidDataError, "one of copter.worth"),
        (lambda m: m.update_worth("a", rates=[1.0, 2.0]), DimensionError, r"must be \(1,\)"),
        (lambda m: m.update_worth("a", rates=[-1.0]), InvalidDataError, "rate 0 is -1"),
        (lambda m: m.update_worth("a", rates=[np.nan]), InvalidDataError, "NaN|finite"),
        (lambda m: m.update_worths(["a", "b"], [worth.log()]), DimensionError, "2 requests"),
        (
            lambda m: m.add_request("c", [0.0], {"gpu": [1]}, worth=worth.log()),
            InvalidDataError,
            "both worth and rates",
        ),
        (
            lambda m: m.add_request("c", [0.0], {"gpu": [1]}, limit=np.inf, worth=worth.log(), rates=1.0),
            EditNotAllowedError,
            "limit is infinite",
        ),
        (
            lambda m: m.add_request("c", [0.0], {"gpu": [1]}, upper=0.5, worth=worth.log(), rates=1.0),
            EditNotAllowedError,
            "upper bounds below its limit",
        ),
        (
            lambda m: m.add_request(
                "c", [0.0], {"gpu": [1]}, private_rows=PrivateRows([[1.0]], 0.0, 1.0), worth=worth.log(), rates=1.0
            ),
            EditNotAllowedError,
            "private rows",
        ),
        (lambda m: m.update_limit("a", np.inf), EditNotAllowedError, "limit would be infinite"),
        (lambda m: m.update_limits(["b", "a"], [1.0, np.inf]), EditNotAllowedError, "limit would be infinite"),
        (lambda m: m.update_limit("a", 2.0, 1.0), EditNotAllowedError, "least sum would be below its limit"),
        (lambda m: m.update_limits(["a"], [2.0], [1.0]), EditNotAllowedError, "least sum would be below its limit"),
        (lambda m: m.update_bounds("a", lower=0.1), EditNotAllowedError, "would have lower bounds"),
        (lambda m: m.update_bounds("a", upper=0.1), EditNotAllowedError, "upper bounds below its limit"),
        (lambda m: m.to_linear_program(), EditNotAllowedError, "which no linear program holds"),
    ],
)
def test_wrong_edits_are_named_and_change_nothing(edit: object, error: type[Exception], says: str) -> None:
    model = two_jobs()
    version = model.version
    with pytest.raises(error, match=says):
        edit(model)  # type: ignore[operator]
    assert (model.version, model.requests, model.worth("a")) == (version, ("a", "b"), worth.log())


def test_a_minimisation_has_no_worth() -> None:
    model = Model(sense="min")
    model.add_resources("gpu", 1)
    with pytest.raises(EditNotAllowedError, match="sense='max'"):
        model.add_request("a", [0.0], {"gpu": [1]}, worth=worth.log(), rates=1.0)


@pytest.mark.parametrize("wrong", ["log", 5.0])
def test_what_is_no_worth_is_named_as_such_and_adds_nothing(wrong: object) -> None:
    model = Model(sense="max")
    model.add_resources("gpu", 1.0)
    with pytest.raises(InvalidDataError, match="must be one of"):
        model.add_request("job", [0.0], {"gpu": [1.0]}, worth=wrong, rates=[1.0])  # type: ignore[arg-type]
    assert len(model) == 0


@pytest.mark.parametrize("rate", [1e99, 1e-90])
def test_powers_beyond_the_range_of_numbers_end_honestly_and_without_warnings(rate: float) -> None:
    model = Model(sense="max")
    model.add_resource("gpu", 4.0)
    model.add_request("a", [0.0], {"gpu": [1]}, worth=worth.power(4.0), rates=rate)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        solution = Session(model).solve()
    assert solution.status in (Status.OPTIMAL, Status.NUMERICAL_ERROR)
    assert not solution.bound < worth.power(4.0)(rate)
