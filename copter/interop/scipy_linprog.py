"""Replacements of SciPy's linprog and milp with the same signatures, statuses and marginals, and warm starts by x0."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, NoReturn

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import OptimizeResult, OptimizeWarning
from scipy.optimize import linprog as scipys_linprog
from scipy.optimize import milp as scipys_milp

from copter.interop.live_program import Answer, LiveProgram
from copter.interop.scipy_input import NotTaken, Program, linprog_program, milp_program
from copter.interop.scipy_options import Options, linprog_options, milp_options
from copter.interop.search import searched as search_of
from copter.interop.statuses import WORDS
from copter.methods.integer.solution import IntegerSolution, IntegerStatus
from copter.problem.linear_program import LinearProgram
from copter.problem.solution import Status
from copter.runtime.settings import Internals, Settings

Floats = NDArray[np.float64]

UNIT = float(np.finfo(np.float64).eps)
METHODS = ("highs", "highs-ds", "highs-ipm", "copter")


class LinprogResult(OptimizeResult):  # type: ignore[misc]
    """An OptimizeResult that keeps its program, so that it can be the `x0` of the next call."""

    def remember(self, live: LiveProgram) -> None:
        """Keep the live program with the result, without making it a field of the result."""
        object.__setattr__(self, "_live", live)

    @property
    def live(self) -> LiveProgram | None:
        """Live program of the result; None for a mixed-integer program."""
        return self.__dict__.get("_live")


def linprog(
    c: ArrayLike,
    A_ub: Any = None,
    b_ub: ArrayLike | None = None,
    A_eq: Any = None,
    b_eq: ArrayLike | None = None,
    bounds: Any = (0, None),
    method: str = "highs",
    callback: Callable[..., Any] | None = None,
    options: Mapping[str, Any] | None = None,
    x0: Any = None,
    integrality: Any = None,
) -> LinprogResult:
    """Minimise c'x subject to A_ub x <= b_ub, A_eq x = b_eq and bounds, like :func:`scipy.optimize.linprog`.

    Parameters
    ----------
    c, A_ub, b_ub, A_eq, b_eq, bounds, integrality, options
        As in SciPy. Integrality 2 and 3 (semi-continuous, semi-integer) need finite bounds.
    method : {"highs", "highs-ds", "highs-ipm", "copter"}
        "highs-ipm" uses interior points only; the others choose a method by the program. As in SciPy, "highs-ds" and
        "highs-ipm" ignore `integrality`.
    callback
        Must be None, as for SciPy's HiGHS methods.
    x0 : result of an earlier call, optional
        If the program has the same shape and pattern, or is a shifted time window, the solve starts from that result.
        Any other value is ignored with a warning, as in SciPy.

    Returns
    -------
    LinprogResult
        An OptimizeResult with SciPy's fields; ``crossover_nit`` is 0, because there is no crossover.

    Raises
    ------
    ValueError, TypeError, NotImplementedError
        As SciPy's, in its words.

    Warns
    -----
    OptimizeWarning
        For unknown options and invalid values, which are ignored.
    """
    chosen = str(method).lower()
    if chosen not in METHODS or callback is not None:
        why = ValueError(f"method is {method!r}, must be one of {', '.join(METHODS)}")
        known = "highs" if chosen == "copter" else method
        refused(scipys_linprog, c, A_ub, b_ub, A_eq, b_eq, bounds, known, callback, None, None, None, why=why)
    if x0 is not None and not isinstance(x0, LinprogResult):
        message = "x0 is used only when it is the result of an earlier call, or method is 'revised simplex'. "
        warnings.warn(message, OptimizeWarning, stacklevel=2)
    if integrality is not None and np.any(integrality):
        if chosen not in ("highs", "copter"):
            integrality = None
            message = "Only `method='highs'` supports integer constraints. Ignoring `integrality`."
            warnings.warn(message, OptimizeWarning, stacklevel=2)
    else:
        integrality = None
    choices = linprog_options(options)
    try:
        program = linprog_program(c, A_ub, b_ub, A_eq, b_eq, bounds, integrality)
    except NotTaken as error:
        refused(scipys_linprog, c, A_ub, b_ub, A_eq, b_eq, bounds, "highs", None, None, None, integrality, why=error)
    if program.lp is not None and program.lp.is_mixed_integer:
        return as_linprog(program, searched(program, choices))
    live = x0.live if isinstance(x0, LinprogResult) else None
    settings = replace(choices.settings, method="interior") if chosen == "highs-ipm" else choices.settings
    result = of_answer(program, live or LiveProgram(), settings)
    if choices.disp:
        print(result.message)
    return result


def milp(
    c: ArrayLike,
    *,
    integrality: Any = None,
    bounds: Any = None,
    constraints: Any = None,
    options: Mapping[str, Any] | None = None,
) -> OptimizeResult:
    """Minimise c'x over integer and continuous variables, like :func:`scipy.optimize.milp`.

    Parameters
    ----------
    c, integrality, bounds, constraints, options
        As in SciPy. Without a time limit the search ends when its gap is at most `mip_rel_gap` (1e-4), or with status 1
        when several rounds have brought no improvement.

    Returns
    -------
    OptimizeResult
        With SciPy's fields.

    Raises
    ------
    ValueError
        As SciPy's, in its words.
    """
    choices = milp_options(options)
    try:
        program = milp_program(c, integrality, bounds, constraints)
    except NotTaken as error:
        refused(scipys_milp, c, integrality=integrality, bounds=bounds, constraints=constraints, why=error)
    return searched(program, choices)


def refused(asked: Callable[..., Any], *arguments: Any, why: Exception | None = None, **named: Any) -> NoReturn:
    """Call SciPy with the arguments so that it raises its own error; raises ValueError if SciPy accepts them."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        asked(*arguments, **named)
    reason = (why.__cause__ or why) if why is not None else "these arguments are not taken"
    raise ValueError(f"{reason or 'these arguments are not taken by copter'}")


# Linear programs ------------------------------------------------------------------------------------------------------


def of_answer(program: Program, live: LiveProgram, settings: Settings) -> LinprogResult:
    """Solve the program and convert the answer to SciPy's fields."""
    if program.lp is None:
        return filled(program, None, Status.PRIMAL_INFEASIBLE)
    answer = live.solve(program.lp, settings)
    result = filled(program, answer, answer.status)
    result.remember(live)
    return result


def filled(program: Program, answer: Answer | None, status: Status) -> LinprogResult:
    """Return SciPy's fields of an answer; they are None without a point."""
    _, _, _, code, message = WORDS[status.value]
    none = answer is None or status in (Status.PRIMAL_INFEASIBLE, Status.DUAL_INFEASIBLE)
    result = LinprogResult(
        x=None, slack=None, con=None, fun=None, status=code, success=code == 0, message=message, nit=0, crossover_nit=0
    )
    pieces: dict[str, tuple[Floats | None, Floats | None]] = dict.fromkeys(
        ("ineqlin", "eqlin", "lower", "upper"), (None, None)
    )
    if answer is not None:
        result["nit"] = answer.iterations
    if answer is not None and not none and program.lp is not None:
        lp, x, split = program.lp, answer.x, program.n_ub
        left = lp.row_upper - lp.A @ x
        reduced = without_noise(lp, answer)
        positive = np.maximum(reduced, 0.0)
        result.update(x=x, fun=answer.objective, slack=left[:split], con=left[split:])
        if x.any():  # SciPy's own condition
            result.update(mip_node_count=0, mip_dual_bound=0.0, mip_gap=0.0)
        pieces = {
            "ineqlin": (result["slack"], answer.y[:split]),
            "eqlin": (result["con"], answer.y[split:]),
            "lower": (x - program.lower, positive),
            "upper": (program.upper - x, reduced - positive),
        }
    for name, (residual, marginals) in pieces.items():
        result[name] = OptimizeResult({"residual": residual, "marginals": marginals})
    return result


def without_noise(lp: LinearProgram, answer: Answer) -> Floats:
    """Return reduced costs, with zero in place of values below their own rounding error."""
    terms = np.abs(lp.c) + abs(lp.A).T @ np.abs(answer.y)
    entries = 2 + np.diff(lp.A.indptr)
    return np.where(np.abs(answer.reduced_costs) <= entries * UNIT * terms, 0.0, answer.reduced_costs)


# Mixed-integer programs -----------------------------------------------------------------------------------------------


def searched(program: Program, options: Options) -> OptimizeResult:
    """Search for an integer point and return milp's fields."""
    if program.lp is None:
        return found(program, None, Status.PRIMAL_INFEASIBLE)
    if not program.lp.is_mixed_integer:
        answer = LiveProgram().solve(program.lp, options.settings)
        return found(program, answer if answer.status is Status.OPTIMAL else None, answer.status)
    settings = Settings(internals=Internals(presolve=options.settings.internals.presolve))
    solution = search_of(program.lp, options.time_limit_s, settings, gap=options.gap, max_nodes=options.max_nodes)
    return found(program, solution, integer_status(solution, options))


def integer_status(solution: IntegerSolution, options: Options) -> Status:
    """Return the linear program's status that corresponds to the end of a search."""
    if solution.status is IntegerStatus.PRIMAL_INFEASIBLE:
        return Status.PRIMAL_INFEASIBLE
    if solution.status is IntegerStatus.DUAL_INFEASIBLE:
        return Status.DUAL_INFEASIBLE
    if solution.x is not None and (solution.status is IntegerStatus.OPTIMAL or scipys_gap(solution) <= options.gap):
        return Status.OPTIMAL
    if options.time_limit_s is not None and solution.solve_time_s >= 0.9 * options.time_limit_s:
        return Status.TIME_LIMIT
    none = solution.x is None and options.max_nodes is None
    return Status.NUMERICAL_ERROR if none else Status.ITERATION_LIMIT


def scipys_gap(solution: IntegerSolution) -> float:
    """Return |objective - bound| / |objective|, HiGHS's definition of the gap."""
    away = abs(solution.objective - solution.bound)
    return away / abs(solution.objective) if solution.objective else (0.0 if away == 0.0 else np.inf)


def found(program: Program, solution: IntegerSolution | Answer | None, status: Status) -> OptimizeResult:
    """Return milp's fields; they are None without a point."""
    _, _, _, code, message = WORDS[status.value]
    result = OptimizeResult(status=code, message=message, success=code == 0)
    fields = dict.fromkeys(("x", "fun", "mip_node_count", "mip_dual_bound", "mip_gap"))
    x = None if solution is None else solution.x
    if solution is not None and x is not None and code in (0, 1):
        objective = float(solution.objective)
        bound = float(solution.bound) if isinstance(solution, IntegerSolution) else objective
        if code == 0 and bound > objective:  # the objective is rounded
            bound = objective
        gap = (objective - bound) / objective if objective else 0.0
        fields = {
            "x": x,
            "fun": objective,
            "mip_node_count": getattr(solution, "relaxations", 0),
            "mip_dual_bound": bound,
            "mip_gap": abs(gap),
        }
    result.update(fields)
    return result


def as_linprog(program: Program, found: OptimizeResult) -> LinprogResult:
    """Return milp's answer in linprog's fields, without marginals."""
    result = filled(program, None, Status.OPTIMAL)
    result.update(found)
    if found.x is not None and program.lp is not None:
        lp, x, split = program.lp, found.x, program.n_ub
        left = lp.row_upper - lp.A @ x
        result.update(slack=left[:split], con=left[split:], nit=0)
        for name, residual in (("ineqlin", result.slack), ("eqlin", result.con)):
            result[name]["residual"] = residual
            result[name]["marginals"] = np.zeros(len(residual))
        for name, residual in (("lower", x - program.lower), ("upper", program.upper - x)):
            result[name]["residual"], result[name]["marginals"] = residual, np.zeros(len(x))
    else:
        result.update(nit=0)
    return result


__all__: Sequence[str] = ("LinprogResult", "linprog", "milp")
