"""GLOP through OR-Tools' incremental linear_solver interface."""

from __future__ import annotations

from typing import Any

import numpy as np
from ortools.linear_solver import pywraplp

from copter_frontends.replay.peers.answer import Answer, Limits
from copter_frontends.replay.peers.clock import clock
from copter_frontends.replay.program import Floats, Overlap, Program, changed_coefficients

WAY = "glop_warm"


class GlopPeer:
    """An incremental GLOP solver that receives only changes.

    The interface cannot delete, so removed columns are fixed at zero, removed rows are made free, and both stay;
    changed coefficients are set one by one. The time of an update is that of the interface's calls, one per object,
    because it has no other calls.
    """

    ways = (WAY,)
    needs_start = False

    def __init__(self) -> None:
        self.solver = pywraplp.Solver.CreateSolver("GLOP")
        if self.solver is None:
            raise RuntimeError("this build of OR-Tools has no GLOP")
        self.parameters = pywraplp.MPSolverParameters()
        self.parameters.SetIntegerParam(self.parameters.INCREMENTALITY, self.parameters.INCREMENTALITY_ON)
        self.objective = self.solver.Objective()
        self.known: Program | None = None
        self.columns: list[Any] = []  # in the program's order
        self.rows: list[Any] = []

    def keep(self, ways: tuple[str, ...]) -> None:
        """Do nothing: there is one way."""

    def start_from(self, x: Floats, y: Floats) -> None:
        """Do nothing: GLOP starts from its own last basis."""

    def round(self, program: Program, limits: Limits) -> list[Answer]:
        """Apply the round's edits and solve from the last basis."""
        return [self.solve(limits.solve_s, self.update(program))]

    def solve(self, limit_s: float, edit_s: float) -> Answer:
        """Solve within a time limit, from the last basis."""
        self.solver.SetTimeLimit(max(int(1e3 * limit_s), 1))
        started = clock()
        status = self.solver.Solve(self.parameters)
        seconds = clock() - started
        optimal = status == pywraplp.Solver.OPTIMAL
        return Answer(
            way=WAY,
            optimal=optimal,
            status=str(status),
            objective=self.objective.Value() if optimal else np.nan,
            edit_s=edit_s,
            solve_s=seconds,
            iterations=self.solver.iterations(),
            x=np.array([column.solution_value() for column in self.columns]) if optimal else None,
            y=np.array([row.dual_value() for row in self.rows]) if optimal else None,
        )

    def update(self, program: Program) -> float:
        """Change GLOP's program into this round's; returns the seconds of comparison and GLOP's calls."""
        before, self.known = self.known, program
        if before is None:
            return self.add(program, np.arange(program.shape[0]), np.arange(program.shape[1]))
        columns = Overlap.of(before.column_key, program.column_key)
        rows = Overlap.of(before.row_key, program.row_key)
        coefficients = changed_coefficients(before, program, rows, columns)
        old_columns, old_rows = self.columns, self.rows
        self.columns, self.rows = [None] * program.shape[1], [None] * program.shape[0]
        started = clock()
        for at in columns.gone.tolist():
            old_columns[at].SetBounds(0.0, 0.0)
            self.objective.SetCoefficient(old_columns[at], 0.0)
        for at in rows.gone.tolist():
            old_rows[at].SetBounds(-np.inf, np.inf)
        for here, there in zip(columns.before.tolist(), columns.after.tolist(), strict=True):
            self.columns[there] = old_columns[here]
        for here, there in zip(rows.before.tolist(), rows.after.tolist(), strict=True):
            self.rows[there] = old_rows[here]
        self.change(before, program, rows, columns)
        told_s = clock() - started + self.add(program, rows.fresh, columns.fresh)
        started = clock()
        for row, column, value in coefficients:
            self.rows[row].SetCoefficient(self.columns[column], value)
        return told_s + clock() - started

    def change(self, before: Program, now: Program, rows: Overlap, columns: Overlap) -> None:
        """Update changed costs, bounds and sides of surviving rows and columns."""
        for name, kept, told in (("c", columns, None), ("col", columns, self.columns), ("row", rows, self.rows)):
            if told is None:
                for at in kept.after[before.c[kept.before] != now.c[kept.after]].tolist():
                    self.objective.SetCoefficient(self.columns[at], float(now.c[at]))
                continue
            low, high = getattr(now, f"{name}_lower"), getattr(now, f"{name}_upper")
            same = getattr(before, f"{name}_lower")[kept.before] == low[kept.after]
            same &= getattr(before, f"{name}_upper")[kept.before] == high[kept.after]
            for at in kept.after[~same].tolist():
                told[at].SetBounds(float(low[at]), float(high[at]))

    def add(self, program: Program, rows: Any, columns: Any) -> float:
        """Add the rows and columns at these positions."""
        if not self.columns:
            self.columns, self.rows = [None] * program.shape[1], [None] * program.shape[0]
        A, solver = program.A, self.solver
        started = clock()
        if program.sense == "max":
            self.objective.SetMaximization()
        for at in rows.tolist():
            self.rows[at] = solver.Constraint(float(program.row_lower[at]), float(program.row_upper[at]))
        for at in columns.tolist():
            variable = solver.NumVar(float(program.col_lower[at]), float(program.col_upper[at]), "")
            self.columns[at] = variable
            self.objective.SetCoefficient(variable, float(program.c[at]))
            for entry in range(A.indptr[at], A.indptr[at + 1]):
                self.rows[A.indices[entry]].SetCoefficient(variable, float(A.data[entry]))
        self.objective.SetOffset(float(program.offset))
        return clock() - started
