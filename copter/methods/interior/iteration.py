"""A standard form at an interior point: its directions and steps (equations I3-I6); the loop is path_following.py."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from copter.methods.interior.divergence import is_farkas
from copter.methods.interior.normal_equations import NormalEquations
from copter.methods.interior.point import Direction, Misfit, Point, misfit_of
from copter.methods.interior.standard_form import StandardForm
from copter.methods.path_following import LEAST_START, SMALL, follow
from copter.problem.sums import inner
from copter.runtime.watch import Stopped

Floats = NDArray[np.float64]

FREE_WEIGHT = 1e-3  # proximal weight of a free column t, in units of mu / max(1, t)^2, the weight of a bounded column
MOST_FREE_WEIGHT = 1e-7  # largest proximal weight of a free column
WEIGHT = 1e-13  # least proximal weight of a column, in units of 1 / max(1, t)^2: a large t may have to move far
DELTA = 1e-11  # added to the diagonal of the normal equations, times its largest entry at the start
NEAR = 1e-6  # relative residual below which a point is near an optimum: its prices are kept, and no ray is searched
NOTHING = 1e-15  # once the mean complementarity is below this, its fall no longer counts as progress
KEPT = 4  # most points whose prices are kept
HALFWAY = 1e-2  # another system of equations continues from the last point with at least this relative residual


class System(Protocol):
    """Interface of a linear system that yields a step."""

    def factorise(self, theta: Floats, delta: float) -> object:
        """Factorise for these weights."""

    def solve(self, right: Floats) -> Floats:
        """Return y with A diag(theta) A' y = right."""

    def step(self, short: Floats, known: Floats, rough: bool = False) -> tuple[Floats, Floats]:
        """Return (dt, dy) with A dt = short and A'dy - dt / theta = known; `rough` allows less accuracy."""


@dataclass(frozen=True, slots=True)
class Progress:
    """How the method ended: its best point, whether it met the goal, whether it was stopped.

    `earlier` holds prices of points before the best one, latest first. These points are further inside: if prices are
    large, their reduced costs have the right signs in spite of rounding.
    """

    point: Point
    misfit: Misfit
    iterations: int
    converged: bool
    stopped: bool
    earlier: tuple[Floats, ...] = ()


class PredictorCorrector:
    """The method for one standard form."""

    def __init__(
        self,
        form: StandardForm,
        goal: float,
        max_iterations: int,
        stop: Callable[[int, Misfit], bool],
        must_stop: Callable[[], bool] | None = None,
        system: System | None = None,
        least_start: float = LEAST_START,
    ) -> None:
        self.least_start = least_start
        self.form, self.goal, self.max_iterations, self.stop = form, goal, max_iterations, stop
        self.boxed = np.isfinite(form.width)
        self.bounded = ~form.free
        self.pairs = int(self.bounded.sum() + self.boxed.sum())
        self.iterations = 0
        self.earlier: deque[Floats] = deque(maxlen=KEPT)
        self.halfway: Point | None = None  # the run's last point with a residual of at least HALFWAY
        self.system: System = system or NormalEquations(form.matrix, must_stop)

    def run(self, start: Point | None = None) -> Progress:
        """Iterate to the goal, the limit, or a stall."""
        self.point = self.starting_point() if start is None else start
        self.best, self.best_misfit = self.point.copy(), misfit_of(self.form, self.point)
        try:
            with np.errstate(all="ignore"):
                _, stopped = follow(self, self.goal, self.max_iterations, self.stop)
        except Stopped:
            stopped = True
        converged = self.best_misfit.worst <= self.goal
        return Progress(self.best, self.best_misfit, self.iterations, converged, stopped, tuple(self.earlier))

    def measure(self) -> Misfit:
        """Measure the residuals of the present point."""
        self.misfit = misfit_of(self.form, self.point)
        return self.misfit

    def figures(self, measured: Misfit) -> Floats:
        """Return the figures; an iteration counts as progress if one of them falls enough."""
        return figures(measured, self.goal)

    def look(self, measured: Misfit) -> bool:
        """Keep the point if it is the best, or if it proves infeasibility; returns whether it proves that."""
        if measured.worst > HALFWAY and measured.worst <= self.best_misfit.worst:
            self.halfway = self.point.copy()
        diverged = measured.relative_primal > NEAR and is_farkas(self.form, self.point)
        if diverged or measured.worst < self.best_misfit.worst:
            if self.best_misfit.worst <= NEAR:
                self.earlier.appendleft(self.best.y)
            self.best, self.best_misfit = self.point.copy(), measured
        return diverged

    def starting_point(self) -> Point:
        """Return Mehrotra's starting point: the least-squares primal and dual, moved inside (equation I6)."""
        form, boxed, bounded = self.form, self.boxed, self.bounded
        width = np.where(boxed, form.width, 0.0)
        theta = np.where(boxed, 0.5, 1.0)
        self.factorise(theta)
        y = self.system.solve(form.right - form.matrix @ (0.5 * width))
        t = theta * (form.transpose @ y) + 0.5 * width
        y = self.system.solve(form.matrix @ (theta * form.cost))
        slack = form.cost - form.transpose @ y
        w = np.where(boxed, width - t, 1.0)
        z = np.where(boxed, np.maximum(slack, 0.0), slack)
        v = np.where(boxed, np.maximum(-slack, 0.0), 0.0)
        least = min(t[bounded].min(initial=0.0), w[boxed].min(initial=0.0))
        up = max(-1.5 * float(least), 0.0)
        least = min(z[bounded].min(initial=0.0), v[boxed].min(initial=0.0))
        out = max(-1.5 * float(least), 0.0)
        ta, wa = np.where(bounded, t + up, 0.0), np.where(boxed, w + up, 0.0)
        za, va = np.where(bounded, z + out, 0.0), np.where(boxed, v + out, 0.0)
        product = inner(ta, za) + inner(wa, va)
        up += 0.5 * product / max(float(za.sum() + va.sum()), SMALL) + SMALL
        out += 0.5 * product / max(float(ta.sum() + wa.sum()), SMALL) + SMALL
        up, out = max(up, self.least_start), max(out, self.least_start)
        return Point(
            t=np.where(bounded, t + up, t),
            w=np.where(boxed, w + up, 1.0),
            y=y,
            z=np.where(bounded, z + out, 0.0),
            v=np.where(boxed, v + out, 0.0),
        )

    def factorise(self, theta: Floats) -> None:
        """Factorise the system for new weights."""
        self.system.factorise(theta, DELTA)

    def predict(self) -> float:
        """Refill the normal equations and find the affine direction; returns the mean product after the longest
        step.
        """
        point, mu = self.point, self.misfit.mu
        t, size = np.where(self.bounded, point.t, 1.0), np.maximum(1.0, np.abs(point.t)) ** 2
        weight = np.where(self.bounded, 0.0, np.minimum(MOST_FREE_WEIGHT, FREE_WEIGHT * mu / size)) + WEIGHT / size
        self.theta = 1.0 / (point.z / t + point.v / point.w + weight)
        self.factorise(self.theta)
        self.aim = -point.t * point.z, -point.w * point.v
        self.way = self.direction(point, self.misfit, self.theta, *self.aim, True)
        return self.mu_after(point, self.way, *self.lengths(point, self.way))

    def centre(self, target: float, share: float) -> tuple[float, float]:
        """Find Mehrotra's direction, which aims at products of `target`; returns its lengths."""
        point, affine = self.point, self.way
        lower = np.where(self.bounded, target - point.t * point.z - affine.t * affine.z, 0.0)
        upper = np.where(self.boxed, target - point.w * point.v - affine.w * affine.v, 0.0)
        return self.turn(lower, upper)

    def correct(self, target: float, ahead: float, behind: float) -> tuple[float, float]:
        """Correct the direction so that the products after a step of these lengths come near `target`; returns its
        lengths.
        """
        point, way, (lower, upper) = self.point, self.way, self.aim
        self.before = way
        more_lower = self.correction(point.t, way.t, point.z, way.z, ahead, behind, target, self.bounded)
        more_upper = self.correction(point.w, way.w, point.v, way.v, ahead, behind, target, self.boxed)
        return self.turn(lower + more_lower, upper + more_upper)

    def turn(self, lower: Floats, upper: Floats) -> tuple[float, float]:
        """Set the direction for these right-hand sides; returns its lengths."""
        self.aim = lower, upper
        self.way = self.direction(self.point, self.misfit, self.theta, lower, upper)
        return self.lengths(self.point, self.way)

    def take_back(self) -> None:
        """Return to the direction before the last correction."""
        self.way = self.before

    @staticmethod
    def correction(
        x: Floats,
        dx: Floats,
        z: Floats,
        dz: Floats,
        ahead: float,
        behind: float,
        target: float,
        exists: NDArray[np.bool_],
    ) -> Floats:
        """Return changes of the complementarity targets that allow a longer step (Gondzio)."""
        product = (x + ahead * dx) * (z + behind * dz)
        low, high = 0.1 * target, 10.0 * target
        change = np.where(
            product < low, low - product, np.where(product > high, np.maximum(high - product, -high), 0.0)
        )
        return np.where(exists, change, 0.0)

    def direction(
        self, point: Point, misfit: Misfit, theta: Floats, lower: Floats, upper: Floats, rough: bool = False
    ) -> Direction:
        """Return Newton's direction for these right-hand sides of the complementarity equations (equation I4)."""
        t = np.where(self.bounded, point.t, 1.0)
        known = misfit.dual - lower / t + (upper - point.v * misfit.ends) / point.w
        dt, dy = self.system.step(misfit.primal, known, rough)
        dw = np.where(self.boxed, misfit.ends - dt, 0.0)
        dz = np.where(self.bounded, (lower - point.z * dt) / t, 0.0)
        dv = np.where(self.boxed, (upper - point.v * dw) / point.w, 0.0)
        return Direction(dt, dw, dy, dz, dv)

    def lengths(self, point: Point, direction: Direction) -> tuple[float, float]:
        """Return the longest primal and dual steps, at most 1, that stay inside."""
        t = np.where(self.bounded, direction.t, 0.0) if self.form.free.any() else direction.t
        primal = min(longest(point.t, t), longest(point.w, direction.w))
        dual = min(longest(point.z, direction.z), longest(point.v, direction.v))
        return min(1.0, primal), min(1.0, dual)

    def mu_after(self, point: Point, direction: Direction, ahead: float, behind: float) -> float:
        """Return the mean product after a step."""
        lower = inner(point.t + ahead * direction.t, point.z + behind * direction.z)
        upper = inner(point.w + ahead * direction.w, point.v + behind * direction.v)
        return (lower + upper) / max(self.pairs, 1)

    def move(self, ahead: float, behind: float) -> None:
        """Take a step of these lengths."""
        point, way = self.point, self.way
        point.t = point.t + ahead * way.t
        point.w = point.w + ahead * way.w
        point.y = point.y + behind * way.y
        point.z = point.z + behind * way.z
        point.v = point.v + behind * way.v


def figures(misfit: Misfit, goal: float) -> Floats:
    """Return the figures, each at least the goal; the method continues while one of them falls.

    mu falls in every iteration, so near the end its fall does not count.
    """
    mu = misfit.mu if misfit.worst > NEAR and misfit.mu > NOTHING else np.inf
    return np.maximum([misfit.relative_primal, misfit.relative_dual, misfit.relative_gap, mu], [goal, goal, goal, 0.0])


def longest(x: Floats, dx: Floats) -> float:
    """Return the largest step with x + step * dx >= 0; entries that do not exist have dx = 0."""
    steepest = float(np.min(dx / np.where(dx < 0.0, x, 1.0), initial=0.0, where=dx < 0.0))
    return -1.0 / steepest if steepest < 0.0 else np.inf
