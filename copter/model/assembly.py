"""Conversion of a model to one linear program, and the names behind the rows of a proof."""

from __future__ import annotations

from collections.abc import Hashable

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from copter.model.column_map import slots_in_order
from copter.model.ledger import Ledger
from copter.model.matrix import BlockMatrix
from copter.problem.linear_program import LinearProgram
from copter.runtime.errors import StaleSolutionError

Floats = NDArray[np.float64]
Ints = NDArray[np.int32]

NAMED = 1e-9  # a contradiction names the rows whose multiplier exceeds this share of the ray's largest one


def assemble(ledger: Ledger) -> LinearProgram:
    """Return the model as one LP: columns request by request, rows of resources first, then each request's own rows."""
    matrix, slots = ledger.matrix, slots_in_order(ledger)
    first = matrix.starts_of(slots)
    n = int(first[-1])
    rows = list(ledger.row_of.values())
    cost, lower, upper = matrix.flat_columns(slots, n)
    own_first, own_start, own_row, own_value, own_lower, own_upper = matrix.own_rows(slots, n)
    return LinearProgram(
        c=ledger.sign * cost + 0.0,
        A=whole_matrix(ledger, slots, first, own_first, own_start, own_row, own_value),
        row_lower=np.concatenate((matrix.row_lower[rows], own_lower)),
        row_upper=np.concatenate((matrix.row_upper[rows], own_upper)),
        col_lower=lower,
        col_upper=upper,
        integrality=whole_columns(matrix, slots, first),
        sense=ledger.sense,
        offset=ledger.offset,
    )


def whole_columns(matrix: BlockMatrix, slots: Ints, first: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Return which columns of these slots must be whole in an integer plan, (first[-1],)."""
    slabs = [matrix.slabs[slot] for slot in slots.tolist()]
    found = np.repeat(np.array([slab.integer for slab in slabs], dtype=np.bool_), np.diff(first))
    for at, slab in enumerate(slabs):
        if slab.whole_each is not None:
            found[first[at] : first[at + 1]] = slab.whole_each
    return found


def whole_matrix(
    ledger: Ledger,
    slots: Ints,
    first: NDArray[np.int64],
    own_first: Ints,
    own_start: Ints,
    own_row: Ints,
    own_value: Floats,
) -> sp.csc_array:
    """Return the constraint matrix; each column lists its resource entries in the order added, then its own-row
    entries.
    """
    n, rows = int(first[-1]), list(ledger.row_of.values())
    start, row, value = ledger.matrix.flat_entries(slots, n)
    position = np.full(ledger.matrix.n_rows, -1, dtype=np.int32)
    position[rows] = np.arange(len(rows), dtype=np.int32)
    before = np.repeat((len(rows) + own_first[:-1]).astype(np.int32), np.diff(first))
    place = np.arange(len(row)) + np.repeat(own_start[:-1], np.diff(start))
    own_place = np.arange(len(own_row)) + np.repeat(start[1:], np.diff(own_start))
    indices, data = np.empty(len(row) + len(own_row), dtype=np.int32), np.empty(len(row) + len(own_row))
    indices[place], data[place] = position[row], value
    indices[own_place], data[own_place] = own_row + np.repeat(before, np.diff(own_start)), own_value
    return sp.csc_array((data, indices, start + own_start), shape=(len(rows) + int(own_first[-1]), n))


def require_current(ledger: Ledger, version: int) -> None:
    """Raise StaleSolutionError unless the model is still at this version."""
    if version != ledger.version:
        raise StaleSolutionError("the model has been edited since this solution was found; solve again")


def own_rows_of(ledger: Ledger) -> tuple[list[Hashable], NDArray[np.int64]]:
    """Return the requests in order, and each one's first own row in `to_linear_program`; a last entry counts all
    rows.
    """
    slots = slots_in_order(ledger)
    first = ledger.matrix.own_rows(slots, int(ledger.matrix.starts_of(slots)[-1]))[0]
    return list(ledger.slot_of), first.astype(np.int64) + len(ledger.row_of)


def named_by(ledger: Ledger, ray: Floats, version: int) -> tuple[tuple[Hashable, ...], tuple[Hashable, ...]]:
    """Return (resources, requests) whose rows have a nonzero multiplier in a ray ordered as in `to_linear_program`."""
    require_current(ledger, version)
    taking = np.abs(ray) > NAMED * float(np.abs(ray).max(initial=0.0))
    resources = list(ledger.row_of)
    requests, first = own_rows_of(ledger)
    owner = np.searchsorted(first, np.flatnonzero(taking[len(resources) :]) + len(resources), side="right") - 1
    return (
        tuple(resources[at] for at in np.flatnonzero(taking[: len(resources)]).tolist()),
        tuple(requests[at] for at in np.unique(owner).tolist()),
    )
