"""What is kept between rounds: prices and own-row duals follow edits and moves; idle columns leave; damage is told."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from copter import Model, Session, Settings
from copter.methods.proximal import iterate as kept
from copter.methods.proximal.iterate import Iterate
from copter.runtime.errors import InternalError
from tests.copter.twins import Group, flat, working_set

INF = np.inf


def keys(*pairs: tuple[int, int]) -> np.ndarray[Any, np.dtype[np.int64]]:
    return np.array([slot << 32 | row for slot, row in pairs], dtype=np.int64)


def edited(generation: list[int], row_generation: list[int], n_slots: int | None = None) -> Any:
    """A matrix as far as an iterate reads it; its arrays may be longer than there are slots."""
    rows, count = np.array(row_generation), len(generation) if n_slots is None else n_slots
    return SimpleNamespace(n_rows=len(rows), row_generation=rows, n_slots=count, generation=np.array(generation))


def test_a_first_iterate_is_empty_and_cold() -> None:
    first = Iterate()
    assert (first.sigma, first.cold, first.pass_s, first.ws.size) == (10.0, True, 0.0, 0)
    empty = (first.y, first.row_generation, first.own_key, first.own_dual, first.own_generation)
    assert [len(each) for each in empty] == [0] * 5
    assert Iterate(3.0).sigma == 3.0


def test_prices_follow_the_rows_and_duals_of_own_rows_their_requests(monkeypatch: pytest.MonkeyPatch) -> None:
    found = Iterate()
    guides: list[Any] = []
    monkeypatch.setattr(found.ws, "refresh", lambda matrix, y, times: len(guides.append(y) or ()), raising=False)
    found.y, found.row_generation = np.array([-1.0, -2.0]), np.array([4, 5])
    found.hold_own(edited([1, 1, 2], []), keys((0, 0), (1, 2), (2, 1)), np.array([0.1, 0.2, 0.3]))
    matrix = edited(
        [1, 7, 2], [4, 6, 1], 2
    )  # the second row is another, a third is new; request 1 is another, 2 is gone
    found.refresh(matrix)
    assert found.y.tolist() == [-1.0, 0.0, 0.0]
    assert found.row_generation.tolist() == [4, 6, 1]
    assert found.own_key.tolist() == keys((0, 0)).tolist()
    assert (found.own_dual.tolist(), found.own_generation.tolist()) == ([0.1], [1])
    assert guides == [None], "a cold start has no prices to start columns by"
    matrix.row_generation[0] = 9
    found.cold = False
    found.refresh(matrix)
    assert found.y.tolist() == [0.0, 0.0, 0.0]
    assert guides[1] is found.y
    assert found.row_generation[0] == 9


def test_duals_of_own_rows_move_with_their_slabs() -> None:
    """Slot 0 stays, 1 was another request, 2 goes to slot 0's place in a smaller matrix, 3 is gone, 9 unknown."""
    found = Iterate()
    found.own_key = keys((0, 0), (1, 1), (2, 3), (3, 1), (4, 0))
    found.own_dual, found.own_generation = np.arange(5.0), np.array([1, 1, 2, 1, 1])
    found.follow(np.array([1, 2, 0, -1]), np.array([1, 8, 2, 1]), edited([20, 10], []))
    assert found.own_key.tolist() == keys((1, 0), (0, 3)).tolist()
    assert found.own_dual.tolist() == [0.0, 2.0]
    assert found.own_generation.tolist() == [10, 20]


def test_duals_are_found_by_their_keys() -> None:
    found = Iterate()
    asked = keys((0, 0), (0, 5), (3, 1), (9, 9))
    assert found.own_at(asked).tolist() == [0.0] * 4
    found.own_key, found.own_dual = keys((0, 5), (3, 1), (4, 0)), np.array([0.5, 0.75, 0.25])
    assert found.own_at(asked).tolist() == [0.0, 0.5, 0.75, 0.0]
    assert found.own_at(keys((4, 0))).tolist() == [0.25]
    found.own_key, found.own_dual = found.own_key[:1], found.own_dual[:1]
    assert found.own_at(asked).tolist() == [0.0, 0.5, 0.0, 0.0]


def with_idle(resident: list[bool]) -> tuple[Iterate, Any]:
    """Two groups of two columns, of which the second is dear and at rest."""
    group = Group(np.array([-1.0, -0.1]), np.zeros(2), np.ones(2), 1.0, np.ones((1, 2)), np.array([1.0, 0.0]))
    problem = flat([group, group])
    found = Iterate()
    found.ws, found.y = working_set(problem, problem.center), np.zeros(1)
    found.ws.generation = np.zeros(4, dtype=np.int64)
    return found, SimpleNamespace(resident_of=lambda slots: np.array(resident)[slots])


def test_idle_columns_leave_but_not_those_of_resident_requests() -> None:
    found, matrix = with_idle([False, False])
    found.shrink(matrix)
    assert found.ws.key.tolist() == keys((0, 0), (1, 0)).tolist()
    found.shrink(matrix)
    assert found.ws.size == 2
    found, matrix = with_idle([True, False])
    found.shrink(matrix)
    assert found.ws.key.tolist() == keys((0, 0), (0, 1), (1, 0)).tolist()
    found, matrix = with_idle([True, True])
    found.shrink(matrix)
    assert found.ws.size == 4
    Iterate().shrink(matrix)
    found, matrix = with_idle([False, False])
    found.ws.cost[1::2] = -1.0 + kept.KEEP_SLACK * 0.99
    found.shrink(matrix)
    assert found.ws.size == 4, "nearly as good as the best"
    found.ws.cost[1] = -1.0 + kept.KEEP_SLACK * 1.01
    found.shrink(matrix)
    assert found.ws.size == 3


def test_one_column_of_one_group_may_leave() -> None:
    found, matrix = with_idle([False, False])
    found.ws.cost[3] = -1.0
    found.shrink(matrix)
    assert found.ws.key.tolist() == keys((0, 0), (1, 0), (1, 1)).tolist()


def whole(limits: list[float]) -> tuple[Iterate, Any]:
    """The iterate of a solved session with every column, all at zero."""
    model = Model("max")
    model.add_resources("a", 9)
    for name, limit in enumerate(limits):
        model.add_request(name, [1.0, 1.7], usage={"a": [1.0, 2.0]}, upper=1.0, limit=limit)
    session = Session(model, Settings(method="proximal"))
    session.solve()
    found, matrix = session._iterate, model.ledger.matrix
    slots = np.arange(len(limits), dtype=np.int32)
    found.ws.grow(matrix, np.repeat(slots, 2), np.tile(np.arange(2, dtype=np.int32), len(slots)))
    found.ws.x[:] = 0.0
    return found, matrix


def test_an_iterate_that_is_damaged_is_told() -> None:
    found, matrix = whole([1.0, 1.0, 1.0])
    found.check_consistent(matrix)
    Iterate().check_consistent(Model().ledger.matrix)
    ws = found.ws

    def refused(what: str) -> None:
        with pytest.raises(InternalError, match=what):
            found.check_consistent(matrix)

    for at in (0, 5):
        for value, is_inside in ((-0.01, False), (1.0, True)):
            ws.x[at] = value
            if is_inside:
                found.check_consistent(matrix)
            else:
                refused("in bounds False, ascending True, alive True, limits True")
            ws.x[at] = 0.0
    ws.x[4:] = 0.51
    refused("in bounds True, ascending True, alive True, limits False")
    ws.x[4:] = 0.0
    ws.generation[5] += 1
    refused("in bounds True, ascending True, alive False, limits True")
    ws.generation[5] -= 1
    ws.key[[0, 1]] = ws.key[[1, 0]]
    refused("in bounds True, ascending False, alive True, limits True")
    ws.key[0] = ws.key[1] = min(ws.key[:2])
    refused("ascending False")
    ws.key[1] += 1
    found.check_consistent(matrix)
    found.y = np.zeros(2)
    refused("in bounds True, ascending True, alive True, limits True")


@pytest.mark.parametrize(("limit", "over", "holds"), [
    (1.0, 0.0, True), (1.0, 8e-10, True), (1.0, 3e-9, False), (1e-4, 9e-13, True), (1e-4, 1e-11, False),
    (1e6, 8e-4, True), (1e6, 3e-3, False),
])  # fmt: skip
def test_a_sum_is_at_most_its_limit_up_to_rounding(limit: float, over: float, holds: bool) -> None:
    """A billionth of it, and 1e-12."""
    group = np.array([0.5 * (limit + over), 0.5 * (limit + over)])
    model = Model("max")
    model.add_resources("a", 9)
    for name in range(2):
        model.add_request(name, [1.0, 1.7], usage={"a": [1.0, 2.0]}, upper=1e7, limit=limit)
    session = Session(model, Settings(method="proximal"))
    session.solve()
    found, matrix = session._iterate, model.ledger.matrix
    found.ws.grow(matrix, np.array([0, 0, 1, 1], dtype=np.int32), np.array([0, 1, 0, 1], dtype=np.int32))
    found.ws.x[:] = [0.0, 0.0, *group]
    if holds:
        found.check_consistent(matrix)
    else:
        with pytest.raises(InternalError, match="limits False"):
            found.check_consistent(matrix)
