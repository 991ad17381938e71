"""A PuLP solver: ``problem.solve(Copter())``, and a problem that is edited and solved again keeps its session.

PuLP writes no file for it: the program is read from the problem's variables and constraints.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pulp
import scipy.sparse as sp
from pulp.apis import core

from copter.interop.live_program import LivePrograms
from copter.methods.integer.solve import solve_integer
from copter.problem.linear_program import LinearProgram
from copter.runtime.errors import CopterError
from copter.runtime.settings import Settings

SETTINGS = Settings.names()
STATUS = {
    "optimal": ("LpStatusOptimal", "LpSolutionOptimal"),
    "feasible": ("LpStatusOptimal", "LpSolutionIntegerFeasible"),
    "primal_infeasible": ("LpStatusInfeasible", "LpSolutionInfeasible"),
    "dual_infeasible": ("LpStatusUnbounded", "LpSolutionUnbounded"),
}
"""The names of PuLP's status and status of the solution, before PuLP 4; all others are "not solved"."""
STATUS_4 = {
    "optimal": "Optimal",
    "feasible": "TimeLimit",
    "primal_infeasible": "Infeasible",
    "dual_infeasible": "Unbounded",
    "time_limit": "TimeLimit",
    "iteration_limit": "IterationLimit",
    "numerical_error": "NumericalError",
    "interrupted": "Interrupted",
}
"""The names of PuLP's statuses from 4 on, where whether there is a solution is told apart."""
IS_4 = hasattr(pulp.constants, "LpSolveStatus")
SHARED = LivePrograms()  # kept outside the solver object, because people make a new one for each call


class Copter(pulp.LpSolver):  # type: ignore[misc, unused-ignore]
    """copter as a solver of PuLP.

    Parameters
    ----------
    mip : bool
        Whether integer variables must be whole; False solves the relaxation.
    msg : bool
        Accepted as PuLP's other solvers do; copter prints nothing.
    timeLimit : float, optional
        Seconds of a solve.
    gapRel : float, optional
        Gap at which the search for an integer point ends.
    **settings
        Fields of :class:`copter.Settings`, such as ``threads=1``.

    Raises
    ------
    pulp.PulpSolverError
        For a setting that copter does not have, and for a problem that it cannot take: SOS sets, a constraint that
        may be broken at a price.

    Examples
    --------
    >>> import pulp
    >>> from copter.interop.pulp import Copter
    >>> problem = pulp.LpProblem("shop", pulp.LpMaximize)
    >>> x = problem.add_variable("x", 0, 4)  # before PuLP 3.3: pulp.LpVariable("x", 0, 4)
    >>> problem += 3 * x
    >>> problem += 2 * x <= 5, "hours"
    >>> told = problem.solve(Copter())
    >>> x.value()
    2.5
    """

    name = "copter"

    def __init__(
        self,
        mip: bool = True,
        msg: bool = False,
        timeLimit: float | None = None,
        gapRel: float | None = None,
        **settings: Any,
    ) -> None:
        unknown = sorted(set(settings) - set(SETTINGS))
        if unknown:
            raise pulp.PulpSolverError(f"copter has no setting {unknown[0]!r}: there are {', '.join(SETTINGS)}")
        super().__init__(mip=mip, msg=msg, timeLimit=timeLimit)
        limit = {} if timeLimit is None else {"time_limit_s": float(timeLimit)}
        try:
            self.settings = Settings(**{**settings, **limit})
        except CopterError as error:
            raise pulp.PulpSolverError(f"copter: {error}") from error
        self.gap = gapRel

    def available(self) -> bool:
        """Whether the solver can be used: always."""
        return True

    def actualSolve(self, lp: Any, **ignored: Any) -> Any:
        """Solve a problem of PuLP's and give its variables and constraints their values.

        Returns PuLP's status; from PuLP 4 on its `LpSolveStats`.
        """
        began: tuple[float, ...] = getattr(core, "clocks", tuple)()  # PuLP 4 times a solve by these
        variables, rows = lp.variables(), rows_of(lp)
        try:
            program = program_of(lp, variables, rows, self.mip)
            if program.is_mixed_integer:
                limit = self.settings.time_limit_s
                asked: dict[str, Any] = {} if limit == float("inf") else {"deadline_s": limit}
                asked |= {} if self.gap is None else {"gap": self.gap}
                found: Any = solve_integer(program, settings=self.settings, **asked)
            else:
                found = SHARED.solve(program, self.settings)
        except CopterError as error:
            raise pulp.PulpSolverError(f"copter: {error}") from error
        solved = found.x is not None and found.status.value in ("optimal", "feasible")
        if solved:
            give_values(variables, rows, program, found)
        if IS_4:
            status = STATUS_4.get(found.status.value, "NotSolved")
            if solved and status == "TimeLimit" and self.gap is not None and found.gap <= self.gap:
                status = "GapLimit"
            bound = float(found.bound) if program.is_mixed_integer and np.isfinite(found.bound) else None
            return self.buildStats(
                lp, getattr(pulp.constants.LpSolveStatus, status), solved, start=began, best_bound=bound
            )
        names = STATUS.get(found.status.value, ("LpStatusNotSolved", "LpSolutionNoSolutionFound"))
        status, solution = (getattr(pulp, name) for name in names)
        lp.assignStatus(status, solution)
        lp.resolveOK = True
        return int(status)

    def actualResolve(self, lp: Any, **ignored: Any) -> Any:
        """Solve again after edits: as :meth:`actualSolve`, which keeps the session of the last solve."""
        return self.actualSolve(lp, **ignored)


def rows_of(lp: Any) -> list[tuple[str, Any]]:
    """Return the constraints of a problem with their names."""
    if callable(lp.constraints):  # from PuLP 3.3 on
        return [(row.name, row) for row in lp.constraints()]
    return list(lp.constraints.items())


def key_of(variable: Any) -> Any:
    """Return what tells a variable from others: its number in PuLP 4, which makes its objects anew, else itself."""
    return getattr(variable, "id", variable)


def give_values(variables: list[Any], rows: list[tuple[str, Any]], program: LinearProgram, found: Any) -> None:
    """Write a solution into the variables and constraints of a problem."""
    for variable, value in zip(variables, found.x.tolist(), strict=True):
        variable.varValue = value
    activity = program.A @ found.x
    for (_, row), value in zip(rows, activity.tolist(), strict=True):
        above = value + row.constant
        row.slack = above if IS_4 and row.sense != pulp.LpConstraintLE else -above
    if not program.is_mixed_integer:
        for variable, reduced in zip(variables, found.reduced_costs.tolist(), strict=True):
            variable.dj = reduced
        for (_, row), price in zip(rows, found.y.tolist(), strict=True):
            row.pi = price


def program_of(lp: Any, variables: list[Any], rows: list[tuple[str, Any]], whole: bool) -> LinearProgram:
    """Return a problem of PuLP's as a program; raises PulpSolverError for what copter cannot take."""
    if lp.has_sos() if hasattr(lp, "has_sos") else lp.sos1 or lp.sos2:
        raise pulp.PulpSolverError(
            "copter takes no SOS sets: for at most one of x1, x2, ... above zero write a binary b_k for each, "
            "x_k <= upper_k * b_k and b_1 + b_2 + ... <= 1; in copter itself that is a request with limit=1"
        )
    place = {key_of(variable): at for at, variable in enumerate(variables)}
    entries = [
        (i, place[key_of(variable)], value) for i, (_, row) in enumerate(rows) for variable, value in row.items()
    ]
    for name, row in rows:
        if getattr(row, "isAnElastic", lambda: False)():
            raise pulp.PulpSolverError(f"copter takes no elastic constraint ({name}): give it a slack with a cost")
    i, j, value = zip(*entries, strict=True) if entries else ((), (), ())
    c = np.zeros(len(variables))
    for variable, cost in [] if lp.objective is None else lp.objective.items():
        c[place[key_of(variable)]] += cost
    right = np.array([-row.constant for _, row in rows], dtype=np.float64)
    sense = np.array([row.sense for _, row in rows], dtype=np.int64)
    integer = np.array([variable.cat == pulp.LpInteger for variable in variables], dtype=bool)
    return LinearProgram(
        c,
        sp.csc_array((np.array(value, dtype=np.float64), (i, j)), shape=(len(rows), len(variables))),
        row_lower=np.where(sense >= 0, right, -np.inf),
        row_upper=np.where(sense <= 0, right, np.inf),
        col_lower=np.array(
            [-np.inf if each.lowBound is None else each.lowBound for each in variables], dtype=np.float64
        ),
        col_upper=np.array([np.inf if each.upBound is None else each.upBound for each in variables], dtype=np.float64),
        integrality=integer if whole and integer.any() else None,
        sense="max" if lp.sense == pulp.LpMaximize else "min",
        offset=float(getattr(lp.objective, "constant", 0.0) or 0.0),
    )
