"""Conversion of usage data from the caller's form to columns over row slots."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray

from copter.model.checks import listed
from copter.model.matrix.patterns import all_finite, from_entries, from_vectors
from copter.problem.linear_program import as_floats
from copter.problem.sparse_input import checked_sparse
from copter.runtime.errors import DimensionError, DuplicateHandleError, InvalidDataError

Floats = NDArray[np.float64]
Ints = NDArray[np.int32]
Usage = (
    Mapping[Hashable, ArrayLike] | Any
)  # {resource: one coefficient per column}, or a sparse matrix with `resources`
Pattern = tuple[Ints, Ints, Floats]  # column starts, row slots (ascending in a column), coefficients


def pattern_of(usage: Usage, resources: Sequence[Hashable] | None, row: Callable[[Hashable], int]) -> Pattern:
    """Return usage as a pattern: CSC arrays with the request's columns and row slots as rows.

    Parameters
    ----------
    usage : mapping of resource to array_like (n,), or sparse matrix (len(resources), n)
    resources : sequence, optional
        Ids of a sparse matrix's rows.
    row : callable
        Returns the row slot of a resource.

    Raises
    ------
    DimensionError, InvalidDataError, UnknownHandleError
    """
    if type(usage) is dict or (isinstance(usage, Mapping) and not sp.issparse(usage)):  # a dok_matrix is a mapping too
        if not usage:
            raise DimensionError("usage is empty: give a resource with its units of each column, 0 for what uses none")
        pattern = dense_pattern(usage, row)
    elif sp.issparse(usage):
        pattern = sparse_pattern(usage, resources, row)
    else:
        raise InvalidDataError(
            f"usage is a {type(usage).__name__}: give {{resource: units of each column}}, or a sparse matrix "
            "with the ids of its rows in `resources`"
        )
    if len(pattern[0]) == 1:
        raise DimensionError("usage has no columns: a request needs at least one")
    if not all_finite(pattern[2]):
        raise InvalidDataError("usage has an entry that is NaN or infinite")
    return pattern


def dense_pattern(usage: Mapping[Hashable, ArrayLike], row: Callable[[Hashable], int]) -> Pattern:
    """Convert usage given as one array (n,) per resource to a pattern; zeros are dropped."""
    vectors: dict[int, Floats] = {}
    first: Hashable = None
    n = 0
    for resource, units in usage.items():
        vector = as_floats(f"usage of resource {resource!r}", units)
        if vector.ndim != 1:
            vector = np.atleast_1d(vector)
            if vector.ndim != 1:
                raise DimensionError(f"usage of resource {resource!r} has shape {vector.shape}: one figure per column")
        if vectors and len(vector) != n:
            raise DimensionError(
                f"usage of resource {resource!r} has {len(vector)} columns, that of {first!r} has {n}: give every "
                "resource one figure for each column, 0 for what uses none"
            )
        first, n = (first, n) if vectors else (resource, len(vector))
        vectors[row(resource)] = vector
    rows = sorted(vectors)
    return from_vectors([vectors[r] for r in rows], np.array(rows, dtype=np.int32))


def sparse_pattern(usage: Any, resources: Sequence[Hashable] | None, row: Callable[[Hashable], int]) -> Pattern:
    """Convert usage given as a sparse matrix to a pattern; duplicate entries are summed."""
    if usage.ndim != 2:
        raise DimensionError(f"usage has shape {usage.shape}: must be resources by columns")
    height, n = usage.shape
    names = [] if resources is None else listed("resources", resources)
    if len(names) != height:
        raise DimensionError(f"usage has {height} rows: give the ids of as many resources")
    rows = np.array([row(resource) for resource in names], dtype=np.int32)
    if len(set(names)) < height:
        raise DuplicateHandleError("resources names one resource twice: add its rows of the usage up first")
    usage = checked_sparse("usage", usage)
    if max(n, usage.nnz) >= 2**31:
        raise DimensionError(f"usage has {n} columns and {usage.nnz} entries: there may be 2^31 - 1 of each")
    layout = usage.format
    major, minor = (usage.col, usage.row) if layout == "coo" else (usage.indptr, usage.indices)
    major, minor = (np.ascontiguousarray(each, dtype=np.int32) for each in (major, minor))
    try:
        return from_entries(major, minor, as_floats("usage", usage.data), rows, n, layout)
    except ValueError as error:
        raise InvalidDataError(f"usage is not a valid sparse matrix: {error}") from None
