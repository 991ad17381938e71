"""Tables of the past stay what they were, whatever is edited after them, and are copied only where that is needed."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

from copter import Model, Session
from copter.problem.slots_then import MOST, SlotsThen, table_of
from copter.runtime.errors import UnknownHandleError


def made(count: int = 4) -> Model:
    """Requests 0, 1, ... on one resource."""
    model = Model("max")
    model.add_resources("gpu", 2)
    for request in range(count):
        add(model, request)
    return model


def add(model: Model, request: int) -> None:
    """Add a request of one column."""
    model.add_request(request, [1.0 + request], {"gpu": [1.0]}, integer=True)


def failing(model: Model, request: int) -> None:
    """Edits that are taken back."""
    with model.batch():
        model.remove_requests(model.requests[:2])
        add(model, request)
        raise ZeroDivisionError


def test_an_unchanged_table_is_the_present_one() -> None:
    ledger = made().ledger
    then = ledger.slots_then()
    assert then is ledger.slots_then()
    assert table_of(then) is ledger.slot_of
    assert table_of({1: 2}) == {1: 2}


@pytest.mark.parametrize("seed", range(10))
def test_tables_are_what_they_were_after_any_edits(seed: int) -> None:
    rng = np.random.default_rng(seed)
    model, kept = made(), []
    for number in range(60):
        chosen = rng.integers(4)
        if chosen == 0:
            then = model.ledger.slots_then()
            kept.append((then, dict(model.ledger.slot_of)))
        elif chosen == 1 and model.requests:
            model.remove_request(model.requests[int(rng.integers(len(model.requests)))])
        elif chosen == 2:
            free = [each for each in range(8) if each not in model.ledger.slot_of]
            if free:
                add(model, int(rng.choice(free)))
        elif number % 3 == 0:
            model.ledger.compact()
        else:
            with pytest.raises(ZeroDivisionError):
                failing(model, 100 + number)
        for then, expected in kept:
            if rng.random() < 0.2:
                assert list(then.items()) == list(expected.items())
    for then, expected in kept:
        assert list(then.items()) == list(expected.items())
        assert len(then) == len(expected)
        assert all(each in then for each in expected)
        assert 1000 not in then
        copy = pickle.loads(pickle.dumps(then))
        assert type(copy) is dict
        assert copy == expected


def test_old_tables_are_copied_so_that_edits_follow_few() -> None:
    model = made()
    tables: list[SlotsThen] = []
    for request in range(10, 12 + MOST):
        tables.append(model.ledger.slots_then())
        add(model, request)
    assert table_of(tables[0]) is not model.ledger.slot_of
    assert [len(each) for each in tables] == list(range(4, 6 + MOST))


def test_solutions_and_plans_answer_for_requests_that_were_removed_since() -> None:
    model = made()
    session = Session(model)
    plan = session.solve_integer()
    solution = session.last_solution
    assert solution is not None
    model.remove_requests([0, 3])
    add(model, 9)
    assert [plan.column(each) for each in range(4)] == [None, None, 0, 0]
    assert plan.columns_of([3, 0]).tolist() == [0, -1]
    assert solution.columns_of(3)[0].tolist() == [0]
    for wrong in (plan.column, solution.columns_of):
        with pytest.raises(UnknownHandleError):
            wrong(9)
