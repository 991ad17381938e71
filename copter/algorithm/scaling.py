"""Equilibration of a general LP, so that rows, columns and costs are of one size (Ruiz, then one pass of norms)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from copter.linear_program import LinearProgram

Floats = NDArray[np.float64]

RUIZ_PASSES = 10


@dataclass(frozen=True, slots=True)
class Scaling:
    """x = column * x_scaled, y = cost * row * y_scaled; A_scaled = row A column, c_scaled = c column / cost."""

    row: Floats
    column: Floats
    cost: float


def powers_of_two(values: Floats) -> Floats:
    """Round to powers of two, so that scaling is exact."""
    return np.asarray(np.exp2(np.round(np.log2(values))))


def equilibrate(lp: LinearProgram, columns: bool = True) -> tuple[Scaling, sp.csc_array]:
    """Scaling factors, all powers of two, and the scaled matrix; columns are left as they are if so wanted.

    A column of tiny coefficients is scaled up, and its bounds and cost go down with it. Where those are what matters,
    scaled rows alone do better.
    """
    magnitude = abs(lp.A)
    row, column = np.ones(lp.shape[0]), np.ones(lp.shape[1])
    for _ in range(RUIZ_PASSES):
        scaled = sp.diags_array(row) @ magnitude @ sp.diags_array(column)
        row_max = np.asarray(scaled.max(axis=1).todense()).ravel() if scaled.nnz else np.zeros(len(row))
        column_max = np.asarray(scaled.max(axis=0).todense()).ravel() if scaled.nnz else np.zeros(len(column))
        row /= np.sqrt(np.where(row_max > 0, row_max, 1.0))
        if columns:
            column /= np.sqrt(np.where(column_max > 0, column_max, 1.0))
    row, column = powers_of_two(row), powers_of_two(column)
    size = float(np.abs(lp.c * column).max(initial=0.0))
    cost = float(powers_of_two(np.array([size]))[0]) if size > 0 else 1.0
    return Scaling(row, column, cost), sp.csc_array(sp.diags_array(row) @ lp.A @ sp.diags_array(column))
