"""One warm solve of a model: from an iterate to a solution. Sessions and the one-shot proximal solve both call it."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from copter.errors import SettingsError
from copter.model.assembly import named_by
from copter.model.model import Model
from copter.model.values import dense_ray, sparse_values
from copter.problem.solution import Solution, Status
from copter.proximal.iterate import Iterate
from copter.proximal.solve import Outcome, Solve
from copter.runtime.watch import Watch
from copter.settings import Settings
from copter.solving.bounds import proven_bound, with_bound
from copter.solving.by_basis import solved_by_basis
from copter.solving.by_blocks import BlockSolve
from copter.solving.interior_start import InteriorStart

Callback = Callable[[int, float, float], bool | None]


def warm_solve(
    model: Model,
    iterate: Iterate,
    settings: Settings,
    watch: Watch,
    callback: Callback | None = None,
    restart_reason: str | None = None,
) -> Solution:
    """Solve a model as it now stands, from an iterate.

    Parameters
    ----------
    model : Model
        Not edited; the caller holds its guard.
    iterate : Iterate
        Where the solve starts; moved to where it ends.
    settings : Settings
    watch : Watch
        Runs since the solve began; says when it must stop.
    callback : callable, optional
        Called after each pricing pass as ``callback(passes, relative_gap, largest_violation)``; True ends the solve.
    restart_reason : str, optional
        Why the iterate is a new one, for the solution to say.

    Returns
    -------
    Solution
    """
    if settings.method == "coordinate_descent":
        return _by_descent(model, iterate, settings, watch, callback, restart_reason)
    if model.ledger.matrix.n_with_rows:
        return BlockSolve.of(model, iterate, settings, watch).run(callback, restart_reason)
    start = InteriorStart(model, iterate, settings, watch, warm=callback is not None)
    if callback is None:
        solution = solved_by_basis(model, iterate, settings, watch, start.comes_first, restart_reason)
        if solution is not None:
            return solution
    outcome = Solve(
        model.ledger.matrix, iterate, settings, callback, model.ledger.sign * model.offset, watch, start
    ).run()
    if outcome.status is Status.OPTIMAL:
        iterate.version = model.version
    return solution_of(model, iterate, outcome, watch.elapsed_s, restart_reason)


def _by_descent(
    model: Model,
    iterate: Iterate,
    settings: Settings,
    watch: Watch,
    callback: Callback | None,
    restart_reason: str | None,
) -> Solution:
    """By proximal steps and coordinate descent, with no other method to go to."""
    if model.ledger.matrix.n_with_rows:
        raise SettingsError(
            "setting method is 'coordinate_descent', which takes no model with private rows or at_least: use 'auto'"
        )
    sign = model.ledger.sign
    outcome = Solve(model.ledger.matrix, iterate, settings, callback, sign * model.offset, watch).run()
    return solution_of(model, iterate, outcome, watch.elapsed_s, restart_reason)


def solution_of(
    model: Model, iterate: Iterate, outcome: Outcome, seconds: float, restart_reason: str | None
) -> Solution:
    """How a solve ended, in the signs and with the constant of the model's objective."""
    sign = model.ledger.sign
    objective = sign * outcome.objective + model.offset
    bound, certified = proven_bound(model, outcome.priced.bound, outcome.priced.margin, outcome.priced.certified)
    values = sparse_values(model.ledger, iterate.ws.key, iterate.ws.x.copy(), sign * outcome.priced.y)
    version, status, ray = model.version, outcome.status, outcome.ray
    whole_ray = None
    if ray is not None:
        improving = status is Status.DUAL_INFEASIBLE
        whole_ray = partial(dense_ray, model.ledger, values.key, improving, ray, version)
    infeasible = status is Status.PRIMAL_INFEASIBLE and whole_ray is not None
    return Solution.of_model(
        status,
        objective,
        bound,
        certified,
        with_bound(outcome.residuals, objective, bound),
        values,
        whole_ray,
        (lambda: named_by(model.ledger, whole_ray(), version)) if infeasible and whole_ray is not None else None,
        solve_time_s=seconds,
        model_version=version,
        iterations=outcome.newton_steps,
        pricing_passes=outcome.passes,
        proximal_steps=outcome.proximal_steps,
        restart_reason=restart_reason,
    )
