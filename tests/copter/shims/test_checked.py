"""The last look at a plan: what holds passes at the very edge, what does not is refused by the name of what breaks."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

import numpy as np
import pytest

from copter import InvalidDataError, Model, PrivateRows
from copter.shims import IDLE, IntegerPlan, require_feasible

Listed = list[tuple[Hashable | int, int, float]]
UNKNOWN = "has a column that the model does not have, or one twice"
INF = float("inf")


def cluster() -> Model:
    """Integer requests a, b; continuous c, d, e: bounds 0.25 to 0.5, limit 1.5; resources r (whole), s (at least 2)."""
    model = Model("max")
    model.set_count("p", 100.0)
    model.set_count("r", 7.0)
    model.set_count("s", 9.0, 2.0)
    model.set_count("q", 100.0)
    for name in "ab":
        model.add_request(name, [1.0, 2.0], {"r": [1, 2], "s": [2, 3], "p": [1, 1]}, integer=True)
    for name in "cde":
        model.add_request(
            name, [1.0, 1.0, 1.0], {"r": [1, 2, 4], "s": [0, 0, 1], "q": [1, 1, 1]}, limit=1.5, upper=1.25
        )
    return model


def plan_with(model: Model, columns: dict[Hashable, int], shares: Listed, slots: int | None = None) -> IntegerPlan:
    """A plan that nothing has looked at: shares in the order given; a request may be a slot's number."""
    matrix, slot_of = model.ledger.matrix, model.ledger.slot_of
    column = np.full(matrix.n_slots if slots is None else slots, IDLE, dtype=np.int32)
    for request, which in columns.items():
        column[slot_of[request]] = which
    return IntegerPlan(
        objective=0.0,
        bound=0.0,
        gap=0.0,
        fractional_requests=0,
        kept_previous=False,
        column_of_slot=column,
        generation=matrix.generation[: matrix.n_slots].copy(),
        slot_of=dict(slot_of),
        share_key=np.array(
            [slot_of.get(request, request) << 32 | which for request, which, _ in shares], dtype=np.int64
        ),  # type: ignore[operator]
        share=np.array([value for _, _, value in shares], dtype=np.float64),
    )


def refused(model: Model, columns: dict[Hashable, int], shares: Listed, message: str) -> None:
    """The plan is refused with this message."""
    with pytest.raises(InvalidDataError) as raised:
        require_feasible(model, plan_with(model, columns, shares))
    assert str(raised.value) == f"the shim's plan {message}"


# What holds -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("columns", "shares"),
    [
        ({"a": 0}, []),  # s exactly at its lower bound
        ({"b": 0}, []),
        ({"a": 1, "b": 1}, []),
        ({"b": 1}, [("c", 0, 1.25), ("c", 1, 0.25)]),  # at the upper bound and at the limit
        ({"b": 1}, [("d", 1, 0.0), ("d", 0, 0.0)]),  # at the lower bound
        ({"a": 1, "b": 0}, [("e", 2, 1.0)]),  # all of r
        ({"b": 0}, [("e", 1, 0.5), ("c", 2, 0.5), ("d", 0, 1.25), ("d", 1, 0.25)]),  # in any order
    ],
)
def test_plans_at_the_edge_hold(columns: dict[Hashable, int], shares: Listed) -> None:
    model = cluster()
    require_feasible(model, plan_with(model, columns, shares))


def test_an_empty_plan_of_an_empty_model_holds() -> None:
    model = Model("max")
    model.set_count("r", 0.0)
    require_feasible(model, plan_with(model, {}, []))


# What does not --------------------------------------------------------------------------------------------------------


def test_a_plan_of_another_size_is_refused() -> None:
    model = cluster()
    for slots in (4, 6):
        with pytest.raises(InvalidDataError) as raised:
            require_feasible(model, plan_with(model, {}, [], slots))
        assert str(raised.value) == f"the shim's plan has columns for {slots} slots, the model has 5"
    plan = plan_with(model, {"a": 0}, [("c", 0, 1.0), ("c", 1, 0.0)])
    object.__setattr__(plan, "share", np.ones(1))
    with pytest.raises(InvalidDataError, match="columns for 5 slots"):
        require_feasible(model, plan)


@pytest.mark.parametrize(
    ("columns", "shares"),
    [
        ({"a": 2}, []),
        ({"a": -2}, []),
        ({"b": -2}, []),
        ({"b": 0, "a": 2}, []),
        ({"a": 0}, [("e", 3, 0.0)]),
        ({"a": 0}, [("d", 3, 0.0), ("e", 0, 0.0)]),
        ({"a": 0}, [(5, 0, 0.0)]),
        ({"a": 0}, [(-1, 0, 0.0)]),
        ({"a": 0}, [("c", 0, 0.5), ("c", 0, 0.5)]),
        ({"a": 0}, [("c", 0, 0.5), ("d", 0, 0.5), ("c", 0, 0.5)]),
        ({"a": 0, "b": 0}, [("a", 0, 1.0)]),
    ],
)
def test_columns_that_are_not_there_or_there_twice(columns: dict[Hashable, int], shares: Listed) -> None:
    refused(cluster(), columns, shares, UNKNOWN)


class Guarded:
    """A matrix that is asked for the sizes of slots that it has, and of no others: it does not look itself."""

    def __init__(self, matrix: Any) -> None:
        self.matrix = matrix

    def __getattr__(self, name: str) -> Any:
        return getattr(self.matrix, name)

    def sizes_of(self, slots: np.ndarray) -> np.ndarray:
        assert ((slots >= 0) & (slots < self.matrix.n_slots)).all()
        return np.asarray(self.matrix.sizes_of(slots))


@pytest.mark.parametrize("slot", [-9, -1, 5, 6, 7, 10, 2**31 - 1])
def test_the_memory_of_other_slots_is_not_read(slot: int, monkeypatch: pytest.MonkeyPatch) -> None:
    model = cluster()
    monkeypatch.setattr(model.ledger, "matrix", Guarded(model.ledger.matrix))
    require_feasible(model, plan_with(model, {"a": 0}, [("e", 0, 0.0)]))
    refused(model, {"a": 0}, [(slot, 0, 0.0)], UNKNOWN)


@pytest.mark.parametrize("request_", "cde")
@pytest.mark.parametrize(
    "values",
    [
        [1.25 + 2.0**-50],
        [-(2.0**-60)],
        [0.0, 0.0, 1.25 + 2.0**-50],
        [1.0, 0.5 + 2.0**-50],
        [float("nan")],
    ],
)
def test_bounds_and_limits_of_shares(request_: str, values: list[float]) -> None:
    shares: Listed = [(request_, column, value) for column, value in enumerate(values)]
    refused(cluster(), {"b": 0}, shares, f"breaks a bound or the limit of request {request_!r}")


def test_the_first_of_several_requests_that_break_a_bound_is_named() -> None:
    wrong: Listed = [("e", 0, 2.0), ("d", 0, -1.0), ("c", 0, 1.0)]
    refused(cluster(), {"b": 0}, wrong, "breaks a bound or the limit of request 'd'")
    limits: Listed = [("e", 0, 1.0), ("e", 1, 1.0), ("d", 0, 1.0), ("d", 1, 1.0), ("c", 0, 1.0)]
    refused(cluster(), {"b": 0}, limits, "breaks a bound or the limit of request 'd'")


def bounded() -> Model:
    """Continuous requests: x needs 0.5 of its second column, y may be nothing, z has a column that is below zero."""
    model = Model("max")
    model.set_count("r", 9.0)
    model.add_request("w", [1.0, 1.0], {"r": [1, 1]}, integer=True)
    model.add_request("x", [1.0, 1.0], {"r": [1, 1]}, lower=[0.0, 0.5])
    model.add_request("y", [1.0, 1.0], {"r": [1, 1]}, lower=[-0.5, 0.0], upper=[0.0, 0.5])
    model.add_request("z", [1.0, 1.0], {"r": [1, 1]}, lower=[0.0, -2.0], upper=[1.0, -0.5])
    return model


def test_columns_that_cannot_be_nothing() -> None:
    must: Listed = [("x", 1, 0.5), ("z", 1, -0.5)]
    require_feasible(bounded(), plan_with(bounded(), {}, must))
    require_feasible(bounded(), plan_with(bounded(), {"w": 1}, [*must, ("y", 0, -0.5)]))
    refused(bounded(), {}, [("z", 1, -0.5)], "breaks a bound or the limit of request 'x'")
    refused(bounded(), {}, [("x", 0, 0.5), ("z", 1, -0.5)], "breaks a bound or the limit of request 'x'")
    refused(bounded(), {}, [("x", 1, 0.25), ("z", 1, -0.5)], "breaks a bound or the limit of request 'x'")
    refused(bounded(), {}, [("x", 1, 0.5)], "breaks a bound or the limit of request 'z'")
    refused(bounded(), {}, [], "breaks a bound or the limit of request 'x'")


@pytest.mark.parametrize("second", [False, True])
def test_a_fixed_column_must_be_there_and_no_other(second: bool) -> None:
    model = cluster()
    fixed, other = ("b", "a") if second else ("a", "b")
    model.fix(fixed, 1)
    require_feasible(model, plan_with(model, {fixed: 1}, []))
    refused(model, {other: 1}, [], f"breaks a bound or the limit of request {fixed!r}")
    refused(model, {fixed: 0}, [], f"breaks a bound or the limit of request {fixed!r}")


@pytest.mark.parametrize(
    ("columns", "shares"),
    [({"a": 1, "b": 1}, [("c", 0, 1.25), ("d", 1, 1.25)]), ({"a": 1, "b": 0}, [("e", 2, 1.0 + 2.0**-40)])],
)
def test_more_of_a_resource_than_there_is(columns: dict[Hashable, int], shares: Listed) -> None:
    refused(cluster(), columns, shares, "uses more of resource 'r' than there is")


def test_less_of_a_resource_than_must_be_used() -> None:
    low = "uses less of resource 's' than its lower bound"
    refused(cluster(), {}, [], low)
    refused(cluster(), {}, [("c", 0, 1.0), ("e", 2, 1.0)], low)
    model = cluster()
    model.set_count("q", 100.0, 1.0)
    refused(model, {}, [], low)
    refused(model, {"a": 0}, [], "uses less of resource 'q' than its lower bound")
    model.set_count("r", 1.0)
    refused(model, {"a": 1}, [("c", 0, 1.0)], "uses more of resource 'r' than there is")
    model.set_count("s", 2.0)
    refused(model, {"b": 1}, [], "uses more of resource 'r' than there is")


# Rows of requests' own ------------------------------------------------------------------------------------------------


def with_own_rows() -> Model:
    """Integer plain and served, one of whose columns must be taken; rows of two requests over their own shares.

    Of least: 1 <= x0 + x1 <= 2. Of tied: 0 <= 2 x0 - 4 x1, and 2 x0 + x1 + 3 x2 <= 5.
    """
    model = Model("max")
    model.set_count("r", 99.0)
    use = {"r": [1.0, 1.0]}
    model.add_request("gone", [1.0, 1.0], use)
    model.add_request("plain", [1.0, 1.0], use, integer=True)
    model.add_request("free", [1.0, 1.0], use, limit=INF, upper=9.0)
    model.add_request("least", [1.0, 1.0], use, at_least=1.0, limit=2.0)
    rows = PrivateRows([[2.0, -4.0, 0.0], [2.0, 1.0, 3.0]], [0.0, -INF], [INF, 5.0])
    model.add_request("tied", [1.0, 1.0, 1.0], {"r": [1, 1, 1]}, limit=INF, upper=9.0, private_rows=rows)
    model.add_request("served", [1.0, 1.0], use, integer=True, at_least=1.0)
    model.remove_request("gone")
    model.add_request("last", [1.0, 1.0], use, limit=INF, upper=9.0)  # in the first slot
    return model


@pytest.mark.parametrize(
    ("columns", "shares"),
    [
        ({"served": 0}, [("least", 0, 1.0)]),
        ({"served": 1, "plain": 0}, [("least", 0, 1.25), ("least", 1, 0.75)]),
        ({"served": 1}, [("least", 1, 1.0), ("tied", 0, 2.0), ("tied", 1, 1.0)]),
        ({"served": 0}, [("least", 1, 1.5), ("tied", 0, 1.0), ("tied", 2, 1.0), ("last", 1, 9.0)]),
        ({"served": 0}, [("last", 0, 9.0), ("least", 1, 1.5), ("free", 1, 9.0), ("free", 0, 9.0)]),
    ],
)
def test_least_sums_and_private_rows_hold_at_the_edge(columns: dict[Hashable, int], shares: Listed) -> None:
    model = with_own_rows()
    require_feasible(model, plan_with(model, columns, shares))


@pytest.mark.parametrize(
    ("columns", "shares", "request_"),
    [
        ({"served": 0}, [], "least"),
        ({"served": 0}, [("least", 0, 0.5), ("least", 1, 0.375)], "least"),
        ({"served": 0}, [("free", 1, 2.0), ("last", 0, 2.0)], "least"),
        ({"plain": 0}, [("least", 0, 1.0)], "served"),
        ({"plain": 0}, [], "least"),
        ({"served": 0}, [("least", 0, 1.0), ("tied", 1, 0.25)], "tied"),
        ({"served": 0}, [("least", 0, 1.0), ("tied", 0, 2.0), ("tied", 1, 1.0), ("tied", 2, 0.125)], "tied"),
        ({"served": 0}, [("least", 0, 1.0), ("tied", 0, 2.75)], "tied"),
        ({}, [("least", 0, 1.0), ("tied", 1, 0.25)], "tied"),
    ],
)
def test_least_sums_and_private_rows_that_are_broken(
    columns: dict[Hashable, int], shares: Listed, request_: str
) -> None:
    message = f"breaks the limit or a private row of request {request_!r}"
    refused(with_own_rows(), columns, shares, message)
