"""The standard form of the interior-point method: equations over columns with lower bound zero (equation I1)."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from copter.problem.linear_program import LinearProgram

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class StandardForm:
    """The program min cost't subject to matrix t = right, 0 <= t <= width; columns in `free` have no bounds.

    The columns are those of the LP that are not fixed, then one for every row that is not an equation. Rows without
    bounds are left out.

    Attributes
    ----------
    matrix : csr_array (rows, columns)
    right : ndarray (rows,)
    cost, width : ndarray (columns,)
        Costs, and upper bounds (infinite for columns without one).
    free : ndarray of bool (columns,)
    row : ndarray of int (rows,)
        Number of each equation's row in the LP.
    column : ndarray of int (structural columns,)
        Number in the LP of each of the first columns.
    sign, origin : ndarray (columns,)
        The LP's value is origin + sign * t.
    constant : float
        Difference between the LP's objective, as minimised, and cost't.
    unit : float
        Size of the objective that counts as one in a relative gap.
    transpose : csc_array (columns, rows)
        Transpose of the matrix, which shares its memory.
    """

    matrix: sp.csr_array
    right: Floats
    cost: Floats
    width: Floats
    free: NDArray[np.bool_]
    row: NDArray[np.int64]
    column: NDArray[np.int64]
    sign: Floats
    origin: Floats
    constant: float = 0.0
    unit: float = 1.0
    transpose: sp.csc_array = field(init=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "transpose", self.matrix.T)

    def values(self, lp: LinearProgram, t: Floats) -> Floats:
        """Return x of the LP, (n,)."""
        x = np.where(lp.col_lower == lp.col_upper, lp.col_lower, 0.0)
        x[self.column] = (self.origin + self.sign * t)[: len(self.column)]
        return x

    def prices(self, lp: LinearProgram, y: Floats) -> Floats:
        """Return the row duals of the LP as minimised, (m,)."""
        prices = np.zeros(lp.shape[0])
        prices[self.row] = y[: len(self.row)]
        return prices


def standard_form(lp: LinearProgram, unit: float = 1.0) -> StandardForm:
    """Convert an LP to equations, as a minimisation; `unit` is the size of the objective that counts as one in gaps."""
    row = np.flatnonzero(np.isfinite(lp.row_lower) | np.isfinite(lp.row_upper))
    column = np.flatnonzero(lp.col_lower != lp.col_upper)
    fixed = np.flatnonzero(lp.col_lower == lp.col_upper)
    matrix = sp.csr_array(lp.A)[row]
    right = -(matrix[:, fixed] @ lp.col_lower[fixed])
    equation = lp.row_lower[row] == lp.row_upper[row]
    right = right + np.where(equation, lp.row_lower[row], 0.0)
    loose = np.flatnonzero(~equation)
    slack = sp.csr_array((-np.ones(len(loose)), (loose, np.arange(len(loose)))), shape=(len(row), len(loose)))
    objective = 1.0 if lp.sense == "min" else -1.0
    cost = objective * lp.c
    lower = np.concatenate((lp.col_lower[column], lp.row_lower[row][loose]))
    upper = np.concatenate((lp.col_upper[column], lp.row_upper[row][loose]))
    sign = np.where(np.isneginf(lower) & np.isfinite(upper), -1.0, 1.0)
    origin = np.where(np.isfinite(lower), lower, np.where(np.isfinite(upper), upper, 0.0))
    whole = sp.csr_array(sp.hstack((matrix[:, column], slack), format="csr"))
    right = right - whole @ origin
    return StandardForm(
        matrix=sp.csr_array(whole @ sp.diags_array(sign)),
        right=right,
        cost=np.concatenate((cost[column], np.zeros(len(loose)))) * sign,
        width=np.where(np.isfinite(lower) & np.isfinite(upper), upper - lower, np.inf),
        free=np.isneginf(lower) & np.isposinf(upper),
        row=row,
        column=column,
        sign=sign,
        origin=origin,
        constant=objective * lp.offset
        + float(cost[fixed] @ lp.col_lower[fixed] + cost[column] @ origin[: len(column)]),
        unit=unit,
    )
