"""Rows over one request's own columns, converted from the caller's form to columns."""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray

from copter.model.checks import whole_numbers
from copter.model.matrix.contents import Private
from copter.model.matrix.patterns import all_finite, from_entries
from copter.problem.linear_program import as_floats, checked_vector, require_ordered
from copter.problem.sparse_input import checked_sparse
from copter.runtime.errors import DimensionError, InvalidDataError

Floats = NDArray[np.float64]
Ints = NDArray[np.int32]
Split = tuple[Ints, Private]  # first row of each request and the number of rows; rows counted within the request


@dataclass(frozen=True, slots=True, eq=False)
class PrivateRows:
    """Private rows of a request: lower <= matrix @ x <= upper over its own columns x (equation F2).

    They are checked when a model gets them. There may be more rows than columns, and rows may depend on each other.

    Parameters
    ----------
    matrix : array_like or sparse matrix (rows, n)
        Coefficients; n is the request's number of columns.
    lower, upper : float or array_like (rows,)
        -inf and inf for no bound; a row is an equation where they are equal.

    Examples
    --------
    >>> import copter
    >>> model = copter.Model(sense="max")
    >>> equal = copter.PrivateRows([[1.0, -1.0]], [0.0], [0.0])
    >>> model.add_resource("gpu", 4)
    >>> model.add_request("job", [1.0, 1.0], {"gpu": [1, 1]}, private_rows=equal)
    >>> copter.Session(model).solve().of("job").tolist()
    [0.5, 0.5]
    """

    matrix: ArrayLike | Any
    lower: ArrayLike = -np.inf
    upper: ArrayLike = np.inf


def private_pattern(what: str, rows: PrivateRows | None, n: int) -> Private | None:
    """Return the rows by column, with their bounds; None for no rows.

    Raises
    ------
    DimensionError, InvalidDataError
        Their messages begin with `what`.
    """
    if rows is None:
        return None
    if not isinstance(rows, PrivateRows):
        raise InvalidDataError(
            f"{what}: private_rows is a {type(rows).__name__}: give PrivateRows(matrix, lower, upper)"
        )
    name = f"{what}: the private rows' matrix"
    if sp.issparse(rows.matrix):
        matrix = checked_sparse(name, rows.matrix)
    else:
        dense = as_floats(name, rows.matrix)
        if dense.ndim != 2:
            raise DimensionError(f"{name} has shape {dense.shape}, must be (rows, {n})")
        matrix = sp.csr_array(dense)
    height, width = matrix.shape if matrix.ndim == 2 else (-1, -1)
    if width != n:
        raise DimensionError(f"{name} has shape {matrix.shape}, must be (rows, {n}): as many columns as the request")
    lower, upper = bounds_of_rows(what, rows.lower, rows.upper, height)
    if height == 0:
        return None
    layout = matrix.format
    entries = (matrix.col, matrix.row) if layout == "coo" else (matrix.indptr, matrix.indices)
    major, minor = (np.ascontiguousarray(each, dtype=np.int32) for each in entries)
    data = as_floats(name, matrix.data)
    if not all_finite(data):
        raise InvalidDataError(f"{name} has an entry that is NaN or infinite")
    start, row, value = from_entries(major, minor, data, np.arange(height, dtype=np.int32), n, layout)
    return start, row, value, lower, upper


def bounds_of_rows(what: str, lower: ArrayLike | None, upper: ArrayLike | None, height: int) -> tuple[Floats, Floats]:
    """Return bounds of `height` private rows; None for no rows. InvalidDataError for NaN or crossed bounds."""
    low = checked_vector(f"{what}: lower of the private rows", lower, height, -np.inf, -1)
    high = checked_vector(f"{what}: upper of the private rows", upper, height, np.inf, 1)
    require_ordered(f"{what}, private row", low, high)
    return low, high


def rows_of(private: Private, n: int, lower: Floats, upper: Floats) -> PrivateRows:
    """Return private rows in the caller's form, with new arrays."""
    start, row, value = private[:3]
    matrix = sp.csc_array((value.copy(), row.copy(), start.copy()), shape=(len(lower), n))
    return PrivateRows(matrix, lower, upper)


def split_pattern(requests: list[Hashable], first: Ints, rows: PrivateRows | None, sizes: ArrayLike) -> Split | None:
    """Return the private rows of many requests, given as one matrix over all their columns; None for no rows.

    Parameters
    ----------
    requests : list of ids (k,)
    first : ndarray (k + 1,)
        First column of each request, and the number of columns.
    rows : PrivateRows, optional
        Rows request by request; a row has entries in its own request's columns only.
    sizes : array_like of int (k,)
        Number of rows of each request.

    Raises
    ------
    DimensionError, InvalidDataError
    """
    k = len(requests)
    if rows is None:
        if np.any(np.asarray(sizes) != 0):
            raise InvalidDataError("private_sizes counts private rows, but private_rows is not given")
        return None
    counts = whole_numbers("private_sizes", sizes if np.ndim(sizes) else np.full(k, sizes), k)
    for at in np.flatnonzero(counts < 0)[:1].tolist():
        raise InvalidDataError(f"request {requests[at]!r}: private_sizes has {counts[at]}, must be >= 0")
    height = np.shape(rows.matrix)[0] if isinstance(rows, PrivateRows) and np.ndim(rows.matrix) == 2 else None
    first_row = np.concatenate(([0], np.cumsum(counts))).astype(np.int32)
    if height is not None and first_row[-1] != height:
        raise DimensionError(f"private_rows has {height} rows, private_sizes sum to {first_row[-1]}")
    private = private_pattern("of all requests", rows, int(first[-1]))
    if private is None:
        return None
    start, row, value, lower, upper = private
    owner = np.repeat(np.repeat(np.arange(k), np.diff(first)), np.diff(start))
    of_row = np.repeat(np.arange(k), counts)[row]
    for at in np.flatnonzero(owner != of_row)[:1].tolist():
        raise InvalidDataError(
            f"request {requests[of_row[at]]!r}: private row {row[at]} of all has an entry in a column of request "
            f"{requests[owner[at]]!r}; rows over several requests are resources"
        )
    return first_row, (start, (row - first_row[of_row]).astype(np.int32), value, lower, upper)


def split_rows(first: Ints, first_row: Ints, private: Private) -> Iterator[tuple[Private | None, Floats | None]]:
    """Yield each request's part of private rows given as one matrix, with the table of its bounds."""
    start, row, value, lower, upper = private
    columns, rows, entries = first.tolist(), first_row.tolist(), start[first].tolist()
    for at in range(len(columns) - 1):
        (a, b), (r, s), (e, f) = columns[at : at + 2], rows[at : at + 2], entries[at : at + 2]
        if r == s:
            yield None, None
            continue
        low, high = lower[r:s], upper[r:s]
        yield (start[a : b + 1] - e, row[e:f], value[e:f], low, high), np.concatenate((low, high))[None]
