"""The main loop: price all columns, stop or add columns, solve the working set, repeat (method/algorithm.md)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from copter.methods.choose import KEPT, Choice
from copter.methods.proximal.certificates import farkas, improving_ray
from copter.methods.proximal.descent import descend
from copter.methods.proximal.iterate import Iterate
from copter.methods.proximal.newton import Direction, Rows, Subproblem
from copter.methods.proximal.price_descent import descent_direction
from copter.methods.proximal.pricing import Priced, price_all
from copter.methods.proximal.proximal_point import Control, Progress, solve_in_one_call, solve_working_set
from copter.methods.proximal.purification import purify
from copter.methods.proximal.residuals import PrimalSide, primal_side, residuals_of
from copter.methods.proximal.row_sums import row_tolerances
from copter.methods.proximal.termination import status_of
from copter.model.matrix import BlockMatrix
from copter.problem.residuals import Residuals
from copter.problem.solution import Status
from copter.runtime.settings import Settings
from copter.runtime.watch import Watch

Floats = NDArray[np.float64]
Ints = NDArray[np.int32]

FAR = 1e-2
"""Relative gap above which coordinate descent improves the working set; below it, Newton's method does."""

SHARE = 0.3
"""Largest gap left in the working set's own program, as a share of the tolerance."""

ROW_SHARE = 1e-3
"""Largest residual left in a row of the working set's program, as a share of the tolerance."""

DESCENT_PASSES = 3
"""Coordinate descent improves the working set only in this many first pricing passes; then Newton's method does."""

UNFINISHED = 1.5
"""When the deadline cuts a pass short, assume that a whole pass takes 1.5 times as long as that one did."""

GRACE_S = 2e-3
"""Seconds beyond the time limit that a pricing pass may take to end: without a pass there is no bound."""

STALLED = 3.0
"""A solve has stalled after this many times max_proximal_steps without convergence."""

FEW_FRESH = 0.02
"""Share of requests that may be new in a round whose steps begin before its first pricing pass."""

AHEAD_PASSES = 10.0
"""They begin before it only if there is time for this many passes."""

MODERATE = 1e6
"""Prices above this multiple of the largest cost in the working set are moved back to it, if their rounding keeps the
bound of an optimum from proving it: the price of a row that fixed columns use up can grow without end.
"""

UNKNOWN = Residuals(*[np.inf] * 6)
"""Residuals before the first pass."""

TRUST_EXITS = 3
"""In one solve, prices are moved back into the trust region this many times; then the trust region is dropped."""


@dataclass(slots=True)
class Outcome:
    """How a solve ended; x is in the iterate."""

    status: Status
    priced: Priced
    residuals: Residuals
    objective: float
    newton_steps: int
    proximal_steps: int
    passes: int
    elapsed_s: float
    choice: Choice
    ray: Floats | None = None


@dataclass(frozen=True, slots=True)
class FallbackResult:
    """Result of another method: a status with its ray, or whether it moved the iterate."""

    status: Status | None = None
    ray: Floats | None = None
    moved: bool = False


class Fallback(Protocol):
    """Another method, tried once per solve: first if `comes_first`, otherwise when the proximal method stalls."""

    @property
    def choice(self) -> Choice:
        """The method and why it is tried."""

    @property
    def comes_first(self) -> bool:
        """Whether to try it before the proximal method."""

    def __call__(self) -> FallbackResult:
        """Solve and move the iterate."""


class Solve:
    """A solve of the matrix from the iterate's current state."""

    def __init__(
        self,
        matrix: BlockMatrix,
        iterate: Iterate,
        settings: Settings,
        choice: Choice,
        callback: Callable[[int, float, float], bool | None] | None = None,
        offset: float = 0.0,
        watch: Watch | None = None,
        fallback: Fallback | None = None,
    ) -> None:
        self.choice, self.by, self.fallback = choice, KEPT, fallback  # by: the choice that moved the point last
        self.watch = watch or Watch(settings.time_limit_s)
        self.offset = offset  # constant of the minimisation; the relative gap is computed with it
        self.matrix, self.iterate, self.settings, self.callback = matrix, iterate, settings, callback
        self.rows: Rows = iterate.rows(matrix)
        self.threads = settings.n_threads
        self.passes = self.newton_steps = self.proximal_steps = 0
        self.stalled_steps = self.trust_exits = 0
        self.grown, self.pulled_back = 0, False
        self.best: Priced | None = None
        self.ray: Floats | None = None
        self.improving: tuple[Ints, Ints] = (np.zeros(0, dtype=np.int32), np.zeros(0, dtype=np.int32))
        self.side = PrimalSide(0.0, 0.0, 0.0, 0.0)  # of the point whose residuals were taken last
        self.by_descent = choice.method == "price_descent"
        self.direction: Direction = descent_direction if self.by_descent else Subproblem.newton_direction

    def run(self) -> Outcome:
        """Solve and leave the iterate ready for the next round."""
        self.begin()
        ahead = self.improve(UNKNOWN) if self.goes_ahead() else None
        while True:
            residuals, best = self.price()
            self.ask_callback(residuals)
            found = status_of(residuals, self.settings, self.passes, self.elapsed_s, self.watch.interrupted)
            status = ahead or found
            if status is Status.OPTIMAL and self.pulls_prices_back(best):
                continue
            if status is Status.OPTIMAL:
                residuals = self.finish(residuals, best)
            if status is None:
                status = self.improve(residuals)
                if status is None:
                    continue
                residuals = self.residuals(best)
            return self.outcome(status, residuals, best)

    def begin(self) -> None:
        """Follow the edits."""
        self.iterate.refresh(self.matrix, 0.0 if self.by_descent else self.settings.trust_radius)
        self.rows = self.iterate.rows(self.matrix)
        self.iterate.sigma = min(self.iterate.sigma, self.settings.warm_sigma)

    def goes_ahead(self) -> bool:
        """Return whether to take steps before the first pricing pass: few requests are new, so it would find little."""
        iterate = self.iterate
        few = not iterate.cold and iterate.fresh_share <= FEW_FRESH and iterate.moves
        timely = self.watch.limit_s >= AHEAD_PASSES * iterate.pass_s
        first = self.fallback is not None and self.fallback.comes_first
        return few and timely and not first and not self.by_descent and not self.watch()

    def pulls_prices_back(self, best: Priced) -> bool:
        """Move runaway prices back, once in a solve, if the bound is wide because of their rounding."""
        wide = best.margin > self.settings.tolerance * (1.0 + abs(best.bound + self.offset))
        if not wide or self.pulled_back:
            return False
        most = MODERATE * float(np.abs(self.iterate.ws.cost).max(initial=0.0))
        self.pulled_back, y = True, np.clip(best.y, -most, most)
        if np.array_equal(y, best.y):
            return False
        self.iterate.y, self.best = y, None
        return True

    # The steps of the loop ----------------------------------------------------------------------------------------

    @property
    def elapsed_s(self) -> float:
        """Seconds since the solve began."""
        return self.watch.elapsed_s

    def price(self) -> tuple[Residuals, Priced]:
        """Price all columns and add improving ones; returns the point's residuals and the pass with the best bound so
        far: the one with the smallest larger of relative gap and dual residual.
        """
        iterate = self.iterate
        began = self.elapsed_s
        seconds = max(self.watch.limit_s - began, 0.0) + GRACE_S
        if iterate.pass_s > seconds:
            iterate.pass_s *= 0.9  # so that a pass is tried again later
            seconds = 0.0  # a pass that cannot end in time proves nothing, so none is made
        threads, screen = self.threads, not iterate.cold
        priced = price_all(self.matrix, iterate.ws, self.rows, iterate.y, threads, seconds=seconds, screen=screen)
        self.passes += 1
        took = self.elapsed_s - began
        if np.isfinite(priced.bound):
            iterate.pass_s = took
        elif seconds > 0.0:  # the pass was cut short
            iterate.pass_s = max(iterate.pass_s, UNFINISHED * took)
        found = self.residuals(priced)
        proven = found.within(self.settings.tolerance, self.settings.absolute_tolerance)
        # An optimum takes in new columns for the next round, when it ends; after the deadline no step would follow.
        worth = len(priced.slot) > 0 and not proven and not self.watch()
        guide = None if iterate.cold else priced.y
        self.grown = iterate.ws.grow(self.matrix, priced.slot, priced.column, guide) if worth else 0
        if self.grown and guide is not None:  # some new columns may have been raised
            found = self.residuals(priced)
        self.improving = priced.slot, priced.column
        if self.best is not None:
            before = residuals_of(self.side, self.best, self.offset)
            if not max(found.gap, found.dual) <= max(before.gap, before.dual):
                return before, self.best
        self.best = priced
        return found, priced

    def residuals(self, priced: Priced) -> Residuals:
        """Return residuals of the current point, with the prices of a pass."""
        self.side = primal_side(self.iterate.ws, self.rows)
        return residuals_of(self.side, priced, self.offset)

    def ask_callback(self, residuals: Residuals) -> None:
        """Report progress to the callback; if it returns True, the solve ends."""
        if self.callback is not None and self.callback(self.passes, residuals.gap, residuals.primal_absolute):
            self.watch.interrupted = True

    def improve(self, residuals: Residuals) -> Status | None:
        """Improve the working set's solution; returns a status if that cannot succeed."""
        iterate, settings = self.iterate, self.settings
        if self.fallback is not None and self.fallback.comes_first:
            return self.run_fallback(self.fallback)
        self.by = self.choice
        early = iterate.cold and self.passes < DESCENT_PASSES
        if early and residuals.gap > FAR and settings.descent_sweeps and self.grown:
            iterate.y = descend(iterate.ws, self.rows, iterate.y, iterate.sigma, settings.descent_sweeps)
            return None
        goal = min(max(0.1 * residuals.gap, SHARE * settings.tolerance), FAR) if self.grown else 0.0
        goal = max(goal, SHARE * settings.tolerance)
        trusts = not iterate.cold and self.trust_exits < TRUST_EXITS
        control = Control(
            settings,
            tolerance=goal,
            row_tolerance=self.row_tolerance(),
            stop=self.watch,
            offset=self.offset,
            trust_radius=settings.trust_radius if trusts else np.inf,
            direction=self.direction,
        )
        before = iterate.y, iterate.sigma
        progress = solve_in_one_call(iterate.steps, iterate.ws, self.rows, *before, control)
        progress = progress or solve_working_set(iterate.ws, self.rows, *before, control)
        self.newton_steps += progress.newton_steps
        iterate.moves = progress.newton_steps > 0
        self.proximal_steps += progress.proximal_steps
        iterate.y, iterate.sigma = progress.y, progress.sigma
        self.trust_exits += progress.left_trust_region
        if progress.converged or progress.left_trust_region:
            self.stalled_steps = 0
            return None
        return self.look_for_certificates(progress, before)

    def must_stop(self) -> bool:
        """Whether time is up or the caller has interrupted the solve."""
        return self.watch()

    def row_tolerance(self) -> Floats:
        """Return every row's largest residual: `ROW_SHARE` of the tolerance, at most a tenth of the absolute one."""
        share, most = ROW_SHARE * self.settings.tolerance, 0.1 * self.settings.absolute_tolerance
        return row_tolerances(self.rows.lower, self.rows.upper, share, most)

    def look_for_certificates(self, progress: Progress, before: tuple[Floats, float]) -> Status | None:
        """Find out why a working set does not converge: infeasible, unbounded, or stalled; returns the status, if
        any.

        If it was infeasible and gets new columns, prices and sigma are again what they were `before`: without the new
        columns the prices have grown without end.
        """
        if self.must_stop():
            return None
        iterate = self.iterate
        ray = improving_ray(iterate.ws, self.rows, progress.displacement)
        if ray is not None:
            self.ray = ray
            return Status.DUAL_INFEASIBLE
        proven, priced = farkas(self.matrix, iterate.ws, self.rows, progress.y, self.threads)
        if proven:
            self.ray = priced.y
            return Status.PRIMAL_INFEASIBLE
        if iterate.ws.grow(self.matrix, priced.slot, priced.column):
            iterate.y, iterate.sigma = before
            return None
        self.stalled_steps += progress.proximal_steps
        if self.fallback is not None and self.stalled_steps >= self.settings.max_proximal_steps:
            return self.run_fallback(self.fallback)
        most = STALLED * self.settings.max_proximal_steps
        return Status.NUMERICAL_ERROR if self.stalled_steps >= most else None

    def run_fallback(self, fallback: Fallback) -> Status | None:
        """Run the other method once; returns a status if it proves that there is no optimum."""
        result = fallback()
        self.fallback = None
        if result.moved:
            self.best = None
        if result.moved or result.status is not None:
            self.by = fallback.choice
        self.ray = result.ray
        return result.status

    # The end ------------------------------------------------------------------------------------------------------

    def finish(self, residuals: Residuals, best: Priced) -> Residuals:
        """Move to a vertex if shims need one and the point stays optimal; then remove idle columns."""
        iterate, settings = self.iterate, self.settings
        if settings.internals.purify and iterate.ws.size and self.matrix.any_integer(iterate.ws.slots):
            before, side = iterate.ws.x.copy(), self.side
            purify(iterate.ws, self.rows, self.must_stop)
            after = self.residuals(best)
            if after.within(self.settings.tolerance, self.settings.absolute_tolerance):
                residuals = after
            else:
                iterate.ws.x[:], self.side = before, side
        iterate.cold = False
        iterate.shrink(self.matrix)
        iterate.ws = iterate.ws.expecting(self.matrix, *self.improving)
        return residuals

    def outcome(self, status: Status, residuals: Residuals, best: Priced) -> Outcome:
        """Return the data for the solution."""
        return Outcome(
            status=status,
            priced=best,
            residuals=residuals,
            objective=self.side.objective,
            newton_steps=self.newton_steps,
            proximal_steps=self.proximal_steps,
            passes=self.passes,
            elapsed_s=self.elapsed_s,
            choice=self.by,
            ray=self.ray,
        )
