"""Plans with a proof that no plan of the model is better; ``copter verify`` checks it without the engine."""

from __future__ import annotations

import os
from dataclasses import replace

import numpy as np

from copter.methods.integer.clock import Clock
from copter.methods.integer.proof import prove
from copter.methods.integer.solution import IntegerStatus
from copter.methods.integer.solve import solve_integer
from copter.model.model import Model
from copter.problem.solution import Solution
from copter.runtime.errors import SettingsError
from copter.runtime.settings import Settings
from copter.shims.exact_points import ExactPoints
from copter.shims.plan import IntegerPlan
from copter.shims.searched import plan_at, point_of

PathLike = str | os.PathLike[str]
SEARCH_SHARE = 0.5  # share of the remaining time for the search for a better plan than the shim's
BETTER = 1e-9  # a plan counts as better from this relative gain on


def require_new(path: PathLike) -> None:
    """Raise SettingsError unless a new file can be made at the proof's path."""
    if not isinstance(path, (str, bytes, os.PathLike)):
        raise SettingsError(f"proof is a {type(path).__name__}, must be a path")
    if os.path.lexists(path):
        raise SettingsError(f"{os.fsdecode(path)} is there already: a proof begins a new file")


def best_of(model: Model, solution: Solution, plan: IntegerPlan, settings: Settings, time_left_s: float) -> IntegerPlan:
    """Return the plan, or a better one that a search of the whole program finds; only the best plan has a proof.

    Parameters
    ----------
    model : Model
    solution : Solution
        The LP's solution, with its bound.
    plan : IntegerPlan
        A feasible one.
    settings : Settings
        Settings of the search's LP relaxations.
    time_left_s : float
        Seconds that are left; the search takes a share of them.
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
    """Write the proof and return the plan with the outcome in `proof`; a proven plan has status OPTIMAL.

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
