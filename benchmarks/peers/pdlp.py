"""PDLP through OR-Tools' array interface, started from the last round's primal and dual point."""

from __future__ import annotations

import time

import numpy as np
from families.protocol import Family, Floats
from ortools.pdlp import solve_log_pb2, solvers_pb2
from ortools.pdlp.python import pdlp

from peers.program import Answer, Snapshot, matrix_of

OPTIMAL = solve_log_pb2.TERMINATION_REASON_OPTIMAL


class PdlpPeer:
    """PDLP has no edits: the program is handed over whole each round (timed), and the last point seeds the next.

    Parameters
    ----------
    tolerance : float
        Absolute and relative, of its own optimality criteria.
    threads : int
    """

    name = "pdlp_warm"

    def __init__(self, tolerance: float = 1e-6, threads: int = 2) -> None:
        self.parameters = solvers_pb2.PrimalDualHybridGradientParams()
        criteria = self.parameters.termination_criteria
        criteria.simple_optimality_criteria.eps_optimal_absolute = tolerance
        criteria.simple_optimality_criteria.eps_optimal_relative = tolerance
        self.parameters.num_threads = threads
        self.known = Snapshot()
        self.program = pdlp.QuadraticProgram()
        self.x: Floats = np.zeros(0)
        self.y: Floats = np.zeros(0)

    def update(self, family: Family) -> float:
        """Hand the round over, and carry the last point across the edits."""
        now, matrix, k = Snapshot.of(family), matrix_of(family), family.columns
        here, there = self.known.kept(family)
        rows, n = len(now.capacity), len(now.requests)
        x, y = np.zeros((n, k)), np.zeros(rows + n)
        if len(self.x):
            x[there] = self.x.reshape(-1, k)[here]
            y[:rows], y[rows + there] = self.y[:rows], self.y[rows + here]
        self.x, self.y, self.known = x.ravel(), y, now
        upper = np.repeat(now.limits, k)
        bounds = np.concatenate((now.capacity, now.limits))
        started = time.perf_counter()
        program = pdlp.QuadraticProgram()
        program.objective_vector = -now.cost.ravel()
        program.constraint_matrix = matrix
        program.constraint_lower_bounds = np.full(rows + n, -np.inf)
        program.constraint_upper_bounds = bounds
        program.variable_lower_bounds = np.zeros(n * k)
        program.variable_upper_bounds = upper
        self.program = program
        return time.perf_counter() - started

    def solve(self, time_limit_s: float) -> Answer:
        """Solve from the last point, within a time limit."""
        self.parameters.termination_criteria.time_sec_limit = time_limit_s
        start = pdlp.PrimalAndDualSolution()
        start.primal_solution, start.dual_solution = self.x, self.y
        started = time.perf_counter()
        found = pdlp.primal_dual_hybrid_gradient(self.program, self.parameters, start)
        seconds = time.perf_counter() - started
        self.x, self.y = np.array(found.primal_solution), np.array(found.dual_solution)
        reason = found.solve_log.termination_reason
        return Answer(
            optimal=reason == OPTIMAL,
            status=solve_log_pb2.TerminationReason.Name(reason),
            objective=float(self.known.cost.ravel() @ self.x),
            solve_s=seconds,
            iterations=int(found.solve_log.iteration_count),
            x=self.x,
            price=-self.y[: len(self.known.capacity)],
        )
