"""Solve of one linear program: presolve, interior-point method, postsolve (docs/method/interior.md)."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from copter.methods.interior.method import Answer, Callback, InteriorSolve
from copter.methods.interior.stopping import unless_stopped
from copter.methods.presolve import Presolved, presolve
from copter.problem.checker import check
from copter.problem.linear_program import LinearProgram
from copter.problem.solution import Solution, Status
from copter.runtime.errors import InternalError
from copter.runtime.settings import Settings
from copter.runtime.watch import Stopped, Watch

Floats = NDArray[np.float64]
FirstTry = Callable[[LinearProgram, Settings, Watch], Solution | None]  # returns None if the method does not apply


def solve_interior(
    lp: LinearProgram,
    settings: Settings,
    watch: Watch,
    callback: Callback | None = None,
    first: FirstTry = lambda lp, settings, watch: None,
    vertex: bool = False,
) -> Solution:
    """Solve by the interior-point method, on the presolved program if the settings allow it.

    The result is checked on the program as given. If postsolve loses the accuracy or the ray, the program is solved
    again without presolve. `first` is another method that is tried on the presolved program first; its answer must have
    passed the checker. `vertex`: whether a program with integer columns shall get a vertex of its optimal face (if the
    settings purify), which about doubles the time.
    """
    vertex = vertex and settings.internals.purify and bool(lp.integrality.any())
    if not settings.internals.presolve:
        found = first(lp, settings, watch)
        return _method(lp, settings, watch, callback, vertex=vertex).run() if found is None else found
    try:
        reduced = unless_stopped(lambda: presolve(lp), watch, lp.A.nnz)
    except Stopped:
        back = InteriorSolve(lp, settings, watch)
        return back.solution(_anywhere(lp), back.stopped(), None)
    if reduced.status is not None:
        return _decided(lp, settings, watch, reduced, reduced.status)
    if reduced.program is None:
        raise InternalError("presolve has returned neither a program nor a status")
    result = first(reduced.program, settings, watch)
    if result is None:
        method = _method(reduced.program, settings, watch, callback, vertex=vertex)
        method.presolved = True
        result = method.run()
    restored = _restored(lp, settings, watch, reduced, result)
    if restored is not None:
        return restored
    return _method(lp, settings, watch, callback, result.iterations, vertex).run()


def _method(
    lp: LinearProgram,
    settings: Settings,
    watch: Watch,
    callback: Callback | None,
    iterations: int = 0,
    vertex: bool = False,
) -> InteriorSolve:
    method = InteriorSolve(lp, settings, watch, callback, iterations)
    method.vertex = vertex
    return method


def _decided(lp: LinearProgram, settings: Settings, watch: Watch, reduced: Presolved, status: Status) -> Solution:
    """Return the solution of a program that presolve has decided."""
    back = InteriorSolve(lp, settings, watch)
    if status is not Status.OPTIMAL:
        return back.solution(_anywhere(lp), status, reduced.ray, "presolve")
    x, y, _ = reduced.postsolve(np.zeros(0), np.zeros(0))
    answer = _answer(lp, x, y)
    return back.solution(answer, Status.OPTIMAL, None, "presolve") if back.optimal(answer) else back.run()


def _restored(
    lp: LinearProgram, settings: Settings, watch: Watch, reduced: Presolved, result: Solution
) -> Solution | None:
    """Return the reduced program's solution in terms of the original; None if postsolve loses accuracy or the ray."""
    x, y, _ = reduced.postsolve(result.x, result.y)
    back = InteriorSolve(lp, settings, watch, None, result.iterations)
    answer = _answer(lp, x, y)
    status, ray, by = result.status, result.ray, result.method
    if status is Status.OPTIMAL and reduced.improving_ray is not None:
        return back.solution(answer, Status.DUAL_INFEASIBLE, reduced.improving_ray, by)
    if status is Status.OPTIMAL:
        return back.solution(answer, status, None, by) if back.optimal(answer) else None
    if status in (Status.PRIMAL_INFEASIBLE, Status.DUAL_INFEASIBLE):
        if ray is None:
            raise InternalError(f"{status.value} without a ray")
        farkas = status is Status.PRIMAL_INFEASIBLE
        proof = reduced.postsolve_farkas(ray) if farkas else reduced.postsolve_primal_ray(ray)
        return None if proof is None else back.solution(answer, status, proof, by)
    return back.solution(answer, status, None, by) if status is not Status.NUMERICAL_ERROR else None


def _answer(lp: LinearProgram, x: Floats, y: Floats) -> Answer:
    x = np.clip(x, lp.col_lower, lp.col_upper)
    return Answer(x, y, check(lp, x, y), 0, True, False)


def _anywhere(lp: LinearProgram) -> Answer:
    """Return the point nearest to zero within the bounds, for programs without an optimum."""
    return _answer(lp, np.clip(0.0, lp.col_lower, lp.col_upper), np.zeros(lp.shape[0]))
