"""A PuLP solver: ``problem.solve(Copter())``, and a problem that is edited and solved again keeps its session.

PuLP writes no file for it: the program is read from the problem's variables and constraints.
"""

from __future__ import annotations

from dataclasses import fields
from typing import Any

import numpy as np
import pulp
import scipy.sparse as sp

from copter.errors import CopterError
from copter.interop.live_program import LivePrograms
from copter.methods.integer.solve import solve_integer
from copter.problem.linear_program import LinearProgram
from copter.settings import Settings

SETTINGS = tuple(each.name for each in fields(Settings))
STATUS = {
    "optimal": (pulp.LpStatusOptimal, pulp.LpSolutionOptimal),
    "feasible": (pulp.LpStatusOptimal, pulp.LpSolutionIntegerFeasible),
    "primal_infeasible": (pulp.LpStatusInfeasible, pulp.LpSolutionInfeasible),
    "dual_infeasible": (pulp.LpStatusUnbounded, pulp.LpSolutionUnbounded),
}
"""PuLP's status and status of the solution for each of ours; all others are "not solved"."""
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
    >>> x = pulp.LpVariable("x", 0, 4)
    >>> problem += 3 * x
    >>> problem += 2 * x <= 5, "hours"
    >>> pulp.LpStatus[problem.solve(Copter())], x.value()
    ('Optimal', 2.5)
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

    def actualSolve(self, lp: Any, **ignored: Any) -> int:
        """Solve a problem of PuLP's and give its variables and constraints their values; returns PuLP's status."""
        variables, rows = lp.variables(), list(lp.constraints.items())
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
        status, solution = STATUS.get(found.status.value, (pulp.LpStatusNotSolved, pulp.LpSolutionNoSolutionFound))
        if found.x is not None and status == pulp.LpStatusOptimal:
            for variable, value in zip(variables, found.x.tolist(), strict=True):
                variable.varValue = value
            activity = program.A @ found.x
            for (_, row), value in zip(rows, activity.tolist(), strict=True):
                row.slack = -(value + row.constant)
            if not program.is_mixed_integer:
                for variable, reduced in zip(variables, found.reduced_costs.tolist(), strict=True):
                    variable.dj = reduced
                for (_, row), price in zip(rows, found.y.tolist(), strict=True):
                    row.pi = price
        lp.assignStatus(status, solution)
        lp.resolveOK = True
        return int(status)

    def actualResolve(self, lp: Any, **ignored: Any) -> int:
        """Solve again after edits: as :meth:`actualSolve`, which keeps the session of the last solve."""
        return self.actualSolve(lp, **ignored)


def program_of(lp: Any, variables: list[Any], rows: list[tuple[str, Any]], whole: bool) -> LinearProgram:
    """Return a problem of PuLP's as a program; raises PulpSolverError for what copter cannot take."""
    if lp.sos1 or lp.sos2:
        raise pulp.PulpSolverError(
            "copter takes no SOS sets: for at most one of x1, x2, ... above zero write a binary b_k for each, "
            "x_k <= upper_k * b_k and b_1 + b_2 + ... <= 1; in copter itself that is a request with limit=1"
        )
    place = {variable: at for at, variable in enumerate(variables)}
    entries = [(i, place[variable], value) for i, (_, row) in enumerate(rows) for variable, value in row.items()]
    for name, row in rows:
        if getattr(row, "isAnElastic", lambda: False)():
            raise pulp.PulpSolverError(f"copter takes no elastic constraint ({name}): give it a slack with a cost")
    i, j, value = zip(*entries, strict=True) if entries else ((), (), ())
    c = np.zeros(len(variables))
    for variable, cost in (lp.objective or {}).items():
        c[place[variable]] += cost
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
