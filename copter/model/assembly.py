"""A model as one linear program, and a solution's working columns in that program's order."""

from __future__ import annotations

from collections.abc import Hashable, Mapping

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from copter.errors import StaleSolutionError
from copter.model.inventory import Inventory
from copter.problem.linear_program import LinearProgram
from copter.problem.solution import SparseValues, Status

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


def assemble(model: Inventory) -> LinearProgram:
    """The model as one LP: columns by request in the order added; rows are resources, then finite limits."""
    matrix, slots = model._matrix, list(model._slot_of.values())
    rows = list(model._row_of.values())
    bounds = [matrix.bounds_of(slot) for slot in slots]
    limits = np.array([matrix.limit_of(slot) for slot in slots])
    counts = np.array([matrix.slabs[slot].template.n_columns for slot in slots], dtype=np.int64)
    empty = np.zeros(0)
    return LinearProgram(
        c=np.concatenate([model._sign * matrix.costs_of(slot) for slot in slots] or [empty]) + 0.0,
        A=sp.vstack((shared_rows(model), limit_rows(limits, counts)), format="csc"),
        row_lower=np.concatenate((matrix.row_lower[rows], np.full(int(np.isfinite(limits).sum()), -np.inf))),
        row_upper=np.concatenate((matrix.row_upper[rows], limits[np.isfinite(limits)])),
        col_lower=np.concatenate([lower for lower, _ in bounds] or [empty]),
        col_upper=np.concatenate([upper for _, upper in bounds] or [empty]),
        integrality=np.repeat(np.array([matrix.slabs[slot].integer for slot in slots], dtype=np.float64), counts),
        sense=model.sense,
        offset=model.offset,
    )


def shared_rows(model: Inventory) -> sp.csc_array:
    """The resources' part of the matrix: resources in the order added, by columns."""
    rows = list(model._row_of.values())
    position = np.full(model._matrix.n_rows, -1, dtype=np.int64)
    position[rows] = np.arange(len(rows))
    templates = [model._matrix.slabs[slot].template for slot in model._slot_of.values()]
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


def sparse_values(model: Inventory, key: Ints, x: Floats, y: Floats) -> SparseValues:
    """Values of a solution of the model as it now stands.

    Parameters
    ----------
    key : ndarray (k,) int64
        slot << 32 | column of the columns that may be off their lower bounds, ascending.
    x : ndarray (k,)
    y : ndarray (rows,)
        Prices by row slot, in the signs of the model's sense.
    """
    version = model.version

    def lower_of(request: Hashable) -> Floats:
        model.require_unchanged(request, version)
        return model.bounds(request)[0]

    values = SparseValues(
        key=key,
        x=x,
        y=y,
        slot_of=dict(model._slot_of),
        row_of=dict(model._row_of),
        lower_of=lower_of,
        dense=lambda: dense_solution(model, values, version),
    )
    return values


def dense_solution(model: Inventory, sparse: SparseValues, version: int) -> tuple[Floats, Floats, Floats]:
    """x, y and reduced costs in the order of to_linear_program, for a solution of this version."""
    require_current(model, version)
    lp, first = assemble(model), first_columns(model)
    x = lp.col_lower.copy()
    x[places(first, sparse.key)] = sparse.x
    shared = sparse.y[list(model._row_of.values())]
    reduced = model._sign * (lp.c - lp.A[: len(shared)].T @ shared)
    limits = model._sign * limit_duals(model, lp, first, reduced)
    return x, np.concatenate((shared, limits)) + 0.0, model._sign * reduced + 0.0


def dense_ray(model: Inventory, sparse: SparseValues, status: Status, ray: Floats, version: int) -> Floats:
    """A certificate in the order of to_linear_program: row multipliers, or a direction in x."""
    require_current(model, version)
    lp, first = assemble(model), first_columns(model)
    if status is Status.DUAL_INFEASIBLE:
        direction = np.zeros(lp.shape[1])
        direction[places(first, sparse.key)] = ray
        return direction
    shared = ray[list(model._row_of.values())]
    return np.concatenate((shared, limit_duals(model, lp, first, -(lp.A[: len(shared)].T @ shared))))


def require_current(model: Inventory, version: int) -> None:
    """Raise StaleSolutionError unless the model is still at this version."""
    if version != model.version:
        raise StaleSolutionError("the model has been edited since this solution was found; solve again")


def first_columns(model: Inventory) -> dict[int, int]:
    """Place of every slot's first column in to_linear_program."""
    first, at = {}, 0
    for slot in model._slot_of.values():
        first[slot] = at
        at += model._matrix.slabs[slot].template.n_columns
    return first


def places(first: Mapping[int, int], key: Ints) -> Ints:
    """Columns of to_linear_program that keys (slot << 32 | column) stand for."""
    return np.array([first[int(slot)] for slot in key >> 32], dtype=np.int64) + (key & 0xFFFFFFFF)


def limit_duals(model: Inventory, lp: LinearProgram, first: Mapping[int, int], reduced: Floats) -> Floats:
    """Duals (<= 0) of the finite limits at a minimisation's reduced costs, from which they are then taken off."""
    duals = []
    for slot in model._slot_of.values():
        n, limit = model._matrix.slabs[slot].template.n_columns, model._matrix.limit_of(slot)
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
