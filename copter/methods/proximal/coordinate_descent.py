"""Proximal steps by coordinate descent alone: no factorisation anywhere (equations A12 to A14).

The thesis's own solver (section 4.3.2), as `Settings(method="coordinate_descent")`.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from copter.methods.proximal.newton import Rows
from copter.methods.proximal.proximal_point import MAX_SIGMA, Control, Progress, restricted_dual, signed_prices
from copter.methods.proximal.sweep import refresh_prices, sweep
from copter.methods.proximal.working_set import WorkingSet
from copter.problem.residuals import relative_gap
from copter.problem.sums import inner, norm

Floats = NDArray[np.float64]

SWEEPS = 50  # most sweeps in one proximal step
# limits of the longest step, in units of x's size, below which a sweep has converged
LEAST_MOVE, MOST_MOVE = 1e-11, 1e-4
MOVE_SHARE = 0.01  # that step, within these limits, as a share of the present error
# limits of the penalty, in units of the largest cost over a row's largest squared coefficient
LEAST_PENALTY, MOST_PENALTY = 1e-3, 1e3
PENALTY_STEP = 2.0  # factor by which the penalty rises or falls
LONGER = 4.0  # factor by which a multiplier step grows while the dual value rises
MOST_LONGER = 10  # most times that one multiplier step grows
ENOUGH = 0.25  # the penalty grows if a converged step leaves more than this share of the last step's row residual


class Descent:
    """Coordinate descent on the augmented Lagrangian of A1 for one working set.

    Parameters
    ----------
    ws : WorkingSet
        Working set; its x is changed in place.
    rows : Rows
    """

    def __init__(self, ws: WorkingSet, rows: Rows) -> None:
        self.ws, self.rows = ws, rows
        self.active = np.empty(ws.size, dtype=np.uint8)
        largest = float(np.abs(ws.cost).max(initial=0.0))
        self.unit = largest if largest > 0.0 else 1.0
        size = np.zeros(len(rows.lower))
        np.maximum(size, np.where(np.isfinite(rows.lower), np.abs(rows.lower), 0.0), out=size)
        np.maximum(size, np.where(np.isfinite(rows.upper), np.abs(rows.upper), 0.0), out=size)
        self.row_size = size

    def step(self, y: Floats, sigma: float, penalty: float, error: float, control: Control) -> tuple[Floats, int, bool]:
        """Take one proximal step from ws.x: sweep until changes are small, then update the multipliers.

        Groups that do not move are left out of the next sweeps (the active set) until no active one moves; then all
        are swept again.

        Returns
        -------
        y : ndarray (m,)
            The next multipliers.
        sweeps : int
        converged : bool
            Whether a sweep over all groups hardly moved.
        """
        ws, rows = self.ws, self.rows
        center, activity = ws.x.copy(), ws.activity(len(y))
        stiffness = penalty * self.unit / rows.scale**2
        price = np.empty(len(y))
        refresh_prices(rows.lower, rows.upper, y, stiffness, activity, price)
        size = max(1.0, float(np.abs(ws.x).max(initial=0.0)))
        small = size * min(max(MOVE_SHARE * error, LEAST_MOVE), MOST_MOVE)
        everywhere, done, converged = True, 0, False
        while done < SWEEPS and not converged and not control.stop():
            if everywhere:
                self.active[:] = 1
            moved = sweep(
                ws.start,
                ws.limit,
                ws.cost,
                ws.lower,
                ws.upper,
                ws.entry_start,
                ws.row,
                ws.coefficient,
                rows.lower,
                rows.upper,
                y,
                stiffness,
                center,
                sigma / self.unit,
                ws.x,
                activity,
                price,
                self.active,
                small,
            )
            done += 1
            converged = everywhere and moved <= small
            everywhere = moved <= small
        return price, done, converged

    def further(self, old: Floats, y: Floats, inside: Callable[[Floats], bool]) -> tuple[Floats, float, Floats]:
        """Extend the multiplier step while the dual value rises, without a sweep.

        Returns the prices, the dual value there, and the reduced costs left out of it.
        """
        (best, wrong), way, length = restricted_dual(self.ws, self.rows, y), y - old, 1.0
        for _ in range(MOST_LONGER):
            length *= LONGER
            farther = signed_prices(old + length * way, self.rows)
            if not inside(farther):
                break
            value, beyond = restricted_dual(self.ws, self.rows, farther)
            if not value > best or beyond.any():
                break
            best, wrong, y = value, beyond, farther
        return y, best, wrong

    def violation(self) -> tuple[Floats, float]:
        """Return each row's violation, (m,), and its norm relative to the rows' bounds."""
        activity = self.ws.activity(len(self.row_size))
        over = np.maximum(np.maximum(activity - self.rows.upper, self.rows.lower - activity), 0.0)
        return over, norm(over) / (1.0 + norm(self.row_size))

    def gap(self, dual: float, wrong: Floats, offset: float) -> float:
        """Return the larger of the relative gap and the dual residual of the working set's own program."""
        gap = relative_gap(inner(self.ws.cost, self.ws.x) + offset, dual + offset)
        return max(gap, norm(wrong) / (1.0 + norm(self.ws.cost)))


class Descending:
    """Proximal steps by coordinate descent: a `Steps` of proximal_point.py that keeps the rows' penalty between calls.

    `newton_steps` of the result counts sweeps.
    """

    def __init__(self) -> None:
        self.penalty = 1.0

    def __call__(
        self, ws: WorkingSet, rows: Rows, y: Floats, sigma: float, control: Control, inside: Callable[[Floats], bool]
    ) -> Progress:
        """Take proximal steps from (ws.x, y) until the working set's relative gap is within tolerance."""
        settings, descent = control.settings, Descent(ws, rows)
        gap, error, sweeps, last, step = np.inf, 1.0, 0, np.inf, 0
        displacement, old, done = np.zeros(ws.size), y, False
        while step < settings.max_proximal_steps and not done and not control.stop() and inside(y):
            step, before, old = step + 1, ws.x.copy(), y
            y, taken, settled = descent.step(old, sigma, self.penalty, error, control)
            sweeps += taken
            moved = ws.x - before
            if np.abs(moved).max(initial=0.0) >= np.abs(displacement).max(initial=0.0):
                displacement = moved
            plain, (y, dual, wrong) = y, descent.further(old, y, inside)
            over, violation = descent.violation()
            gap = descent.gap(dual, wrong, control.offset)
            done = bool(np.all(over <= control.row_tolerance)) and gap <= control.tolerance
            error = max(violation, min(gap, 1.0))
            left = norm((plain - old) * rows.scale**2) / (self.penalty * descent.unit)  # slacks are included, as in A10
            if not settled:
                self.penalty = max(self.penalty / PENALTY_STEP, LEAST_PENALTY)
            elif left > ENOUGH * last:
                self.penalty = min(self.penalty * PENALTY_STEP, MOST_PENALTY)
            last = left
            if not done:
                sigma = min(sigma * settings.sigma_growth, MAX_SIGMA)
        return Progress(y, sigma, step, sweeps, gap, done, displacement, price_step=y - old)
