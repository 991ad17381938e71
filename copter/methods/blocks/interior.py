"""A block program at an interior point, its private rows eliminated (K1-K4); the loop is path_following.py."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from copter.methods.blocks.block_interior import BlockInterior
from copter.methods.blocks.program import BlockProgram
from copter.methods.blocks.start import start
from copter.methods.blocks.tiled_cholesky import dense_cholesky, dense_solve
from copter.methods.path_following import follow
from copter.problem.sums import norm
from copter.runtime.watch import Stopped

Floats = NDArray[np.float64]

PIVOT = 1e-13  # a pivot of the reduced matrix below this share of its diagonal entry belongs to a dependent row
LEAST_CLOSED = 0.5  # least share of the rows' residuals that a step must remove
CLOSED = 1e-10  # residual of the rows, relative to the right-hand sides, above which a second solve follows
SLOPE = 1e-12  # added to every diagonal entry of the reduced matrix, relative to the mean diagonal at the start


@dataclass(frozen=True, slots=True)
class Figures:
    """Distance of a point from optimality: relative residuals of rows, reduced costs and gap; mu; both objectives."""

    primal: float
    dual: float
    gap: float
    mu: float
    objective: float
    bound: float

    @property
    def worst(self) -> float:
        """The largest of the three relative figures."""
        return max(self.primal, self.dual, self.gap)


class BlockMethod:
    """The interior-point method for one block program.

    Parameters
    ----------
    program : BlockProgram
    n_threads : int
    must_stop : callable, optional
        Called within and between the passes of an iteration; True raises :class:`copter.runtime.watch.Stopped`.
    """

    def __init__(
        self, program: BlockProgram, n_threads: int = 1, must_stop: Callable[[], bool] = lambda: False
    ) -> None:
        self.program, self.must_stop = program, must_stop
        self.state = BlockInterior(program, n_threads)
        self.bounded_below, self.bounded_above = np.isfinite(program.lower), np.isfinite(program.upper)
        self.fixed = program.lower == program.upper
        self.bounded_below &= ~self.fixed
        self.bounded_above &= ~self.fixed
        self.pairs = int(self.bounded_below.sum() + self.bounded_above.sum())
        n = program.n_columns
        finite = np.where(np.isfinite(program.lower[n:]), np.abs(program.lower[n:]), 0.0)
        finite = np.maximum(finite, np.where(np.isfinite(program.upper[n:]), np.abs(program.upper[n:]), 0.0))
        self.right_size, self.cost_size = 1.0 + norm(finite), 1.0 + norm(program.cost)
        self.shift = 0.0
        self.iterations = 0
        self.begun = False

    # The main loop ------------------------------------------------------------------------------------------------

    def run(self, goal: float, max_iterations: int, stop: Callable[[int, Figures], bool]) -> tuple[Figures, bool]:
        """Iterate until the goal, the limit or a stall; returns (figures of the point, whether the solve was stopped).

        It starts from the present point if there is one, otherwise from a new one (:mod:`copter.methods.blocks.start`).
        """
        if not self.begun:
            start(self)
            self.begun = True
        return follow(self, goal, max_iterations, stop)

    def figures(self, measured: Figures) -> Floats:
        """Return the figures; an iteration counts as progress if one of them falls enough."""
        mu = measured.mu if measured.worst > 1e-6 else np.inf
        return np.array([measured.primal, measured.dual, measured.gap, mu])

    def look(self, measured: Figures) -> bool:
        """Return False: only the figures end the method."""
        return False

    def measure(self) -> Figures:
        """Compute the residuals of the current point and the weights of the next step."""
        product, dual, objective, bound, primal = self.state.measure()
        return Figures(
            primal=primal**0.5 / self.right_size,
            dual=dual**0.5 / self.cost_size,
            gap=abs(objective - bound) / (1.0 + abs(objective)),
            mu=product / max(self.pairs, 1),
            objective=objective,
            bound=bound,
        )

    def predict(self) -> float:
        """Factorise and find the affine direction; returns the mean product after the longest step along it."""
        self.factorise()
        self.state.aim(0, 0.0, 0.0, 0.0)
        return self.state.complementarity(*self.direction()) / max(self.pairs, 1)

    def centre(self, target: float, share: float) -> tuple[float, float]:
        """Find Mehrotra's direction, which aims at products of `target` (`share` times mu); returns its lengths."""
        primal = self.state.primal
        primal *= max(1.0 - share, LEAST_CLOSED)  # a step that centres removes less of the rows' residuals
        self.state.aim(1, target, 0.0, 0.0)
        return self.direction(close=True)

    def correct(self, target: float, ahead: float, behind: float) -> tuple[float, float]:
        """Correct the direction so that the products after a step of these lengths come near `target`; returns its
        lengths.
        """
        self.before = [each.copy() for each in self.parts()]
        self.state.aim(2, target, ahead, behind)
        return self.direction(close=True)

    def take_back(self) -> None:
        """Return to the direction before the last correction."""
        for values, before in zip(self.parts(), self.before, strict=True):
            values[:] = before

    def parts(self) -> tuple[Floats, ...]:
        """Return the parts of the direction."""
        state = self.state
        return state.dx, state.dz, state.dv, state.dy

    def move(self, ahead: float, behind: float) -> None:
        """Take a step of these lengths."""
        self.state.move(ahead, behind)

    # Linear algebra -----------------------------------------------------------------------------------------------

    def go_on(self) -> None:
        """Raise Stopped if the solve must stop."""
        if self.must_stop():
            raise Stopped

    def factorise(self) -> None:
        """Eliminate the private rows at the current weights and factorise the coupling rows."""
        state, m, n = self.state, self.program.n_rows, self.program.n_columns
        if not state.form_reduced(self.must_stop):
            raise Stopped
        reduced, at = state.reduced, np.arange(m)
        diagonal = reduced.diagonal() + state.weight[n : n + m]
        if self.shift == 0.0:
            self.shift = SLOPE * float(diagonal.mean()) if m else SLOPE
        reduced[at, at] = np.where(diagonal > 0.0, diagonal, 1.0) + self.shift
        if not dense_cholesky(reduced, PIVOT * diagonal, state.n_pieces, self.must_stop):
            raise Stopped

    def solve(self, right: Floats, y: Floats) -> None:
        """Solve (A theta A' + theta_s) y = right with the factor of the last :meth:`factorise`; write y.

        Both arrays are (rows,): the coupling rows first, then the private ones.
        """
        state, m = self.state, self.program.n_rows
        coupling, scaled = right[:m].copy(), np.empty(len(right) - m)
        state.eliminate(right[m:], coupling, scaled)
        dense_solve(state.reduced, coupling)
        y[:m] = coupling
        state.restore(coupling, right[m:], y[m:])

    def direction(self, close: bool = False) -> tuple[float, float]:
        """Compute the direction for the current right-hand sides; returns the longest primal and dual steps."""
        self.go_on()
        state, m = self.state, self.program.n_rows
        state.right_side()
        state.dy[:m] = state.coupling
        dense_solve(state.reduced, state.dy[:m])
        ahead, behind, left = state.direction()
        if close and left**0.5 > CLOSED * self.right_size + 0.1 * norm(state.primal):
            more, own = np.empty(state.n_all_rows), state.left[m:].copy()
            self.solve(state.left, more)
            state.dy[:m] += more[:m]
            state.right[m:] += own
            ahead, behind, left = state.direction()
        return ahead, behind
