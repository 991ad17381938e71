"""Conversion of a solve's end to a Solution: sign and constant of the objective, proven bound, ray, names.

Methods minimise and leave out the objective's constant. This file alone converts their answers to the model's sense and
constant.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from math import isfinite
from sys import float_info

import numpy as np
from numpy.typing import NDArray

from copter.methods.choose import Choice
from copter.model.assembly import named_by
from copter.model.model import Model
from copter.problem.checker import check
from copter.problem.residuals import Residuals, relative_gap
from copter.problem.solution import Solution, Status
from copter.problem.values import SparseValues

Ray = Callable[[], NDArray[np.float64]]


@dataclass(frozen=True, slots=True)
class Proven:
    """Objective, proven bound and residuals of a point, in the signs of the model and with its constant."""

    objective: float
    bound: float
    certified: bool
    residuals: Residuals

    @classmethod
    def of_minimised(
        cls, model: Model, objective: float, lowest: float, margin: float, certified: bool, residuals: Residuals
    ) -> Proven:
        """Convert a method's figures, which are minimised and lack the constant; `margin` as in
        :func:`proven_bound`.
        """
        own = model.ledger.sign * objective + model.offset
        bound, holds = proven_bound(model, lowest, margin, certified)
        return cls(own, bound, holds, with_bound(residuals, own, bound))


@dataclass(frozen=True, slots=True)
class Ended:
    """Where a method has brought a round.

    Attributes
    ----------
    status : Status
    proven : Proven
    values : SparseValues
        Values in the model's signs; dense arrays are made when they are read.
    choice : Choice
        The method that found the answer, and why it was tried.
    iterations, pricing_passes, proximal_steps : int
    ray : callable, optional
        Function that returns the verified proof that there is no optimum, in the order of ``Model.to_linear_program``.
    """

    status: Status
    proven: Proven
    values: SparseValues
    choice: Choice
    iterations: int
    pricing_passes: int = 1
    proximal_steps: int = 0
    ray: Ray | None = None


def solution_of(model: Model, ended: Ended, seconds: float, restart_reason: str | None) -> Solution:
    """Return the solution of the current model, which took these seconds; `restart_reason` says why it began cold."""
    proven, values, ray = ended.proven, ended.values, ended.ray
    version = model.version
    conflict = None
    if ray is not None and ended.status is Status.PRIMAL_INFEASIBLE:
        conflict = lambda: named_by(model.ledger, ray(), version)  # noqa: E731
    return Solution(
        status=ended.status,
        objective=proven.objective,
        bound=proven.bound,
        bound_is_certified=proven.certified,
        residuals=proven.residuals,
        iterations=ended.iterations,
        pricing_passes=ended.pricing_passes,
        proximal_steps=ended.proximal_steps,
        solve_time_s=seconds,
        model_version=version,
        restart_reason=restart_reason,
        working_columns=len(values.key),
        method=ended.choice.method,
        why=ended.choice.why,
        _dense=lambda: (values.behind.x(), *values.behind.dense()),
        _sparse=values,
        _ray=ray,
        _conflict=conflict,
    )


def proven_bound(model: Model, lowest: float, margin: float, certified: bool) -> tuple[float, bool]:
    """Return (bound in the model's terms, whether it is certified).

    Parameters
    ----------
    model : Model
    lowest : float
        Lower bound, as minimised and without the objective's constant.
    margin : float
        Largest rounding error of `lowest`. A certified bound is lowered by it, and by the largest effect of rounded
        stored costs.
    certified : bool
        Whether the margin covers every error.
    """
    rounding = model.ledger.matrix.rounding_bound()
    certified = certified and isfinite(rounding) and isfinite(margin)
    size = abs(lowest) + abs(rounding) + abs(model.offset)
    if isfinite(rounding):
        lowest -= rounding * (1.0 + 1e-12)
    if certified:
        lowest -= margin + 8.0 * float_info.epsilon * size
    return model.ledger.sign * lowest + model.offset, certified


def with_bound(raw: Residuals, objective: float, bound: float) -> Residuals:
    """Return the residuals with the gap between this objective and this bound."""
    gaps = relative_gap(objective, bound), abs(objective - bound)
    return Residuals(raw.primal, raw.dual, gaps[0], raw.primal_absolute, raw.dual_absolute, gaps[1])


def sharpened(model: Model, solution: Solution, tolerance: float) -> Solution:
    """Return the solution with an exactly computed bound if its rounding margin makes the gap too wide.

    The margin of a pass grows with the largest terms. If these are many times the objective, the bound of an optimum
    may miss the tolerance although the exact bound does not. If the exact bound misses it too, the prices are not good
    enough and the status becomes NUMERICAL_ERROR.
    """
    if solution.status is not Status.OPTIMAL or not solution.bound_is_certified or solution.gap <= tolerance:
        return solution
    judged, rounding = check(model.to_linear_program(), solution.x, solution.y), model.ledger.matrix.rounding_bound()
    bound, sign = judged.bound - model.ledger.sign * rounding * (1.0 + 1e-12), model.ledger.sign
    if judged.bound_is_certified and sign * bound > sign * solution.bound:
        residuals = with_bound(solution.residuals, solution.objective, bound)
        solution = replace(solution, bound=bound, residuals=residuals)
    if solution.gap > tolerance and rounding == 0.0:
        return replace(solution, status=Status.NUMERICAL_ERROR)
    return solution
