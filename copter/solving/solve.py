"""solve: one linear program, once."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from copter.errors import InvalidDataError, SettingsError
from copter.interior.solve import FirstTry, solve_interior
from copter.problem.linear_program import LinearProgram
from copter.problem.solution import Solution, Status
from copter.runtime.progress import listening, told
from copter.runtime.watch import Watch
from copter.settings import Settings
from copter.solving.first_tries import by_simplex, by_simplex_directly, by_structure
from copter.solving.proximal import solve_proximal

LARGEST = 1e200  # a number whose products with others are still finite after scaling
PATIENCE = 3.0  # times the interior-point method's seconds that another try may have come to in all


def checked(lp: LinearProgram, settings: Settings | None) -> Settings:
    """The settings, or the default ones; an error that names what is no linear program or no settings."""
    if not isinstance(lp, LinearProgram):
        raise InvalidDataError(
            f"lp is a {type(lp).__name__}, must be a LinearProgram: read_mps makes one of a file, "
            "Session(model).solve() solves a Model"
        )
    for name in ("c", "row_lower", "row_upper", "col_lower", "col_upper"):
        numbers = getattr(lp, name)
        beyond = np.flatnonzero(np.isfinite(numbers) & (np.abs(numbers) > LARGEST))
        if len(beyond):
            raise InvalidDataError(
                f"{name}[{beyond[0]}] is {numbers[beyond[0]]:g}, beyond {LARGEST:g}: take other units, or inf for none"
            )
    if np.abs(lp.A.data).max(initial=0.0) > LARGEST:
        raise InvalidDataError(f"A has an entry of {np.abs(lp.A.data).max():g}, beyond {LARGEST:g}: take other units")
    if settings is not None and not isinstance(settings, Settings):
        raise SettingsError(f"settings is a {type(settings).__name__}, must be a Settings: Settings(tolerance=1e-6)")
    return settings or Settings()


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
        Its `method` chooses: "auto" (the default) for any LP: the dual simplex method for small ones (simplex.md),
        the interior-point method where that gives up (method/interior.md). "interior" for the latter alone. "proximal",
        the method that sessions keep warm, for LPs of many columns and few rows; what does not fit into memory goes to
        it too. "coordinate_descent" for the same without any factorisation (docs/method/algorithm.md).
    callback : callable, optional
        Called as ``callback(iterations, relative_gap, primal_residual)`` after every interior-point iteration (also of
        the programs that refine an answer or say why there is none, with their own figures) or pricing pass; True ends
        the solve with INTERRUPTED. With one, the simplex method is not tried. :func:`copter.with_record` makes one that
        gets a named record.
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
    For LPs that change from round to round, keep a :class:`copter.Session` instead. Where many points are optimal,
    the one returned is among them and need not be a vertex, also of programs with integer columns.
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
    """The same, at a vertex of the optimal face where there are integer columns: what rounds or branches wants that."""
    return _solved(lp, checked(lp, settings), callback, vertex=True)


def _solved(
    lp: LinearProgram,
    settings: Settings,
    callback: Callable[[int, float, float], bool | None] | None,
    vertex: bool,
) -> Solution:
    """By the method that the settings choose."""
    with Watch(settings.time_limit_s) as watch:
        if settings.method in ("auto", "interior"):
            tries: tuple[FirstTry, ...] = ()
            if callback is None:
                simplex = (by_simplex,) if settings.method == "auto" else ()
                tries = simplex if vertex else (*simplex, by_structure)
            try:
                if callback is None and settings.method == "auto":
                    found = by_simplex_directly(lp, settings, watch)
                    if found is not None:
                        return found
                result = solve_interior(lp, settings, watch, callback, tries, vertex)
            except MemoryError:  # the proximal method factorises nothing of this size
                return solve_proximal(lp, settings, watch, callback)
            return (
                result if result.status is not Status.NUMERICAL_ERROR else _by_another_way(lp, settings, watch, result)
            )
        return solve_proximal(lp, settings, watch, callback)


def _by_another_way(lp: LinearProgram, settings: Settings, watch: Watch, result: Solution) -> Solution:
    """Where rounding has ended the interior-point method: the proximal method's answer, if it gets to one soon."""
    limit = min(settings.time_limit_s, PATIENCE * watch.elapsed_s + 1.0)
    if watch():
        return result
    other = solve_proximal(lp, replace(settings, time_limit_s=limit), watch)
    return other if other.status is Status.OPTIMAL else result
