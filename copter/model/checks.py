"""Checks of the arguments of model edits; each error names the request and the entry."""

from __future__ import annotations

import operator
from collections.abc import Container, Hashable, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray

from copter.model.matrix.patterns import all_within
from copter.problem.linear_program import NOT_REAL, as_floats, checked_vector, require_ordered
from copter.problem.values import hashable as hashable
from copter.runtime.errors import DimensionError, DuplicateHandleError, InvalidDataError

Floats = NDArray[np.float64]
Ints = NDArray[np.int32]
Costs = NDArray[np.float64] | NDArray[np.float32]
Bound = Floats | float

LARGEST_COST = 1e300  # largest |cost| that a model accepts
USUAL_SCALE, USUAL_OFFSET = 1e7, 1e307  # up to this scale and offset, scale * cost + offset cannot overflow


def finite(what: str, value: Any) -> float:
    """Return the value as a float; raises InvalidDataError if it is not finite."""
    try:
        number = np.nan if isinstance(value, NOT_REAL) else float(value)
    except (TypeError, ValueError, OverflowError):
        raise InvalidDataError(f"{what} is {value!r}, must be a finite number") from None
    if not np.isfinite(number):
        raise InvalidDataError(f"{what} is {value!r}, must be a finite number")
    return number


def listed(what: str, values: Any) -> list[Any]:
    """A sequence as a list; raises InvalidDataError if the argument is not iterable, or is a string."""
    if isinstance(values, (str, bytes)):
        raise InvalidDataError(f"{what} is {values!r}: give a list, even of one")
    try:
        return values.tolist() if isinstance(values, np.ndarray) and values.ndim else list(values)
    except TypeError:
        raise InvalidDataError(f"{what} is {values!r}, must be a list") from None


def plain_table(values: Any) -> Any:
    """A table of pandas, Polars or Arrow as an array, row by row (looping over it would give column names)."""
    return values.to_numpy() if hasattr(values, "to_numpy") and getattr(values, "ndim", 2) == 2 else values


def require_order(ids: list[Hashable], whose: str, **given: Any) -> None:
    """Raise InvalidDataError if an argument is a table or series of pandas that has the ids as its index, but in
    another order.

    `whose` names the argument with the ids.
    """
    for what, values in given.items():
        index: Any = getattr(values, "index", None)
        if not hasattr(values, "to_numpy") or not hasattr(index, "tolist") or type(index).__name__ == "RangeIndex":
            continue
        names = index.tolist()
        if names != ids and len(names) == len(ids) and set(names) == set(ids):
            raise InvalidDataError(
                f"{what} has the ids of `{whose}` as its index, in another order: rows are taken in the order of "
                f"`{whose}`; give {what}.loc[{whose}]"
            )


def one_of(request: Hashable, usage: object, template: object) -> None:
    """Raise InvalidDataError unless a request has either a usage or a template."""
    if usage is None and template is None:
        raise InvalidDataError(f"request {request!r} has neither usage nor template: give one of them")
    if usage is not None and template is not None:
        raise InvalidDataError(f"request {request!r} has both usage and template: give one of them")


def alike(wanted: Hashable, known: Container[Hashable]) -> str:
    """Return a clause that names the known id which is the wanted one as text or as a whole number, or nothing."""
    if not isinstance(wanted, (int, str)):
        return ""
    try:
        other: Hashable = int(wanted) if isinstance(wanted, str) else str(wanted)
    except ValueError:
        return ""
    if other not in known:
        return ""
    return f"; there is {other!r} ({type(other).__name__}), not {wanted!r} ({type(wanted).__name__})"


def listed_for(requests: list[Hashable], what: str, values: Any) -> list[Any]:
    """Return the values as a list; raises DimensionError unless there is one value per request."""
    result = listed(what, values)
    if len(result) != len(requests):
        raise DimensionError(f"{len(requests)} requests, but {what} of {len(result)}")
    return result


def different(ids: list[Hashable], what: str = "requests", slots: Ints | None = None) -> None:
    """Raise DuplicateHandleError if an id occurs twice. Pass the slots, because numbers compare faster than ids."""
    if slots is not None:
        order = np.sort(slots)
        twice = bool((order[1:] == order[:-1]).any())
    else:
        twice = len(set(ids)) != len(ids)
    if twice:
        raise DuplicateHandleError(f"the {what} of a batch must have different ids")


def flag(what: str, value: Any) -> bool:
    """Return True or False; raises InvalidDataError for any other value."""
    if isinstance(value, (bool, np.bool_, int, float, np.number)) and value in (0, 1):
        return bool(value)
    raise InvalidDataError(f"{what} is {value!r}, must be True or False")


def integrality(what: str, value: Any, n: int) -> bool | NDArray[np.bool_]:
    """Return whether columns must be whole: a bool for all of them, or a new array (n,)."""
    if isinstance(value, (bool, np.bool_, int, float, np.number)):
        return flag(what, value)
    try:
        given = np.asarray(value)
    except (ValueError, TypeError) as error:
        raise InvalidDataError(f"{what} is {value!r}, must be one value or one for each column") from error
    if given.ndim == 0:
        return flag(what, value)
    if given.shape != (n,):
        raise DimensionError(f"{what} has shape {given.shape}, must be ({n},), or one value for all columns")
    if given.dtype.kind not in "biuf" or not np.isin(given, (0, 1)).all():
        raise InvalidDataError(f"{what} holds values that are neither True nor False")
    return given.astype(bool)


def whole_numbers(what: str, values: Any, size: int) -> NDArray[np.int32]:
    """Return a copy of the values as int32, (size,); raises InvalidDataError or DimensionError otherwise."""
    try:
        array = np.array(values)
    except ValueError:
        array = np.array(None)
    if array.dtype.kind not in "iu" and array.size:
        raise InvalidDataError(f"{what} is {values!r}, must be whole numbers")
    if array.shape != (size,):
        raise DimensionError(f"{what} has shape {array.shape}, must be ({size},)")
    if array.size and (array.max() >= 2**31 or array.min() < -(2**31)):
        raise InvalidDataError(f"{what} is {values!r}: a number is beyond 2^31")
    return array.astype(np.int32)


def cost_type(dtype: DTypeLike) -> np.dtype[Any]:
    """Return the dtype float64 or float32; raises InvalidDataError for any other dtype."""
    try:
        kind = np.dtype(dtype)
    except (TypeError, ValueError):
        kind = np.dtype(object)
    if kind not in (np.dtype(np.float64), np.dtype(np.float32)):
        raise InvalidDataError(f"cost_dtype is {dtype!r}, must be float64 or float32")
    return kind


def checked_cost(request: Hashable, cost: ArrayLike, n: int) -> Floats:
    """Return a copy of a request's costs, (n,); the error names the first entry that is not finite or too large."""
    array = as_floats(f"request {request!r}: cost", cost)
    if array.shape != (n,):
        raise DimensionError(
            f"request {request!r}: cost has shape {array.shape}, but its usage has {n} columns: it must be "
            f"({n},), a cost for each column"
        )
    if not all_within(array, LARGEST_COST):
        at = int(np.flatnonzero(~(np.abs(array) <= LARGEST_COST))[0])
        most = "finite" if not np.isfinite(array[at]) else f"at most {LARGEST_COST:g} in size"
        raise InvalidDataError(f"request {request!r}: cost of column {at} is {array[at]}, must be {most}")
    return array


def checked_costs(requests: list[Hashable], costs: object, n: int) -> list[Floats]:
    """Return copies of the costs of many requests, (n,) each; those of a float64 matrix (k, n), or a list of float64
    arrays, are checked in one pass.
    """
    table: Floats | None = None
    if type(costs) is np.ndarray and costs.dtype == np.float64 and costs.shape == (len(requests), n):
        table = costs.copy()
    elif (
        isinstance(costs, (list, tuple))
        and len(costs) == len(requests) > 1
        and all(type(each) is np.ndarray and each.dtype == np.float64 and each.shape == (n,) for each in costs)
    ):
        table = np.concatenate(costs).reshape(len(costs), n)
    if table is not None and all_within(table.ravel(), LARGEST_COST):
        return list(table)
    each = listed_for(requests, "costs", plain_table(costs))
    return [checked_cost(request, cost, n) for request, cost in zip(requests, each, strict=True)]


def require_finite_costs(request: Hashable, cost: Costs, scale: float, offset: float) -> None:
    """Raise InvalidDataError if scale * cost + offset overflows float64; usually takes constant time."""
    if abs(scale) <= USUAL_SCALE and abs(offset) <= USUAL_OFFSET:
        return
    with np.errstate(over="ignore", invalid="ignore"):
        product = scale * cost.astype(np.float64) + offset
    if not np.isfinite(product).all():
        at = int(np.flatnonzero(~np.isfinite(product))[0])
        raise InvalidDataError(
            f"request {request!r}: scale {abs(scale):g} times the cost {cost[at]:g} of column {at} plus offset is "
            "beyond the largest number there is"
        )


def stored_cost(request: Hashable, cost: Floats, kind: np.dtype[Any]) -> tuple[Costs, float]:
    """Return the costs in their storage type and the largest rounding error that the conversion makes."""
    if kind == np.float64:
        return cost, 0.0
    with np.errstate(over="ignore"):
        narrow = cost.astype(np.float32)
    if not np.isfinite(narrow).all():
        at = int(np.flatnonzero(~np.isfinite(narrow))[0])
        raise InvalidDataError(f"request {request!r}: cost of column {at} is {cost[at]}, too large for float32")
    return narrow, float(np.abs(narrow - cost).max(initial=0.0))


def checked_limit(request: Hashable, limit: Any) -> float:
    """Return a valid limit: at least zero; inf means no limit."""
    try:
        number = np.nan if isinstance(limit, NOT_REAL) else float(limit)
    except (TypeError, ValueError, OverflowError):
        number = np.nan
    if not number >= 0:
        raise InvalidDataError(f"request {request!r}: limit is {limit!r}, must be >= 0 (inf for none)")
    return number


def checked_least(request: Hashable, at_least: Any, limit: float) -> float:
    """Return a valid least sum: at most the limit; -inf means no least sum."""
    try:
        number = np.nan if isinstance(at_least, NOT_REAL) else float(at_least)
    except (TypeError, ValueError, OverflowError):
        number = np.nan
    if not number < np.inf:
        raise InvalidDataError(f"request {request!r}: at_least is {at_least!r}, must be a number (-inf for none)")
    if number > limit:
        raise InvalidDataError(f"request {request!r}: at_least is {number:g}, above the limit {limit:g}")
    return number


def checked_sums(requests: list[Hashable], limit: ArrayLike, least: ArrayLike) -> tuple[Floats, Floats]:
    """Return limits and least sums of many requests, (k,) each; the error names the first wrong request."""
    k = len(requests)
    limits, leasts = (
        array if array.ndim else np.full(k, float(array))
        for array in (as_floats("limits", limit), as_floats("at_least", least))
    )
    for what, array in (("limits", limits), ("at_least", leasts)):
        if array.shape != (k,):
            raise DimensionError(f"{what} has shape {array.shape}, must be ({k},): one for each request")
    for at in np.flatnonzero(~(limits >= 0.0) | ~(leasts < np.inf) | (leasts > limits))[:1].tolist():
        checked_least(requests[at], float(leasts[at]), checked_limit(requests[at], float(limits[at])))
    return limits, leasts


def checked_bounds(request: Hashable, lower: ArrayLike, upper: ArrayLike, limit: float, n: int) -> tuple[Bound, Bound]:
    """Return lower and upper bounds, checked for a feasible point within the limit; one float if all columns agree."""
    if type(lower) is float and type(upper) is float and 0.0 <= lower <= upper and lower * n <= limit < np.inf:
        return lower, upper
    low = checked_vector(f"request {request!r}: lower", lower, n, 0.0, -1)
    high = checked_vector(f"request {request!r}: upper", upper, n, np.inf, 1)
    require_ordered(f"request {request!r}, column", low, high)
    if np.isfinite(limit) and not np.isfinite(low).all():
        raise InvalidDataError(f"request {request!r}: a limit needs finite lower bounds; give limit=inf or bounds")
    if low.sum() > limit:
        raise InvalidDataError(f"request {request!r}: lower bounds sum to {low.sum():g}, above the limit {limit:g}")
    return one_bound(low), one_bound(high)


def checked_own_bounds(
    requests: Sequence[Hashable], lower: ArrayLike, upper: ArrayLike, limits: Floats, first: NDArray[np.integer]
) -> tuple[Bound, Bound]:
    """Return the bounds of the columns of many requests, as :func:`checked_bounds`; one float if all columns agree."""
    n = int(first[-1])
    low, high = checked_vector("lower", lower, n, 0.0, -1), checked_vector("upper", upper, n, np.inf, 1)
    sums = np.add.reduceat(low, first[:-1])
    wrong = np.maximum.reduceat(low > high, first[:-1]) | (np.isfinite(limits) & ~np.isfinite(sums)) | (sums > limits)
    for at in np.flatnonzero(wrong)[:1].tolist():
        own = slice(int(first[at]), int(first[at + 1]))
        checked_bounds(requests[at], low[own], high[own], float(limits[at]), own.stop - own.start)
    return one_bound(low), one_bound(high)


def one_bound(bounds: Floats) -> Bound:
    """Return the bounds as one float if all are equal, otherwise unchanged."""
    return float(bounds[0]) if (bounds == bounds[0]).all() else bounds


def bounds_of_each(bounds: Bound, first: NDArray[np.integer]) -> list[Bound]:
    """Return the bounds of each request's columns, first[k] to first[k + 1] - 1; one float where all columns agree."""
    if isinstance(bounds, float):
        return [bounds] * (len(first) - 1)
    same = np.minimum.reduceat(bounds, first[:-1]) == np.maximum.reduceat(bounds, first[:-1])
    parts = zip(same.tolist(), first[:-1].tolist(), first[1:].tolist(), strict=True)
    return [float(bounds[a]) if plain else bounds[a:b].copy() for plain, a, b in parts]


def checked_column(request: Hashable, n: int, column: Any) -> int:
    """Return a valid column number, 0 to n - 1."""
    try:
        index = operator.index(column)
    except TypeError:
        index = -1
    if not 0 <= index < n:
        raise DimensionError(f"request {request!r} has columns 0 to {n - 1}, not {column!r}")
    return index
