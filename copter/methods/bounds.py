"""A proven bound and the residuals with it, in the signs and with the constant of a model's objective."""

from __future__ import annotations

from dataclasses import replace
from math import isfinite
from sys import float_info

from copter.model.model import Model
from copter.problem.checker import check
from copter.problem.residuals import Residuals, relative_gap
from copter.problem.solution import Solution, Status


def proven_bound(model: Model, lowest: float, margin: float, certified: bool) -> tuple[float, bool]:
    """(bound, whether it is certified).

    Parameters
    ----------
    model : Model
    lowest : float
        As minimised and without the objective's constant.
    margin : float
        What rounding may have added; taken off a certified bound, as is what the rounding of stored costs may hide.
    certified : bool
        Whether the margin says all.
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
    """The residuals with the gap between these two."""
    return replace(raw, gap=relative_gap(objective, bound), gap_absolute=abs(objective - bound))


def sharpened(model: Model, solution: Solution, tolerance: float) -> Solution:
    """The solution with the bound that its prices prove exactly, where what rounding may hide leaves too wide a gap.

    The running margin of a pass grows with the largest terms; where these are many times the objective, an optimum
    would be returned with a bound that does not show it. Where the exact bound does not show it either, the prices are
    not good enough: NUMERICAL_ERROR.
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
