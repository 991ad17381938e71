"""Checks of a caller's sparse matrix before compiled code reads its arrays."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from copter.runtime.errors import DimensionError, InvalidDataError

Indices = NDArray[np.int64]


def checked_sparse(name: str, matrix: Any) -> sp.csc_array | sp.csr_array | sp.coo_array:
    """Return a valid sparse matrix; it may share the caller's arrays and must not be written to.

    Parameters
    ----------
    name : str
        Name of the matrix in error messages.
    matrix : sparse matrix or array (m, n)
        CSC, CSR and COO are kept, any other format becomes COO. Indices need not be sorted; duplicate entries are kept.

    Raises
    ------
    DimensionError
        If it does not have two dimensions.
    InvalidDataError
        Index pointers that are not zero first, ascending and within the entries; indices outside the matrix, negative
        or not whole numbers; arrays of different lengths; values that are not real numbers.

    Notes
    -----
    SciPy checks little of this when a matrix is made and nothing when its arrays change later, and its compiled loops
    read and write wherever the indices point. Its flags for sorted and canonical indices are not trusted either.
    """
    if matrix.ndim != 2:
        raise DimensionError(f"{name} has shape {matrix.shape}: must have 2 dimensions")
    if matrix.format not in ("csc", "csr", "coo"):
        matrix = as_coordinates(name, matrix)
    rows, columns = (int(size) for size in matrix.shape)
    if matrix.format == "coo":
        row, column = (whole(name, what, each) for what, each in (("rows", matrix.row), ("columns", matrix.col)))
        data = real(name, matrix.data)
        require_equal_lengths(name, row, column, data)
        require_within(name, "row", row, rows, (rows, columns))
        require_within(name, "column", column, columns, (rows, columns))
        return sp.coo_array((data, (row, column)), shape=(rows, columns))
    by_column = matrix.format == "csc"
    pointers, indices = whole(name, "indptr", matrix.indptr), whole(name, "indices", matrix.indices)
    data = real(name, matrix.data)
    require_equal_lengths(name, indices, data)
    require_pointers(name, pointers, columns if by_column else rows, len(indices))
    indices, data = indices[: pointers[-1]], data[: pointers[-1]]
    what, size = ("row", rows) if by_column else ("column", columns)
    require_within(name, what, indices, size, (rows, columns))
    kind = sp.csc_array if by_column else sp.csr_array
    return kind((data, indices, pointers), shape=(rows, columns))


def as_coordinates(name: str, matrix: Any) -> sp.coo_array:
    """Convert a matrix of another format to COO."""
    try:
        if matrix.format == "bsr":
            matrix.check_format(full_check=True)
        return sp.coo_array(matrix.tocoo())
    except (ValueError, TypeError, LookupError, AttributeError, OverflowError) as error:
        raise InvalidDataError(f"{name} is not a valid sparse matrix: {error}") from None


def whole(name: str, what: str, array: Any) -> Indices:
    """Return an index array; raises InvalidDataError unless it is a vector of whole numbers."""
    found = np.asarray(array)
    if found.dtype.kind not in "iu" or found.ndim != 1 or np.ma.isMaskedArray(array):
        raise InvalidDataError(
            f"{name} is not a valid sparse matrix: {what} has dtype {found.dtype} and shape {found.shape}, "
            "must be a vector of whole numbers"
        )
    if found.dtype.itemsize == 8 and found.dtype.kind == "u" and bool((found > np.iinfo(np.int64).max).any()):
        raise InvalidDataError(f"{name} is not a valid sparse matrix: {what} holds a number beyond 2^63")
    return found if found.dtype in (np.int32, np.int64) else found.astype(np.int64)


def real(name: str, array: Any) -> NDArray[Any]:
    """Return the values; raises InvalidDataError unless they are a vector of real numbers."""
    found = np.asarray(array)
    if found.dtype.kind not in "fiub" or found.ndim != 1 or np.ma.is_masked(array):
        raise InvalidDataError(
            f"{name} has values of dtype {found.dtype} and shape {found.shape}, must be a vector of real numbers"
        )
    return found


def require_equal_lengths(name: str, *arrays: NDArray[Any]) -> None:
    """Raise InvalidDataError unless there are as many indices as values."""
    lengths = [len(array) for array in arrays]
    if len(set(lengths)) > 1:
        raise InvalidDataError(f"{name} is not a valid sparse matrix: {lengths[-1]} values for {lengths[0]} indices")


def require_pointers(name: str, pointers: Indices, count: int, entries: int) -> None:
    """Raise InvalidDataError unless the pointers split the entries into `count` consecutive runs."""
    if len(pointers) != count + 1 or pointers[0] != 0:
        raise InvalidDataError(
            f"{name} is not a valid sparse matrix: indptr must hold {count + 1} numbers and begin with 0"
        )
    falling = np.flatnonzero(pointers[1:] < pointers[:-1])
    if len(falling):
        raise InvalidDataError(f"{name} is not a valid sparse matrix: indptr falls after place {int(falling[0])}")
    if pointers[-1] > entries:
        raise InvalidDataError(
            f"{name} is not a valid sparse matrix: indptr ends at {int(pointers[-1])}, but there are {entries} entries"
        )


def require_within(name: str, what: str, indices: Indices, size: int, shape: tuple[int, int]) -> None:
    """Raise InvalidDataError if an index is outside the matrix."""
    outside = (indices < 0) | (indices >= size)
    if outside.any():
        at = int(np.flatnonzero(outside)[0])
        raise InvalidDataError(
            f"{name} is not a valid sparse matrix: entry {at} is in {what} {int(indices[at])}, "
            f"outside the {shape[0]} by {shape[1]} matrix"
        )
