"""HiGHS as the reference: the optimum of a LinearProgram, with rows' duals."""

from __future__ import annotations

import highspy
import numpy as np
from numpy.typing import NDArray

from copter import LinearProgram
from copter.highs.lp import run_highs

Floats = NDArray[np.float64]


def highs_model(lp: LinearProgram) -> highspy.HighsLp:
    """The program as HiGHS takes it."""
    model = highspy.HighsLp()
    model.num_row_, model.num_col_ = lp.shape
    model.col_cost_, model.col_lower_, model.col_upper_ = lp.c, lp.col_lower, lp.col_upper
    model.row_lower_, model.row_upper_ = lp.row_lower, lp.row_upper
    model.sense_ = highspy.ObjSense.kMinimize if lp.sense == "min" else highspy.ObjSense.kMaximize
    model.offset_ = lp.offset
    model.a_matrix_.format_ = highspy.MatrixFormat.kColwise
    model.a_matrix_.start_, model.a_matrix_.index_, model.a_matrix_.value_ = lp.A.indptr, lp.A.indices, lp.A.data
    return model


def highs(lp: LinearProgram, **options: object) -> tuple[highspy.HighsModelStatus, float, Floats, Floats]:
    """(status, objective, x, row duals), with any of HiGHS's options."""
    solver = highspy.Highs()
    solver.silent()
    for name, value in options.items():
        solver.setOptionValue(name, value)
    solver.setOptionValue("threads", 1)
    solver.passModel(highs_model(lp))
    run_highs(solver)
    solution = solver.getSolution()
    return (
        solver.getModelStatus(),
        float(solver.getInfo().objective_function_value),
        np.array(solution.col_value),
        np.array(solution.row_dual),
    )
