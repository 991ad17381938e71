"""Equilibration of an LP: rows, columns and costs are scaled to similar size (Ruiz, then one pass of norms)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from copter.problem.linear_program import LinearProgram

Floats = NDArray[np.float64]

RUIZ_PASSES = 10  # passes of Ruiz scaling


@dataclass(frozen=True, slots=True)
class Scaling:
    """Scaling factors: x = column * x_scaled, y = cost * row * y_scaled; A_scaled = row A column, c_scaled = c column /
    cost.
    """

    row: Floats
    column: Floats
    cost: float


def powers_of_two(values: Floats) -> Floats:
    """Round to powers of two, which makes scaling exact."""
    return np.asarray(np.exp2(np.round(np.log2(values))))


def equilibrate(lp: LinearProgram, columns: bool = True) -> tuple[Scaling, sp.csc_array]:
    """Return scaling factors, all powers of two, and the scaled matrix; `columns` says whether to scale columns too.

    Scaling up a column of tiny coefficients scales its bounds and its cost down. Where bounds and cost matter more,
    scale rows only.
    """
    row, column = np.ones(lp.shape[0]), np.ones(lp.shape[1])
    row_of, column_of = lp.A.indices, np.repeat(np.arange(lp.shape[1], dtype=np.int32), np.diff(lp.A.indptr))
    magnitude = np.abs(lp.A.data)
    for _ in range(RUIZ_PASSES):
        row_max, column_max = np.zeros(len(row)), np.zeros(len(column))
        scaled = magnitude * row[row_of] * column[column_of]
        np.maximum.at(row_max, row_of, scaled)
        np.maximum.at(column_max, column_of, scaled)
        row /= np.sqrt(np.where(row_max > 0, row_max, 1.0))
        if columns:
            column /= np.sqrt(np.where(column_max > 0, column_max, 1.0))
    row, column = powers_of_two(row), powers_of_two(column)
    size = float(np.abs(lp.c * column).max(initial=0.0))
    cost = float(powers_of_two(np.array([size]))[0]) if size > 0 else 1.0
    matrix = sp.csc_array((lp.A.data * row[row_of] * column[column_of], row_of, lp.A.indptr), lp.shape, copy=True)
    return Scaling(row, column, cost), matrix
