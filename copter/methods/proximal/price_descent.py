"""Directions of the proximal steps by coordinate descent over prices of a working set (equations A12 to A14).

`Settings(method="price_descent")` takes the steps of :mod:`copter.methods.proximal.proximal_point` with them.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csc_array, csr_array, diags_array

from copter.methods.proximal.newton import DENSE_ROWS, Point, Subproblem
from copter.methods.proximal.prices import PriceModel
from copter.methods.proximal.working_set import WorkingSet

Floats = NDArray[np.float64]
Ints = NDArray[np.int32]

SHARE = 1e-3  # sweeps end when no row's residual in the model exceeds this share of the largest one at the start
EXTRAPOLATIONS = 8  # most extrapolations for one direction


def descent_direction(problem: Subproblem, point: Point) -> Floats:
    """Return the maximum of the dual's quadratic model at a point, found by sweeps over prices in order of what gains.

    The model has the matrix of equation A6, so that this is an inexact Newton step.
    """
    m = len(point.y)
    slack = problem.slack_curvature(point)
    if m <= DENSE_ROWS:
        dense = problem.matrix(slack)
        diagonal, entry = dense.diagonal().copy(), dense.ravel()
        first, place = full_rows(m)
    else:
        sparse = sparse_matrix(problem.ws, problem.sigma, slack)
        diagonal, entry, first, place = sparse.diagonal(), sparse.data, sparse.indptr, sparse.indices
    order = np.argsort(-(point.residual**2) / diagonal)
    direction = np.empty(m)
    PriceModel(first, place, entry, diagonal).ascend(order, point.residual, direction, SHARE, EXTRAPOLATIONS)
    return direction


@lru_cache(maxsize=4)
def full_rows(m: int) -> tuple[Ints, Ints]:
    """Return the starts of the rows of a full matrix, (m + 1,), and their columns, (m * m,)."""
    return np.arange(m + 1, dtype=np.int32) * np.int32(m), np.tile(np.arange(m, dtype=np.int32), m)


def sparse_matrix(ws: WorkingSet, sigma: float, slack: Floats) -> csr_array:
    """Return the matrix of equation A6, with these curvatures of the slacks on its diagonal."""
    counts, free = np.diff(ws.start), ws.free.astype(bool)
    usage = csc_array((ws.coefficient, ws.row, ws.entry_start), shape=(len(slack), ws.size))[:, np.flatnonzero(free)]
    group = np.repeat(np.arange(len(counts)), counts)[free]
    tight = ws.multiplier[group] > 0.0
    share = np.where(tight, 1.0 / np.sqrt(np.bincount(group, minlength=len(counts)))[group], 0.0)
    sums = usage @ csc_array((share, (np.arange(len(group)), group)), shape=(len(group), len(counts)))
    matrix = csr_array(sigma * (usage @ usage.T - sums @ sums.T) + diags_array(slack))
    matrix.indptr, matrix.indices = matrix.indptr.astype(np.int32), matrix.indices.astype(np.int32)
    return matrix
