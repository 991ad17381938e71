"""Certificates of infeasibility and unboundedness; such a status is returned only with a verified certificate."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from copter.methods.proximal.newton import Rows
from copter.methods.proximal.pricing import Priced, price_all
from copter.methods.proximal.working_set import WorkingSet
from copter.model.matrix import BlockMatrix
from copter.problem.sums import inner

Floats = NDArray[np.float64]

RAY_TOLERANCE = 1e-9  # largest violation of a ray whose largest entry is one


def farkas(matrix: BlockMatrix, ws: WorkingSet, rows: Rows, y: Floats, n_threads: int) -> tuple[bool, Priced]:
    """Return whether y proves that no point satisfies all rows, bounds and limits, and the pricing pass.

    It proves this if the minimum of -y'(A x - s) over blocks and slacks is positive, because the term is zero at every
    feasible point (equation A15). The returned pass lists the columns that contradict the proof.
    """
    size = float(np.abs(y * rows.scale).max(initial=0.0))
    ray = y / size if size > 0 else y
    priced = price_all(matrix, ws, rows, ray, n_threads, weight=0.0)
    wrong = float(np.abs(priced.dual_violation).max(initial=0.0))
    return size > 0 and priced.bound > RAY_TOLERANCE and wrong <= RAY_TOLERANCE * priced.bound, priced


def improving_ray(ws: WorkingSet, rows: Rows, direction: Floats) -> Floats | None:
    """Return the scaled direction if the LP improves along it without bound (equation A16), otherwise None."""
    size = float(np.abs(direction).max(initial=0.0))
    if size == 0.0 or not np.isfinite(size):
        return None
    ray = direction / size
    ray[np.abs(ray) < RAY_TOLERANCE] = 0.0
    finite_low, finite_high = np.isfinite(ws.lower), np.isfinite(ws.upper)
    if bool(np.any(finite_low & (ray < 0)) or np.any(finite_high & (ray > 0))):
        return None
    total = np.add.reduceat(ray, ws.start[:-1])
    if bool(np.any(np.isfinite(ws.limit) & (total > RAY_TOLERANCE))):
        return None
    value = np.repeat(ray, np.diff(ws.entry_start)) * ws.coefficient
    change = np.bincount(ws.row, weights=value, minlength=len(rows.lower)) / rows.scale
    blocked = (np.isfinite(rows.upper) & (change > RAY_TOLERANCE)) | (
        np.isfinite(rows.lower) & (change < -RAY_TOLERANCE)
    )
    slope = inner(ws.cost, ray)
    cost_size = float(np.abs(ws.cost).max(initial=0.0))
    return None if blocked.any() or slope >= -RAY_TOLERANCE * max(cost_size, 1e-300) else ray
