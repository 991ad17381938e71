"""Plans from the columns that a scheduler's own shim has chosen."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from math import isfinite

import numpy as np
from numpy.typing import NDArray

from copter.model.model import Model
from copter.problem.solution import Solution
from copter.runtime.errors import EditNotAllowedError, InvalidDataError, UnknownHandleError
from copter.shims.finished import continuous_requests, worth_of
from copter.shims.greedy import integer_slots
from copter.shims.plan import IDLE, Floats, IntegerPlan, Keys

COLUMN = 0xFFFFFFFF  # bit mask of the column in a key slot << 32 | column
Shares = Mapping[Hashable, Mapping[int, float]]


def plan_of(
    model: Model, solution: Solution, columns: Mapping[Hashable, int | None], shares: Shares | None = None
) -> IntegerPlan:
    """Return the plan that a :class:`Shim` returns.

    Parameters
    ----------
    model : Model
    solution : Solution
        The LP's solution, whose bound the plan is compared with.
    columns : mapping
        Integer request -> its column, or None. A request that is missing gets nothing.
    shares : mapping, optional
        Continuous request -> {column: value}.

    Returns
    -------
    IntegerPlan
        With the objective, the bound and the gap. :meth:`copter.Session.solve_integer` checks that it is feasible.

    Raises
    ------
    UnknownHandleError
        For a request that is not in the model.
    InvalidDataError
        For a column that a request does not have, and for a value that is not finite.
    EditNotAllowedError
        For shares of an integer request, and one column for a continuous one.
    """
    matrix = model.ledger.matrix
    whole = integer_slots(matrix)
    column_of_slot = np.full(matrix.n_slots, IDLE, dtype=np.int32)
    for request, column in columns.items():
        if column is not None:
            slot = slot_with(model, request, column)
            if not whole[slot]:
                raise EditNotAllowedError(f"request {request!r} is continuous: shares= says what it gets")
            column_of_slot[slot] = column
    key, value = share_entries(model, whole, shares or {})
    slots = np.flatnonzero(column_of_slot != IDLE).astype(np.int32)
    shared = matrix.costs_at((key >> 32).astype(np.int32), (key & COLUMN).astype(np.int32)) * value
    worth = worth_of(model, np.concatenate((matrix.costs_at(slots, column_of_slot[slots]), shared)), solution)
    return IntegerPlan(
        objective=worth.objective,
        bound=worth.bound,
        gap=worth.gap,
        fractional_requests=0,
        kept_previous=False,
        column_of_slot=column_of_slot,
        generation=matrix.generation[: matrix.n_slots].copy(),
        slot_of=model.ledger.slots_then(),
        status=worth.status,
        bound_is_certified=worth.certified,
        share_key=key,
        share=value,
        continuous=continuous_requests(model, whole),
    )


def share_entries(model: Model, whole: NDArray[np.bool_], shares: Shares) -> tuple[Keys, Floats]:
    """Return the keys of the columns of continuous requests, ascending, and their values."""
    entries = []
    for request, parts in shares.items():
        for column, value in parts.items():
            slot = slot_with(model, request, column)
            if whole[slot]:
                raise EditNotAllowedError(f"request {request!r} is integer: columns= says what it gets")
            if not isfinite(value):
                raise InvalidDataError(f"column {column} of request {request!r} has the value {value!r}")
            entries.append((slot << 32 | column, float(value)))
    entries.sort()
    return np.array([key for key, _ in entries], dtype=np.int64), np.array([value for _, value in entries], dtype=float)


def slot_with(model: Model, request: Hashable, column: int) -> int:
    """Return the slot of a request; raises unless the request has the column."""
    slot = model.ledger.slot_of.get(request)
    if slot is None:
        raise UnknownHandleError(f"no request {request!r} in the model")
    size = int(model.ledger.matrix.sizes_of(np.array([slot], dtype=np.int32))[0])
    if isinstance(column, bool) or not isinstance(column, (int, np.integer)) or not 0 <= column < size:
        raise InvalidDataError(f"request {request!r} has columns 0 to {size - 1}, not {column!r}")
    return slot
