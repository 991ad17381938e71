"""Gurobi, for those who have a licence: the dual simplex method from its own last basis, or the barrier method."""

from __future__ import annotations

from typing import Any

import gurobipy
import numpy as np

from copter_frontends.replay.peers.answer import Answer
from copter_frontends.replay.peers.clock import clock
from copter_frontends.replay.peers.ordered import OrderedPeer
from copter_frontends.replay.program import Floats, Ints, Program

METHODS = {"gurobi_dual_warm": 1, "gurobi_barrier_cold": 2}
"""Gurobi's parameter Method by way."""


class GurobiPeer(OrderedPeer):
    """A model that is changed in place. A row with two sides gets a column of its own, as Gurobi's rows have one side.

    Parameters
    ----------
    way : str
    threads : int
    """

    def __init__(self, way: str, threads: int = 2) -> None:
        super().__init__()
        self.way = way
        self.env = gurobipy.Env(empty=True)
        self.env.setParam("OutputFlag", 0)
        self.env.start()
        self.model = gurobipy.Model(env=self.env)
        self.model.setParam("Method", METHODS[way])
        self.model.setParam("Threads", threads)
        self.variables: list[Any] = []
        self.constraints: list[Any] = []
        self.slack: dict[int, Any] = {}  # the column of a row with two sides, by the row's identity

    def begin(self, program: Program) -> float:
        """Say whether it is a maximisation."""
        self.model.ModelSense = -1 if program.sense == "max" else 1
        return 0.0

    def delete(self, rows: Ints, columns: Ints) -> float:
        """Delete the removed rows, their own columns, and the removed columns."""
        gone = [self.variables[at] for at in columns.tolist()]
        ended = [self.constraints[at] for at in rows.tolist()]
        gone += [self.slack.pop(id(row)) for row in ended if id(row) in self.slack]
        stay, held = set(columns.tolist()), set(rows.tolist())
        self.variables = [each for at, each in enumerate(self.variables) if at not in stay]
        self.constraints = [each for at, each in enumerate(self.constraints) if at not in held]
        started = clock()
        if gone:
            self.model.remove(gone)
        if ended:
            self.model.remove(ended)
        return clock() - started

    def costs(self, places: Ints, costs: Floats) -> float:
        """Change costs in one call."""
        started = clock()
        self.model.setAttr("Obj", [self.variables[at] for at in places.tolist()], costs.tolist())
        return clock() - started

    def bounds(self, places: Ints, lower: Floats, upper: Floats) -> float:
        """Change columns' bounds in two calls."""
        told = [self.variables[at] for at in places.tolist()]
        started = clock()
        self.model.setAttr("LB", told, lower.tolist())
        self.model.setAttr("UB", told, upper.tolist())
        return clock() - started

    def sides(self, places: Ints, lower: Floats, upper: Floats) -> float:
        """Change rows' sides one by one."""
        started = clock()
        for at, low, high in zip(places.tolist(), lower.tolist(), upper.tolist(), strict=True):
            self._side(self.constraints[at], low, high)
        return clock() - started

    def _side(self, row: Any, low: float, high: float) -> None:
        slack = self.slack.get(id(row))
        sense, right = side_of(low, high)
        if slack is None and sense is None:
            slack = self.slack[id(row)] = self.model.addVar(lb=low, ub=high, column=gurobipy.Column([-1.0], [row]))
        if slack is not None:
            sense, right = "=", 0.0
            slack.LB, slack.UB = low, high
        row.Sense, row.RHS = sense, right

    def coefficients(self, changed: list[tuple[int, int, float]]) -> float:
        """Change coefficients one by one."""
        started = clock()
        for row, column, value in changed:
            self.model.chgCoeff(self.constraints[row], self.variables[column], value)
        return clock() - started

    def add(self, now: Program, m: int, n: int) -> float:
        """Add new rows with their entries in older columns, then new columns."""
        head, tail = now.A[:, :n].tocsr()[m:].tocsr(), now.A[:, n:].tocsc()
        started = clock()
        for at in range(now.shape[0] - m):
            part = slice(head.indptr[at], head.indptr[at + 1])
            old = [self.variables[column] for column in head.indices[part].tolist()]
            low, high = float(now.row_lower[m + at]), float(now.row_upper[m + at])
            sense, right = side_of(low, high)
            line = gurobipy.LinExpr(head.data[part].tolist(), old)
            row = self.model.addLConstr(line, sense or "=", right)
            self.constraints.append(row)
            if sense is None:
                self._side(row, low, high)
        for at in range(now.shape[1] - n):
            part = slice(tail.indptr[at], tail.indptr[at + 1])
            rows = [self.constraints[row] for row in tail.indices[part].tolist()]
            self.variables.append(
                self.model.addVar(
                    lb=float(now.col_lower[n + at]), ub=float(now.col_upper[n + at]), obj=float(now.c[n + at]),
                    column=gurobipy.Column(tail.data[part].tolist(), rows),
                )
            )  # fmt: skip
        self.model.update()
        return clock() - started

    def solve(self, program: Program, limit_s: float, edit_s: float) -> Answer:
        """Solve within a time limit."""
        self.model.setParam("TimeLimit", limit_s)
        started = clock()
        self.model.optimize()
        seconds = clock() - started
        status = int(self.model.Status)
        optimal = status == gurobipy.GRB.OPTIMAL
        x = y = None
        if optimal:
            primal = np.array(self.model.getAttr("X", self.variables))
            x, y = self.in_order(program, primal, np.array(self.model.getAttr("Pi", self.constraints)))
        return Answer(
            way=self.way,
            optimal=optimal,
            status=str(status),
            objective=float(self.model.ObjVal) + program.offset if optimal else np.nan,
            edit_s=edit_s,
            solve_s=seconds,
            iterations=int(self.model.IterCount) + int(self.model.BarIterCount),
            x=x,
            y=y,
        )


def side_of(low: float, high: float) -> tuple[str | None, float]:
    """Return (sense, right-hand side) of a row; no sense if it has two different sides."""
    if low == high:
        return "=", low
    if np.isinf(low):
        return "<", min(high, gurobipy.GRB.INFINITY)
    return (">", low) if np.isinf(high) else (None, 0.0)
