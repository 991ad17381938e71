"""Residuals of the current point, recomputed from its columns (equations F8-F11)."""

from __future__ import annotations

from dataclasses import dataclass
from math import hypot, sqrt

import numpy as np

from copter.methods.proximal.accumulate import point_sums
from copter.methods.proximal.newton import Rows
from copter.methods.proximal.pricing import Priced
from copter.methods.proximal.working_set import WorkingSet
from copter.problem.residuals import Residuals, relative_gap
from copter.problem.sums import norm


def norm_of_bounds(rows: Rows) -> float:
    """Return ||b||, with the larger finite bound of every row."""
    low = np.where(np.isfinite(rows.lower), np.abs(rows.lower), 0.0)
    high = np.where(np.isfinite(rows.upper), np.abs(rows.upper), 0.0)
    return norm(np.maximum(low, high))


@dataclass(frozen=True, slots=True)
class PrimalSide:
    """Objective (as minimised), relative violation and largest violation of a point."""

    objective: float
    relative: float
    largest: float
    cost_norm: float


def primal_side(ws: WorkingSet, rows: Rows) -> PrimalSide:
    """Compute objective and violations of ws.x, including bounds and limits, which hold by projection."""
    activity = np.empty(len(rows.lower))
    objective, costs, squares, largest = point_sums(ws.groups(), ws.x, activity)
    over = np.maximum(np.maximum(activity - rows.upper, rows.lower - activity), 0.0)
    return PrimalSide(
        objective=objective,
        relative=hypot(norm(over), sqrt(squares)) / (1.0 + norm_of_bounds(rows)),
        largest=max(float(over.max(initial=0.0)), largest),
        cost_norm=sqrt(costs),
    )


def residuals_of(side: PrimalSide, priced: Priced, offset: float = 0.0) -> Residuals:
    """Return the residuals of a point, given a pricing pass; `offset` is the objective's constant."""
    wrong = priced.dual_violation
    return Residuals(
        primal=side.relative,
        dual=norm(wrong) / (1.0 + side.cost_norm),
        gap=relative_gap(side.objective + offset, priced.bound + offset),
        primal_absolute=side.largest,
        dual_absolute=float(np.abs(wrong).max(initial=0.0)),
        gap_absolute=abs(side.objective - priced.bound),
    )
