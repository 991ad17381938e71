"""Transfer of a program, its solution and its basis from and to a HiGHS object."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from copter.highs.certify import Certificate, basis_of
from copter.highs.lp import highs_lp, require_highspy, silent_highs
from copter.problem.linear_program import LinearProgram
from copter.problem.solution import Solution
from copter.runtime.errors import DimensionError, InvalidDataError

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class HighsState:
    """The program, solution and basis of a HiGHS object.

    Attributes
    ----------
    lp : LinearProgram
    x, y : ndarray (n,), (m,) or None
        The object's solution, in copter's signs; None if it has none.
    col_status, row_status : tuple of str or None
        The object's basis in HiGHS's terms ("kBasic", "kLower", ...); None if it has none.
    """

    lp: LinearProgram
    x: Floats | None
    y: Floats | None
    col_status: tuple[str, ...] | None
    row_status: tuple[str, ...] | None


def from_highs(highs: Any) -> HighsState:
    """Read the program, the solution and the basis out of a ``highspy.Highs``; it is not changed.

    Raises
    ------
    InvalidDataError
        For a quadratic objective, semi-continuous columns below zero or without an upper bound, or data that no linear
        program can have.
    CopterError
        If highspy is not installed.
    """
    highspy = require_highspy("from_highs")
    if not isinstance(highs, highspy.Highs):
        raise InvalidDataError(f"highs is a {type(highs).__name__}, must be a highspy.Highs")
    found, model = highs.getLp(), highs.getModel()
    if getattr(model.hessian_, "dim_", 0):
        raise InvalidDataError("the model has a quadratic objective, which cannot be part of a linear program")
    kinds = list(found.integrality_)
    kind = highspy.HighsVarType
    lower, upper = np.array(found.col_lower_), np.array(found.col_upper_)
    some = np.array([each in (kind.kSemiContinuous, kind.kSemiInteger) for each in kinds] or np.zeros(len(lower), bool))
    if (some & ((lower < 0.0) | np.isinf(upper))).any():
        raise InvalidDataError("the model has semi-continuous columns below zero or without an upper bound")
    lp = LinearProgram(
        np.array(found.col_cost_),
        matrix_of(highspy, found),
        np.array(found.row_lower_),
        np.array(found.row_upper_),
        np.where(some, 0.0, lower),
        upper,
        [each in (kind.kInteger, kind.kSemiInteger) for each in kinds] if kinds else None,
        "max" if found.sense_ == highspy.ObjSense.kMaximize else "min",
        found.offset_,
        names_of(found.row_names_),
        names_of(found.col_names_),
        found.model_name_,
        semicontinuous=np.where(some, lower, 0.0),
    )
    point, basis = highs.getSolution(), highs.getBasis()
    return HighsState(
        lp,
        np.array(point.col_value) if point.value_valid else None,
        np.array(point.row_dual) if point.dual_valid else None,
        tuple(status.name for status in basis.col_status) if basis.valid else None,
        tuple(status.name for status in basis.row_status) if basis.valid else None,
    )


def to_highs(lp: LinearProgram, start: Solution | Certificate | HighsState | None = None) -> Any:
    """Return a silent ``highspy.Highs`` with the program and, if `start` is given, a solution and basis to start from.

    Parameters
    ----------
    lp : LinearProgram
        The program, with its integrality and names.
    start : Solution, Certificate or HighsState, optional
        Start for this program. From a Solution, the columns and rows strictly between their bounds become the basis,
        which HiGHS repairs if needed.

    Raises
    ------
    InvalidDataError, DimensionError
    CopterError
        If highspy is not installed.
    """
    highspy = require_highspy("to_highs")
    if not isinstance(lp, LinearProgram):
        raise InvalidDataError(f"lp is a {type(lp).__name__}, must be a LinearProgram")
    highs = silent_highs("to_highs")
    data = highs_lp(lp, integer=True)
    data.model_name_ = lp.name
    if lp.row_names:
        data.row_names_ = list(lp.row_names)
    if lp.col_names:
        data.col_names_ = list(lp.col_names)
    if highs.passModel(data) == highspy.HighsStatus.kError:
        raise InvalidDataError("HiGHS does not take this program: it may have numbers beyond its range")
    if start is not None:
        set_start(highspy, highs, lp, start)
    return highs


def set_start(highspy: Any, highs: Any, lp: LinearProgram, start: Solution | Certificate | HighsState) -> None:
    """Give HiGHS a point and a basis; the basis uses HiGHS's own statuses if they are known."""
    x, y = start.x, start.y
    if x is None:
        raise InvalidDataError("the start has no point")
    if len(x) != lp.shape[1] or (y is not None and len(y) != lp.shape[0]):
        raise DimensionError(f"the start is of a program with {len(x)} columns, this one is {lp.shape}")
    point = highspy.HighsSolution()
    point.col_value, point.row_value = x.tolist(), (lp.A @ x).tolist()
    point.value_valid = True
    if y is not None:
        point.col_dual, point.row_dual, point.dual_valid = (lp.c - lp.A.T @ y).tolist(), y.tolist(), True
    highs.setSolution(point)
    if lp.is_mixed_integer:
        return
    basis = basis_of(highspy, lp, x, lp.A @ x)
    if isinstance(start, HighsState):
        if start.col_status is None or start.row_status is None:
            return
        words = highspy.HighsBasisStatus
        basis.col_status = [getattr(words, name) for name in start.col_status]
        basis.row_status = [getattr(words, name) for name in start.row_status]
        basis.alien = False
    highs.setBasis(basis)


def matrix_of(highspy: Any, found: Any) -> Any:
    """Convert HiGHS's matrix, stored by column or by row, to a sparse array."""
    shape = (found.num_row_, found.num_col_)
    parts = found.a_matrix_
    arrays = (np.array(parts.value_), np.array(parts.index_, dtype=np.int64), np.array(parts.start_, dtype=np.int64))
    if len(arrays[2]) == 0:
        return sp.csc_array(shape)
    if parts.format_ == highspy.MatrixFormat.kColwise:
        return sp.csc_array(arrays, shape=shape)
    return sp.csr_array(arrays, shape=shape)


def names_of(names: Any) -> list[str] | None:
    """Return the names if all are present and different, otherwise None."""
    found = list(names)
    return found if found and all(found) and len(set(found)) == len(found) else None
