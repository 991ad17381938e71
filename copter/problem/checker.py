"""The engine's own checker: residuals, bounds and rays of a linear program, recomputed from the original data.

A solve is OPTIMAL, or a ray a proof, only if this file says so. It imports none of the methods that it judges. Tests
and benchmarks use another checker, which imports nothing of copter.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import inf, nextafter

import numpy as np
from numpy.typing import NDArray

from copter.problem.dual_bound import proven_dual_bound
from copter.problem.linear_program import LinearProgram
from copter.problem.residuals import Residuals, relative_gap

Floats = NDArray[np.float64]

LOSS = 1e-9  # a bound is called certified if its proof lowers it by at most this share
ROUNDING = 1e-14  # rounding error of a sum, as a share of the sum of its terms' absolute values
RAY_NOISE = 1e-9  # residual of a ray, as a share of its terms' absolute values, that counts as zero


@dataclass(frozen=True, slots=True)
class Judged:
    """The checker's findings; docs/method/formulation.md defines the figures (F6, F8-F11).

    `complementarity` is the largest product of a dual (or reduced cost) and the distance of its row (or column) from
    the bound that the sign of the dual belongs to, divided by 1 + |P| + |D|.
    """

    objective: float
    bound: float
    bound_is_certified: bool
    primal: float
    dual: float
    gap: float
    primal_absolute: float
    dual_absolute: float
    gap_absolute: float
    complementarity: float

    def within(self, tolerance: float, absolute_tolerance: float) -> bool:
        """Whether all residuals and products of complementarity are within tolerance (docs/method/formulation.md)."""
        return self.residuals.within(tolerance, absolute_tolerance) and self.complementarity <= tolerance

    @property
    def residuals(self) -> Residuals:
        """The six residuals (F8 to F11) of these findings, as :class:`Residuals`."""
        return Residuals(self.primal, self.dual, self.gap, self.primal_absolute, self.dual_absolute, self.gap_absolute)


def check(lp: LinearProgram, x: Floats, y: Floats) -> Judged:
    """Judge a primal point and row duals of an LP (HiGHS's signs) from the original data.

    Parameters
    ----------
    lp : LinearProgram
    x : ndarray (n,)
    y : ndarray (m,)
        Rows' duals. A dual whose sign belongs to an infinite bound of its row counts as dual violation; so does such a
        reduced cost.

    Returns
    -------
    Judged
        Its bound leaves out the terms of infinite bounds. It is certified if no such term was left out and all rounding
        errors are covered: then no feasible point is better, in exact arithmetic.
    """
    # infinite and NaN figures are allowed: they are not within tolerance
    with np.errstate(over="ignore", invalid="ignore"):
        return _judged(lp, x, y)


def _judged(lp: LinearProgram, x: Floats, y: Floats) -> Judged:
    sign = 1.0 if lp.sense == "min" else -1.0
    c, price = sign * lp.c, sign * np.asarray(y)
    activity = lp.A @ x
    violation = np.concatenate(
        (
            np.maximum(lp.row_lower - activity, 0.0),
            np.maximum(activity - lp.row_upper, 0.0),
            np.maximum(lp.col_lower - x, 0.0),
            np.maximum(x - lp.col_upper, 0.0),
        )
    )
    reduced = c - lp.A.T @ price
    dual_value, wrong, product = 0.0, [], 0.0
    for value, lower, upper, place in (
        (price, lp.row_lower, lp.row_upper, activity),
        (reduced, lp.col_lower, lp.col_upper, x),
    ):
        unsupported = ((value > 0) & np.isneginf(lower)) | ((value < 0) & np.isposinf(upper))
        wrong.append(np.where(unsupported, value, 0.0))
        supported = np.where(unsupported, 0.0, value)
        at = np.where(supported > 0, lower, upper)
        dual_value += float(np.sum(supported * np.where(supported == 0.0, 0.0, at)))
        distance = np.where(supported == 0.0, 0.0, place - np.where(supported == 0.0, 0.0, at))
        product = max(product, float(np.abs(supported * distance).max(initial=0.0)))
    dual_violation = np.concatenate(wrong)
    finite = np.concatenate((lp.row_lower[np.isfinite(lp.row_lower)], lp.row_upper[np.isfinite(lp.row_upper)]))
    primal_value = float(np.sum(c * x))
    objective, bound = sign * primal_value + lp.offset, sign * dual_value + lp.offset
    proven = proven_dual_bound(c, lp.A, lp.row_lower, lp.row_upper, lp.col_lower, lp.col_upper, price)
    certified = dual_value - proven <= LOSS * (1.0 + abs(dual_value) + abs(primal_value))
    if certified:
        bound = sign * (nextafter(proven + sign * lp.offset, -inf) if lp.offset else proven) + 0.0  # no -0.0
    return Judged(
        objective=objective,
        bound=bound,
        bound_is_certified=certified,
        primal=length(violation) / (1.0 + length(finite)),
        dual=length(dual_violation) / (1.0 + length(c)),
        gap=relative_gap(objective, bound),
        primal_absolute=float(violation.max(initial=0.0)),
        dual_absolute=float(np.abs(dual_violation).max(initial=0.0)),
        gap_absolute=abs(objective - bound),
        complementarity=product / (1.0 + abs(objective) + abs(bound)),
    )


def length(vector: Floats) -> float:
    """Return the Euclidean norm by a plain sum; BLAS would start its threads for a long vector, which takes longer."""
    return float(np.sqrt(np.sum(vector * vector)))


def integer_violation(lp: LinearProgram, x: Floats) -> float:
    """Return the largest distance of an integer column from a whole number, or of a semi-continuous one from its
    allowed values.
    """
    values = np.asarray(x)[lp.integrality]
    some = lp.semicontinuous > 0.0
    value, least = np.asarray(x)[some], lp.semicontinuous[some]
    below = np.minimum(np.abs(value), np.maximum(least - value, 0.0))
    return float(max(np.abs(values - np.round(values)).max(initial=0.0), below.max(initial=0.0)))


def supported_ray(lp: LinearProgram, ray: Floats, tolerance: float = 1e-7) -> Floats:
    """Return row multipliers scaled to a largest entry of 1, without those up to `tolerance` that no bound supports."""
    price: Floats = ray / np.abs(ray).max()
    price[np.isinf(np.where(price > 0, lp.row_lower, lp.row_upper)) & (np.abs(price) <= tolerance)] = 0.0
    return price


def is_infeasibility_ray(lp: LinearProgram, ray: Floats, tolerance: float = 1e-7) -> bool:
    """Whether row multipliers prove an LP primal infeasible: min over all bounds of ray'(s - A x) is positive.

    The ray is taken as :func:`supported_ray` makes it. Its value must exceed its rounding error. In a column without a
    finite bound on the needed side, its residual must be noise (`RAY_NOISE`), below `tolerance`, and below `tolerance`
    times the value: then no point whose absolute values sum to less than 1 / tolerance is feasible.
    """
    size = np.abs(ray).max(initial=0.0)
    if not 0.0 < size < np.inf:
        return False
    price = supported_ray(lp, ray, tolerance)
    reduced = -(lp.A.T @ price)
    terms = abs(lp.A).T @ np.abs(price)
    value, margin, unsupported = 0.0, 0.0, 0.0
    for multiplier, lower, upper, magnitude, noise in (
        (price, lp.row_lower, lp.row_upper, np.abs(price), 0.0),
        (reduced, lp.col_lower, lp.col_upper, terms, RAY_NOISE),
    ):
        bound = np.where(multiplier > 0, lower, upper)
        none = (multiplier == 0) | np.isinf(bound)
        if np.any(np.abs(multiplier[none]) > noise * magnitude[none]):
            return False
        unsupported = max(unsupported, float(np.abs(multiplier[none]).max(initial=0.0)))
        bound = np.where(none, 0.0, bound)
        value += float((multiplier * bound).sum())
        margin += float((np.abs(bound) * magnitude).sum())
    proven = np.isfinite(value) and value > ROUNDING * margin
    return bool(proven and unsupported <= tolerance * min(1.0, value))


def is_improving_ray(lp: LinearProgram, ray: Floats, tolerance: float = 1e-7) -> bool:
    """Whether the objective improves without bound along a direction in x that keeps every row and bound.

    The ray is scaled to a largest entry of 1; entries up to `tolerance` that point at a finite bound of their column
    are set to zero. A row's movement towards a finite bound must be noise (`RAY_NOISE`), at most `tolerance`, and at
    most `tolerance` times the slope of the objective, in units of the largest cost in the ray's columns.
    """
    size = np.abs(ray).max(initial=0.0)
    if not 0.0 < size < np.inf:
        return False
    direction = ray / size
    stopped = np.isfinite(np.where(direction > 0, lp.col_upper, lp.col_lower)) & (direction != 0)
    if np.any(np.abs(direction[stopped]) > tolerance):
        return False
    direction[stopped] = 0.0
    slope = float(lp.c @ direction) * (1.0 if lp.sense == "min" else -1.0)
    parts = np.abs(lp.c * direction)
    if not slope < -ROUNDING * float(parts.sum()):
        return False
    dearest = float(np.abs(lp.c[np.abs(direction) > tolerance]).max(initial=0.0))
    tolerance *= min(1.0, -slope / dearest) if dearest > 0 else 1.0
    change = lp.A @ direction
    allowed = np.minimum(tolerance, RAY_NOISE * (abs(lp.A) @ np.abs(direction)))
    blocked = (np.isfinite(lp.row_upper) & (change > allowed)) | (np.isfinite(lp.row_lower) & (change < -allowed))
    return not bool(blocked.any())
