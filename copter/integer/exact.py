"""The exact shim: the mixed-integer program handed to HiGHS."""

from __future__ import annotations

from typing import Any

import numpy as np

from copter.errors import CopterError
from copter.integer.clock import Clock
from copter.integer.solution import IntegerSolution, IntegerStatus
from copter.interop.highs_lp import highs_lp, require_highspy
from copter.problem.linear_program import LinearProgram
from copter.settings import Settings


def solve_exactly(lp: LinearProgram, settings: Settings, clock: Clock) -> IntegerSolution:
    """HiGHS's answer by branch and bound, within the deadline.

    Raises
    ------
    CopterError
        If highspy is not installed, or HiGHS refuses the program.
    """
    highspy = require_highspy("shim='exact'")
    solver = highspy.Highs()
    solver.silent()
    solver.setOptionValue("threads", settings.threads)
    limit = min(clock.left_s, settings.time_limit_s)
    if np.isfinite(limit):
        solver.setOptionValue("time_limit", float(limit))
    if solver.passModel(highs_lp(lp, integer=True)) == highspy.HighsStatus.kError:
        raise CopterError("HiGHS does not take this program: look for coefficients beyond 1e15")
    solver.run()
    return answer_of(highspy, solver, lp, clock)


def answer_of(highspy: Any, solver: Any, lp: LinearProgram, clock: Clock) -> IntegerSolution:
    """What HiGHS found, with integer columns rounded to whole numbers."""
    status, info = solver.getModelStatus(), solver.getInfo()
    known = highspy.HighsModelStatus
    sign = 1.0 if lp.sense == "min" else -1.0
    x, objective, bound = None, float("nan"), -sign * np.inf
    if status in (known.kInfeasible, known.kUnboundedOrInfeasible):
        outcome, bound = IntegerStatus.PRIMAL_INFEASIBLE, sign * np.inf
    else:
        has_point = info.primal_solution_status == highspy.SolutionStatus.kSolutionStatusFeasible
        outcome = IntegerStatus.NONE_FOUND
        if has_point:
            x = np.array(solver.getSolution().col_value)
            x[lp.integrality] = np.round(x[lp.integrality])
            x = np.clip(x, lp.col_lower, lp.col_upper)
            objective = float(lp.c @ x) + lp.offset
            outcome = IntegerStatus.OPTIMAL if status == known.kOptimal else IntegerStatus.FEASIBLE
        if lp.integrality.any():
            bound = float(info.mip_dual_bound)
        elif status == known.kOptimal:
            bound = objective
    return IntegerSolution(
        status=outcome,
        x=x,
        objective=objective,
        bound=bound,
        bound_is_certified=False,
        bound_by="HiGHS" if np.isfinite(bound) or outcome is IntegerStatus.PRIMAL_INFEASIBLE else "",
        found_by="HiGHS" if x is not None else "",
        relaxation=None,
        relaxations=0,
        solve_time_s=clock.elapsed_s,
    )
