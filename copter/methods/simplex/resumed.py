"""Pivots from the last optimum of a series of whole programs, with rests after failures."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from copter.methods.choose import after_failure
from copter.methods.simplex.warm_basis import WarmBasis
from copter.problem.linear_program import LinearProgram
from copter.problem.solution import Solution, Status
from copter.runtime.settings import Settings
from copter.runtime.watch import Watch

Floats = NDArray[np.float64]

VERDICTS = (Status.OPTIMAL, Status.PRIMAL_INFEASIBLE, Status.DUAL_INFEASIBLE)


class Resumed:
    """The last optimum of a series, from whichever method, and the basis that pivots from it have left.

    A basis is made when the next program comes, so that a series of one program does without.
    """

    def __init__(self) -> None:
        # program, x, y, and which variables are basic if that is known
        self.optimum: tuple[LinearProgram, Floats, Floats, NDArray[np.bool_] | None] | None = None
        self.basis: WarmBasis | None = None
        self.failures = self.resting = 0  # consecutive failures; programs left to other methods

    @property
    def is_ready(self) -> bool:
        """Whether there is an optimum to start from, and the method does not rest."""
        return not self.resting and (self.optimum is not None or self.basis is not None)

    def note(self, lp: LinearProgram, x: Floats, y: Floats, basic: NDArray[np.bool_] | None = None) -> None:
        """Keep another method's optimum as the start of the next solve; `basic` marks its columns, then its rows."""
        self.optimum, self.basis = (lp, x, y, basic), None
        self.resting = max(self.resting - 1, 0)

    def solve(self, lp: LinearProgram, settings: Settings, watch: Watch, work: float) -> Solution | None:
        """Solve the next program of the series; None if another method must.

        Parameters
        ----------
        lp : LinearProgram
        settings : Settings
        watch : Watch
        work : float
            Multiplications after which the pivots are given up.
        """
        optimum, self.optimum = self.optimum, None
        try:
            if optimum is not None:
                self.basis = WarmBasis(*optimum)
            found = None if self.basis is None else self.basis.solve(lp, settings, watch, work)
        except ArithmeticError:
            found = None
        if found is not None and found.status in VERDICTS:
            self.failures = 0
            return found
        if found is not None:  # its time was over: the next program goes on from here
            return None
        self.basis = None
        self.failures, self.resting = after_failure(self.failures)
        return None
