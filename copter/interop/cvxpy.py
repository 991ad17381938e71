"""A CVXPY solver of linear and mixed-integer programs, and of concave worths; problems solved again are edited."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
from cvxpy import settings as words
from cvxpy.constraints import ExpCone, PowCone3D
from cvxpy.error import SolverError
from cvxpy.reductions.solution import Solution, failure_solution
from cvxpy.reductions.solvers import utilities
from cvxpy.reductions.solvers.conic_solvers.conic_solver import ConicSolver
from numpy.typing import NDArray

from copter.interop.cvxpy_worths import ConcaveProgram, LiveWorths
from copter.interop.live_program import LiveProgram
from copter.interop.search import searched as search_of
from copter.interop.statuses import WORDS
from copter.methods.integer.solution import IntegerStatus
from copter.problem.linear_program import LinearProgram
from copter.problem.solution import Status
from copter.runtime.errors import CopterError
from copter.runtime.settings import Settings
from copter.runtime.version import VERSION

Floats = NDArray[np.float64]

NAME = "COPTER"
Live = TypeVar("Live", LiveProgram, LiveWorths)
SETTINGS = Settings.names()
SEARCH = ("deadline_s", "gap", "seed", "max_nodes", "shim")


@dataclass(frozen=True, slots=True)
class Result:
    """Result of a solve, the input of :meth:`COPTER.invert`.

    Attributes
    ----------
    status : str
        Status in CVXPY's terms.
    x : ndarray (n,) or None
    y : ndarray (m,) or None
        Duals of the rows in copter's signs, or the certificate of an infeasible program.
    objective : float
    iterations : int
    seconds : float
        Time of the solver alone.
    warm : bool
        Whether the solve started from a kept state.
    """

    status: str
    x: Floats | None
    y: Floats | None
    objective: float
    iterations: int
    seconds: float
    warm: bool


class COPTER(ConicSolver):  # type: ignore[misc]
    """The solver object: ``problem.solve(solver=COPTER())``.

    Keywords of ``solve`` are those of :class:`copter.Settings`, and for mixed-integer programs those of
    :func:`copter.solve_integer` (`deadline_s`, `gap`, `seed`, `max_nodes`, `shim`).

    Notes
    -----
    A problem that is solved again with other parameter values keeps its session: differences in c, b, bounds and the
    values of A become edits. A problem of another structure starts anew, and so does every solve with
    ``warm_start=False``. Sums of ``log``, ``power(..., approx=False)`` and ``minimum`` of totals become concave worths
    (:mod:`copter.interop.cvxpy_worths`). ``problem.solver_stats.extra_stats`` is ``{"warm": bool}``.
    """

    MIP_CAPABLE = True
    BOUNDED_VARIABLES = True
    SUPPORTED_CONSTRAINTS = (*ConicSolver.SUPPORTED_CONSTRAINTS, ExpCone, PowCone3D)
    MI_SUPPORTED_CONSTRAINTS = ConicSolver.SUPPORTED_CONSTRAINTS
    EXP_CONE_ORDER = (0, 1, 2)

    def __eq__(self, other: object) -> bool:
        """All instances are equal, so that CVXPY's cache compiles a problem with ``solve(solver=COPTER())`` once."""
        return type(other) is type(self)

    def __hash__(self) -> int:
        return hash(NAME)

    def name(self) -> str:
        """Return the solver's name in CVXPY's errors and statistics."""
        return NAME

    def import_solver(self) -> None:
        """Do nothing: importing this module has imported copter."""

    def cite(self, data: Mapping[str, Any]) -> str:
        """Return the BibTeX entry for ``problem.solve(..., bibtex=True)``."""
        return f"@misc{{copter, title={{copter: continual optimization for schedulers}}, note={{version {VERSION}}}}}"

    def apply(self, problem: Any) -> tuple[dict[str, Any], dict[str, Any]]:
        """Return the program's arrays and the data needed to interpret the answer."""
        data, inverse = super().apply(problem)
        data[words.BOOL_IDX] = [int(index[0]) for index in problem.x.boolean_idx]
        data[words.INT_IDX] = [int(index[0]) for index in problem.x.integer_idx]
        inverse["is_mip"] = bool(data[words.BOOL_IDX] or data[words.INT_IDX])
        return data, inverse

    def solve_via_data(
        self,
        data: Mapping[str, Any],
        warm_start: bool,
        verbose: bool,
        solver_opts: Mapping[str, Any],
        solver_cache: dict[str, Any] | None = None,
    ) -> Result:
        """Solve the program; the live program is kept in CVXPY's cache of this problem."""
        settings, search = options(solver_opts)
        try:
            if data[self.DIMS].exp or data[self.DIMS].p3d:
                result = shared_fairly(data, settings, search, warm_start, solver_cache)
            elif (lp := program(data)) is None:
                result = Result(words.INFEASIBLE, None, None, np.inf, 0, 0.0, False)
            elif lp.is_mixed_integer:
                result = searched(lp, settings, search)
            else:
                result = solved(lp, settings, live_in_cache(LiveProgram, warm_start, solver_cache))
        except CopterError as error:
            raise SolverError(f"copter: {error}") from error
        if verbose:
            how = "session" if result.warm else "afresh"
            print(f"copter {VERSION}: {result.status}, {how}, {result.iterations} iterations, {result.seconds:.4f} s")
        return result

    def invert(self, solution: Result, inverse_data: dict[str, Any]) -> Solution:
        """Convert the answer to CVXPY's solution."""
        stats = {
            words.SOLVE_TIME: solution.seconds,
            words.NUM_ITERS: solution.iterations,
            words.EXTRA_STATS: {"warm": solution.warm},
        }
        duals: dict[int, Any] = {}
        if solution.y is not None and not inverse_data["is_mip"]:
            cones = (ExpCone, PowCone3D)  # they come last, and are CVXPY's own
            constraints = inverse_data[self.EQ_CONSTR] + inverse_data[self.NEQ_CONSTR]
            constraints = [each for each in constraints if not isinstance(each, cones)]
            duals = utilities.get_dual_values(-solution.y, utilities.extract_dual_value, constraints)
        if solution.status not in words.SOLUTION_PRESENT or solution.x is None:
            return failure_solution(solution.status, stats, duals)
        objective = solution.objective + inverse_data[words.OFFSET]
        return Solution(solution.status, objective, {inverse_data[self.VAR_ID]: solution.x}, duals, stats)


def options(given: Mapping[str, Any]) -> tuple[Settings, dict[str, Any]]:
    """Split keywords into (settings, search options); raises SolverError for an unknown keyword."""
    unknown = sorted(set(given) - {*SETTINGS, *SEARCH})
    if unknown:
        raise SolverError(f"copter has no option {unknown[0]!r}: it takes {', '.join((*SETTINGS, *SEARCH))}")
    try:
        settings = Settings(**{name: value for name, value in given.items() if name in SETTINGS})
    except CopterError as error:
        raise SolverError(f"copter: {error}") from error
    return settings, {name: value for name, value in given.items() if name in SEARCH}


def program(data: Mapping[str, Any]) -> LinearProgram | None:
    """Build the program from CVXPY's arrays: rows A x = b, then A x <= b; None if bounds are crossed."""
    c, b = np.asarray(data[words.C], dtype=np.float64), np.asarray(data[words.B], dtype=np.float64)
    equal = int(data[ConicSolver.DIMS].zero)
    row_lower = np.full(len(b), -np.inf)
    row_lower[:equal] = b[:equal]
    n = len(c)
    lower, upper = data.get(words.LOWER_BOUNDS), data.get(words.UPPER_BOUNDS)
    low = np.full(n, -np.inf) if lower is None else np.array(lower, dtype=np.float64)
    high = np.full(n, np.inf) if upper is None else np.array(upper, dtype=np.float64)
    boolean = np.array(data[words.BOOL_IDX], dtype=np.intp)
    low[boolean], high[boolean] = np.maximum(low[boolean], 0.0), np.minimum(high[boolean], 1.0)
    whole = np.zeros(n)
    whole[boolean] = whole[np.array(data[words.INT_IDX], dtype=np.intp)] = 1.0
    if (low > high).any():
        return None
    return LinearProgram(c, data[words.A], row_lower, b, low, high, whole)


def live_in_cache(kind: type[Live], warm_start: bool, cache: dict[str, Any] | None) -> Live:
    """Return the cached live program of this problem, or a new one."""
    found = cache.get(NAME) if warm_start and cache is not None else None
    live = found if isinstance(found, kind) else kind()
    if cache is not None:
        cache[NAME] = live
    return live


def named(status: Status | IntegerStatus) -> str:
    """CVXPY's name of a status."""
    return str(getattr(words, WORDS[status.value].cvxpy))


def solved(lp: LinearProgram, settings: Settings, live: LiveProgram) -> Result:
    """Solve a linear program, from the last one's basis if `live` has it, and convert the answer to CVXPY's terms."""
    answer = live.solve(lp, settings)
    y = answer.ray if answer.status is Status.PRIMAL_INFEASIBLE else answer.y
    return Result(
        named(answer.status), answer.x, y, answer.objective, answer.iterations, answer.solve_time_s, answer.warm
    )


def shared_fairly(
    data: Mapping[str, Any],
    settings: Settings,
    search: Mapping[str, Any],
    warm_start: bool,
    cache: dict[str, Any] | None,
) -> Result:
    """Solve a problem with concave worths, from the last solve's prices if it is kept."""
    if search:
        raise SolverError(f"option {min(search)!r} is one of mixed-integer programs")
    concave = ConcaveProgram(data)
    answer, x, y, warm = live_in_cache(LiveWorths, warm_start, cache).solve(concave, settings)
    objective = float(concave.c @ x)
    return Result(named(answer.status), x, y, objective, answer.iterations, answer.solve_time_s, warm)


def searched(lp: LinearProgram, settings: Settings, search: dict[str, Any]) -> Result:
    """Solve a mixed-integer program, by HiGHS's branch and bound if installed and no search was requested."""
    solution = search_of(lp, settings=settings, **search)
    return Result(named(solution.status), solution.x, None, solution.objective, 0, solution.solve_time_s, False)
