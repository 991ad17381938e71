"""Residuals of the current point, recomputed from its columns (equations F8-F11)."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from copter.methods.proximal.accumulate import primal_sums
from copter.methods.proximal.newton import Rows
from copter.methods.proximal.pricing import Priced
from copter.methods.proximal.working_set import WorkingSet
from copter.problem.residuals import Residuals, relative_gap
from copter.problem.sums import norm


class PrimalSide(NamedTuple):
    """Objective (as minimised), relative violation and largest violation of a point."""

    objective: float
    relative: float
    largest: float
    cost_norm: float


def primal_side(ws: WorkingSet, rows: Rows) -> PrimalSide:
    """Compute objective and violations of ws.x, including bounds and limits, which hold by projection.

    Violations are relative to the norm of the rows' larger finite bounds.
    """
    return PrimalSide(*primal_sums(ws.groups(), ws.x, rows.lower, rows.upper))


def residuals_of(side: PrimalSide, priced: Priced, offset: float = 0.0) -> Residuals:
    """Return the residuals of a point, given a pricing pass; `offset` is the objective's constant."""
    wrong = priced.dual_violation
    size, largest = (norm(wrong), float(np.abs(wrong).max())) if len(wrong) else (0.0, 0.0)
    return Residuals(
        primal=side.relative,
        dual=size / (1.0 + side.cost_norm),
        gap=relative_gap(side.objective + offset, priced.bound + offset),
        primal_absolute=side.largest,
        dual_absolute=largest,
        gap_absolute=abs(side.objective - priced.bound),
    )
