"""Private rows, least sums, ranged resources and edits in bulk: what they do to the program, and what is refused."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

from copter import (
    CopterError,
    DimensionError,
    DuplicateHandleError,
    EditNotAllowedError,
    InvalidDataError,
    Model,
    PrivateRows,
    Session,
    UnknownHandleError,
)
from tests.copter.plain import bits, innards

INF, NAN = np.inf, np.nan
B = [[1.0, -1.0, 0.0], [0.0, 1.0, 2.0]]


def blocks() -> Model:
    """Two resources, a template with two private rows and two users, one request of its own, one without rows."""
    model = Model("min")
    model.add_resources("a", 8)
    model.set_count("b", 4, lower=1)
    template = model.add_template({"a": [1, 2, 0], "b": [0, 0, 1]}, private_rows=PrivateRows(B, [0, -INF], [0, 3]))
    model.add_requests(["p", "q"], [[1.0, 2.0, 3.0], [3.0, 2.0, 1.0]], template=template, limit=5.0)
    model.add_request(
        "own", [1.0, 2.0], {"a": [1, 3]}, limit=INF, upper=4.0, private_rows=PrivateRows([[1, 1]], lower=1.0)
    )
    model.add_request("plain", [-1.0], {"a": [2]}, limit=2.0, at_least=1.0)
    return model


def test_the_program_has_a_request_s_sum_and_then_its_private_rows() -> None:
    lp = blocks().to_linear_program()
    np.testing.assert_array_equal(
        lp.A.toarray(),
        [
            [1, 2, 0, 1, 2, 0, 1, 3, 2],
            [0, 0, 1, 0, 0, 1, 0, 0, 0],
            [1, 1, 1, 0, 0, 0, 0, 0, 0],
            [1, -1, 0, 0, 0, 0, 0, 0, 0],
            [0, 1, 2, 0, 0, 0, 0, 0, 0],
            [0, 0, 0, 1, 1, 1, 0, 0, 0],
            [0, 0, 0, 1, -1, 0, 0, 0, 0],
            [0, 0, 0, 0, 1, 2, 0, 0, 0],
            [0, 0, 0, 0, 0, 0, 1, 1, 0],
            [0, 0, 0, 0, 0, 0, 0, 0, 1],
        ],
    )
    np.testing.assert_array_equal(lp.row_lower, [-INF, 1, -INF, 0, -INF, -INF, 0, -INF, 1, 1])
    np.testing.assert_array_equal(lp.row_upper, [8, 4, 5, 0, 3, 5, 0, 3, INF, 2])
    np.testing.assert_array_equal(lp.col_upper, [5, 5, 5, 5, 5, 5, 4, 4, 2])


def test_what_a_model_says_of_them() -> None:
    model = blocks()
    rows = model.private_rows("q")
    assert rows is not None
    np.testing.assert_array_equal(rows.matrix.toarray(), B)
    assert (rows.lower.tolist(), rows.upper.tolist()) == ([0, -INF], [0, 3])
    assert model.private_rows("plain") is None
    assert (model.at_least("plain"), model.at_least("p"), model.lower_count("b")) == (1.0, -INF, 1.0)
    rows.lower[:] = NAN  # new arrays: the model keeps its own
    assert model.private_rows("q").lower.tolist() == [0, -INF]  # type: ignore[union-attr]


def test_bounds_of_requests_are_their_own_and_coefficients_the_template_s() -> None:
    model = blocks()
    model.update_row_bounds(["p"], lower=[[-1, 0]], upper=[[2, INF]])
    model.update_row_bounds(["q", "own"], upper=[[1, 2], [7]])
    model.update_row_bounds(["q", "p"], upper=[0.5, 0.25], row=1, lower=-INF)
    lp = model.to_linear_program()
    np.testing.assert_array_equal(lp.row_lower[[3, 4, 6, 7, 8]], [-1, -INF, 0, -INF, 1])
    np.testing.assert_array_equal(lp.row_upper[[3, 4, 6, 7, 8]], [2, 0.25, 1, 0.5, 7])
    model.update_template(model.templates[0], private_rows=PrivateRows([[5, 0, 0], [0, 0, 6]]))
    lp = model.to_linear_program()
    np.testing.assert_array_equal(lp.A.toarray()[[3, 4], :3], [[5, 0, 0], [0, 0, 6]])
    np.testing.assert_array_equal(lp.row_upper[[3, 4, 6, 7, 8]], [2, 0.25, 1, 0.5, 7])
    model.update_private_rows("p", PrivateRows(sp.csr_array([[1, 0, 0], [0, 7.0, 0]]), 0.0, 1.0))
    lp = model.to_linear_program()
    np.testing.assert_array_equal(lp.A.toarray()[[3, 4, 6, 7], :6].sum(axis=1), [1, 7, 5, 6])
    assert model.template_of("p") is None
    model.update_usage("p", {"a": [1, 1, 1]})
    np.testing.assert_array_equal(model.to_linear_program().A.toarray()[[0, 3, 4], :3], [[1] * 3, [1, 0, 0], [0, 7, 0]])
    model.drop_resource("a")
    assert (model.to_linear_program().A.toarray()[2:4, :3] == [[1, 0, 0], [0, 7, 0]]).all()


def test_bounds_of_rows_come_in_every_form_that_fits() -> None:
    expected = np.array([[2.0, 5.0], [2.0, 5.0]])
    every: list[Any] = [[2.0, 5.0], expected, expected.ravel(), [[2.0, 5.0], [2.0, 5.0]], list(expected)]
    for form in every:
        model, twin = blocks(), blocks()
        model.update_row_bounds(["p", "q"], upper=form)
        for request in ("p", "q"):
            for row, bound in enumerate(expected[0]):
                twin.update_row_bounds([request], upper=[bound], row=row)
        assert bits(model) == bits(twin)
    model, twin = blocks(), blocks()
    model.update_row_bounds(["p", "own"], upper=np.array([2.0, 5.0, 7.0]))
    twin.update_row_bounds(["p", "own"], upper=[[2.0, 5.0], [7.0]])
    assert bits(model) == bits(twin)
    model.update_row_bounds(["p", "own"], upper=[[2.0, 5.0], 7.0])  # type: ignore[list-item]
    assert bits(model) == bits(twin)
    model.update_row_bounds(["p", "own"], upper=9.0)
    twin.update_row_bounds(["p", "own"], upper=[[9.0, 9.0], [9.0]])
    assert bits(model) == bits(twin)
    for names, wrong, shape in (
        (["p", "q"], np.ones((2, 3)), r"\(2, 2\)"),
        (["p", "own"], np.ones((2, 2)), r"\(3,\)"),
        ([], np.ones(1), r"\(0, 0\)"),
    ):
        with pytest.raises(DimensionError, match=f"private rows {shape}"):
            model.update_row_bounds(names, upper=wrong)


def test_private_rows_are_replaced_with_their_bounds() -> None:
    model = blocks()
    model.update_private_rows("q", PrivateRows([[1.0, 0.0, 0.0], [0.0, 7.0, 0.0]], [-2.0, -3.0], [4.0, 5.0]))
    lp, was = model.to_linear_program(), blocks().to_linear_program()
    np.testing.assert_array_equal(lp.row_lower[[3, 4, 6, 7]], [*was.row_lower[[3, 4]], -2.0, -3.0])
    np.testing.assert_array_equal(lp.row_upper[[3, 4, 6, 7]], [*was.row_upper[[3, 4]], 4.0, 5.0])
    np.testing.assert_array_equal(lp.A.toarray()[6:8, 3:6], [[1, 0, 0], [0, 7, 0]])
    np.testing.assert_array_equal(lp.A.toarray()[:3], was.A.toarray()[:3])


def test_one_row_of_each_request_is_named_by_its_number() -> None:
    for row in (0, 1):
        model, twin = blocks(), blocks()
        model.update_row_bounds(["q", "p"], [-9.0, -8.0], np.array([9.0, 8.0]), row=row)
        for request, size in (("q", 9.0), ("p", 8.0)):
            rows = twin.private_rows(request)
            assert rows is not None
            lower, upper = np.array(rows.lower, dtype=float), np.array(rows.upper, dtype=float)
            lower[row], upper[row] = -size, size
            twin.update_row_bounds([request], [lower], [upper])
        assert bits(model) == bits(twin)
    model = blocks()
    model.update_row_bounds(["p", "own"], 2.0, 2.0, row=0)
    assert model.to_linear_program().row_lower[[3, 8]].tolist() == [2.0, 2.0], "an equation is no contradiction"
    wrongs: list[tuple[dict[str, Any], type[CopterError], str]] = [
        ({"row": -1}, DimensionError, "'p' has 2 private rows, no row -1"),
        ({"row": 2}, DimensionError, "'p' has 2 private rows, no row 2"),
        ({"row": 1}, DimensionError, "'own' has 1 private rows, no row 1"),
        ({"row": True}, InvalidDataError, "row is True"),
        ({"row": 0.0}, InvalidDataError, "row is 0.0"),
        ({"row": 0, "upper": [1.0]}, DimensionError, "one for each request"),
        ({"row": 0, "upper": [3.0, NAN]}, InvalidDataError, "'own', private row 0"),
        ({"upper": [[3.0, 1.0], [-INF]]}, InvalidDataError, "'own', private row 0"),
        ({"lower": [[1.0, INF], [0.0]], "upper": INF}, InvalidDataError, "'p', private row 1"),
        ({"lower": [[NAN, 1.0], [0.0]], "upper": INF}, InvalidDataError, "'p', private row 0"),
        ({"lower": [[0.0, 0.0], [7.0]], "upper": [[0.0, 0.0], [6.0]]}, InvalidDataError, "'own', private row 0"),
    ]
    before = bits(model)
    for wrong, error, message in wrongs:
        given = wrong if "upper" in wrong or "lower" in wrong else {**wrong, "upper": 5.0}
        with pytest.raises(error, match=message):
            model.update_row_bounds(["p", "own"], **given)
    assert bits(model) == before


def test_limits_that_contradict_what_a_request_has_are_refused_wherever_it_stands() -> None:
    model = blocks()
    model.add_request("owes", [1.0, 1.0], {"a": [1, 1]}, lower=[0.5, 1.0], upper=2.0, limit=3.0)
    model.add_request("deep", [1.0, 1.0], {"a": [1, 1]}, lower=-INF, upper=2.0, limit=INF)
    model.fix("plain", 0)
    before = bits(model)
    for name, limit, error, message in (
        ("plain", INF, EditNotAllowedError, "'plain' is fixed"),
        ("owes", 1.0, InvalidDataError, "'owes': lower bounds sum to 1.5, above the limit 1"),
        ("deep", 1.0, InvalidDataError, "'deep': a limit needs finite lower bounds"),
    ):
        for order in ([name, "p"], ["p", name]):
            with pytest.raises(error, match=message):
                model.update_limits(order, [limit if each == name else 4.0 for each in order])
    for bounds in ({"lower": 0.5}, {"upper": 1.0}):
        with pytest.raises(EditNotAllowedError, match="'plain' is fixed"):
            model.update_bounds("plain", **bounds)
    assert bits(model) == before
    model.update_limits(["p", "q"], [4.0, 3.0], [1.0, -INF])
    model.update_limits(["q", "p"], [2.5, 2.0])
    assert [(model.limit(each), model.at_least(each)) for each in "pq"] == [(2.0, 1.0), (2.5, -INF)]


def test_edits_in_bulk_are_as_many_single_ones() -> None:
    model, twin = blocks(), blocks()
    limits, least = [3.0, 4.0, 2.5], [0.5, -INF, 2.0]
    model.update_limits(np.array(["p", "q", "plain"]), limits, least)
    for request, limit, low in zip(["p", "q", "plain"], limits, least, strict=True):
        twin.update_limit(request, limit, low)
    assert bits(model) == bits(twin)
    model.update_limits(["p", "q"], 6.0)
    assert (model.limit("q"), model.at_least("p")) == (6.0, 0.5)
    twin.update_limit("p", 6.0)
    twin.update_limit("q", 6.0)
    assert bits(model) == bits(twin)
    model.update_counts(["b", "a"], [7.0, INF], [2.0, -3.0])
    twin.set_count("a", INF, -3.0)
    twin.set_count("b", 7.0, 2.0)
    assert bits(model) == bits(twin)
    model.update_counts(["a"], [5.0])
    assert (model.count("a"), model.lower_count("a")) == (5.0, -3.0)
    version = model.version
    model.update_counts([], [])
    model.update_limits([], [])
    model.update_row_bounds([], [], [])
    model.update_costs([], [])
    assert model.version <= version + 4


def test_costs_side_by_side_are_as_many_single_updates() -> None:
    costs = [np.array([1.0, 5.0, 2.0]), np.array([4.0, 4.0])]
    models = [blocks() for _ in range(4)]
    models[0].update_costs(["p", "own"], costs)
    models[1].update_costs(["p", "own"], np.concatenate(costs))
    models[2].update_costs(["p", "own"], [list(each) for each in costs])
    for request, cost in zip(["p", "own"], costs, strict=True):
        models[3].update_cost(request, cost)
    costs[0][:] = NAN  # the caller's arrays are copied
    assert len({bits(model) for model in models}) == 1


def test_a_count_of_any_sign_makes_a_row() -> None:
    model = Model()
    model.set_count("least", INF, 2.0)
    model.set_count("net", -1.0)
    model.set_count("exact", 0.0, 0.0)
    model.add_resources("ranged", 3.0, lower=1.0)
    model.add_resources("ranged", 2.0)
    lp = model.to_linear_program()
    assert lp.row_lower.tolist() == [2, -INF, 0, 1]
    assert lp.row_upper.tolist() == [INF, -1, 0, 5]


def test_a_column_has_no_upper_bound_but_the_limit() -> None:
    model = Model()
    model.add_resources("a", 100)
    model.add_request("r", [1.0, 2.0], {"a": [1, 1]}, limit=5.0)
    assert model.to_linear_program().col_upper.tolist() == [5, 5]
    model.update_limit("r", 7.0)
    assert model.to_linear_program().col_upper.tolist() == [7, 7]
    model.update_limit("r", INF)
    assert model.to_linear_program().col_upper.tolist() == [INF, INF]
    model.add_request("capped", [1.0, 2.0], {"a": [1, 1]}, limit=5.0, upper=1.0)
    assert model.to_linear_program().col_upper.tolist() == [INF, INF, 1, 1]


def test_a_mandatory_request_can_be_fixed() -> None:
    model = blocks()
    model.fix("plain", 0)
    lp = model.to_linear_program()
    assert (lp.col_lower[-1], lp.col_upper[-1]) == (2.0, 2.0)
    with pytest.raises(EditNotAllowedError, match=r"'plain' is fixed"):
        model.update_limits(["p", "plain"], [1.0, INF])
    with pytest.raises(EditNotAllowedError, match=r"'a': 4 units are in use by fixed requests, 3 would be left"):
        model.update_counts(["b", "a"], [4.0, 3.0])
    with pytest.raises(EditNotAllowedError, match="no private rows can be fixed"):
        model.fix("p", 0)


def test_a_fixed_request_takes_a_limit_up_to_its_upper_bound() -> None:
    model = Model()
    model.add_resources("a", 8)
    model.add_request("p", [1.0, 2.0], {"a": [1, 2]}, limit=1.5, upper=2.0)
    model.fix("p", 1)
    model.update_limit("p", 2.0)
    model.update_bounds("p", upper=2.0)
    assert (model.limit("p"), model.fixed("p")) == (2.0, 1)
    assert Session(model).solve().of("p") == pytest.approx([0.0, 2.0])
    for wrong in (lambda: model.update_limit("p", 2.5), lambda: model.update_bounds("p", upper=1.5)):
        with pytest.raises(EditNotAllowedError, match="'p' is fixed"):
            wrong()


def test_bounds_of_a_hundred_thousand_requests_of_a_template_are_one_table() -> None:
    model = Model()
    model.add_resources("a", 8)
    template = model.add_template({"a": [1, 2, 0]}, private_rows=PrivateRows(B, -1.0, 1.0))
    model.add_requests(range(1000), np.ones((1000, 3)), template=template)
    slabs = model.ledger.matrix.slabs
    assert len({id(slab.private_bounds) for slab in slabs}) == 1
    model.update_row_bounds(range(500), upper=2.0)
    assert len({id(slab.private_bounds) for slab in slabs}) == 1
    assert model.private_rows(499).upper.tolist() == [2, 2]  # type: ignore[union-attr]
    assert model.private_rows(500).upper.tolist() == [1, 1]  # type: ignore[union-attr]


WRONG: dict[str, tuple[Callable[[Model], Any], type[CopterError], str]] = {
    "rows of another width": (
        lambda m: m.add_request("r", [1, 2], {"a": [1, 1]}, private_rows=PrivateRows([[1, 2, 3]])),
        DimensionError, r"'r': the private rows' matrix has shape \(1, 3\), must be \(rows, 2\)",
    ),
    "a vector for rows": (
        lambda m: m.add_request("r", [1, 2], {"a": [1, 1]}, private_rows=PrivateRows([1, 2])), DimensionError, "'r'",
    ),
    "NaN in rows": (
        lambda m: m.add_request("r", [1, 2], {"a": [1, 1]}, private_rows=PrivateRows([[1, NAN]])),
        InvalidDataError, "'r': the private rows' matrix",
    ),
    "infinity in sparse rows": (
        lambda m: m.add_request("r", [1], {"a": [1]}, private_rows=PrivateRows(sp.csr_array([[INF]]))),
        InvalidDataError, "'r'",
    ),
    "no PrivateRows": (
        lambda m: m.add_request("r", [1], {"a": [1]}, private_rows=[[1]]),
        InvalidDataError, "'r': private_rows is a list",
    ),
    "bounds of other rows": (
        lambda m: m.add_request("r", [1], {"a": [1]}, private_rows=PrivateRows([[1]], [0, 0])),
        DimensionError, "'r': lower",
    ),
    "NaN bounds": (
        lambda m: m.add_request("r", [1], {"a": [1]}, private_rows=PrivateRows([[1]], NAN)),
        InvalidDataError, "'r': lower",
    ),
    "crossed bounds of rows": (
        lambda m: m.add_request("r", [1], {"a": [1]}, private_rows=PrivateRows([[1], [2]], [0, 3], [1, 2])),
        InvalidDataError, "'r', private row 1: lower bound 3.0 is above upper bound 2.0",
    ),
    "rows with a template": (
        lambda m: m.add_request("r", [1, 1, 1], template=m.templates[0], private_rows=PrivateRows(B)),
        InvalidDataError, "'r': private rows belong to the template",
    ),
    "bounds of no rows": (lambda m: m.add_request("r", [1], {"a": [1]}, row_upper=1.0), InvalidDataError, "row_upper"),
    "many with crossed bounds": (
        lambda m: m.add_requests(["r", "s"], np.ones((2, 3)), template=m.templates[0], row_lower=[[0, 0], [0, 4]]),
        InvalidDataError, "'s', private row 1",
    ),
    "many with bounds of another shape": (
        lambda m: m.add_requests(["r", "s"], np.ones((2, 3)), template=m.templates[0], row_lower=[1, 2, 3]),
        DimensionError, "row_lower",
    ),
    "least above the limit": (
        lambda m: m.add_request("r", [1], {"a": [1]}, at_least=2.0),
        InvalidDataError, "'r': at_least is 2, above the limit 1",
    ),
    "NaN least": (lambda m: m.update_limit("p", 1.0, NAN), InvalidDataError, "'p': at_least"),
    "infinite least": (lambda m: m.update_limits(["p", "q"], 3.0, [1.0, INF]), InvalidDataError, "'q': at_least"),
    "one negative limit of many": (
        lambda m: m.update_limits(["p", "q"], [1.0, -1.0]),
        InvalidDataError, "'q': limit is -1",
    ),
    "one NaN limit of many": (lambda m: m.update_limits(["p", "q"], [NAN, 1.0]), InvalidDataError, "'p': limit is nan"),
    "limits of other requests": (
        lambda m: m.update_limits(["p", "q"], [1.0]),
        DimensionError, r"\(1,\), must be \(2,\)",
    ),
    "a limit below the least": (
        lambda m: m.update_limits(["p", "plain"], 0.5),
        InvalidDataError, "'plain': at_least is 1",
    ),
    "limits of a stranger": (lambda m: m.update_limits(["p", "?"], 1.0), UnknownHandleError, r"'\?'"),
    "limits of one twice": (lambda m: m.update_limits(["p", "p"], 1.0), DuplicateHandleError, "different"),
    "counts of a stranger": (lambda m: m.update_counts(["a", "?"], 1.0), UnknownHandleError, r"'\?'"),
    "counts of one twice": (lambda m: m.update_counts(["a", "a"], 1.0), DuplicateHandleError, "resources"),
    "one NaN count of many": (lambda m: m.update_counts(["a", "b"], [1.0, NAN]), InvalidDataError, "'b': count is nan"),
    "a count below the lower": (lambda m: m.update_counts(["a", "b"], 0.5), InvalidDataError, "'b': lower is 1, above"),
    "counts of other resources": (lambda m: m.update_counts(["a", "b"], [1.0]), DimensionError, "counts"),
    "crossed new count": (lambda m: m.set_count("new", 1.0, 2.0), InvalidDataError, "'new'"),
    "fewer than the lower": (lambda m: m.remove_resources("b", 3.5), InvalidDataError, "'b': 0.5 units"),
    "one crossed row of many": (
        lambda m: m.update_row_bounds(["p", "own"], [[0, 0], [9]], [[1, 1], [8]]), InvalidDataError,
        "'own', private row 0: lower bound 9.0 and upper bound 8.0",
    ),
    "one NaN row of many": (
        lambda m: m.update_row_bounds(["p", "q"], upper=[[1, 1], [1, NAN]]),
        InvalidDataError, "'q'",
    ),
    "bounds of another shape": (
        lambda m: m.update_row_bounds(["p", "q"], upper=[1, 2, 3]), DimensionError, r"upper has shape \(3,\)",
    ),
    "no such row": (
        lambda m: m.update_row_bounds(["p", "own"], 0.0, row=1),
        DimensionError, "'own' has 1 private rows",
    ),
    "half a row": (lambda m: m.update_row_bounds(["p"], 0.0, row=0.5), InvalidDataError, "row is 0.5"),
    "bounds for a row, of others": (
        lambda m: m.update_row_bounds(["p", "q"], [0.0] * 3, row=0), DimensionError, r"must be \(2,\)",
    ),
    "another number of rows": (
        lambda m: m.update_private_rows("p", PrivateRows([[1, 1, 1]])), DimensionError, "'p' has 2 private rows, not 1",
    ),
    "another number in a template": (
        lambda m: m.update_template(m.templates[0], private_rows=PrivateRows([[1, 1, 1]])), DimensionError, "template",
    ),
    "a template of other rows": (
        lambda m: m.update_usage("own", template=m.add_template({"a": [1, 1]})), DimensionError, "'own' has 1 private",
    ),
    "one cost of many NaN": (
        lambda m: m.update_costs(["p", "own"], np.array([1.0, 1, 1, 1, NAN])), DimensionError, "2 requests",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_edit_is_one_clear_error_and_changes_nothing(name: str) -> None:
    edit, error, message = WRONG[name]
    model = blocks()
    before = innards(model)
    with pytest.raises(error, match=message), model.batch():
        edit(model)
    assert innards(model) == before


def test_more_private_rows_than_columns_empty_ones_and_none() -> None:
    model = Model()
    model.add_resources("a", 8)
    model.add_request("many", [1.0], {"a": [1]}, private_rows=PrivateRows([[1], [2], [0], [1]], -1.0, 2.0))
    model.add_request("none", [1.0], {"a": [1]}, private_rows=PrivateRows(np.zeros((0, 1))))
    assert model.to_linear_program().shape == (7, 2)
    assert model.private_rows("none") is None
