"""Pricing passes: reduced costs of all columns, their dual bound, and the columns that would improve the working
set.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import isfinite

import numpy as np
from numpy.typing import NDArray

from copter.methods.proximal.accumulate import least_columns
from copter.methods.proximal.newton import Rows
from copter.methods.proximal.proximal_point import blocks_minimum
from copter.methods.proximal.row_sums import dual_terms, signed
from copter.methods.proximal.working_set import WorkingSet
from copter.model.matrix import BlockMatrix

Floats = NDArray[np.float64]
Ints = NDArray[np.int32]

SMALL_MODEL = 500_000  # columns to price below which one thread is faster than several
HALF_ULP = 2.0**-53  # largest relative error of one rounded operation in float64
SAFE = 1.01  # factor on the rounding margin that covers the rounding of the margin itself
NONE: Floats = np.zeros(0)
ROUNDING = 1e-12  # reduced costs within this relative distance of the threshold count as equal to it


@dataclass(slots=True)
class Priced:
    """Result of a pricing pass at prices y.

    Attributes
    ----------
    y : ndarray (m,)
        The prices, of the right sign for every row.
    bound : float
        Dual value (equation A3) without the reduced costs of the wrong sign on unbounded columns.
    certified : bool
        Whether there are no such reduced costs, even in exact arithmetic, so that `bound - margin` is a proven bound.
    margin : float
        Largest rounding error of the bound.
    dual_violation : ndarray
        The reduced costs left out of the bound.
    slot, column : ndarray
        Columns outside the working set that would improve its LP.
    """

    y: Floats
    bound: float
    certified: bool
    margin: float
    dual_violation: Floats
    slot: Ints
    column: Ints


def price_all(
    matrix: BlockMatrix,
    ws: WorkingSet,
    rows: Rows,
    y: Floats,
    n_threads: int,
    weight: float = 1.0,
    seconds: float = np.inf,
    screen: bool = False,
) -> Priced:
    """Price every column at y; with weight 0, price the ray y with zero costs; `screen` as in the matrix's pass.

    A pass that reaches the limit of `seconds` before all columns are priced has a bound of minus infinity.
    """
    y = signed(y, rows.lower, rows.upper)
    columns = ws.groups() if weight == 1.0 else ws.groups_of(weight * ws.cost)
    least, best, threshold = np.empty(matrix.n_slots), np.empty(matrix.n_slots, np.int32), np.empty(matrix.n_slots)
    least_columns(columns, ws.slots, ws.key, y, ROUNDING, least, best, threshold)
    threads = 1 if matrix.work_of_pass(screen) < SMALL_MODEL else n_threads
    smallest, slot, column, _ = matrix.price(y, threshold, threads, weight, seconds, screen, least, best)
    value, size, error, terms = matrix.dual_value(smallest)
    if np.isnan(value):
        return Priced(y, -np.inf, False, np.inf, NONE, slot, column)
    own, own_size = dual_terms(y, rows.lower, rows.upper)
    bound, size, violation = own + value, size + own_size, NONE
    answered, resident_size, resident_error = True, 0.0, 0.0
    some_resident = terms < matrix.n_slots - len(matrix.free_slots)
    if some_resident:
        reduced = ws.reduced_costs(y) if weight == 1.0 else ws.reduced_costs(y) - (1.0 - weight) * ws.cost
        resident, violation = resident_minimum(matrix, ws, reduced)
        bound += resident
    if weight != 1.0:
        return Priced(y, bound, False, np.inf, violation, slot, column)
    if some_resident:
        answered, resident_size, resident_error = resident_errors(matrix, ws, rows, y, reduced)
    margin = SAFE * (error + resident_error + HALF_ULP * (terms + len(y) + ws.size + 16) * (size + resident_size))
    certified = not (len(violation) and violation.any()) and answered and isfinite(margin)
    return Priced(y, bound, certified, margin, violation, slot, column)


def resident_errors(
    matrix: BlockMatrix, ws: WorkingSet, rows: Rows, y: Floats, reduced: Floats
) -> tuple[bool, float, float]:
    """Return rounding error bounds for the minima over resident slabs.

    Returns
    -------
    answered : bool
        Whether every exact reduced cost surely has a sign for which the column has a finite bound or limit.
    size : float
        Sum of the sizes of the terms.
    error : float
        Largest effect of the reduced costs' errors within the bounds.
    """
    groups = matrix.resident_mask()[ws.slots] if ws.size else np.zeros(0, dtype=bool)
    if not groups.any():
        return True, 0.0, 0.0
    counts = np.diff(ws.start)
    mask, entries = np.repeat(groups, counts), np.diff(ws.entry_start)
    owner = np.repeat(np.arange(ws.size), entries)
    used = np.bincount(owner, weights=np.abs(ws.coefficient * y[ws.row]), minlength=ws.size)
    offset = np.repeat(matrix.offsets()[ws.slots], counts)
    error = (8.0 * HALF_ULP * ((entries + 4) * used + np.abs(ws.cost) + 2.0 * offset))[mask]
    cost, lower, upper = reduced[mask], ws.lower[mask], ws.upper[mask]
    limit = np.repeat(ws.limit, counts)[mask]
    free_above = np.isposinf(upper) & ~np.isfinite(limit)
    wrong = ((cost + error > 0.0) & np.isneginf(lower)) | ((cost - error < 0.0) & free_above)
    # A group's sum is at most its limit, so a column is at most the limit less the other columns' lower bounds.
    below = np.bincount(
        np.repeat(np.arange(len(counts)), counts), weights=np.maximum(-ws.lower, 0.0), minlength=len(counts)
    )
    reach = np.minimum(np.abs(upper), np.abs(limit) + np.repeat(below, counts)[mask])
    low = np.where(np.isfinite(lower), np.abs(lower), 0.0)
    # A column without an upper bound has a positive reduced cost, so its minimum is at the lower bound.
    largest = np.maximum(low, np.where(np.isfinite(reach), reach, 0.0))
    size, most = float((np.abs(cost) * largest).sum()), float((error * largest).sum())
    return not bool(wrong.any()), size, most


def resident_minimum(matrix: BlockMatrix, ws: WorkingSet, reduced: Floats) -> tuple[float, Floats]:
    """Return the sum of the minima over resident slabs, and wrong-signed reduced costs on their unbounded columns."""
    groups = matrix.resident_mask()[ws.slots] if ws.size else np.zeros(0, dtype=bool)
    if not groups.any():
        return 0.0, np.zeros(0)
    counts = np.diff(ws.start)
    mask = np.repeat(groups, counts)
    cost, lower, upper = reduced[mask], ws.lower[mask], ws.upper[mask]
    limit = ws.limit[groups]
    start = np.concatenate(([0], np.cumsum(counts[groups]))).astype(np.int32)
    return blocks_minimum(cost, lower, upper, start, limit)
