"""Proofs of infeasibility that say as little as they can: one row, or one request's own rows."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from copter.problem.checker import is_infeasibility_ray
from copter.problem.linear_program import LinearProgram

Floats = NDArray[np.float64]
Ints = NDArray[np.int32]

MOST_TRIED = 200  # requests whose part of a proof is tried by itself


def impossible_row(lp: LinearProgram) -> Floats | None:
    """Multipliers of one row that no point within the columns' bounds satisfies, verified; None where there is none."""
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


def of_one_request(lp: LinearProgram, ray: Floats, own_first: Ints) -> Floats:
    """The part of a proof that is of one request's own rows, if it is one by itself; else the whole of it.

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
