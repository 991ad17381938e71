"""Edits that must be refused: each with one error that says what and where, and with the model as it was."""

from __future__ import annotations

import warnings
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
    UnknownHandleError,
)
from tests.copter.plain import innards, small


def broken() -> sp.csc_array:
    """A sparse matrix of two rows with an entry in the tenth."""
    matrix = sp.csc_array(np.ones((2, 2)))
    matrix.indices[-1] = 9
    return matrix


WRONG = {
    "usage beyond the matrix": (
        lambda m: m.update_usage("own", broken(), resources=["a", "b"]), InvalidDataError, "'own'.*outside the 2 by 2",
    ),
    "usage of one dimension": (
        lambda m: m.update_usage("own", sp.coo_array(np.ones(2)), resources=["a"]), DimensionError, "resources by col",
    ),
    "usage with rows unnamed": (
        lambda m: m.update_usage("own", sp.csr_array(np.ones((2, 2))), resources=["a"]), DimensionError, "2 rows",
    ),
    "one resource named twice": (
        lambda m: m.update_usage("own", sp.eye(2), resources=["a", "a"]), DuplicateHandleError, "twice",
    ),
    "a string for a list": (lambda m: m.remove_requests("pq"), InvalidDataError, "give a list"),
    "usage by something else": (lambda m: m.update_usage("own", [1, 2]), InvalidDataError, "usage is a list"),
    "costs of words": (lambda m: m.update_cost("p", ["x", "y", "z"]), InvalidDataError, "'p'"),
    "scale of infinity": (lambda m: m.rescale_cost("p", np.inf), InvalidDataError, "'p': scale"),
    "fixed beyond": (lambda m: m.fix("p", 3), DimensionError, "'p'.*3"),
    "fixed on a half": (lambda m: m.fix("p", 0.5), DimensionError, "'p'.*0.5"),
    "bounds of NaN": (lambda m: m.update_bounds("p", upper=[1, np.nan, 1]), InvalidDataError, "'p'"),
    "bounds too many": (lambda m: m.update_bounds("p", upper=[1, 1]), DimensionError, "'p'"),
    "more than infinity": (lambda m: m.add_resources("a", np.inf), InvalidDataError, "'a': count"),
    "less than nothing": (lambda m: m.add_resources("a", -1), InvalidDataError, "'a'.*remove_units"),
    "taken below zero": (lambda m: m.remove_resources("a", 9), InvalidDataError, "'a'.*9"),
    "taken from fixed": (
        lambda m: (m.fix("p", 1), m.remove_resources("a", 7)), EditNotAllowedError, "'a'.*fixed requests",
    ),
    "unknown resource dropped": (lambda m: m.drop_resource("z"), UnknownHandleError, "'z'"),
    "template in use dropped": (lambda m: m.drop_template(m.templates[0]), EditNotAllowedError, "in use by 2"),
    "added again": (lambda m: m.add_request("p", [1], {"a": [1]}), DuplicateHandleError, "'p'"),
    "many scales, one column beyond": (
        lambda m: m.rescale_costs(["p", "own"], 1.0, 0.0, [2, 2], 1.0), DimensionError, "'own'.*2",
    ),
    "usage of unknown request": (lambda m: m.update_usage("ghost", {"a": [1]}), UnknownHandleError, "ghost"),
    "usage of other columns": (lambda m: m.update_usage("p", {"a": [1, 1]}), DimensionError, "'p' has 3 columns"),
    "usage of nothing": (lambda m: m.update_usage("p"), InvalidDataError, "'p'"),
    "template of other columns": (
        lambda m: m.update_usage("own", template=m.templates[0]), DimensionError, "'own' has 2",
    ),
    "template made longer": (
        lambda m: m.update_template(m.templates[0], {"a": [1]}), DimensionError, "template has 3 columns",
    ),
    "template with NaN": (lambda m: m.update_template(m.templates[0], {"a": [1, np.nan, 1]}), InvalidDataError, "NaN"),
    "own template": (lambda m: m.update_template("x", {"a": [1]}), UnknownHandleError, "template"),
    "negative limit": (lambda m: m.update_limit("p", -1), InvalidDataError, "'p': limit"),
    "limit below bounds": (lambda m: m.update_bounds("p", lower=0.5), InvalidDataError, "'p': lower bounds sum"),
    "crossed bounds": (lambda m: m.update_bounds("p", upper=-1), InvalidDataError, "'p', column 0"),
    "limit of a fixed one": (
        lambda m: (m.fix("p", 0), m.update_limit("p", np.inf)), EditNotAllowedError, "'p' is fixed",
    ),
    "single column beyond": (lambda m: m.update_column_cost("p", 3, 1.0), DimensionError, "'p'.*3"),
    "single column of NaN": (lambda m: m.update_column_cost("p", 0, np.nan), InvalidDataError, "'p'"),
    "many, one unknown": (lambda m: m.remove_requests(["p", "ghost"]), UnknownHandleError, "ghost"),
    "many, one twice": (lambda m: m.remove_requests(["p", "p"]), DuplicateHandleError, "different"),
    "added many, one there": (
        lambda m: m.add_requests(["n", "q"], [[1, 2, 3]] * 2, template=m.templates[0]), DuplicateHandleError, "'q'",
    ),
    "added many, one twice": (
        lambda m: m.add_requests(["n", "n"], [[1, 2, 3]] * 2, template=m.templates[0]), DuplicateHandleError, "differ",
    ),
    "added many, costs too few": (
        lambda m: m.add_requests(["n", "o"], [[1, 2, 3]], template=m.templates[0]), DimensionError, "2 requests",
    ),
    "added many, NaN": (
        lambda m: m.add_requests(["n"], [[1, np.nan, 3]], template=m.templates[0]), InvalidDataError, "'n': cost",
    ),
    "many costs, one wrong": (lambda m: m.update_costs(["p", "q"], [[1, 2, 3], [1]]), DimensionError, "'q': cost"),
    "a matrix of costs, one NaN": (
        lambda m: m.update_costs(["p", "q"], np.array([[1, 2, 3], [1, np.nan, 3]])), InvalidDataError, "'q': .*1 is",
    ),
    "a matrix of costs, too wide": (
        lambda m: m.update_costs(["p", "q"], np.ones((2, 4))), DimensionError, "'p': cost",
    ),
    "a matrix of costs, too many rows": (
        lambda m: m.update_costs(["p", "q"], np.ones((3, 3))), DimensionError, "2 requests",
    ),
    "a list as an id": (lambda m: m.add_request(["x"], [1], {"a": [1]}), InvalidDataError, "hashable"),
    "a list as a resource": (lambda m: m.add_resources(["x"], 1), InvalidDataError, "hashable"),
    "cost of another type": (
        lambda m: m.add_request("n", [1], {"a": [1]}, cost_dtype="int8"), InvalidDataError, "cost_dtype",
    ),
    "too large for float32": (
        lambda m: m.add_request("n", [1e39], {"a": [1]}, cost_dtype="float32"), InvalidDataError, "too large",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", WRONG)
def test_wrong_edit(name: str) -> None:
    edit, error, message = WRONG[name]
    model = small()
    before = innards(model)
    with pytest.raises(error, match=message), model.batch():
        edit(model)
    assert innards(model) == before


GARBAGE: list[Any] = [
    None, "x", b"y", 5, -3, 2.5, np.nan, np.inf, -np.inf, [], [1], [[1, 2, 3]], [1, 2, 3], ["a", "b", "c"], {},
    {"a": 1}, {"a": [1, 2, 3]}, {"a": ["q"] * 3}, {"z": [1]}, object(), [None], np.array(3.0), np.zeros((2, 2)), 1j,
    [1j] * 3, True,
    sp.eye(3).tocsr(), sp.coo_array(np.ones(3)), [[np.nan] * 3], ("p",), ["p"], ["p", "own"], 10**400, {1: 2}, {0: "x"},
    {7: 1.0}, np.array([2**63], dtype=np.uint64),
]  # fmt: skip

KEYWORDS = (
    "limit", "at_least", "lower", "upper", "integer", "scale", "offset", "cost_dtype", "row_lower", "row_upper"
)  # fmt: skip


def with_rows() -> Model:
    """The small model, with private rows in `own` and in a template that `t` uses."""
    model = small()
    model.remove_request("own")
    model.add_request("own", [1.0, 2.0], {"a": [1, 3]}, private_rows=PrivateRows([[1, 2], [0, 1]], 0.0, 3.0))
    model.add_template({"a": [1, 1, 1]}, private_rows=PrivateRows([[1, 2, 3]], -1.0, [4.0]))
    model.add_request("t", [1.0, 2.0, 3.0], template=model.templates[1], row_upper=7.0)
    return model


FED: dict[str, list[Callable[[Model, Any], object]]] = {
    "add_resources": [lambda m, g: m.add_resources(g, 1), lambda m, g: m.add_resources("a", g)],
    "set_count": [
        lambda m, g: m.set_count(g, 1), lambda m, g: m.set_count("a", g), lambda m, g: m.set_count("a", 5, g),
        lambda m, g: m.add_resources("a", 5, g), lambda m, g: m.set_count("new", g, 0.0),
    ],
    "update_counts": [
        lambda m, g: m.update_counts(g, 1), lambda m, g: m.update_counts(["a", "b"], g),
        lambda m, g: m.update_counts(["a"], 5, g), lambda m, g: m.update_counts(["a"], g, g),
    ],
    "update_limits": [
        lambda m, g: m.update_limits(g, 1), lambda m, g: m.update_limits(["p", "own"], g),
        lambda m, g: m.update_limits(["p"], 5, g), lambda m, g: m.update_limits(["p"], g, g),
        lambda m, g: m.update_limit("p", 5.0, g),
    ],
    "update_row_bounds": [
        lambda m, g: m.update_row_bounds(g, 1), lambda m, g: m.update_row_bounds(["own"], g),
        lambda m, g: m.update_row_bounds(["own", "t"], g), lambda m, g: m.update_row_bounds(["own", "t"], None, g),
        lambda m, g: m.update_row_bounds(["own"], 0.0, 1.0, row=g), lambda m, g: m.update_row_bounds(["t"], g, row=0),
    ],
    "update_private_rows": [
        lambda m, g: m.update_private_rows(g, PrivateRows([[1, 2], [0, 1]])),
        lambda m, g: m.update_private_rows("own", g),
        lambda m, g: m.update_private_rows("own", PrivateRows(g)),
        lambda m, g: m.update_private_rows("own", PrivateRows([[1, 2], [0, 1]], g)),
        lambda m, g: m.update_private_rows("t", PrivateRows([[1, 2, 3]], 0.0, g)),
    ],
    "private_rows": [
        lambda m, g: m.add_request("n", [1], {"a": [1]}, private_rows=g),
        lambda m, g: m.add_request("n", [1, 2, 3], {"a": [1, 1, 1]}, private_rows=PrivateRows(g)),
        lambda m, g: m.add_template({"a": [1, 1, 1]}, private_rows=g),
        lambda m, g: m.update_template(m.templates[1], private_rows=g),
        lambda m, g: m.update_template(m.templates[1], private_rows=PrivateRows(g)),
        lambda m, g: m.add_request("n", [1, 2, 3], template=m.templates[1], row_lower=g),
        lambda m, g: m.add_requests(["n", "k"], np.ones((2, 3)), template=m.templates[1], row_upper=g),
    ],
    "remove_resources": [lambda m, g: m.remove_resources(g, 1), lambda m, g: m.remove_resources("a", g)],
    "drop_resource": [lambda m, g: m.drop_resource(g)],
    "add_template": [
        lambda m, g: m.add_template(g), lambda m, g: m.add_template(sp.eye(3), g),
        lambda m, g: m.add_template({"a": g}),
    ],
    "update_template": [
        lambda m, g: m.update_template(g, {"a": [1, 1, 1]}), lambda m, g: m.update_template(m.templates[0], g),
        lambda m, g: m.update_template(m.templates[0], sp.eye(3), g),
    ],
    "drop_template": [lambda m, g: m.drop_template(g)],
    "add_request": [
        lambda m, g: m.add_request(g, [1], {"a": [1]}), lambda m, g: m.add_request("n", g, template=m.templates[0]),
        lambda m, g: m.add_request("n", [1], g), lambda m, g: m.add_request("n", [1, 2, 3], template=g),
        *[lambda m, g, k=k: m.add_request("n", [1, 2, 3], template=m.templates[0], **{k: g}) for k in KEYWORDS],
    ],
    "add_requests": [
        lambda m, g: m.add_requests(g, [[1, 2, 3]], template=m.templates[0]),
        lambda m, g: m.add_requests(["n"], g, template=m.templates[0]),
        lambda m, g: m.add_requests(["n"], [[1, 2, 3]], template=g),
        *[lambda m, g, k=k: m.add_requests(["n"], [[1, 2, 3]], template=m.templates[0], **{k: g}) for k in KEYWORDS],
    ],
    "remove_request": [lambda m, g: m.remove_request(g)],
    "remove_requests": [lambda m, g: m.remove_requests(g)],
    "update_usage": [
        lambda m, g: m.update_usage(g, {"a": [1]}), lambda m, g: m.update_usage("p", g),
        lambda m, g: m.update_usage("p", template=g), lambda m, g: m.update_usage("p", sp.eye(3), resources=g),
    ],
    "update_columns": [
        lambda m, g: m.update_columns(g, [2], [1, 2], {"a": [1, 2]}),
        lambda m, g: m.update_columns(["p"], g, [1, 2], {"a": [1, 2]}),
        lambda m, g: m.update_columns(["p"], [2], g, {"a": [1, 2]}),
        lambda m, g: m.update_columns(["p"], [2], [1, 2], g),
        lambda m, g: m.update_columns(["p"], [2], [1, 2], {"a": [1, 2]}, kept=g),
        lambda m, g: m.update_columns(["p"], [2], [1, 2], {"a": [1, 2]}, kept_rows=g),
    ],
    "update_limit": [lambda m, g: m.update_limit(g, 1), lambda m, g: m.update_limit("p", g)],
    "update_bounds": [
        lambda m, g: m.update_bounds(g, 0, 1), lambda m, g: m.update_bounds("p", g),
        lambda m, g: m.update_bounds("p", None, g),
    ],
    "update_integrality": [
        lambda m, g: m.update_integrality(g, True), lambda m, g: m.update_integrality("p", g),
    ],
    "fix": [lambda m, g: m.fix(g, 0), lambda m, g: m.fix("p", g)],
    "unfix": [lambda m, g: m.unfix(g)],
    "update_cost": [
        lambda m, g: m.update_cost(g, [1, 2, 3]), lambda m, g: m.update_cost("p", g),
        lambda m, g: m.update_cost("p", [1, 2, 3], g), lambda m, g: m.update_cost("p", [1, 2, 3], 1, g),
    ],
    "update_costs": [lambda m, g: m.update_costs(g, [[1, 2, 3]]), lambda m, g: m.update_costs(["p"], g)],
    "update_column_cost": [
        lambda m, g: m.update_column_cost(g, 0, 1), lambda m, g: m.update_column_cost("p", g, 1),
        lambda m, g: m.update_column_cost("p", 0, g),
    ],
    "rescale_cost": [
        lambda m, g: m.rescale_cost(g, 1), lambda m, g: m.rescale_cost("p", g), lambda m, g: m.rescale_cost("p", 1, g),
        lambda m, g: m.rescale_cost("p", 1, 0, g),
    ],
    "rescale_costs": [
        lambda m, g: m.rescale_costs(g, 1), lambda m, g: m.rescale_costs(["p"], g),
        lambda m, g: m.rescale_costs(["p"], 1, g), lambda m, g: m.rescale_costs(["p"], 1, 0, g),
        lambda m, g: m.rescale_costs(["p"], 1, 0, [0], g),
    ],
}  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("name", FED)
def test_anything_at_all_is_an_edit_or_one_clear_error(name: str) -> None:
    """Every argument of every edit is fed with everything: no error of another library, no half-done edit."""
    refused = 0
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for edit in FED[name]:
            for garbage in GARBAGE:
                model = with_rows()
                before = innards(model)
                try:
                    edit(model, garbage)
                except CopterError:
                    assert innards(model) == before
                    refused += 1
                else:
                    model.to_linear_program()
    assert refused >= len(GARBAGE) // 3
