"""PDLP through OR-Tools' array interface, started from the last round's primal and dual point."""

from __future__ import annotations

import numpy as np
from ortools.pdlp import solve_log_pb2, solvers_pb2
from ortools.pdlp.python import pdlp

from copter_frontends.replay.peers.answer import Answer, Limits
from copter_frontends.replay.peers.clock import clock
from copter_frontends.replay.program import Floats, Overlap, Program

OPTIMAL = solve_log_pb2.TERMINATION_REASON_OPTIMAL
WAY = "pdlp_warm"


class PdlpPeer:
    """PDLP has no edits: it gets the whole program each round (timed) and starts from the last point.

    Parameters
    ----------
    tolerance : float
        Absolute and relative tolerance of PDLP's optimality criteria.
    threads : int
    """

    ways = (WAY,)
    needs_start = False

    def __init__(self, tolerance: float = 1e-6, threads: int = 2) -> None:
        self.parameters = solvers_pb2.PrimalDualHybridGradientParams()
        criteria = self.parameters.termination_criteria
        criteria.simple_optimality_criteria.eps_optimal_absolute = tolerance
        criteria.simple_optimality_criteria.eps_optimal_relative = tolerance
        self.parameters.num_threads = threads
        self.known: Program | None = None
        self.x: Floats = np.zeros(0)
        self.y: Floats = np.zeros(0)

    def keep(self, ways: tuple[str, ...]) -> None:
        """Do nothing: this solver has a single way to solve."""

    def start_from(self, x: Floats, y: Floats) -> None:
        """Do nothing: PDLP starts from its own last point."""

    def carry(self, program: Program) -> None:
        """Carry the last point over to the columns and rows of a new program."""
        x, y = np.zeros(program.shape[1]), np.zeros(program.shape[0])
        if self.known is not None:
            columns = Overlap.of(self.known.column_key, program.column_key)
            rows = Overlap.of(self.known.row_key, program.row_key)
            x[columns.after], y[rows.after] = self.x[columns.before], self.y[rows.before]
        self.known, self.x, self.y = program, x, y

    def round(self, program: Program, limits: Limits) -> list[Answer]:
        """Pass the program and solve from the last point."""
        self.carry(program)
        sign = 1.0 if program.sense == "min" else -1.0
        started = clock()
        given = pdlp.QuadraticProgram()
        given.objective_vector = sign * program.c
        given.constraint_matrix = program.A
        given.constraint_lower_bounds, given.constraint_upper_bounds = program.row_lower, program.row_upper
        given.variable_lower_bounds, given.variable_upper_bounds = program.col_lower, program.col_upper
        edit_s = clock() - started
        self.parameters.termination_criteria.time_sec_limit = limits.solve_s
        start = pdlp.PrimalAndDualSolution()
        start.primal_solution, start.dual_solution = self.x, self.y
        started = clock()
        found = pdlp.primal_dual_hybrid_gradient(given, self.parameters, start)
        seconds = clock() - started
        self.x, self.y = np.array(found.primal_solution), np.array(found.dual_solution)
        reason = found.solve_log.termination_reason
        answer = Answer(
            way=WAY,
            optimal=reason == OPTIMAL,
            status=solve_log_pb2.TerminationReason.Name(reason),
            objective=float(program.c @ self.x + program.offset),
            edit_s=edit_s,
            solve_s=seconds,
            iterations=int(found.solve_log.iteration_count),
            x=self.x,
            y=sign * self.y,
        )
        return [answer]
