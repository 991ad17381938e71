"""Bulk edits from pandas, Polars and Arrow tables, and results as tables; none of these packages is imported."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from copter.model.matrix import Template
from copter.model.model import Model
from copter.problem.solution import Solution
from copter.runtime.errors import InvalidDataError

Floats = NDArray[np.float64]


class Answer(Protocol):
    """Interface: a solution or a plan, whose nonzero columns are a table."""

    def nonzeros(self) -> Mapping[str, NDArray[Any]]:
        """Return the arrays `request`, `column` and `value`."""


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


def values(answer: Answer) -> Mapping[str, NDArray[Any]]:
    """Return a solution or a plan as a table with columns `request`, `column` and `value`, one row a nonzero column.

    Any frame takes it: ``pandas.DataFrame(values(s))``, ``polars.DataFrame(...)``, ``pyarrow.table(...)``; for pandas
    there is ``answer.to_frame()`` too.
    """
    return answer.nonzeros()


def prices(solution: Solution, resources: list[Hashable]) -> Mapping[str, NDArray[Any]]:
    """Return the prices of resources as a table with columns `resource` and `price`."""
    alike = {type(each) for each in resources} in ({str}, {int}, {float})
    names = np.array(resources) if alike else np.fromiter(resources, dtype=object, count=len(resources))
    return {"resource": names, "price": solution.prices(resources)}
