"""Bulk edits from pandas, Polars and Arrow tables, and results as tables; none of these packages is imported."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from copter.errors import InvalidDataError
from copter.model.matrix import Template
from copter.model.model import Model
from copter.problem.solution import Solution

Floats = NDArray[np.float64]


def column(table: Any, name: str) -> NDArray[Any]:
    """One column of a table as a NumPy array.

    Parameters
    ----------
    table : pandas.DataFrame, polars.DataFrame, pyarrow.Table, or mapping of name to array_like
    name : str

    Raises
    ------
    InvalidDataError
        If the table has no such column, or the column has missing values.
    """
    try:
        found = table[name]
    except (KeyError, LookupError, ValueError, TypeError) as error:
        raise InvalidDataError(f"the table has no column {name!r}") from error
    except Exception as error:  # Polars raises an error type of its own
        raise InvalidDataError(f"the table has no column {name!r}: {error}") from error
    missing = getattr(found, "null_count", None)
    missing = missing() if callable(missing) else missing
    array = np.asarray(found.to_numpy() if hasattr(found, "to_numpy") else found)
    if missing or (array.dtype.kind == "f" and np.isnan(array).any()) or any(each is None for each in objects(array)):
        raise InvalidDataError(f"column {name!r} has missing values: fill them first")
    return array


def objects(array: NDArray[Any]) -> list[Any]:
    """Return the entries of an array of objects; empty for any other array."""
    return array.tolist() if array.dtype.kind == "O" else []


def ids(table: Any, name: str) -> list[Hashable]:
    """Return one column as a list of plain Python values, used as ids."""
    found: list[Hashable] = column(table, name).tolist()
    return found


def add_requests(
    model: Model, table: Any, template: Template, costs: list[str], request: str = "request", **named: str
) -> None:
    """Add one request per row of a table; on an error, none is added.

    Parameters
    ----------
    model : Model
    table : table
    template : Template
    costs : list of str
        The columns that hold the costs of the template's columns, in order.
    request : str
        The column that holds the ids.
    **named : str
        Arguments of :meth:`copter.Model.add_requests` by the columns that hold them: ``limit="gpus"``.
    """
    each = np.column_stack([as_numbers(table, name) for name in costs])
    values: dict[str, Any] = {argument: as_numbers(table, name) for argument, name in named.items()}
    model.add_requests(ids(table, request), each, template=template, **values)


def update_costs(model: Model, table: Any, costs: list[str], request: str = "request") -> None:
    """Replace the costs of the requests in a table; on an error, none is changed."""
    model.update_costs(ids(table, request), np.column_stack([as_numbers(table, name) for name in costs]))


def update_counts(
    model: Model, table: Any, count: str = "count", resource: str = "resource", lower: str | None = None
) -> None:
    """Set the counts of the resources in a table; on an error, none is changed."""
    least = None if lower is None else as_numbers(table, lower)
    model.update_counts(ids(table, resource), as_numbers(table, count), least)


def as_numbers(table: Any, name: str) -> Floats:
    """Return one column as floats."""
    try:
        return column(table, name).astype(np.float64)
    except (TypeError, ValueError) as error:
        raise InvalidDataError(f"column {name!r} is not a column of numbers: {error}") from None


def values(solution: Solution) -> Mapping[str, NDArray[Any]]:
    """Return a solution as a table with columns `request`, `column` and `value`, one row per nonzero column.

    Any frame takes it: ``pandas.DataFrame(values(s))``, ``polars.DataFrame(...)``, ``pyarrow.table(...)``.
    """
    names: list[Hashable] = []
    columns, found = [np.zeros(0, dtype=np.int64)], [np.zeros(0)]
    for request, places, x in solution.by_request():
        kept = x != 0.0
        names += [request] * int(kept.sum())
        columns.append(places[kept])
        found.append(x[kept])
    return {"request": as_array(names), "column": np.concatenate(columns), "value": np.concatenate(found)}


def prices(solution: Solution, resources: list[Hashable]) -> Mapping[str, NDArray[Any]]:
    """Return the prices of resources as a table with columns `resource` and `price`."""
    return {"resource": as_array(resources), "price": solution.prices(resources)}


def as_array(names: list[Hashable]) -> NDArray[Any]:
    """Return ids as an array: numbers and strings keep their type, others become objects."""
    if names and all(type(name) is type(names[0]) for name in names) and isinstance(names[0], (int, float, str)):
        return np.array(names)
    array = np.empty(len(names), dtype=object)
    array[:] = names
    return array
