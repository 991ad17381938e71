"""A model as one linear program, and a solution's working columns in that program's order."""

from __future__ import annotations

from collections.abc import Hashable, Mapping

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from copter.errors import StaleSolutionError
from copter.model.ledger import Ledger
from copter.problem.linear_program import LinearProgram
from copter.problem.solution import SparseValues, Status

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


def assemble(ledger: Ledger) -> LinearProgram:
    """The model as one LP: columns by request in the order added; rows are resources, then finite limits."""
    matrix, slots = ledger.matrix, list(ledger.slot_of.values())
    rows = list(ledger.row_of.values())
    bounds = [matrix.bounds_of(slot) for slot in slots]
    limits = np.array([matrix.limit_of(slot) for slot in slots])
    counts = np.array([matrix.slabs[slot].template.n_columns for slot in slots], dtype=np.int64)
    empty = np.zeros(0)
    return LinearProgram(
        c=np.concatenate([ledger.sign * matrix.costs_of(slot) for slot in slots] or [empty]) + 0.0,
        A=sp.vstack((shared_rows(ledger), limit_rows(limits, counts)), format="csc"),
        row_lower=np.concatenate((matrix.row_lower[rows], np.full(int(np.isfinite(limits).sum()), -np.inf))),
        row_upper=np.concatenate((matrix.row_upper[rows], limits[np.isfinite(limits)])),
        col_lower=np.concatenate([lower for lower, _ in bounds] or [empty]),
        col_upper=np.concatenate([upper for _, upper in bounds] or [empty]),
        integrality=np.repeat(np.array([matrix.slabs[slot].integer for slot in slots], dtype=np.float64), counts),
        sense=ledger.sense,
        offset=ledger.offset,
    )


def shared_rows(ledger: Ledger) -> sp.csc_array:
    """The resources' part of the matrix: resources in the order added, by columns."""
    rows = list(ledger.row_of.values())
    position = np.full(ledger.matrix.n_rows, -1, dtype=np.int64)
    position[rows] = np.arange(len(rows))
    templates = [ledger.matrix.slabs[slot].template for slot in ledger.slot_of.values()]
    counts = [np.diff(template.column_start) for template in templates]
    start = np.concatenate(([0], np.cumsum(np.concatenate(counts or [np.zeros(0, dtype=np.int64)]))))
    row = np.concatenate([position[template.row] for template in templates] or [np.zeros(0, dtype=np.int64)])
    data = np.concatenate([template.coefficient for template in templates] or [np.zeros(0)])
    return sp.csc_array((data, row, start), shape=(len(rows), len(start) - 1))


def limit_rows(limits: Floats, counts: Ints) -> sp.csr_array:
    """One row of ones for every request with a finite limit."""
    finite = np.isfinite(limits)
    entries = np.flatnonzero(np.repeat(finite, counts))
    start = np.concatenate(([0], np.cumsum(counts[finite]))).astype(np.int64)
    return sp.csr_array((np.ones(len(entries)), entries, start), shape=(int(finite.sum()), int(counts.sum())))


def sparse_values(ledger: Ledger, key: Ints, x: Floats, y: Floats) -> SparseValues:
    """Values of a solution of the model as it now stands.

    Parameters
    ----------
    key : ndarray (k,) int64
        slot << 32 | column of the columns that may be off their lower bounds, ascending.
    x : ndarray (k,)
    y : ndarray (rows,)
        Prices by row slot, in the signs of the model's sense.
    """
    version = ledger.version

    def lower_of(request: Hashable) -> Floats:
        ledger.require_unchanged(request, version)
        return ledger.matrix.free_bounds_of(ledger.slot(request))[0]

    values = SparseValues(
        key=key,
        x=x,
        y=y,
        slot_of=dict(ledger.slot_of),
        row_of=dict(ledger.row_of),
        lower_of=lower_of,
        dense=lambda: dense_solution(ledger, values, version),
    )
    return values


def dense_solution(ledger: Ledger, sparse: SparseValues, version: int) -> tuple[Floats, Floats, Floats]:
    """x, y and reduced costs in the order of to_linear_program, for a solution of this version."""
    require_current(ledger, version)
    lp, first = assemble(ledger), first_columns(ledger)
    x = lp.col_lower.copy()
    x[places(first, sparse.key)] = sparse.x
    shared = sparse.y[list(ledger.row_of.values())]
    reduced = ledger.sign * (lp.c - lp.A[: len(shared)].T @ shared)
    limits = ledger.sign * limit_duals(ledger, lp, first, reduced)
    return x, np.concatenate((shared, limits)) + 0.0, ledger.sign * reduced + 0.0


def dense_ray(ledger: Ledger, sparse: SparseValues, status: Status, ray: Floats, version: int) -> Floats:
    """A certificate in the order of to_linear_program: row multipliers, or a direction in x."""
    require_current(ledger, version)
    lp, first = assemble(ledger), first_columns(ledger)
    if status is Status.DUAL_INFEASIBLE:
        direction = np.zeros(lp.shape[1])
        direction[places(first, sparse.key)] = ray
        return direction
    shared = ray[list(ledger.row_of.values())]
    return np.concatenate((shared, limit_duals(ledger, lp, first, -(lp.A[: len(shared)].T @ shared))))


def require_current(ledger: Ledger, version: int) -> None:
    """Raise StaleSolutionError unless the model is still at this version."""
    if version != ledger.version:
        raise StaleSolutionError("the model has been edited since this solution was found; solve again")


def first_columns(ledger: Ledger) -> dict[int, int]:
    """Place of every slot's first column in to_linear_program."""
    first, at = {}, 0
    for slot in ledger.slot_of.values():
        first[slot] = at
        at += ledger.matrix.slabs[slot].template.n_columns
    return first


def places(first: Mapping[int, int], key: Ints) -> Ints:
    """Columns of to_linear_program that keys (slot << 32 | column) stand for."""
    return np.array([first[int(slot)] for slot in key >> 32], dtype=np.int64) + (key & 0xFFFFFFFF)


def limit_duals(ledger: Ledger, lp: LinearProgram, first: Mapping[int, int], reduced: Floats) -> Floats:
    """Duals (<= 0) of the finite limits at a minimisation's reduced costs, from which they are then taken off."""
    duals = []
    for slot in ledger.slot_of.values():
        n, limit = ledger.matrix.slabs[slot].template.n_columns, ledger.matrix.limit_of(slot)
        if np.isfinite(limit):
            block = slice(first[slot], first[slot] + n)
            duals.append(limit_dual(reduced[block], lp.col_lower[block], lp.col_upper[block], limit))
            reduced[block] -= duals[-1]
    return np.array(duals)


def limit_dual(reduced: Floats, lower: Floats, upper: Floats, limit: float) -> float:
    """Dual (<= 0, minimisation) of sum x <= limit: the reduced cost at which the cheapest columns have filled it."""
    order = np.argsort(reduced, kind="stable")
    room = limit - lower.sum()
    filled = np.cumsum((upper - lower)[order])
    over = np.flatnonzero(filled >= room)
    marginal = reduced[order[over[0]]] if len(over) and np.any(upper > lower) else 0.0
    return float(min(0.0, marginal))
