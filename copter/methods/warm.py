"""A warm solve of a model, from an iterate to a solution; used by sessions and the one-shot proximal solve.

`copter/choose.py` says which methods are tried, in which order; this file runs them.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np
from numpy.typing import NDArray

from copter import choose
from copter.choose import Choice, ModelFacts
from copter.errors import InternalError
from copter.methods.answers import Proven, Work, sharpened, solution_of
from copter.methods.by_coupling import CouplingSolve
from copter.methods.by_vertex import VertexSolve
from copter.methods.by_whole import WholeSolve
from copter.methods.crossover import vertex_of
from copter.methods.interior_start import InteriorStart
from copter.methods.proximal.newton import Rows
from copter.methods.proximal.solve import Outcome, Solve
from copter.methods.warm_state import WarmState
from copter.model.model import Model
from copter.model.values import dense_ray, sparse_values
from copter.problem.checker import is_improving_ray, is_infeasibility_ray
from copter.problem.solution import Solution, Status
from copter.runtime.watch import Watch
from copter.settings import Settings

Floats = NDArray[np.float64]
Callback = Callable[[int, float, float], bool | None]


def warm_solve(
    model: Model,
    iterate: WarmState,
    settings: Settings,
    watch: Watch,
    callback: Callback | None = None,
    restart_reason: str | None = None,
) -> Solution:
    """Solve the current model, starting from an iterate.

    Parameters
    ----------
    model : Model
        Not edited; the caller holds its guard.
    iterate : WarmState
        Starting state; updated to the final state.
    settings : Settings
    watch : Watch
        The watch that was started with the solve and ends it.
    callback : callable, optional
        Called as ``callback(passes, relative_gap, largest_violation)`` after each pricing pass and each answer; True
        ends the solve. Watching does not change the solve otherwise.
    restart_reason : str, optional
        Why the iterate is new; reported in the solution.

    Returns
    -------
    Solution

    Raises
    ------
    SettingsError
        If `settings.method` names a method that takes no such model.
    """
    solution = answered(model, iterate, settings, watch, callback, restart_reason)
    return sharpened(model, solution, settings.tolerance)


def answered(
    model: Model,
    iterate: WarmState,
    settings: Settings,
    watch: Watch,
    callback: Callback | None,
    restart_reason: str | None,
) -> Solution:
    """Return the solution of the first method, in order, that finishes."""
    facts = facts_of(model, iterate)
    order = choose.for_model(facts, settings)
    if order[0] is choose.SMALL:
        solution = VertexSolve(model, iterate, settings, watch).run(order[0], callback, restart_reason)
        if solution is not None:
            return solution
        order = order[1:]
    if choose.pivots_fit(facts, settings):
        iterate.pivots()  # create the basis: the next round's pivots start from this round's prices
    if facts.private_rows or order[0].method in ("simplex", "interior"):
        return WholeSolve.of(model, iterate, settings, watch).run(order, callback, restart_reason)
    basis, coupling = iterate.basis, None
    has_answer = basis is not None and basis.answer is not None
    unchanged = iterate.version == model.version and not has_answer  # one pricing pass is enough
    for place, choice in enumerate(order):
        if choice.method in ("basis", "blocks"):
            if unchanged and choice.why != choose.NAMED:
                continue
            coupling = coupling or CouplingSolve.of(model, iterate, settings, watch)
            solution = coupling.run(choice, callback, restart_reason)
            if solution is not None:
                return solution
        elif choice is choose.WHOLE_PIVOTS:
            if unchanged:
                continue
            solution = WholeSolve.of(model, iterate, settings, watch).attempt(choice, callback, restart_reason)
            if solution is not None:
                return solution
        elif choice is choose.VERDICT:
            return WholeSolve.of(model, iterate, settings, watch).run((choice,), callback, restart_reason)
        else:
            return by_prices(model, iterate, settings, watch, order[place:], callback, restart_reason)
    raise InternalError("the order of methods ends without one that always answers")


def facts_of(model: Model, iterate: WarmState) -> ModelFacts:
    """Return the facts from which the method is chosen."""
    matrix = model.ledger.matrix
    has_basis = iterate.basis is not None
    return ModelFacts(model.n_columns, matrix.n_rows, bool(matrix.n_with_rows), has_basis, len(model.ledger.slot_of))


def by_prices(
    model: Model,
    iterate: WarmState,
    settings: Settings,
    watch: Watch,
    order: tuple[Choice, ...],
    callback: Callback | None,
    restart_reason: str | None,
) -> Solution:
    """Solve by proximal steps, with the interior-point method before, after, or not at all."""
    whole = next((each for each in order if each.method == "interior"), None)
    steps = next(each for each in order if each.method != "interior")
    start = None
    if whole is not None:
        start = InteriorStart(model, iterate, settings, watch, whole, comes_first=order[0] is whole)
    offset = model.ledger.sign * model.offset

    def crossover(rows: Rows) -> Floats | None:
        return vertex_of(iterate.ws, rows, iterate.y, watch) if steps.method == "proximal" else None

    outcome = Solve(model.ledger.matrix, iterate, settings, steps, callback, offset, watch, start, crossover).run()
    if outcome.status is Status.OPTIMAL and steps.method == "proximal":
        iterate.version = model.version
    return answer_of(model, iterate, outcome, watch.elapsed_s, restart_reason)


def answer_of(
    model: Model, iterate: WarmState, outcome: Outcome, seconds: float, restart_reason: str | None
) -> Solution:
    """Convert the end of proximal steps to a solution; rays that fail verification on the model are dropped."""
    ledger, priced, status = model.ledger, outcome.priced, outcome.status
    values = sparse_values(ledger, iterate.ws.key, iterate.ws.x.copy(), ledger.sign * priced.y)
    ray = None
    if outcome.ray is not None:
        improving = status is Status.DUAL_INFEASIBLE
        ray = partial(dense_ray, ledger, values.key, improving, outcome.ray, model.version)
        proves = is_improving_ray if improving else is_infeasibility_ray
        if not proves(model.to_linear_program(), ray()):
            status, ray = Status.NUMERICAL_ERROR, None
    proven = Proven.of_minimised(
        model, outcome.objective, priced.bound, priced.margin, priced.certified, outcome.residuals
    )
    work = Work(seconds, restart_reason, outcome.newton_steps, outcome.passes, outcome.proximal_steps)
    return solution_of(model, status, proven, values, outcome.choice, work, ray)
