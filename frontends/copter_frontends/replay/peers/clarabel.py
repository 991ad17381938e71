"""Clarabel: an interior-point method for cone programs, which gets each program as a whole."""

from __future__ import annotations

import clarabel
import numpy as np
import scipy.sparse as sp

from copter_frontends.replay.peers.answer import Answer, Limits
from copter_frontends.replay.peers.clock import clock
from copter_frontends.replay.program import Floats, Program

WAY = "clarabel_cold"


class ClarabelPeer:
    """Clarabel's programs have rows A x + s = b with s in a cone: equations first, then every finite side and bound.

    It can only change numbers of a program with a fixed pattern, but columns of a tape's programs come and go. So it
    gets each program as a whole, and the time for that counts as edit time.
    """

    ways = (WAY,)
    needs_start = False

    def __init__(self, threads: int = 2) -> None:
        self.settings = clarabel.DefaultSettings()
        self.settings.verbose = False
        self.settings.max_threads = threads

    def keep(self, ways: tuple[str, ...]) -> None:
        """Do nothing: there is one way."""

    def start_from(self, x: Floats, y: Floats) -> None:
        """Do nothing: the solver accepts no starting point."""

    def round(self, program: Program, limits: Limits) -> list[Answer]:
        """Pass the program to the solver and solve it."""
        sign = 1.0 if program.sense == "min" else -1.0
        m, n = program.shape
        rows = program.A.tocsr()
        equal = np.flatnonzero(program.row_lower == program.row_upper)
        above = np.flatnonzero(np.isfinite(program.row_upper) & (program.row_lower != program.row_upper))
        below = np.flatnonzero(np.isfinite(program.row_lower) & (program.row_lower != program.row_upper))
        high, low = np.flatnonzero(np.isfinite(program.col_upper)), np.flatnonzero(np.isfinite(program.col_lower))
        unit = sp.eye_array(n, format="csr")
        matrix = sp.vstack([rows[equal], rows[above], -rows[below], unit[high], -unit[low]], format="csc")
        sides = program.row_lower[equal], program.row_upper[above], -program.row_lower[below]
        right = np.concatenate((*sides, program.col_upper[high], -program.col_lower[low]))
        cones = [clarabel.ZeroConeT(len(equal)), clarabel.NonnegativeConeT(len(right) - len(equal))]
        self.settings.time_limit = limits.solve_s
        begun = clock()
        solver = clarabel.DefaultSolver(sp.csc_array((n, n)), sign * program.c, matrix, right, cones, self.settings)
        edit_s = clock() - begun
        begun = clock()
        found = solver.solve()
        solve_s = clock() - begun
        status = str(found.status)
        x, z = np.array(found.x), np.array(found.z)
        y = np.zeros(m)
        e, a, b = len(equal), len(above), len(below)
        y[equal], y[above] = -z[:e], y[above] - z[e : e + a]
        y[below] += z[e + a : e + a + b]
        optimal = status in ("Solved", "AlmostSolved")
        return [
            Answer(
                way=WAY,
                optimal=optimal,
                status=status,
                objective=float(program.c @ x + program.offset) if optimal else np.nan,
                edit_s=edit_s,
                solve_s=solve_s,
                iterations=int(found.iterations),
                x=x if optimal else None,
                y=sign * y if optimal else None,
            )
        ]
