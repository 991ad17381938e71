"""Semismooth Newton method on the prices: maximises the dual of one proximal subproblem (equations A5-A7)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.linalg.lapack import dposv
from scipy.sparse.linalg import LinearOperator, cg

from copter.methods.proximal.project import Projection, jacobian_product, newton_matrix, project, slack_part
from copter.methods.proximal.working_set import WorkingSet
from copter.runtime.threads import safe_threads

Floats = NDArray[np.float64]

SUFFICIENT = 0.9  # a step is long enough once the slope along it is below this share of the slope at its start
REGULARISATION = 1e-12  # added to the Newton matrix's diagonal, relative to the largest possible diagonal entry
RADIUS = 10.0  # the first trial step moves prices by at most this many times their size
GROWTH = 4.0  # factor by which a step grows while the slope along it stays too large
SMALL_WORKING_SET = 50_000  # columns below which one thread is faster than several
DENSE_ROWS = 1500  # Newton systems of more rows are solved by conjugate gradients, not factorised
MAX_NEWTON_STEPS = 100  # most Newton steps in one proximal step
MAX_TRIALS = 40  # most evaluations in one line search


@dataclass(slots=True)
class Rows:
    """Coupling rows lower <= A x <= upper, with the size of their coefficients."""

    lower: Floats
    upper: Floats
    scale: Floats


@dataclass(slots=True)
class Point:
    """Dual value, slack and residual (slack - A x) at prices y; x is in the caller's array."""

    y: Floats
    value: float
    slack: Floats
    residual: Floats


class Subproblem:
    """A proximal subproblem: the working set, a center, and the proximal parameter."""

    def __init__(
        self, ws: WorkingSet, rows: Rows, center: Floats, slack_center: Floats, sigma: float, n_threads: int = 1
    ) -> None:
        self.ws, self.rows, self.center, self.slack_center, self.sigma = ws, rows, center, slack_center, sigma
        self.slack_sigma = sigma * rows.scale**2
        pieces = n_threads if ws.size >= SMALL_WORKING_SET else 1
        self.values = np.empty(pieces)
        self.x = np.empty(ws.size)
        self.last: Point | None = None
        self.columns = ws.groups()
        self.out = Projection(self.x, ws.free, ws.multiplier, np.empty((pieces, len(rows.lower))), self.values)
        self.cost_size = float(np.abs(ws.cost).max(initial=0.0))

    def evaluate(self, y: Floats) -> Point:
        """Project every block at prices y (equation A4)."""
        project(self.columns, self.center, self.sigma, y, self.out, safe_threads(len(self.values)))
        rows = self.rows
        self.last = Point(y, *slack_part(self.slack_center, self.slack_sigma, rows.lower, rows.upper, y, self.out))
        return self.last

    def again(self, point: Point) -> Point:
        """Evaluate a point again, so that x is the blocks' projections there, unless it was the last one evaluated."""
        return point if point is self.last else self.evaluate(point.y)

    def slack_curvature(self, point: Point) -> Floats:
        """Return the slacks' part of the Newton matrix's diagonal (delta of equation A6), a little above zero."""
        target = self.slack_center - self.slack_sigma * point.y
        inside = (target > self.rows.lower) & (target < self.rows.upper)
        return np.where(inside, self.slack_sigma, 0.0) + REGULARISATION * self.slack_sigma

    def matrix(self, slack: Floats) -> Floats:
        """Return the Newton matrix, (m, m), with these curvatures of the slacks (equation A6)."""
        matrix = np.diag(slack)
        newton_matrix(self.columns, self.ws.free, self.ws.multiplier, self.sigma, matrix)
        return matrix

    def newton_direction(self, point: Point) -> Floats:
        """Solve (sigma A J A' + slack part) d = residual."""
        slack = self.slack_curvature(point)
        if len(slack) <= DENSE_ROWS:
            return solve_dense(self.matrix(slack), point.residual)
        return self.solve_iteratively(slack, point.residual)

    def solve_iteratively(self, diagonal: Floats, residual: Floats) -> Floats:
        """Conjugate gradients with the diagonal as preconditioner."""
        ws, n = self.ws, len(residual)

        def apply(direction: Floats) -> Floats:
            product = diagonal * direction
            along = np.ascontiguousarray(direction).ravel()
            jacobian_product(self.columns, ws.free, ws.multiplier, self.sigma, along, product)
            return product

        weight = np.repeat(ws.free.astype(np.float64), np.diff(ws.entry_start)) * self.sigma
        approximate = diagonal + np.bincount(ws.row, weights=weight * ws.coefficient**2, minlength=n)
        operator = LinearOperator((n, n), matvec=apply, dtype=np.float64)
        inverse = LinearOperator((n, n), matvec=lambda v: v / approximate, dtype=np.float64)
        norm = float(np.linalg.norm(residual))
        direction, _ = cg(operator, residual, rtol=min(1e-2, norm), maxiter=min(4 * n, 500), M=inverse)
        return np.asarray(direction)


Direction = Callable[[Subproblem, Point], Floats]


def solve_dense(matrix: Floats, residual: Floats) -> Floats:
    """Solve a positive semidefinite system by Cholesky, with more regularisation where it breaks down."""
    size = matrix.diagonal()
    extra = 0.0
    for _ in range(8):
        _, solution, breakdown = dposv(matrix + np.diag(extra * size) if extra else matrix, residual, lower=1)
        if breakdown == 0:
            return np.asarray(solution)
        extra = max(10.0 * extra, 1e-10)
    return np.asarray(residual / np.maximum(size, 1e-300))


def search(problem: Subproblem, start: Point, direction: Floats) -> Point:
    """Line search: return the point where the concave dual's slope along a direction nearly vanishes, or the start.

    The slope is piecewise linear and decreasing: the step grows while the slope stays steep; then secant steps, kept
    away from the ends of the bracket, approach the slope's zero.
    """
    slope = float(direction @ start.residual)
    size = float(np.abs(direction * problem.rows.scale).max(initial=0.0))
    reach = RADIUS * (float(np.abs(start.y * problem.rows.scale).max(initial=0.0)) + problem.cost_size)
    length = min(1.0, reach / size) if reach > 0 and size > 0 else 1.0
    low, low_slope, high, high_slope = 0.0, slope, np.inf, 0.0
    best = start
    for trial in range(MAX_TRIALS):
        point = problem.evaluate(start.y + length * direction)
        here = float(direction @ point.residual)
        if here >= 0.0:
            best, low, low_slope = point, length, here
            if here <= SUFFICIENT * slope or (length >= 1.0 and np.isinf(high)):
                return point
        else:
            high, high_slope = length, here
            if point.value > start.value and -here <= SUFFICIENT * slope:
                return point
        if np.isinf(high):
            length = min(GROWTH * length, 1.0)
        else:
            secant = low + (high - low) * low_slope / (low_slope - high_slope)
            margin = 0.1 * (high - low) if trial % 2 else 0.01 * (high - low)
            length = min(max(secant, low + margin), high - margin)
        if not low < length or (length == low):
            break
    return best


def maximise(
    problem: Subproblem,
    y: Floats,
    tolerance: Floats,
    stop: Callable[[], bool] = lambda: False,
    inside: Callable[[Floats], bool] = lambda y: True,
    direction_at: Direction = Subproblem.newton_direction,
) -> tuple[Point, int]:
    """Maximise the subproblem's dual from prices y by Newton steps; return the last point and the steps taken.

    The ascent ends when every row's residual is at most its `tolerance`. It ends earlier if `stop` returns True, the
    prices are not `inside`, the line search finds no better point, or :data:`MAX_NEWTON_STEPS` are taken. On
    return ``problem.x`` holds the blocks' projections at the last point.

    Parameters
    ----------
    problem : Subproblem
    y : float64 array (rows,)
    tolerance : float64 array (rows,)
    stop, inside : callable
        Called before every step; `inside` gets the prices.
    direction_at : callable
        Returns the Newton direction at a point, or nearly that.
    """
    point = problem.evaluate(y)
    for step in range(MAX_NEWTON_STEPS):
        if np.all(np.abs(point.residual) <= tolerance) or stop() or not inside(point.y):
            return problem.again(point), step
        direction = direction_at(problem, point)
        if not float(direction @ point.residual) > 0.0:
            direction = point.residual / problem.slack_sigma
        moved = search(problem, point, direction)
        if moved is point:
            return problem.again(point), step
        point = moved
    return problem.again(point), MAX_NEWTON_STEPS
