"""A linear program as data: validated once, then frozen."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray

from copter.problem.sparse_input import checked_sparse
from copter.runtime.errors import DimensionError, InvalidDataError

Floats = NDArray[np.float64]

# Types that float() would accept although it loses a part of the value.
NOT_REAL = (complex, np.complexfloating, str, bytes, type(np.ma.masked))


def as_floats(name: str, value: ArrayLike) -> Floats:
    """Return a float64 copy of an array; raises InvalidDataError unless every entry is a real number.

    Complex numbers, masked arrays and strings are refused: a conversion would drop the imaginary part or the mask, or
    parse the string.
    """
    if type(value) is np.ndarray and value.dtype == np.float64:
        return value.copy()
    if np.ma.is_masked(value):
        raise InvalidDataError(f"{name} has masked entries: fill them with numbers first")
    try:
        found = np.asarray(value)
        real = found.dtype.kind in "fiubO" and not any(isinstance(each, NOT_REAL) for each in objects(found))
        if real:
            return np.array(found, dtype=np.float64)
    except (TypeError, ValueError, OverflowError) as error:
        raise InvalidDataError(f"{name} is not an array of numbers: {error}") from None
    kind = {"c": "complex numbers", "U": "text"}.get(found.dtype.kind, f"values of type {found.dtype}")
    raise InvalidDataError(f"{name} is not an array of real numbers: it holds {kind}")


def objects(array: NDArray[Any]) -> Iterable[Any]:
    """Return the entries of an array of Python objects; empty for any other array."""
    return array.flat if array.dtype.kind == "O" else ()


def checked_vector(name: str, value: ArrayLike | None, size: int, default: float, infinite: int = 0) -> Floats:
    """Return a float64 copy of the given size; a scalar is repeated.

    `infinite`: the sign (-1 or +1) of the infinity that is allowed; 0 if none is.
    """
    array = as_floats(name, default if value is None else value)
    if array.ndim == 0:
        array = np.full(size, float(array))
    if array.shape != (size,):
        raise DimensionError(f"{name} has shape {array.shape}, must be ({size},)")
    bad = np.isnan(array) | (np.isinf(array) & (np.sign(array) != infinite))
    if bad.any():
        at = int(np.flatnonzero(bad)[0])
        allowed = {-1: "finite or -inf", 0: "finite", 1: "finite or inf"}[infinite]
        raise InvalidDataError(f"{name}[{at}] is {array[at]}, must be {allowed}")
    return array


def require_ordered(what: str, lower: Floats, upper: Floats) -> None:
    """Raise InvalidDataError if any lower bound exceeds its upper bound."""
    crossed = np.flatnonzero(lower > upper)
    if len(crossed):
        at = int(crossed[0])
        raise InvalidDataError(f"{what} {at}: lower bound {lower[at]} is above upper bound {upper[at]}")


def require_semicontinuous(least: Floats, lower: Floats, upper: Floats) -> None:
    """Raise InvalidDataError if a column's bounds do not allow it to be semi-continuous."""
    for at in np.flatnonzero(least).tolist():
        if least[at] < 0.0:
            raise InvalidDataError(f"semicontinuous[{at}] is {least[at]}, must be >= 0 (0: not semi-continuous)")
        if lower[at] != 0.0:
            raise InvalidDataError(
                f"column {at} is semi-continuous: its lower bound is {lower[at]}, must be 0; a column that is zero or "
                f"at least {lower[at]} has semicontinuous[{at}] = {lower[at]} and lower bound 0"
            )
        if not least[at] <= upper[at] < np.inf:
            raise InvalidDataError(
                f"column {at} is zero or at least {least[at]}: its upper bound is {upper[at]}, must be finite and above"
            )


def checked_names(what: str, names: Sequence[str] | None, size: int) -> tuple[str, ...] | None:
    """Return names as a tuple, one per row or column and all different; None stays None."""
    if names is None:
        return None
    found = tuple(names)
    if len(found) != size:
        raise DimensionError(f"{what} holds {len(found)} names, must hold {size}")
    wrong = next((at for at, name in enumerate(found) if not isinstance(name, str) or not name), None)
    if wrong is not None:
        raise InvalidDataError(f"{what}[{wrong}] is {found[wrong]!r}, must be a string that is not empty")
    if len(set(found)) < size:
        seen: set[str] = set()
        twice = next(name for name in found if name in seen or seen.add(name))  # type: ignore[func-returns-value]
        raise InvalidDataError(f"{what} holds {twice!r} twice: names must be different")
    return found


@dataclass(frozen=True, eq=False)
class LinearProgram:
    """min or max c'x + offset subject to row_lower <= A x <= row_upper, col_lower <= x <= col_upper.

    Parameters
    ----------
    c : array_like (n,)
    A : array_like or sparse matrix (m, n)
        Duplicate entries are summed.
    row_lower, row_upper : array_like (m,), optional
        Infinite where there is no bound (the default).
    col_lower, col_upper : array_like (n,), optional
        Default: 0 and infinity.
    integrality : array_like (n,), optional
        True or 1 for integer columns; the LP relaxation ignores it.
    semicontinuous : array_like (n,), optional
        Positive for semi-continuous columns: such a column is zero, or between this value and its (finite) upper bound.
        Its lower bound must be zero; zero for all other columns. The LP relaxation takes all of [0, upper].
    sense : {"min", "max"}
    offset : float
        Constant added to the objective.
    row_names, col_names : sequence of str, optional
        One name for each row or column, all different; they do not affect the solve.
    name : str
        Name of the program.

    Raises
    ------
    DimensionError, InvalidDataError
        Shapes that do not fit; NaN, misplaced infinities, crossed bounds, an unknown sense.

    Notes
    -----
    The arrays are copies: the caller's are neither kept nor changed.

    Examples
    --------
    >>> import copter
    >>> lp = copter.LinearProgram([1.0, 2.0], [[1.0, 1.0]], row_lower=1.0, row_upper=float("inf"))
    >>> copter.solve(lp).x.tolist()
    [1.0, 0.0]
    """

    c: Floats
    A: sp.csc_array
    row_lower: Floats
    row_upper: Floats
    col_lower: Floats
    col_upper: Floats
    integrality: NDArray[np.bool_]
    semicontinuous: Floats
    sense: Literal["min", "max"]
    offset: float
    row_names: tuple[str, ...] | None
    col_names: tuple[str, ...] | None
    name: str

    def __init__(
        self,
        c: ArrayLike,
        A: Any,
        row_lower: ArrayLike | None = None,
        row_upper: ArrayLike | None = None,
        col_lower: ArrayLike | None = None,
        col_upper: ArrayLike | None = None,
        integrality: ArrayLike | None = None,
        sense: Literal["min", "max"] = "min",
        offset: float = 0.0,
        row_names: Sequence[str] | None = None,
        col_names: Sequence[str] | None = None,
        name: str = "",
        semicontinuous: ArrayLike | None = None,
    ) -> None:
        n = np.atleast_1d(as_floats("c", c)).shape[0]
        dense = None if sp.issparse(A) else np.atleast_2d(as_floats("A", A))
        if dense is not None and dense.ndim != 2:
            raise DimensionError(f"A has {dense.ndim} dimensions, must have 2")
        matrix = sp.csc_array(checked_sparse("A", A) if dense is None else dense, dtype=np.float64, copy=True)
        matrix.sum_duplicates()
        if matrix.shape[1] != n:
            raise DimensionError(f"A has {matrix.shape[1]} columns, c has {n}: they must be equal")
        if not np.isfinite(matrix.data).all():
            raise InvalidDataError("A has an entry that is NaN or infinite")
        if not isinstance(sense, str) or sense not in ("min", "max"):
            raise InvalidDataError(f"sense is {sense!r}, must be 'min' or 'max'")
        constant = as_floats("offset", offset)
        if constant.shape != () or not np.isfinite(constant):
            raise InvalidDataError(f"offset is {offset!r}, must be a finite number")
        m = matrix.shape[0]
        values = {
            "c": checked_vector("c", c, n, 0.0),
            "A": matrix,
            "row_lower": checked_vector("row_lower", row_lower, m, -np.inf, -1),
            "row_upper": checked_vector("row_upper", row_upper, m, np.inf, 1),
            "col_lower": checked_vector("col_lower", col_lower, n, 0.0, -1),
            "col_upper": checked_vector("col_upper", col_upper, n, np.inf, 1),
            "integrality": checked_vector("integrality", integrality, n, 0.0) != 0,
            "semicontinuous": checked_vector("semicontinuous", semicontinuous, n, 0.0),
            "sense": sense,
            "offset": float(constant),
            "row_names": checked_names("row_names", row_names, m),
            "col_names": checked_names("col_names", col_names, n),
            "name": str(name),
        }
        require_ordered("row", values["row_lower"], values["row_upper"])
        require_ordered("column", values["col_lower"], values["col_upper"])
        require_semicontinuous(values["semicontinuous"], values["col_lower"], values["col_upper"])
        for field, value in values.items():
            if isinstance(value, np.ndarray):
                value.flags.writeable = False
            object.__setattr__(self, field, value)

    @property
    def shape(self) -> tuple[int, int]:
        """(rows, columns)."""
        return int(self.A.shape[0]), int(self.A.shape[1])

    @property
    def is_mixed_integer(self) -> bool:
        """Whether any column is integer or semi-continuous, so that the LP relaxation may have another optimum."""
        return bool(self.integrality.any() or self.semicontinuous.any())


def require_program(lp: object) -> None:
    """Raise InvalidDataError unless the argument is a LinearProgram."""
    if not isinstance(lp, LinearProgram):
        raise InvalidDataError(
            f"lp is a {type(lp).__name__}, must be a LinearProgram: read_mps makes one of a file, "
            "Session(model).solve() solves a Model"
        )
