"""A plan with a proof: that no plan of the model is better, judged by ``copter verify`` without the engine."""

from __future__ import annotations

import os
from dataclasses import replace

import numpy as np

from copter.errors import SettingsError
from copter.methods.integer.clock import Clock
from copter.methods.integer.proof import prove
from copter.methods.integer.solution import IntegerStatus
from copter.methods.integer.solve import solve_integer
from copter.model.model import Model
from copter.problem.solution import Solution
from copter.settings import Settings
from copter.shims.exact_points import ExactPoints
from copter.shims.plan import IntegerPlan
from copter.shims.searched import plan_at, point_of
from copter.storage.disk import PathLike

SEARCH_SHARE = 0.5  # of the time that is left, for a better plan than the shim's
BETTER = 1e-9  # relative


def require_new(path: PathLike) -> None:
    """SettingsError unless a proof can be written to a path: it begins a new file."""
    if not isinstance(path, (str, bytes, os.PathLike)):
        raise SettingsError(f"proof is a {type(path).__name__}, must be a path")
    if os.path.lexists(path):
        raise SettingsError(f"{os.fsdecode(path)} is there already: a proof begins a new file")


def best_of(model: Model, solution: Solution, plan: IntegerPlan, settings: Settings, time_left_s: float) -> IntegerPlan:
    """The plan, or a better one that a search of the whole program finds: only the best one can be proven.

    Parameters
    ----------
    model : Model
    solution : Solution
        Of the LP, with its bound.
    plan : IntegerPlan
        A feasible one.
    settings : Settings
        Of the relaxations.
    time_left_s : float
        Seconds, a part of which the search may take.
    """
    lp = model.to_linear_program()
    deadline_s = SEARCH_SHARE * time_left_s if np.isfinite(time_left_s) else None
    if deadline_s is not None and deadline_s <= 0.0:
        return plan
    found = solve_integer(lp, "dive", deadline_s, settings)
    better = found.x is not None and model.ledger.sign * (found.objective - plan.objective) < -BETTER * (
        1.0 + abs(plan.objective)
    )
    x = ExactPoints(lp)(found.x) if better and found.x is not None else None
    return plan if x is None else plan_at(model, lp, solution, x, False)


def with_proof(model: Model, plan: IntegerPlan, path: PathLike, settings: Settings, time_left_s: float) -> IntegerPlan:
    """The plan with what became of its proof; a plan that is proven is OPTIMAL.

    Raises
    ------
    InvalidDataError
        For a model that is too large for a proof.
    """
    clock = Clock(time_left_s)
    why = prove(model.to_linear_program(), point_of(model, plan), path, settings, None, lambda: clock.expired)
    if why:
        return replace(plan, proof=why)
    return replace(plan, proof="written", status=IntegerStatus.OPTIMAL)
