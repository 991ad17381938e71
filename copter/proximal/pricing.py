"""One pricing pass: reduced costs of all columns, the dual bound they give, and the columns worth having."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from copter.matrix import BlockMatrix
from copter.proximal.newton import Rows
from copter.proximal.proximal_point import blocks_minimum, rows_value, signed_prices
from copter.proximal.working_set import WorkingSet

Floats = NDArray[np.float64]
Ints = NDArray[np.int32]

SMALL_MODEL = 500_000  # columns below which one thread is faster than several
ROUNDING = 1e-12  # reduced costs closer to the threshold than this (relative) are ties


@dataclass(slots=True)
class Priced:
    """What a pricing pass found at prices y.

    Attributes
    ----------
    y : ndarray (m,)
        The prices, of the right sign for every row.
    bound : float
        Dual value (equation A3) without the reduced costs of the wrong sign on unbounded columns.
    certified : bool
        Whether there are none, so that the bound holds exactly.
    dual_violation : ndarray
        Those reduced costs.
    slot, column : ndarray
        Columns outside the working set that would improve its LP.
    """

    y: Floats
    bound: float
    certified: bool
    dual_violation: Floats
    slot: Ints
    column: Ints


def price_all(
    matrix: BlockMatrix, ws: WorkingSet, rows: Rows, y: Floats, n_threads: int, weight: float = 1.0
) -> Priced:
    """Price every column at y; with weight 0, price the ray y against zero costs."""
    y = signed_prices(y, rows)
    reduced = ws.reduced_costs(y) if weight == 1.0 else ws.reduced_costs(y) - (1.0 - weight) * ws.cost
    threshold = np.zeros(matrix.n_slots)
    if ws.size:
        threshold[ws.slots] = np.minimum(ws.least_of_groups(reduced), 0.0)
    threshold -= ROUNDING * (1.0 + np.abs(threshold))
    threads = 1 if matrix.n_columns < SMALL_MODEL else n_threads
    smallest, slot, column, _ = matrix.price(y, threshold, threads, weight)
    priced = np.isfinite(smallest)
    limit, fixed = matrix.limits()
    # A slab that is priced adds limit * min(0, smallest); one that is fixed, limit * its column's reduced cost.
    term = np.where(fixed[priced], smallest[priced], np.minimum(smallest[priced], 0.0)) * limit[priced]
    resident, violation = resident_minimum(matrix, ws, reduced)
    bound = rows_value(y, rows) + float(term.sum()) + resident
    return Priced(y, bound, not violation.any(), violation, slot, column)


def resident_minimum(matrix: BlockMatrix, ws: WorkingSet, reduced: Floats) -> tuple[float, Floats]:
    """Sum of the minima over resident slabs, and the reduced costs of the wrong sign on their unbounded columns."""
    groups = matrix.resident_mask()[ws.slots] if ws.size else np.zeros(0, dtype=bool)
    if not groups.any():
        return 0.0, np.zeros(0)
    counts = np.diff(ws.start)
    mask = np.repeat(groups, counts)
    cost, lower, upper = reduced[mask], ws.lower[mask], ws.upper[mask]
    limit = ws.limit[groups]
    start = np.concatenate(([0], np.cumsum(counts[groups]))).astype(np.int32)
    return blocks_minimum(cost, lower, upper, start, limit)
