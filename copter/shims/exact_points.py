"""Feasibility of points in exact arithmetic, and the smallest correction that makes a near point feasible."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.sparse.linalg import splu

from copter.problem.linear_program import LinearProgram
from copter.shims.feasibility import exceeded, two_products

Floats = NDArray[np.float64]

NEAR = 1e-5  # rows this close to a bound, in units of 1 + |bound|, are kept on it while continuous columns move
STEPS = 4  # most corrections; each one about doubles the number of correct digits
SNAP = 1e-9  # columns this close to a bound or whole number, in units of 1 + |value|, are set to it
LITTLE = 1e-12  # share of the largest entry that is added to the normal equations' diagonal, so that they have a factor
SMALLEST = 1e-6  # columns move in proportion to their size, or to this share of the largest value if they are smaller


class ExactPoints:
    """Makes points feasible in exact arithmetic, by the rules of :func:`copter.shims.require_feasible`.

    Parameters
    ----------
    lp : LinearProgram

    Attributes
    ----------
    refused : int
        Number of points within a search's tolerance that could not be made exact.
    """

    def __init__(self, lp: LinearProgram) -> None:
        self.lp, self.refused = lp, 0
        self.rows = sp.csr_array(lp.A)
        self.row = np.repeat(np.arange(lp.shape[0], dtype=np.int32), np.diff(self.rows.indptr))
        self.continuous = np.flatnonzero(~lp.integrality)

    def __call__(self, x: Floats) -> Floats | None:
        """Return the point if it is feasible, otherwise a near one with the same integer columns, or None."""
        if self.holds(x):
            return x
        if self.is_far(x):
            return None
        if len(self.continuous):
            for near in (self.snapped(x), x):
                found = self.exact_near(near)
                if found is not None:
                    return found
        self.refused += 1
        return None

    def exact_near(self, x: Floats) -> Floats | None:
        """Return the point after a few corrections, if one makes it feasible."""
        if self.holds(x):
            return x
        for _ in range(STEPS):
            moved = self.corrected(x)
            if moved is None:
                return None
            if self.holds(moved):
                return moved
            x = moved
        return None

    def snapped(self, x: Floats) -> Floats:
        """Return the point with continuous columns set to a bound or whole number that they miss by rounding only.

        A search leaves them 1e-14 off zero, and no correction of a share of that makes `x <= 400 z`, `z = 0` hold.
        """
        found, free = x.copy(), self.continuous
        for side in (np.rint(x[free]), self.lp.col_lower[free], self.lp.col_upper[free]):
            finite = np.isfinite(side)
            close = finite & (np.abs(x[free] - np.where(finite, side, 0.0)) <= SNAP * (1.0 + np.abs(x[free])))
            found[free[close]] = side[close]
        return np.clip(found, self.lp.col_lower, self.lp.col_upper)

    def holds(self, x: Floats) -> bool:
        """Whether every row and bound holds in exact arithmetic, with the allowance for decimals of
        `feasibility.py`.
        """
        lp, value = self.lp, x[self.rows.indices]
        if not ((x >= lp.col_lower).all() and (x <= lp.col_upper).all()):
            return False
        over = exceeded(lp.row_upper, self.row, self.rows.data, value)
        return not len(over) and not len(exceeded(-lp.row_lower, self.row, -self.rows.data, value))

    def is_far(self, x: Floats) -> bool:
        """Whether a row is violated by more than rounding, so that no small correction can make the point feasible."""
        lp, activity = self.lp, self.lp.A @ x
        low, high = (np.where(np.isfinite(side), side, 0.0) for side in (lp.row_lower, lp.row_upper))
        below, above = lp.row_lower - NEAR * (1.0 + np.abs(low)), lp.row_upper + NEAR * (1.0 + np.abs(high))
        return bool(((activity < below) | (activity > above)).any())

    def corrected(self, x: Floats) -> Floats | None:
        """Return the point with its continuous columns moved as little as possible, so that nearly violated rows hold.

        Each column is held as a sum of two numbers meanwhile, so that the rounded result differs from the exact point
        by at most half a unit in the last place.
        """
        lp, activity = self.lp, self.lp.A @ x
        side = np.clip(activity, lp.row_lower, lp.row_upper)
        for bound in (lp.row_lower, lp.row_upper):
            finite = np.isfinite(bound)
            near = finite & (np.abs(activity - np.where(finite, bound, 0.0)) <= NEAR * (1.0 + np.abs(bound)))
            side = np.where(near & (side == activity), bound, side)
        tight = np.flatnonzero((side == lp.row_lower) | (side == lp.row_upper))
        free = self.continuous[
            (x[self.continuous] > lp.col_lower[self.continuous]) & (x[self.continuous] < lp.col_upper[self.continuous])
        ]
        if not len(tight) or not len(free):
            return None
        high, low = x.copy(), np.zeros(len(x))
        scale = np.maximum(np.abs(x[free]), SMALLEST * (1.0 + np.abs(x[free]).max()))
        system = sp.csr_array(self.rows[tight][:, free] @ sp.diags_array(scale))
        for _ in range(STEPS):
            step = scale * least_step(system, self.missing(tight, high, low, side))
            total = high[free] + (low[free] + step)
            low[free] = (high[free] - total) + (low[free] + step)
            high[free] = total
        return np.clip(high, lp.col_lower, lp.col_upper)

    def missing(self, tight: NDArray[np.intp], high: Floats, low: Floats, side: Floats) -> Floats:
        """Return bound minus activity of some rows, for a point in two parts, summed in extended precision."""
        rows = sp.csr_array(self.rows[tight])
        column, value = rows.indices, rows.data
        product, rest = two_products(value, high[column])
        wide = product.astype(np.longdouble) + (rest + value * low[column])
        sums = np.add.reduceat(np.append(wide, np.longdouble(0.0)), rows.indptr[:-1])
        sums[np.diff(rows.indptr) == 0] = 0.0
        return (side[tight].astype(np.longdouble) - sums).astype(np.float64)


def least_step(system: sp.csr_array, miss: Floats) -> Floats:
    """Return about the smallest step that removes the rows' misses; dependent rows share their miss."""
    normal = sp.csc_array(system @ system.T)
    size = float(normal.diagonal().max(initial=0.0))
    if not size > 0.0 or not np.isfinite(size):
        return np.zeros(system.shape[1])
    try:
        factor = splu(sp.csc_matrix(normal + LITTLE * size * sp.eye_array(normal.shape[0])))
    except RuntimeError:  # the factor is singular all the same
        return np.zeros(system.shape[1])
    found: Floats = system.T @ factor.solve(miss)
    return found if np.isfinite(found).all() else np.zeros(system.shape[1])
