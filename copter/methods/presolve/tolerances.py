"""Every tolerance of the presolve, in one place."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Tolerances:
    """Tolerances for equality, safe pivots and contradictions.

    Parameters
    ----------
    rounding : float
        A difference of up to this times max(1, |bound|) counts as rounding: a row this close is forcing or redundant, a
        bound this close is implied.
    infeasible : float
        A contradiction proves infeasibility if it exceeds this plus `ray` times |bound|. Smaller ones beyond rounding
        are left to the solver.
    cancellation : float
        A difference of at most this times its terms is set to zero; columns with bounds this close are fixed.
    sum_error : float
        Error of a sum of floating-point terms, relative to the sum of their sizes.
    parallel : float
        Largest relative difference between the entries of rows (columns) that count as parallel.
    pivot : float
        Smallest coefficient that may be divided by, relative to the largest of its row.
    singleton_pivot : float
        `pivot` for rows of one entry, relative to the largest coefficient of the column.
    dual_margin : float
        A reduced cost has a sure sign when it exceeds this times the sum of its terms' sizes.
    ray : float
        Largest violation of a ray whose largest entry is one.
    max_passes : int
        Passes over all reductions.
    least_progress : float
        Passes end when one removes a smaller share of rows and columns than this; then parallel ones are searched.
    least_found : float
        If the search for parallel rows and columns removes at least this share, light passes start again.
    """

    rounding: float = 1e-12
    infeasible: float = 1e-7
    cancellation: float = 1e-13
    sum_error: float = 1e-15
    parallel: float = 1e-14
    pivot: float = 1e-2
    singleton_pivot: float = 1e-9
    dual_margin: float = 1e-9
    ray: float = 1e-9
    max_passes: int = 40
    least_progress: float = 1e-3
    least_found: float = 1e-2


def margin(tolerance: float, bound: Floats) -> Floats:
    """Return a tolerance at each bound: times max(1, |bound|), or times one for infinite bounds."""
    return tolerance * np.maximum(1.0, np.abs(np.where(np.isfinite(bound), bound, 0.0)))


def contradiction(tolerances: Tolerances, bound: Floats) -> Floats:
    """Return how far each bound must be missed to prove infeasibility."""
    return tolerances.infeasible + tolerances.ray * np.where(np.isfinite(bound), np.abs(bound), 0.0)
