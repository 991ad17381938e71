"""What linopy, CVXPY, Pyomo and SciPy call each status of ours: one row a status, read by all four."""

from __future__ import annotations

from typing import NamedTuple

from copter.methods.integer.solution import IntegerStatus
from copter.problem.solution import Status


class Words(NamedTuple):
    """Names of a status elsewhere.

    Attributes
    ----------
    linopy, pyomo : str
        Member of each library's own ``TerminationCondition``.
    cvxpy : str
        Constant of ``cvxpy.settings``.
    code, message : int, str
        ``status`` and ``message`` of SciPy's result, with HiGHS's name and number, which users of SciPy match on.
        The statuses of an integer search alone have no message: SciPy has no word for them.
    """

    linopy: str
    cvxpy: str
    pyomo: str
    code: int
    message: str = ""


# By the status's value, because an integer search shares three of its statuses with a solve.
WORDS: dict[str, Words] = {
    Status.OPTIMAL.value: Words(
        "optimal", "OPTIMAL", "convergenceCriteriaSatisfied",
        0, "Optimization terminated successfully. (HiGHS Status 7: Optimal)",
    ),
    Status.PRIMAL_INFEASIBLE.value: Words(
        "infeasible", "INFEASIBLE", "provenInfeasible", 2, "The problem is infeasible. (HiGHS Status 8: Infeasible)"
    ),
    Status.DUAL_INFEASIBLE.value: Words(
        "unbounded", "UNBOUNDED", "unbounded", 3, "The problem is unbounded. (HiGHS Status 10: Unbounded)"
    ),
    Status.ITERATION_LIMIT.value: Words(
        "iteration_limit", "USER_LIMIT", "iterationLimit",
        1, "Iteration limit reached. (HiGHS Status 14: Iteration limit reached)",
    ),
    Status.TIME_LIMIT.value: Words(
        "time_limit", "USER_LIMIT", "maxTimeLimit", 1, "Time limit reached. (HiGHS Status 13: Time limit reached)"
    ),
    Status.INTERRUPTED.value: Words(
        "user_interrupt", "USER_LIMIT", "interrupted", 4, "Interrupted. (copter: interrupted)"
    ),
    Status.NUMERICAL_ERROR.value: Words(
        "internal_solver_error", "SOLVER_ERROR", "error", 4, "Numerical difficulties. (copter: numerical error)"
    ),
    IntegerStatus.FEASIBLE.value: Words("terminated_by_limit", "USER_LIMIT", "maxTimeLimit", 1),
    IntegerStatus.NONE_FOUND.value: Words("unknown", "SOLVER_ERROR", "unknown", 4),
}  # fmt: skip
