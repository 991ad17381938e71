"""Conversion of the arguments of SciPy's linprog and milp to a LinearProgram; accepts what SciPy accepts."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.optimize
import scipy.sparse as sp
from numpy.typing import NDArray

from copter.interop.semicontinuous import with_zero
from copter.problem.linear_program import LinearProgram
from copter.runtime.errors import CopterError, InvalidDataError

Floats = NDArray[np.float64]

SEMI = 2  # SciPy's `integrality` from this value on means semi-continuous: zero or within the bounds


class NotTaken(Exception):
    """Raised for invalid input; the caller lets SciPy raise its own error."""


@dataclass(frozen=True, slots=True)
class Program:
    """A program with the data that SciPy's result needs.

    Attributes
    ----------
    lp : LinearProgram or None
        None if bounds are crossed: SciPy then returns a status instead of raising an error.
    n : int
        Variables.
    n_ub, n_rows : int
        Number of inequality rows, and of all rows.
    lower, upper : ndarray (n,)
        Bounds as the caller gave them.
    whole : ndarray (n,) of bool
    """

    lp: LinearProgram | None
    n: int
    n_ub: int
    n_rows: int
    lower: Floats
    upper: Floats
    whole: NDArray[np.bool_]


def vector(given: Any, size: int) -> Floats:
    """Return a checked right-hand side, (size,); None stands for no rows. Raises NotTaken if it does not fit."""
    if given is None:
        found = np.zeros(0)
    else:
        found = numbers(given).squeeze()
        found = found.reshape(-1) if found.size == 1 else found
    if found.shape != (size,) or not np.isfinite(found).all():
        raise NotTaken
    return found


def numbers(given: Any) -> Floats:
    """Return a dense array of floats, copied; None becomes NaN, as in SciPy."""
    if type(given) is np.ndarray and given.dtype == np.float64:
        return given.copy()
    if sp.issparse(given) or np.ma.isMaskedArray(given):
        raise NotTaken
    try:
        found = np.asarray(given)
        if found.dtype.kind not in "fiubO":
            raise NotTaken
        return np.array(found, dtype=np.float64)
    except (TypeError, ValueError, OverflowError):
        raise NotTaken from None


def matrix(given: Any, n: int) -> Any:
    """Return rows over n columns, given sparse or dense, as a CSC matrix."""
    if sp.issparse(given):
        found = sp.csc_array(given)
        if not np.isfinite(found.data).all():
            raise NotTaken
    else:
        dense = numbers(given)
        if dense.ndim != 2 or not np.isfinite(dense).all():
            raise NotTaken
        found = sp.csc_array(dense)
    if found.ndim != 2 or found.shape[1] != n:
        raise NotTaken
    return found


def column_bounds(given: Any, n: int) -> tuple[Floats, Floats]:
    """Return (lower, upper) from one pair for all columns, one pair per column, or None (zero to infinity)."""
    table = np.atleast_2d(numbers((0.0, np.inf) if given is None else given))
    if table.size == 0:
        table = np.array([[0.0, np.inf]])
    if table.shape == (n, 2):
        lower, upper = table[:, 0].copy(), table[:, 1].copy()
    elif table.shape in ((1, 2), (2, 1)):
        low, high = table.ravel().tolist()
        lower, upper = np.full(n, low), np.full(n, high)
    else:
        raise NotTaken
    lower[np.isnan(lower)], upper[np.isnan(upper)] = -np.inf, np.inf
    return lower, upper


def linprog_program(c: Any, A_ub: Any, b_ub: Any, A_eq: Any, b_eq: Any, bounds: Any, integrality: Any) -> Program:
    """Convert the arguments of linprog; raises NotTaken for arguments that SciPy would refuse."""
    cost = numbers(c).squeeze()
    cost = cost.reshape(-1) if cost.size == 1 else cost
    if cost.ndim != 1 or not len(cost) or not np.isfinite(cost).all():
        raise NotTaken
    n = len(cost)
    below, equal = (None if each is None else matrix(each, n) for each in (A_ub, A_eq))
    b_below = vector(b_ub, 0 if below is None else below.shape[0])
    b_equal = vector(b_eq, 0 if equal is None else equal.shape[0])
    lower, upper = column_bounds(bounds, n)
    if below is not None and equal is not None:
        rows = sp.vstack((below, equal), format="csc")
    else:
        rows = below if below is not None else equal if equal is not None else sp.csc_array((0, n))
    row_lower = np.concatenate((np.full(len(b_below), -np.inf), b_equal))
    kinds = np.zeros(n, dtype=np.uint8) if integrality is None else kinds_of(integrality, n)
    return program(cost, rows, row_lower, np.concatenate((b_below, b_equal)), lower, upper, kinds, len(b_below))


def milp_program(c: Any, integrality: Any, bounds: Any, constraints: Any) -> Program:
    """Convert the arguments of milp; raises NotTaken for arguments that SciPy would refuse."""
    if sp.issparse(c):
        raise NotTaken
    cost = np.atleast_1d(numbers(c))
    if cost.ndim != 1 or not len(cost) or not np.isfinite(cost).all():
        raise NotTaken
    n = len(cost)
    try:
        given = scipy.optimize.Bounds(0, np.inf) if bounds is None else bounds
        given = given if isinstance(given, scipy.optimize.Bounds) else scipy.optimize.Bounds(*given)
        lower, upper = (np.broadcast_to(each, n).astype(np.float64) for each in (given.lb, given.ub))
        parts = [components(each, n) for each in listed(constraints)]
    except (TypeError, ValueError):
        raise NotTaken from None
    if np.isnan(lower).any() or np.isnan(upper).any():
        raise NotTaken
    if len(parts) == 1:
        rows, low, high = parts[0]
    elif parts:
        rows = sp.vstack([each[0] for each in parts], format="csc")
        low, high = (np.concatenate([each[at] for each in parts]) for at in (1, 2))
    else:
        rows, low, high = sp.csc_array((0, n)), np.zeros(0), np.zeros(0)
    return program(
        cost, rows, low, high, lower, upper, kinds_of(0 if integrality is None else integrality, n), len(low)
    )


def listed(constraints: Any) -> list[Any]:
    """Return the constraints as a list; a single constraint is accepted too."""
    if constraints is None or isinstance(constraints, scipy.optimize.LinearConstraint):
        return [] if constraints is None else [constraints]
    each = list(constraints)
    if len(each) == 3 and not any(isinstance(one, scipy.optimize.LinearConstraint) for one in each):
        try:
            return [scipy.optimize.LinearConstraint(*each)]
        except (TypeError, ValueError):
            pass  # a tuple of three constraints, each a tuple itself
    return each


def components(given: Any, n: int) -> tuple[Any, Floats, Floats]:
    """Return (A, lower, upper) of one linear constraint."""
    one = given if isinstance(given, scipy.optimize.LinearConstraint) else scipy.optimize.LinearConstraint(*given)
    rows = sp.csc_array(one.A, dtype=np.float64)
    low, high = (np.atleast_1d(each).astype(np.float64) for each in (one.lb, one.ub))
    if rows.shape != (len(low), n) or low.shape != high.shape or np.isnan(low).any() or np.isnan(high).any():
        raise NotTaken
    return rows, low, high


def kinds_of(integrality: Any, n: int) -> NDArray[np.uint8]:
    """Return the kind of each variable in SciPy's numbers: 0 continuous, 1 integer, 2 semi-continuous, 3
    semi-integer.
    """
    if sp.issparse(integrality):
        raise NotTaken
    try:
        kinds = np.broadcast_to(np.asarray(integrality), n)
        if kinds.dtype.kind not in "fiub" or not np.isin(kinds, (0, 1, 2, 3)).all():
            raise NotTaken
        return kinds.astype(np.uint8)
    except (TypeError, ValueError):
        raise NotTaken from None


def program(
    cost: Floats,
    rows: Any,
    low: Floats,
    high: Floats,
    lower: Floats,
    upper: Floats,
    kinds: NDArray[np.uint8],
    n_ub: int,
) -> Program:
    """Return the arguments as a Program; its LinearProgram is None if a lower bound exceeds an upper one."""
    n, whole = len(cost), (kinds % SEMI == 1)
    plain = Program(None, n, n_ub, len(low), lower, upper, whole)
    try:
        lower, upper, least = with_zero(kinds >= SEMI, lower, upper)
    except InvalidDataError as error:
        raise ValueError(f"{error} (integrality 2 and 3)") from None
    crossed = (lower > upper).any() or (low > high).any()
    if crossed or np.isposinf(lower).any() or np.isneginf(upper).any() or np.isposinf(low).any():
        return plain
    if np.isneginf(high).any():
        return plain
    try:
        return replace(plain, lp=LinearProgram(cost, rows, low, high, lower, upper, whole, semicontinuous=least))
    except CopterError as error:
        raise NotTaken from error
