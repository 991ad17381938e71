"""COPT, for those who have a licence: the dual simplex method from its own last basis, or the barrier method."""

from __future__ import annotations

from typing import Any

import coptpy
import numpy as np

from copter_frontends.replay.peers.answer import Answer
from copter_frontends.replay.peers.clock import clock
from copter_frontends.replay.peers.ordered import OrderedPeer
from copter_frontends.replay.program import Floats, Ints, Program

METHODS = {"copt_dual_warm": 1, "copt_barrier_cold": 2}
"""COPT's parameter LpMethod by way."""


class CoptPeer(OrderedPeer):
    """A model that is changed in place; a row has both its sides.

    Parameters
    ----------
    way : str
    threads : int
    """

    def __init__(self, way: str, threads: int = 2) -> None:
        super().__init__()
        self.way = way
        self.model = coptpy.Envr().createModel("tape")
        self.model.setParam(coptpy.COPT.Param.Logging, 0)
        self.model.setParam(coptpy.COPT.Param.LpMethod, METHODS[way])
        self.model.setParam(coptpy.COPT.Param.Threads, threads)
        self.variables: list[Any] = []
        self.constraints: list[Any] = []

    def begin(self, program: Program) -> float:
        """Say whether it is a maximisation."""
        self.model.setObjSense(coptpy.COPT.MAXIMIZE if program.sense == "max" else coptpy.COPT.MINIMIZE)
        return 0.0

    def delete(self, rows: Ints, columns: Ints) -> float:
        """Delete the removed rows and columns."""
        gone, ended = set(columns.tolist()), set(rows.tolist())
        dropped = [self.variables[at] for at in sorted(gone)], [self.constraints[at] for at in sorted(ended)]
        self.variables = [each for at, each in enumerate(self.variables) if at not in gone]
        self.constraints = [each for at, each in enumerate(self.constraints) if at not in ended]
        started = clock()
        for each in dropped:
            if each:
                self.model.remove(each)
        return clock() - started

    def _info(self, objects: list[Any], **values: Floats) -> float:
        started = clock()
        for name, new in values.items():
            self.model.setInfo(getattr(coptpy.COPT.Info, name), objects, new.tolist())
        return clock() - started

    def costs(self, places: Ints, costs: Floats) -> float:
        """Change costs in one call."""
        return self._info([self.variables[at] for at in places.tolist()], Obj=costs)

    def bounds(self, places: Ints, lower: Floats, upper: Floats) -> float:
        """Change columns' bounds in two calls."""
        return self._info([self.variables[at] for at in places.tolist()], LB=finite(lower), UB=finite(upper))

    def sides(self, places: Ints, lower: Floats, upper: Floats) -> float:
        """Change rows' sides in two calls."""
        return self._info([self.constraints[at] for at in places.tolist()], LB=finite(lower), UB=finite(upper))

    def coefficients(self, changed: list[tuple[int, int, float]]) -> float:
        """Change coefficients one by one."""
        started = clock()
        for row, column, value in changed:
            self.model.setCoeff(self.constraints[row], self.variables[column], value)
        return clock() - started

    def add(self, now: Program, m: int, n: int) -> float:
        """Add new rows with their entries in older columns, then new columns."""
        head, tail = now.A[:, :n].tocsr()[m:].tocsr(), now.A[:, n:].tocsc()
        below, above = finite(now.row_lower[m:]).tolist(), finite(now.row_upper[m:]).tolist()
        low, high, cost = finite(now.col_lower[n:]).tolist(), finite(now.col_upper[n:]).tolist(), now.c[n:].tolist()
        started = clock()
        for at in range(now.shape[0] - m):
            part = slice(head.indptr[at], head.indptr[at + 1])
            line = coptpy.LinExpr()
            line.addTerms([self.variables[column] for column in head.indices[part].tolist()], head.data[part].tolist())
            self.constraints.append(self.model.addBoundConstr(line, below[at], above[at]))
        for at in range(now.shape[1] - n):
            part = slice(tail.indptr[at], tail.indptr[at + 1])
            column = coptpy.Column()
            column.addTerms([self.constraints[row] for row in tail.indices[part].tolist()], tail.data[part].tolist())
            self.variables.append(self.model.addVar(lb=low[at], ub=high[at], obj=cost[at], column=column))
        return clock() - started

    def solve(self, program: Program, limit_s: float, edit_s: float) -> Answer:
        """Solve within a time limit."""
        self.model.setParam(coptpy.COPT.Param.TimeLimit, limit_s)
        started = clock()
        self.model.solveLP()
        seconds = clock() - started
        status = int(self.model.status)
        optimal = status == coptpy.COPT.OPTIMAL
        x = y = None
        if optimal:
            primal = np.array(self.model.getInfo(coptpy.COPT.Info.Value, self.variables))
            dual = np.array(self.model.getInfo(coptpy.COPT.Info.Dual, self.constraints))
            x, y = self.in_order(program, primal, dual)
        return Answer(
            way=self.way,
            optimal=optimal,
            status=str(status),
            objective=float(self.model.lpobjval) + program.offset if optimal else np.nan,
            edit_s=edit_s,
            solve_s=seconds,
            iterations=int(self.model.simplexiter) + int(self.model.barrieriter),
            x=x,
            y=y,
        )


def finite(values: Floats) -> Floats:
    """Return bounds in COPT's convention, in which infinity is a large number."""
    return np.asarray(np.clip(values, -coptpy.COPT.INFINITY, coptpy.COPT.INFINITY))
