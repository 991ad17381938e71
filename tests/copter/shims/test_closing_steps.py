"""The steps that close a small plan's gap, at prices given by hand (M15)."""

from __future__ import annotations

from collections.abc import Hashable
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from copter import Model
from copter.shims import IDLE, closing
from copter.shims.closing import Options, closed, took, usage_by
from copter.shims.draft import Draft

PLENTY = 10**6


def at_prices(prices: dict[Hashable, float], bound: float = 0.0, certified: bool = True) -> Any:
    """A solution of which only bound and prices are asked."""
    return SimpleNamespace(
        bound=bound, bound_is_certified=certified, prices=lambda rows: np.array([prices.get(row, 0.0) for row in rows])
    )


def drafted(model: Model, columns: dict[Hashable, int]) -> Draft:
    """A draft with these columns besides what has to be."""
    draft = Draft(model)
    slots = np.array([model.ledger.slot(request) for request in columns], dtype=np.int32)
    draft.take_all(slots, np.array(list(columns.values()), dtype=np.int32))
    return draft


def taken(model: Model, draft: Draft) -> dict[Hashable, int]:
    """What requests have."""
    columns = {request: int(draft.column[model.ledger.slot(request)]) for request in model.requests}
    return {request: column for request, column in columns.items() if column != IDLE}


def pair(sense: str = "max") -> Model:
    """f uses 1 of 3 units of r and has to; a or b, worth 3 and 2, can have the other two; nobody wants s."""
    model, sign = Model(sense), 1.0 if sense == "max" else -1.0  # type: ignore[arg-type]
    model.set_count("gone", 7.0)
    model.set_count("r", 3.0)
    model.set_count("s", np.inf)
    model.add_request("left", [1.0], {"r": [1]}, integer=True)
    model.add_request("f", [sign * 5.0], {"r": [1]}, integer=True, lower=1.0)
    model.add_request("a", [sign * 3.0], {"r": [2], "gone": [1]}, integer=True)
    model.add_request("b", [sign * 2.0], {"r": [2], "s": [9e9]}, integer=True)
    model.remove_request("left")
    model.drop_resource("gone")
    return model


# How much is proven ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("sense", ["max", "min"])
@pytest.mark.parametrize(
    ("price", "sizes"),
    [
        (1.0, 1 + 8 + 5 + 1 + 2),  # a's loss is 0, of best -1; two units are paid
        (1.5, 1 + 8 + 5 + 0 + 3),
        (0.0, 1 + 8 + 5 + 5 + 0),
        (-1.0, 1 + 8 + 5 + 5 + 0),  # of the wrong sign: it counts for nothing
    ],
)
def test_the_best_plan_is_proven_but_for_the_rounding_of_sizes(sense: str, price: float, sizes: float) -> None:
    """Twice the margin of 3 columns and 2 rows: of 1, the value, what has to be, the best options and what is paid."""
    model = pair(sense)
    draft = drafted(model, {"a": 0})
    found = closed(draft, at_prices({"r": price if sense == "max" else -price, "s": 0.5}), PLENTY)
    assert found is not None
    assert -8.0 - found == pytest.approx(2.0 * 8.0 * (3 + 2 + 16) * 2.0**-52 * sizes, rel=2e-3)
    assert taken(model, draft) == {"f": 0, "a": 0}


@pytest.mark.parametrize("price", [0.0, 0.5, 1.0, 1.4, 7.0])
@pytest.mark.parametrize("columns", [{}, {"b": 0}])
def test_a_worse_plan_is_bettered_first(columns: dict[Hashable, int], price: float) -> None:
    model = pair()
    draft = drafted(model, columns)
    found = closed(draft, at_prices({"r": price}), PLENTY)
    assert taken(model, draft) == {"f": 0, "a": 0}
    assert draft.left[[model.ledger.row("r"), model.ledger.row("s")]].tolist() == [0.0, np.inf]
    assert found == pytest.approx(-8.0, abs=1e-6)


def test_rows_without_a_limit_let_everything_through() -> None:
    model = Model("max")
    model.set_count("r", 1.0)
    model.set_count("s", np.inf)
    model.add_request("a", [2.0, 3.0], {"r": [1, 1], "s": [0, 1e100]}, integer=True)
    draft = drafted(model, {"a": 0})
    assert closed(draft, at_prices({"r": 1.0, "s": 1.0}), PLENTY) == pytest.approx(-3.0, abs=1e-6)
    assert taken(model, draft) == {"a": 1}


@pytest.mark.parametrize("first", [{"a": 0}, {"a": 1}, {"b": 0}, {"b": 1}])
def test_plans_of_the_same_worth_are_not_exchanged(first: dict[Hashable, int]) -> None:
    model = Model("max")
    model.set_count("r", 1.0)
    for name in "ab":
        model.add_request(name, [1.0, 1.0], {"r": [1, 1]}, integer=True)
    draft = drafted(model, first)
    assert closed(draft, at_prices({"r": 0.5}), PLENTY) == pytest.approx(-1.0, abs=1e-7)
    assert taken(model, draft) == first


@pytest.mark.parametrize(("gain", "found"), [(2e-6, True), (4.5e-13, True), (5e-14, False)])
def test_gains_above_the_margin_are_found(gain: float, found: bool) -> None:
    """The sizes are 1, a value of 1 and what is paid, 1: gains from 1e-13 on count."""
    model = Model("max")
    model.set_count("r", 1.0)
    model.add_request("a", [1.0, 1.0 + gain], {"r": [1, 1]}, integer=True)
    draft = drafted(model, {"a": 0})
    assert closed(draft, at_prices({"r": 1.0}), PLENTY) is not None
    assert taken(model, draft) == {"a": int(found)}


def test_without_a_bound_nothing_is_proven() -> None:
    for solution in (at_prices({}, 0.0, False), at_prices({}, np.inf, True), at_prices({}, np.nan, True)):
        assert closed(drafted(pair(), {"a": 0}), solution, PLENTY) is None
    assert closed(Draft(Model("max")), at_prices({}), PLENTY) is None, "there is nothing to choose"


def test_work_is_nodes_times_two_more_than_rows() -> None:
    """Where no option is left that gains, one node is all; the model has two rows and the place of a third."""
    rows = len(Draft(pair()).left)
    assert rows == 3
    for work, proven in ((2 + rows, True), (1 + rows, False), (0, False)):
        found = closed(drafted(pair(), {"a": 0}), at_prices({"r": 1.0}), work)
        assert (found is not None) == proven


# What is too large ----------------------------------------------------------------------------------------------------


def apart(requests: int, columns: int, rows: int, worse: float = 1.0) -> tuple[Model, Draft]:
    """Requests with room for all of them at their best, which they have; their other columns lose so much."""
    model = Model("max")
    for row in range(rows):
        model.set_count(row, 1e6)
    template = model.add_template({0: np.ones(columns)})
    costs = np.append(2.0, np.full(columns - 1, 2.0 - worse))
    model.add_requests(range(requests), [costs] * requests, template=template, integer=True)
    return model, drafted(model, dict.fromkeys(range(requests), 0))


@pytest.mark.parametrize(
    ("requests", "columns", "rows", "small"),
    [
        (1, 1, 1, True),
        (2500, 2, 1, True),
        (1667, 3, 1, False),  # 5,001 columns
        (1, 1, 256, True),
        (1, 1, 257, False),
        (100, 20, 25, True),
        (2381, 1, 21, False),  # 50,001 columns times rows
    ],
)
def test_larger_models_are_not_looked_at(requests: int, columns: int, rows: int, small: bool) -> None:
    _, draft = apart(requests, columns, rows)
    found = closed(draft, at_prices({}), PLENTY)
    assert found == (pytest.approx(-2.0 * requests) if small else None)


def test_a_hair_above_what_is_looked_at_in_columns() -> None:
    for columns in (5000, 5001):
        _, draft = apart(1, columns, 1)
        assert (closed(draft, at_prices({}), PLENTY) is not None) == (columns == 5000)


@pytest.mark.parametrize(("requests", "proven"), [(64, True), (65, False)])
def test_at_most_64_requests_may_have_more_than_one_option(requests: int, proven: bool) -> None:
    """Two columns of the same worth, or one that is worth what it pays, as nothing is; not one that loses."""
    _, draft = apart(requests, 2, 1, worse=0.0)
    assert (closed(draft, at_prices({}), PLENTY) is not None) == proven
    model, _ = apart(requests, 1, 1)
    model.set_count(0, requests)
    draft = drafted(model, dict.fromkeys(range(requests), 0))
    assert (closed(draft, at_prices({0: 2.0}), PLENTY) is not None) == proven
    _, draft = apart(requests, 2, 1, worse=1.0)
    assert closed(draft, at_prices({}), PLENTY) is not None


# Options and their order ----------------------------------------------------------------------------------------------


def several() -> Model:
    """a can be 1 and 2, b 3 and not 4 (its bound says so), c 5; d has to be."""
    model = Model("min")
    model.set_count("r", 9.0)
    model.set_count("s", 9.0)
    model.add_request("a", [-1.0, -2.0], {"r": [1, 2], "s": [0, 1]}, integer=True)
    model.add_request("b", [-3.0, -4.0], {"r": [3, 4]}, integer=True, upper=[1.0, 0.5])
    model.add_request("d", [7.0], {"r": [1]}, integer=True, lower=1.0)
    model.add_request("c", [-5.0], {"s": [3]}, integer=True)
    return model


def options_of(model: Model, prices: list[float]) -> tuple[Draft, Options]:
    draft = Draft(model)
    slots = np.flatnonzero(draft.alive & ~draft.forced).astype(np.int32)
    return draft, Options(draft, slots, draft.sizes[slots], np.array(prices))


def test_what_options_cost_at_prices() -> None:
    model = several()
    draft, options = options_of(model, [0.5, 0.25])
    assert (options.owner.tolist(), options.column.tolist()) == ([0, 0, 1, 2], [0, 1, 0, 0])
    assert options.reduced.tolist() == [-0.5, -0.75, -1.5, -4.25]
    assert options.best.tolist() == [-0.75, -1.5, -4.25]
    draft.take_all(np.array([0, 3], dtype=np.int32), np.array([1, 0], dtype=np.int32))
    assert options.costs_now(draft).tolist() == [-2, -5]
    assert usage_by(draft, options.slots).tolist() == [2, 4]
    assert usage_by(draft, np.array([0, 1, 2], dtype=np.int32)).tolist() == [3, 1]


@pytest.mark.parametrize(
    ("budget", "owner", "column", "loss"),
    [
        (9.0, [0, 0, 1, 2, 0, 1, 2], [0, 1, 0, 0, IDLE, IDLE, IDLE], [0.25, 0, 0, 0, 0.75, 1.5, 4.25]),
        (1.0, [0, 0, 1, 2, 0], [0, 1, 0, 0, IDLE], [0.25, 0, 0, 0, 0.75]),
        (0.5, [0, 0, 1, 2], [0, 1, 0, 0], [0.25, 0, 0, 0]),
    ],
)
def test_options_that_lose_less_than_the_gap_are_kept(
    budget: float, owner: list[int], column: list[int], loss: list[float]
) -> None:
    _, options = options_of(several(), [0.5, 0.25])
    kept = options.within(budget)
    assert kept is not None
    assert (kept.owner.tolist(), kept.column.tolist(), kept.loss.tolist()) == (owner, column, loss)
    assert kept.counts.tolist() == [1, 2, 1, 1, 0, 0, 0][: len(owner)]
    assert (kept.row.tolist(), kept.coefficient.tolist()) == ([0, 0, 1, 0, 1], [1, 2, 1, 3, 3])


def test_requests_whose_second_option_loses_most_are_searched_first(monkeypatch: pytest.MonkeyPatch) -> None:
    """c's loses 4.25, b's 1.5, a's 0.25."""
    seen: list[Any] = []
    monkeypatch.setattr(closing, "Choices", lambda *given: seen.extend(given))
    draft, options = options_of(several(), [0.5, 0.25])
    kept = options.within(9.0)
    assert kept is not None
    _, order = kept.choices(np.array([0.5, 0.25]), draft.left, draft.room)
    assert kept.owner[order].tolist() == [2, 2, 1, 1, 0, 0, 0]
    assert kept.column[order].tolist() == [0, IDLE, 0, IDLE, 1, 0, IDLE]
    start, loss, entries, rows, _ = seen
    entry_start, row, coefficient = (array.tolist() for array in entries)
    price, left, room = (array.tolist() for array in rows)
    assert (start.tolist(), loss.tolist()) == ([0, 2, 4, 7], [0, 4.25, 0, 1.5, 0, 0.25, 0.75])
    assert (entry_start, row, coefficient) == ([0, 1, 1, 2, 2, 4, 5, 5], [1, 0, 0, 1, 0], [3, 3, 2, 1, 1])
    assert (price, left, room) == ([0.5, 0.25], draft.left.tolist(), draft.room.tolist())
    alone = options.within(0.5)  # only a has two
    assert alone is not None
    assert alone.owner[alone.choices(np.zeros(2), draft.left, draft.room)[1]].tolist() == [1, 2, 0, 0]


# What is taken --------------------------------------------------------------------------------------------------------


def test_a_choice_that_holds_is_taken_and_another_is_not() -> None:
    """The search allows 1e-9 of what there is; the exact check does not."""
    for size, holds in ((0.5, True), (0.5 + 4e-10, False)):
        model = Model("max")
        model.set_count("r", 1.0)
        for name in "ab":
            model.add_request(name, [2.0, 3.0], {"r": [0.25, size]}, integer=True)
        draft = drafted(model, {"a": 0, "b": 0})
        found = closed(draft, at_prices({"r": 4.0}), PLENTY)
        assert found == (pytest.approx(-6.0, abs=1e-6) if holds else None)
        assert taken(model, draft) == ({"a": 1, "b": 1} if holds else {"a": 0, "b": 0})
        assert draft.left.tolist() == [0.0 if holds else 0.5]


def test_what_a_choice_leaves_out_is_given_back() -> None:
    model = several()
    draft, options = options_of(model, [0.5, 0.25])
    draft.take_all(np.array([0, 1], dtype=np.int32), np.array([1, 0], dtype=np.int32))
    kept = options.within(9.0)
    assert kept is not None
    _, order = kept.choices(np.array([0.5, 0.25]), draft.left, draft.room)
    assert took(draft, kept, np.array([0, 3, 5], dtype=np.int32), order)
    assert taken(model, draft) == {"a": 0, "d": 0, "c": 0}
    assert draft.left.tolist() == [7.0, 6.0]
