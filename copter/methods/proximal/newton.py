"""Semismooth Newton method on the prices: maximises the dual of one proximal subproblem (equations A5-A7)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.linalg.lapack import dposv
from scipy.sparse.linalg import LinearOperator, cg

from copter.methods.proximal.ascent import Ascent, jacobian_product, newton_matrix
from copter.methods.proximal.project import Dual, Projection, Slacks
from copter.methods.proximal.row_sums import is_within
from copter.methods.proximal.working_set import WorkingSet
from copter.runtime.threads import safe_threads

Floats = NDArray[np.float64]

REGULARISATION = 1e-12  # added to the Newton matrix's diagonal, relative to the largest possible diagonal entry
SMALL_WORKING_SET = 50_000  # columns below which one thread is faster than several
FEW_ROWS = 64  # Newton systems of at most this many rows are solved inside the compiled ascent
DENSE_ROWS = 1500  # Newton systems of more rows are solved by conjugate gradients, not factorised
MAX_NEWTON_STEPS = 100  # most Newton steps in one proximal step


@dataclass(slots=True)
class Rows:
    """Coupling rows lower <= A x <= upper, with the size of their coefficients."""

    lower: Floats
    upper: Floats
    scale: Floats


class Region(NamedTuple):
    """Prices that are at most radius * weight from their bases."""

    base: Floats
    weight: Floats
    radius: float

    def inside(self, y: Floats) -> bool:
        """Whether all prices are in the region."""
        return is_within(y, self.base, self.weight, self.radius)


@dataclass(slots=True)
class Point:
    """Slack and residual (slack - A x) at prices y; x is the subproblem's."""

    y: Floats
    slack: Floats
    residual: Floats


class Subproblem:
    """A proximal subproblem: the working set, a center, and the proximal parameter."""

    def __init__(
        self, ws: WorkingSet, rows: Rows, center: Floats, slack_center: Floats, sigma: float, n_threads: int = 1
    ) -> None:
        self.ws, self.rows = ws, rows
        pieces = n_threads if ws.size >= SMALL_WORKING_SET else 1
        activities, values, self.x = np.empty((pieces, len(rows.lower))), np.empty(pieces), np.empty(ws.size)
        self.columns = ws.groups()
        out = Projection(self.x, ws.free, ws.multiplier, activities, values)
        slacks = self.centered(center, slack_center, sigma)
        self.dual = Dual(self.columns, slacks, center, sigma, out, safe_threads(pieces))

    def centered(self, center: Floats, slack_center: Floats, sigma: float) -> Slacks:
        """Take another center and parameter; returns the slacks."""
        self.center, self.slack_center, self.sigma = center, slack_center, sigma
        self.slack_sigma = sigma * self.rows.scale**2
        return Slacks(slack_center, self.slack_sigma, self.rows.lower, self.rows.upper, self.rows.scale)

    def begin(self, center: Floats, slack_center: Floats, sigma: float) -> None:
        """Become the subproblem of another center and parameter."""
        self.dual.begin(self.centered(center, slack_center, sigma), center, sigma)

    def evaluate(self, y: Floats) -> Point:
        """Project every block at prices y (equation A4)."""
        slack, residual = np.empty(len(y)), np.empty(len(y))
        self.dual.evaluate(y, slack, residual)
        return Point(y, slack, residual)

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


def maximise(
    problem: Subproblem,
    ascent: Ascent,
    y: Floats,
    stop: Callable[[], bool] = lambda: False,
    direction_at: Direction = Subproblem.newton_direction,
) -> tuple[Point, int]:
    """Maximise the subproblem's dual from prices y; return the last point and the steps taken.

    The ascent ends when every row's residual is within its tolerance. It ends earlier if `stop` returns True, the
    prices leave the ascent's region, the line search finds no better point, or :data:`MAX_NEWTON_STEPS` are taken. On
    return ``problem.x`` holds the blocks' projections at the last point.

    Parameters
    ----------
    problem : Subproblem
    ascent : Ascent
        Of the problem's dual.
    y : float64 array (rows,)
    stop : callable
        Called before every step.
    direction_at : callable
        Returns the Newton direction at a point, or nearly that.
    """
    inline = direction_at is Subproblem.newton_direction and len(y) <= FEW_ROWS

    def direction(prices: Floats, residual: Floats) -> Floats:
        return direction_at(problem, Point(prices, problem.slack_center, residual))

    steps, prices, slack, residual = ascent.run(y, stop, MAX_NEWTON_STEPS, None if inline else direction)
    return Point(prices, slack, residual), steps
