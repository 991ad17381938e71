"""A point of the interior-point method and its residuals (equations I2, I3)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from copter.methods.interior.standard_form import StandardForm
from copter.problem.sums import inner, norm

Floats = NDArray[np.float64]


@dataclass(slots=True)
class Point:
    """Primal variables t (and w = width - t of boxed columns) and duals y, z (and v for upper bounds).

    Entries that do not exist (z of free columns, w and v of columns without an upper bound) hold a fixed number, 1 in w
    and 0 in z and v, and are not used.
    """

    t: Floats
    w: Floats
    y: Floats
    z: Floats
    v: Floats

    def copy(self) -> Point:
        """Return an independent copy."""
        return Point(self.t.copy(), self.w.copy(), self.y.copy(), self.z.copy(), self.v.copy())


@dataclass(slots=True)
class Direction:
    """A step for every part of a point."""

    t: Floats
    w: Floats
    y: Floats
    z: Floats
    v: Floats


@dataclass(frozen=True, slots=True)
class Misfit:
    """Residuals of a point: equations, upper bounds, reduced costs; and mean complementarity."""

    primal: Floats
    ends: Floats
    dual: Floats
    mu: float
    relative_primal: float
    relative_dual: float
    relative_gap: float

    @property
    def worst(self) -> float:
        """Largest of the three relative residuals."""
        return max(self.relative_primal, self.relative_dual, self.relative_gap)


def misfit_of(form: StandardForm, point: Point) -> Misfit:
    """Recompute the residuals of a point."""
    boxed = np.isfinite(form.width)
    primal = form.right - form.matrix @ point.t
    ends = np.where(boxed, form.width - point.t - point.w, 0.0)
    dual = form.cost - form.transpose @ point.y - point.z + point.v
    pairs = int((~form.free).sum() + boxed.sum())
    mu = (inner(point.t, point.z) + inner(point.w, point.v)) / max(pairs, 1)
    value = inner(form.cost, point.t)
    bound = inner(form.right, point.y) - inner(np.where(boxed, form.width, 0.0), point.v)
    return Misfit(
        primal=primal,
        ends=ends,
        dual=dual,
        mu=mu,
        relative_primal=norm(np.concatenate((primal, ends))) / (1.0 + norm(form.right)),
        relative_dual=norm(dual) / (1.0 + norm(form.cost)),
        relative_gap=abs(value - bound) / (form.unit + abs(value + form.constant)),
    )
