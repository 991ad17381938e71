"""The final check of every plan, whichever shim made it."""

from __future__ import annotations

import numpy as np

from copter.model.column_map import slots_in_order
from copter.model.matrix.list_of_lists import Slab
from copter.model.model import Model
from copter.runtime.errors import InvalidDataError
from copter.shims.feasibility import HALF_ULP, exceeded, exceeded_by
from copter.shims.plan import IDLE, IntegerPlan
from copter.shims.tally import tally_plain

Floats = np.ndarray[tuple[int], np.dtype[np.float64]]
Ints = np.ndarray[tuple[int], np.dtype[np.int32]]


def require_feasible(model: Model, plan: IntegerPlan) -> None:
    """Raise InvalidDataError unless a plan satisfies the model's bounds, limits and resources, in exact arithmetic.

    An integer request with a single column at one unit is integral by construction; several columns or units are
    checked.
    """
    matrix = model.ledger.matrix
    n = matrix.n_slots
    if holds_at_once(model, plan):
        return
    if plan.column_of_slot.shape != (n,) or plan.share_key.shape != plan.share.shape:
        raise InvalidDataError(f"the shim's plan has columns for {len(plan.column_of_slot)} slots, the model has {n}")
    slot = np.flatnonzero(plan.column_of_slot != IDLE).astype(np.int32)
    key = np.concatenate((slot.astype(np.int64) << 32 | plan.column_of_slot[slot], plan.share_key))
    value = np.concatenate((np.ones(len(slot)), plan.share))
    if len(plan.share_key):
        order = np.argsort(key, kind="stable")
        key, value = key[order], value[order]
    slot, column = (key >> 32).astype(np.int32), (key & 0xFFFFFFFF).astype(np.int32)
    inside = (key >= 0) & (key >> 32 < n)
    inside[inside] = column[inside] < matrix.sizes_of(slot[inside])
    if not inside.all() or bool((key[1:] == key[:-1]).any()):
        raise InvalidDataError("the shim's plan has a column that the model does not have, or one twice")
    parts = np.flatnonzero(value != np.rint(value))
    if any(must_be_whole(matrix.slabs[slot[at]], int(column[at])) for at in parts.tolist()):
        raise InvalidDataError("the shim's plan gives an integer request a part of a column")
    first = np.append(True, slot[1:] != slot[:-1])[: len(slot)].nonzero()[0]
    slots, start = slot[first], np.append(first, len(slot)).astype(np.int32)
    limit, _, lower, upper, entry_start, row, coefficient = matrix.gather(slots, start, column)
    owner = np.repeat(np.arange(len(slots), dtype=np.int32), start[1:] - start[:-1])
    # an upper bound that is the limit of the sum gets the sum's allowance for decimals
    decimal = np.where(upper == limit[owner], HALF_ULP * (np.abs(value) + np.abs(upper)), 0.0)
    wrong = ~((value >= lower) & (value - upper <= decimal))
    missing = required(model, key)
    over = exceeded(limit, owner, np.ones(len(key)), value)
    for which in (slot[wrong], missing, slots[over]):
        if len(which):
            request = next(name for name, at in model.ledger.slot_of.items() if at == which[0])
            raise InvalidDataError(f"the shim's plan breaks a bound or the limit of request {request!r}")
    m = matrix.n_rows
    weights = np.repeat(value, entry_start[1:] - entry_start[:-1])
    short = exceeded(matrix.row_upper[:m], row, coefficient, weights)
    if len(short):
        resource = next(name for name, at in model.ledger.row_of.items() if at == short[0])
        raise InvalidDataError(f"the shim's plan uses more of resource {resource!r} than there is")
    bounded = np.isfinite(matrix.row_lower[:m]).any()
    few = exceeded(-matrix.row_lower[:m], row, -coefficient, weights) if bounded else np.zeros(0, dtype=np.intp)
    if len(few):
        resource = next(name for name, at in model.ledger.row_of.items() if at == few[0])
        raise InvalidDataError(f"the shim's plan uses less of resource {resource!r} than its lower bound")
    if matrix.n_with_rows:
        require_own_rows(model, key, value)


def must_be_whole(slab: Slab, column: int) -> bool:
    """Return whether a column of a slab must be whole."""
    return bool(slab.integer if slab.whole_each is None else slab.whole_each[column])


def holds_at_once(model: Model, plan: IntegerPlan) -> bool:
    """Return whether a plan of whole columns is seen to hold in one pass over the slots; False proves nothing."""
    matrix, m = model.ledger.matrix, model.ledger.matrix.n_rows
    if len(plan.share_key) or len(plan.share) or matrix.n_with_rows:
        return False
    sums = tally_plain(matrix, plan.column_of_slot)
    if sums is None:
        return False

    def terms() -> tuple[Ints, Floats, Floats]:
        slots = np.flatnonzero(plan.column_of_slot != IDLE).astype(np.int32)
        flat = matrix.gather(slots, np.arange(len(slots) + 1, dtype=np.int32), plan.column_of_slot[slots])
        return flat.row, flat.coefficient, np.ones(len(flat.row))

    if len(exceeded_by(matrix.row_upper[:m], sums, terms)):
        return False
    if not np.isfinite(matrix.row_lower[:m]).any():
        return True

    def negative() -> tuple[Ints, Floats, Floats]:
        row, coefficient, value = terms()
        return row, -coefficient, value

    return not len(exceeded_by(-matrix.row_lower[:m], (-sums[0], *sums[1:]), negative))


def require_own_rows(
    model: Model, key: np.ndarray[tuple[int], np.dtype[np.int64]], value: np.ndarray[tuple[int], np.dtype[np.float64]]
) -> None:
    """Raise InvalidDataError unless a plan satisfies least sums and private rows."""
    matrix, slots = model.ledger.matrix, slots_in_order(model.ledger)
    first = matrix.starts_of(slots)
    n = int(first[-1])
    place = np.zeros(matrix.n_slots, dtype=np.int64)
    place[slots] = first[:-1]
    x = np.zeros(n)
    x[place[key >> 32] + (key & 0xFFFFFFFF)] = value
    own_first, start, own_row, own_value, lower, upper = matrix.own_rows(slots, n)
    row = np.repeat(np.repeat(own_first[:-1], np.diff(first)), np.diff(start)) + own_row
    weights = np.repeat(x, np.diff(start))
    for bound, sign in ((upper, 1.0), (-lower, -1.0)):
        wrong = exceeded(bound, row, sign * own_value, weights)
        if len(wrong):
            request = model.requests[int(np.searchsorted(own_first, wrong[0], side="right")) - 1]
            raise InvalidDataError(f"the shim's plan breaks the limit or a private row of request {request!r}")


def required(
    model: Model, key: np.ndarray[tuple[int], np.dtype[np.int64]]
) -> np.ndarray[tuple[int], np.dtype[np.int32]]:
    """Return the slots of columns that must be nonzero but are not in the plan."""
    matrix = model.ledger.matrix
    slots, columns = matrix.required_columns()
    if not len(slots):
        return slots
    first = np.flatnonzero(np.diff(slots, prepend=-1))
    start = np.append(first, len(slots)).astype(np.int32)
    flat = matrix.gather(slots[first], start, columns)
    must = (flat.lower > 0.0) | (flat.upper < 0.0)
    absent = ~np.isin(slots[must].astype(np.int64) << 32 | columns[must], key)
    return np.asarray(slots[must][absent])
