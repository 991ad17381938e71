"""Certification of a solution by the simplex method of HiGHS, which ends at an optimal basis (M10)."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from copter.highs.lp import highs_lp, require_highspy, silent_highs
from copter.problem.linear_program import LinearProgram, require_program
from copter.problem.solution import Solution, Status
from copter.runtime.errors import CopterError, DimensionError, InvalidDataError

Floats = NDArray[np.float64]

AT_BOUND = 1e-6  # a value this close to a bound, in units of 1 + |bound|, is at it


@dataclass(frozen=True, slots=True)
class Certificate:
    """An optimal basis that HiGHS found from a solution.

    Attributes
    ----------
    optimal : bool
        Whether HiGHS ended at an optimal basis.
    status : str
        HiGHS's own model status.
    x, y : ndarray (n,), (m,)
        The basis's vertex and prices, in the signs of copter.
    objective : float
        Objective with the offset.
    col_basic, row_basic : ndarray of bool
        Which columns and rows are basic, together as many as there are rows.
    iterations : int
        Simplex iterations that it took.
    seconds : float
    """

    optimal: bool
    status: str
    x: Floats
    y: Floats
    objective: float
    col_basic: NDArray[np.bool_]
    row_basic: NDArray[np.bool_]
    iterations: int
    seconds: float


def certify_with_highs(lp: LinearProgram, solution: Solution, time_limit_s: float | None = None) -> Certificate:
    """Run HiGHS's simplex method from a solution until it has an optimal basis.

    The simplex starts from a basis of the columns and rows that are strictly between their bounds. HiGHS's own
    crossover is not used: on programs with dependent rows HiGHS 1.15.1 sometimes writes outside its memory, and it was
    no faster.

    Parameters
    ----------
    lp : LinearProgram
        Integrality is ignored.
    solution : Solution
        A solution of `lp`; its status need not be OPTIMAL.
    time_limit_s : float, optional

    Returns
    -------
    Certificate

    Raises
    ------
    DimensionError
        If the solution is of another program.
    CopterError
        If highspy is not installed, or the solution has no point (infeasible or unbounded).
    """
    highspy = require_highspy("certify_with_highs")
    require_program(lp)
    if not isinstance(solution, Solution):
        raise InvalidDataError(f"solution is a {type(solution).__name__}, must be a Solution: copter.solve(lp)")
    if solution.status in (Status.PRIMAL_INFEASIBLE, Status.DUAL_INFEASIBLE):
        raise CopterError(f"a solution that is {solution.status.value} has no basis: its certificate is Solution.ray")
    x = solution.x
    if (len(solution.y), len(x)) != lp.shape:
        raise DimensionError(f"the solution is of a program of {len(solution.y)} x {len(x)}, this one is {lp.shape}")
    started = time.perf_counter()
    solver = loaded(highspy, lp, time_limit_s)
    solver.setBasis(basis_of(highspy, lp, x, lp.A @ x))
    # start from the basis, then from where that run ended, then from nothing
    for again in (solver.run, solver.run, solver.clearSolver):
        again()
        if solver.getModelStatus() == highspy.HighsModelStatus.kOptimal:
            break
    else:
        solver.run()
    return certificate_of(highspy, solver, time.perf_counter() - started)


def loaded(highspy: Any, lp: LinearProgram, time_limit_s: float | None) -> Any:
    """Return a HiGHS object with the program loaded."""
    solver = silent_highs()
    if time_limit_s is not None:
        solver.setOptionValue("time_limit", float(time_limit_s))
    solver.passModel(highs_lp(lp))
    return solver


def basis_of(highspy: Any, lp: LinearProgram, x: Floats, activity: Floats) -> Any:
    """Return the basis of the columns and rows strictly between their bounds; HiGHS repairs it if it is singular."""
    basis = highspy.HighsBasis()
    basis.col_status = [getattr(highspy.HighsBasisStatus, name) for name in places(x, lp.col_lower, lp.col_upper)]
    basis.row_status = [
        getattr(highspy.HighsBasisStatus, name) for name in places(activity, lp.row_lower, lp.row_upper)
    ]
    basis.valid = basis.alien = True
    return basis


def places(value: Floats, lower: Floats, upper: Floats) -> list[str]:
    """Return each variable's place: at a lower bound, at an upper bound, or basic."""
    with np.errstate(invalid="ignore"):
        low = value - lower <= AT_BOUND * (1.0 + np.abs(lower))
        high = upper - value <= AT_BOUND * (1.0 + np.abs(upper))
    low &= np.isfinite(lower)
    high &= np.isfinite(upper)
    return [str(place) for place in np.where(low, "kLower", np.where(high, "kUpper", "kBasic"))]


def certificate_of(highspy: Any, solver: Any, seconds: float) -> Certificate:
    """Return the certificate of HiGHS's last solve."""
    status, info, point, basis = solver.getModelStatus(), solver.getInfo(), solver.getSolution(), solver.getBasis()
    basic = highspy.HighsBasisStatus.kBasic
    return Certificate(
        optimal=status == highspy.HighsModelStatus.kOptimal and bool(basis.valid),
        status=solver.modelStatusToString(status),
        x=np.array(point.col_value),
        y=np.array(point.row_dual),
        objective=float(info.objective_function_value),
        col_basic=np.array([place == basic for place in basis.col_status], dtype=np.bool_),
        row_basic=np.array([place == basic for place in basis.row_status], dtype=np.bool_),
        iterations=max(int(info.simplex_iteration_count), 0),
        seconds=seconds,
    )
