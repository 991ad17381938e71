"""GLOP through OR-Tools' incremental linear_solver interface."""

from __future__ import annotations

import time
from typing import Any

import numpy as np
from families.protocol import Family, Floats, Ints
from ortools.linear_solver import pywraplp

from peers.program import Answer, Snapshot, entries


class GlopPeer:
    """One solver kept alive, with incrementality on: what did not change is not told again.

    The interface cannot delete. Where all requests have one pattern an arrival takes over the columns of a departure,
    so that only costs change; elsewhere a departure's columns and limit are set to zero and stay. Seconds of an update
    are those of the interface's calls, one an object, as there are no others.
    """

    name = "glop_warm"

    def __init__(self) -> None:
        self.solver = pywraplp.Solver.CreateSolver("GLOP")
        if self.solver is None:
            raise RuntimeError("this build of OR-Tools has no GLOP")
        self.parameters = pywraplp.MPSolverParameters()
        self.parameters.SetIntegerParam(self.parameters.INCREMENTALITY, self.parameters.INCREMENTALITY_ON)
        self.objective = self.solver.Objective()
        self.objective.SetMaximization()
        self.known = Snapshot()
        self.rows: list[Any] = []
        self.columns: list[list[Any]] = []  # by request, in the family's order
        self.limit_rows: list[Any] = []

    def update(self, family: Family) -> float:
        """Hand the round's edits over."""
        now = Snapshot.of(family)
        here, there = self.known.kept(family)
        gone = np.setdiff1d(np.arange(len(self.known.requests)), here)
        fresh = np.setdiff1d(np.arange(len(now.requests)), there)
        data = entries(family, fresh, 0) if len(fresh) else None
        started = time.perf_counter()
        self.change_capacities(now)
        spare = [(self.columns[i], self.limit_rows[i], self.known.cost[i]) for i in gone.tolist()]
        columns: list[Any] = [None] * len(now.requests)
        limit_rows: list[Any] = [None] * len(now.requests)
        known_cost, known_limit = np.zeros_like(now.cost), np.zeros(len(now.requests))
        for before, after in zip(here.tolist(), there.tolist(), strict=True):
            columns[after], limit_rows[after] = self.columns[before], self.limit_rows[before]
        known_cost[there], known_limit[there] = self.known.cost[here], self.known.limits[here]
        if family.shared_pattern:
            taken, fresh = fresh[: len(spare)], fresh[len(spare) :]
            for at in taken.tolist():
                columns[at], limit_rows[at], known_cost[at] = spare.pop()
            known_limit[taken] = 1.0
            data = entries(family, fresh, 0) if len(fresh) else None
        for own, limit, _ in spare:
            limit.SetUb(0.0)
            for column in own:
                column.SetUb(0.0)
        if data is not None:
            self.add(fresh, data, now, family.columns, columns, limit_rows)
            known_limit[fresh] = now.limits[fresh]
        self.columns, self.limit_rows = columns, limit_rows
        self.change(known_cost, known_limit, now)
        seconds = time.perf_counter() - started
        self.known = now
        return seconds

    def change_capacities(self, now: Snapshot) -> None:
        """Make the resources' rows, or change those that moved."""
        if not self.rows:
            self.rows = [self.solver.Constraint(-np.inf, float(bound)) for bound in now.capacity]
            return
        for row in np.flatnonzero(self.known.capacity != now.capacity).tolist():
            self.rows[row].SetUb(float(now.capacity[row]))

    def add(
        self,
        fresh: Ints,
        data: tuple[Ints, Ints, Floats],
        now: Snapshot,
        k: int,
        columns: list[Any],
        limit_rows: list[Any],
    ) -> None:
        """Add the columns and limits of new requests."""
        start, row, value = (part.tolist() for part in data)
        for position, at in enumerate(fresh.tolist()):
            limit = float(now.limits[at])
            own_row = self.solver.Constraint(-np.inf, limit)
            limit_rows[at] = own_row
            columns[at] = []
            for column in range(position * k, position * k + k):
                variable = self.solver.NumVar(0.0, limit, "")
                columns[at].append(variable)
                for entry in range(start[column], start[column + 1] - 1):
                    self.rows[row[entry]].SetCoefficient(variable, value[entry])
                own_row.SetCoefficient(variable, 1.0)

    def change(self, cost: Floats, limit: Floats, now: Snapshot) -> None:
        """Change costs and limits that are not what they were."""
        for at, column in np.argwhere(cost != now.cost).tolist():
            self.objective.SetCoefficient(self.columns[at][column], float(now.cost[at, column]))
        for at in np.flatnonzero(limit != now.limits).tolist():
            self.limit_rows[at].SetUb(float(now.limits[at]))
            for column in self.columns[at]:
                column.SetUb(float(now.limits[at]))

    def solve(self, time_limit_s: float) -> Answer:
        """Solve from where the last solve ended, within a time limit."""
        self.solver.SetTimeLimit(int(1e3 * time_limit_s))
        started = time.perf_counter()
        status = self.solver.Solve(self.parameters)
        seconds = time.perf_counter() - started
        optimal = status == pywraplp.Solver.OPTIMAL
        x = np.array([v.solution_value() for own in self.columns for v in own]) if optimal else None
        price = np.array([row.dual_value() for row in self.rows]) if optimal else None
        return Answer(
            optimal,
            str(status),
            self.objective.Value() if optimal else np.nan,
            seconds,
            self.solver.iterations(),
            x,
            price,
        )
