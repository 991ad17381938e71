"""What requests use of which resources, as the caller gives it, brought into columns over row slots."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray

from copter.errors import DimensionError, InvalidDataError
from copter.linear_program import as_floats

Floats = NDArray[np.float64]
Ints = NDArray[np.int32]
Usage = Mapping[Hashable, ArrayLike] | Any  # {resource: one coefficient a column}, or a sparse matrix with `resources`
Pattern = tuple[Ints, Ints, Floats]  # column starts, row slots (ascending in a column), coefficients


def pattern_of(usage: Usage, resources: Sequence[Hashable] | None, row: Callable[[Hashable], int]) -> Pattern:
    """The usage by columns.

    Parameters
    ----------
    usage : mapping of resource to array_like (n,), or sparse matrix (len(resources), n)
    resources : sequence, optional
        Ids of a sparse matrix's rows.
    row : callable
        Row slot of a resource.

    Raises
    ------
    DimensionError, InvalidDataError, UnknownHandleError
    """
    if isinstance(usage, Mapping):
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
    if not np.isfinite(pattern[2]).all():
        raise InvalidDataError("usage has an entry that is NaN or infinite")
    return pattern


def dense_pattern(usage: Mapping[Hashable, ArrayLike], row: Callable[[Hashable], int]) -> Pattern:
    """A usage given by resource; zeros are left out."""
    vectors: dict[int, Floats] = {}
    for resource, units in usage.items():
        vector = np.atleast_1d(as_floats(f"usage of resource {resource!r}", units))
        if vector.ndim != 1:
            raise DimensionError(f"usage of resource {resource!r} has shape {vector.shape}: one figure a column")
        vectors[row(resource)] = vector
    lengths = {len(v) for v in vectors.values()}
    if len(lengths) > 1:
        raise DimensionError(f"usage gives {sorted(lengths)} columns for different resources: must be equal")
    n = lengths.pop() if lengths else 0
    rows = np.array(sorted(vectors), dtype=np.int32)
    by_column = np.array([vectors[r] for r in rows.tolist()]).reshape(len(rows), n).T
    present = by_column != 0  # NaN is
    start = np.zeros(n + 1, dtype=np.int32)
    np.cumsum(np.count_nonzero(present, axis=1), out=start[1:])
    return start, np.broadcast_to(rows, by_column.shape)[present], by_column[present]


def sparse_pattern(usage: Any, resources: Sequence[Hashable] | None, row: Callable[[Hashable], int]) -> Pattern:
    """A usage given as a sparse matrix; duplicates are summed."""
    if resources is None or len(resources) != usage.shape[0]:
        raise DimensionError(f"usage has {usage.shape[0]} rows: give the ids of as many resources")
    rows = np.array([row(resource) for resource in resources], dtype=np.int64)
    matrix = sp.coo_array(usage)
    data = as_floats("usage", matrix.data)
    height = int(rows.max(initial=-1)) + 1
    columns = sp.csc_array((data, (rows[matrix.row], matrix.col)), shape=(height, usage.shape[1]), dtype=np.float64)
    columns.sum_duplicates()
    return columns.indptr.astype(np.int32), columns.indices.astype(np.int32), columns.data
