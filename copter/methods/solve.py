"""The function solve: a one-shot solve of a linear program."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from copter.methods import choose
from copter.methods.before_interior import by_simplex, by_structure
from copter.methods.choose import Choice, ProgramFacts
from copter.methods.interior.solve import solve_interior
from copter.methods.proximal_program import solve_proximal
from copter.problem.linear_program import LinearProgram, require_program
from copter.problem.solution import Solution, Status
from copter.runtime.errors import InvalidDataError
from copter.runtime.progress import listening, told
from copter.runtime.settings import Settings
from copter.runtime.watch import Watch

LARGEST = 1e200  # largest size of a number in a program, so that products stay finite after scaling


def checked(lp: LinearProgram, settings: Settings | None) -> Settings:
    """Return the settings, or the defaults; raises an error for a wrong type of program or settings."""
    require_program(lp)
    for name in ("c", "row_lower", "row_upper", "col_lower", "col_upper"):
        numbers = getattr(lp, name)
        beyond = np.flatnonzero(np.isfinite(numbers) & (np.abs(numbers) > LARGEST))
        if len(beyond):
            raise InvalidDataError(
                f"{name}[{beyond[0]}] is {numbers[beyond[0]]:g}, beyond {LARGEST:g}: take other units, or inf for none"
            )
    if np.abs(lp.A.data).max(initial=0.0) > LARGEST:
        raise InvalidDataError(f"A has an entry of {np.abs(lp.A.data).max():g}, beyond {LARGEST:g}: take other units")
    return Settings.given(settings)


def solve(
    lp: LinearProgram,
    settings: Settings | None = None,
    callback: Callable[[int, float, float], bool | None] | None = None,
    verbose: bool = False,
) -> Solution:
    """Solve a linear program (integrality is ignored).

    Parameters
    ----------
    lp : LinearProgram
    settings : Settings, optional
        With `method` "auto" (the default) `copter/methods/choose.py` selects the method; the solution's `method` and
        `why` report the choice.
    callback : callable, optional
        Called as ``callback(iterations, relative_gap, primal_residual)`` after every interior-point iteration or
        pricing pass; True ends the solve with INTERRUPTED. The programs that refine an answer or prove that there is
        none call it too, with their own figures. :func:`copter.with_record` makes a callback that gets a named record.
    verbose : bool
        A line on stderr for each iteration and for the solve. The logger "copter" has the same: iterations at DEBUG,
        solves at INFO.

    Returns
    -------
    Solution
        Residuals are those of the problem as given, recomputed after unscaling and postsolve. Ctrl-C ends the solve
        with INTERRUPTED and the best point so far.

    Raises
    ------
    InvalidDataError, SettingsError
        For an `lp` or `settings` of another type.

    Notes
    -----
    For LPs that change from round to round, keep a :class:`copter.Session` instead. If many points are optimal, any of
    them may be returned; it need not be a vertex, even if the program has integer columns.

    Examples
    --------
    >>> import copter
    >>> lp = copter.LinearProgram([1.0, 2.0], [[1.0, 1.0]], row_lower=1.0, row_upper=float("inf"))
    >>> solution = copter.solve(lp)
    >>> solution.status, solution.objective
    (<Status.OPTIMAL: 'optimal'>, 1.0)
    """
    settings = checked(lp, settings)
    solution = _solved(lp, settings, listening(callback, verbose), vertex=False)
    told("solve", solution.status.value, solution.iterations, solution.gap, solution.solve_time_s, verbose)
    return solution


def solve_relaxation(
    lp: LinearProgram,
    settings: Settings | None = None,
    callback: Callable[[int, float, float], bool | None] | None = None,
) -> Solution:
    """Solve a linear program at a vertex if it has integer columns, as rounding and branching need."""
    return _solved(lp, checked(lp, settings), callback, vertex=True)


def _solved(
    lp: LinearProgram,
    settings: Settings,
    callback: Callable[[int, float, float], bool | None] | None,
    vertex: bool,
) -> Solution:
    """Solve by the methods of `copter/methods/choose.py`, in order."""
    with Watch(settings.time_limit_s) as watch:
        if settings.method in ("proximal", "price_descent", "coordinate_descent"):
            return solve_proximal(lp, settings, watch, callback)
        for choice in choose.for_program(facts_of(lp, presolved=False), settings):
            found = by_simplex(lp, settings, watch, choose.DIRECT_WORK, choose.DIRECT_WORK, callback)
            if found is not None:
                return replace(found, why=choice.why)
        try:
            result = _presolved(lp, settings, watch, callback, vertex)
        except MemoryError:  # the proximal method factorises nothing of this size
            other = solve_proximal(lp, replace(settings, method="proximal"), watch, callback)
            return replace(other, why=choose.MEMORY.why)
        if result.status is not Status.NUMERICAL_ERROR or settings.method != "auto":
            return result
        return _by_another_way(lp, settings, watch, result)


def _presolved(
    lp: LinearProgram,
    settings: Settings,
    watch: Watch,
    callback: Callable[[int, float, float], bool | None] | None,
    vertex: bool,
) -> Solution:
    """Presolve, then solve by the methods for presolved programs."""
    asked: list[Choice] = []

    def first(reduced: LinearProgram, settings: Settings, watch: Watch) -> Solution | None:
        order = choose.for_program(facts_of(reduced, presolved=True), settings)
        asked.extend(order)
        for choice in order:
            found = None
            if choice.method == "simplex":
                work = (np.inf, np.inf) if choice.why == choose.NAMED else (choose.SIMPLEX_WORK, choose.SPARSE_WORK)
                found = by_simplex(reduced, settings, watch, *work, callback)
            elif choice.method == "blocks" and not vertex:
                found = by_structure(reduced, settings, watch, callback)
            if found is not None:
                return found
        return None

    solution = solve_interior(lp, settings, watch, callback, first, vertex)
    why = next((each.why for each in asked if each.method == solution.method), choose.PRESOLVED.why)
    return replace(solution, why=why)


def facts_of(lp: LinearProgram, presolved: bool) -> ProgramFacts:
    """Return the facts from which the method is chosen."""
    return ProgramFacts(lp.A.nnz, *lp.shape, presolved)


def _by_another_way(lp: LinearProgram, settings: Settings, watch: Watch, result: Solution) -> Solution:
    """Return the proximal method's answer if rounding has ended the interior-point method and it converges soon."""
    limit = min(settings.time_limit_s, choose.PATIENCE * watch.elapsed_s + 1.0)
    if watch():
        return result
    other = solve_proximal(lp, replace(settings, time_limit_s=limit), watch)
    return replace(other, why=choose.ROUNDED.why) if other.status is Status.OPTIMAL else result
