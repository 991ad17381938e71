"""From a point near the optimal face onto it: what is at a bound goes there exactly (equation I7)."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from copter.interior.normal_equations import NormalEquations
from copter.interior.point import Point
from copter.interior.standard_form import StandardForm

Floats = NDArray[np.float64]

ROUNDS = 3  # of correction
DELTA = 1e-13  # added to the diagonal of the normal equations, times their largest entry


def polished(form: StandardForm, system: NormalEquations, point: Point) -> tuple[Floats, Floats]:
    """(t, y) with every column that is nearer to a bound than its reduced cost is to zero at that bound.

    The others are moved as little as possible, in units of their distance from the bounds, so that the equations hold;
    the prices as little as possible so that the others' reduced costs vanish. Columns that would cross a bound stop at
    it.
    """
    boxed = np.isfinite(form.width)
    at_lower = ~form.free & (point.t < point.z) & ~(boxed & (point.w < point.v) & (point.w < point.t))
    at_upper = boxed & (point.w < point.v) & ~at_lower
    inside = ~(at_lower | at_upper)
    t = np.where(at_lower, 0.0, np.where(at_upper, form.width, point.t))
    room = np.where(form.free, np.maximum(1.0, np.abs(point.t)), np.minimum(point.t, np.where(boxed, point.w, np.inf)))
    theta = np.where(inside, np.maximum(room, 1e-12) ** 2, 0.0)
    theta /= max(float(theta.max(initial=0.0)), 1e-300)
    theta = np.maximum(theta, np.where(inside, 1e-20, 0.0))
    system.factorise(theta, DELTA * max(float(theta.max(initial=0.0)), 1e-300))
    y = point.y.copy()
    for _ in range(ROUNDS):
        t = t + theta * (form.matrix.T @ system.solve(form.right - form.matrix @ t))
        t = np.where(form.free, t, np.clip(t, 0.0, form.width))
        wrong = np.where(inside, form.cost - form.matrix.T @ y, 0.0)
        y = y + system.solve(form.matrix @ (theta * wrong))
    return t, y
