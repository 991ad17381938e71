"""Minimal proofs of infeasibility: a single row, or one request's own rows."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from copter.problem.checker import is_infeasibility_ray
from copter.problem.linear_program import LinearProgram

Floats = NDArray[np.float64]
Ints = NDArray[np.int32]
Keys = NDArray[np.int64]

MOST_TRIED = 200  # most requests whose part of an infeasibility proof is examined separately


def impossible_row(lp: LinearProgram) -> Floats | None:
    """Return verified multipliers of a single row that no point within the columns' bounds satisfies; None without
    one.
    """
    column = np.repeat(np.arange(lp.shape[1]), np.diff(lp.A.indptr))
    a, m = lp.A.data, lp.shape[0]
    with np.errstate(invalid="ignore"):
        ends = a * lp.col_lower[column], a * lp.col_upper[column]
    low, high = (np.where(a == 0.0, 0.0, np.where(a > 0.0, *pair)) for pair in (ends, ends[::-1]))
    least, most = (np.bincount(lp.A.indices, weights=each, minlength=m) for each in (low, high))
    for at in np.flatnonzero((least > lp.row_upper) | (most < lp.row_lower)).tolist():
        ray = np.zeros(m)
        ray[at] = -1.0 if least[at] > lp.row_upper[at] else 1.0
        if is_infeasibility_ray(lp, ray):
            return ray
    return None


def by_sums(lp: LinearProgram, ray: Floats, column_first: Ints | Keys, sum_row: Keys) -> Floats:
    """Replace columns' upper bounds in a proof by their requests' limits, so that it names the requests.

    An upper bound that is at least its request's limit follows from the limit. If the changed proof does not hold, the
    old one is returned.

    Parameters
    ----------
    lp : LinearProgram
    ray : ndarray (m,)
        Multipliers, verified.
    column_first : ndarray (requests + 1,)
    sum_row : ndarray (requests,)
        Row of every request's sum, -1 for none.
    """
    worth = lp.A.T @ ray
    best = np.maximum(np.maximum.reduceat(np.append(worth, 0.0), column_first[:-1]), 0.0)
    best[(np.diff(column_first) == 0) | (sum_row < 0)] = 0.0
    chosen = np.flatnonzero(best > 0.0)
    priced = ray.copy()
    priced[sum_row[chosen]] -= best[chosen]
    return priced if len(chosen) and is_infeasibility_ray(lp, priced) else ray


def of_one_request(lp: LinearProgram, ray: Floats, own_first: Ints) -> Floats:
    """Return the part of a proof on one request's own rows if it is a proof by itself; otherwise the whole proof.

    Parameters
    ----------
    lp : LinearProgram
    ray : ndarray (m,)
        Multipliers, verified.
    own_first : ndarray (requests + 1,) int32
        First own row of every request, counted from the first of them all; resources' rows come before.
    """
    shared = lp.shape[0] - int(own_first[-1])
    size = np.abs(ray[shared:])
    total = np.add.reduceat(np.append(size, 0.0), own_first[:-1]) if len(own_first) > 1 else np.zeros(0)
    total[np.diff(own_first) == 0] = 0.0
    for at in np.argsort(-total, kind="stable")[:MOST_TRIED].tolist():
        part = np.zeros(len(ray))
        rows = slice(shared + int(own_first[at]), shared + int(own_first[at + 1]))
        part[rows] = ray[rows]
        if total[at] > 0.0 and is_infeasibility_ray(lp, part):
            return part
    return ray
