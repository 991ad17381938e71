"""Columns of tables as edits in bulk, and results as tables."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from copter import CopterError, InvalidDataError, Model, Session, UnknownHandleError
from copter.interop import frames


def maker(name: str) -> Callable[[dict[str, Any]], Any]:
    if name == "dict":
        return dict
    package, kind = name.split(".")
    made: Callable[[dict[str, Any]], Any] = getattr(pytest.importorskip(package), kind)
    return made


TABLES = ("dict", "pandas.DataFrame", "polars.DataFrame", "pyarrow.table")


@pytest.mark.parametrize("name", TABLES)
def test_edits_in_bulk(name: str) -> None:
    table, model = maker(name), Model()
    for resource in ("a100", "t4"):
        model.set_count(resource, 1.0)
    template = model.add_template({"a100": [1.0, 0.0], "t4": [0.0, 1.0]})
    frames.update_counts(model, table({"resource": ["a100", "t4"], "count": [2, 1]}))
    jobs = table(
        {"request": ["x", "y", "z"], "fast": [3.0, 2.0, 1.0], "slow": [1.0, 1.0, 0.5], "most": [1.0, 1.0, 0.5]}
    )
    frames.add_requests(model, jobs, template, ["fast", "slow"], limit="most")
    assert model.count("a100") == 2.0
    assert [model.limit(job) for job in "xyz"] == [1.0, 1.0, 0.5]
    solution = Session(model).solve()
    rows = frames.values(solution)
    assert dict(zip(rows["request"].tolist(), rows["column"].tolist(), strict=True)) == {"x": 0, "y": 0, "z": 1}
    assert len(table(dict(rows))) == 3
    prices = frames.prices(solution, ["a100", "t4"])
    np.testing.assert_allclose(prices["price"], solution.prices(["a100", "t4"]))
    frames.update_costs(model, table({"request": ["z", "x"], "fast": [9.0, 0.0], "slow": [0.0, 0.0]}), ["fast", "slow"])
    assert model.cost("z").tolist() == [9.0, 0.0]


@pytest.mark.parametrize("name", TABLES)
def test_bad_tables_change_nothing(name: str) -> None:
    table, model = maker(name), Model()
    model.set_count("a", 1.0)
    version = model.version
    for bad, message in (
        ({"count": [1.0]}, "no column 'resource'"),
        ({"resource": ["a"], "count": [None]}, "missing|numbers"),
        ({"resource": ["a"], "count": ["many"]}, "not a column of numbers"),
    ):
        with pytest.raises(InvalidDataError, match=message):
            frames.update_counts(model, table(bad))
    with pytest.raises(UnknownHandleError):
        frames.update_counts(model, table({"resource": ["a", "b"], "count": [2.0, 2.0]}))
    with pytest.raises(CopterError):
        frames.update_counts(model, table({"resource": ["a", "a"], "count": [2.0, 2.0]}))
    assert (model.version, model.count("a")) == (version, 1.0)


def test_ids_of_any_kind() -> None:
    model = Model()
    model.set_count("gpu", 5.0)
    model.add_request(("job", 1), [1.0], {"gpu": [1.0]})
    model.add_request("two", [1.0], {"gpu": [1.0]})
    rows = frames.values(Session(model).solve())
    assert rows["request"].tolist() == [("job", 1), "two"]
