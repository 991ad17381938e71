"""CPLEX, for those who have a licence: the dual simplex method from its own last basis, or the barrier method."""

from __future__ import annotations

from itertools import pairwise

import cplex
import numpy as np
import scipy.sparse as sp

from copter_frontends.replay.peers.answer import Answer
from copter_frontends.replay.peers.clock import clock
from copter_frontends.replay.peers.ordered import OrderedPeer
from copter_frontends.replay.program import Floats, Ints, Program

METHODS = {"cplex_dual_warm": 2, "cplex_barrier_cold": 4}
"""CPLEX's parameter lpmethod by way."""
OPTIMAL = 1  # CPX_STAT_OPTIMAL


class CplexPeer(OrderedPeer):
    """A problem that is changed in place, by positions.

    Parameters
    ----------
    way : str
    threads : int
    """

    def __init__(self, way: str, threads: int = 2) -> None:
        super().__init__()
        self.way = way
        self.problem = cplex.Cplex()
        for stream in ("log", "results", "warning", "error"):
            getattr(self.problem, f"set_{stream}_stream")(None)
        self.problem.parameters.lpmethod.set(METHODS[way])
        self.problem.parameters.threads.set(threads)

    def begin(self, program: Program) -> float:
        """Say whether it is a maximisation."""
        sense = self.problem.objective.sense
        self.problem.objective.set_sense(sense.maximize if program.sense == "max" else sense.minimize)
        return 0.0

    def delete(self, rows: Ints, columns: Ints) -> float:
        """Delete the removed rows and columns."""
        started = clock()
        if len(columns):
            self.problem.variables.delete(columns.tolist())
        if len(rows):
            self.problem.linear_constraints.delete(rows.tolist())
        return clock() - started

    def costs(self, places: Ints, costs: Floats) -> float:
        """Change costs in one call."""
        pairs = pairs_of(places, costs)
        started = clock()
        self.problem.objective.set_linear(pairs)
        return clock() - started

    def bounds(self, places: Ints, lower: Floats, upper: Floats) -> float:
        """Change columns' bounds in two calls."""
        low, high = pairs_of(places, finite(lower)), pairs_of(places, finite(upper))
        started = clock()
        self.problem.variables.set_lower_bounds(low)
        self.problem.variables.set_upper_bounds(high)
        return clock() - started

    def sides(self, places: Ints, lower: Floats, upper: Floats) -> float:
        """Change rows' sides in three calls."""
        senses, right, ranges = sides_of(lower, upper)
        told = list(zip(places.tolist(), senses, strict=True)), pairs_of(places, right), pairs_of(places, ranges)
        started = clock()
        self.problem.linear_constraints.set_senses(told[0])
        self.problem.linear_constraints.set_rhs(told[1])
        self.problem.linear_constraints.set_range_values(told[2])
        return clock() - started

    def coefficients(self, changed: list[tuple[int, int, float]]) -> float:
        """Change coefficients in one call."""
        started = clock()
        if changed:
            self.problem.linear_constraints.set_coefficients(changed)
        return clock() - started

    def add(self, now: Program, m: int, n: int) -> float:
        """Add new rows with their entries in older columns, then new columns."""
        head, tail = now.A[:, :n].tocsr()[m:].tocsr(), now.A[:, n:].tocsc()
        senses, right, ranges = sides_of(now.row_lower[m:], now.row_upper[m:])
        rows, columns = sparse_pairs(head), sparse_pairs(tail)
        low, high = finite(now.col_lower[n:]).tolist(), finite(now.col_upper[n:]).tolist()
        started = clock()
        if rows:
            self.problem.linear_constraints.add(
                lin_expr=rows, senses="".join(senses), rhs=right.tolist(), range_values=ranges.tolist()
            )
        if columns:
            self.problem.variables.add(obj=now.c[n:].tolist(), lb=low, ub=high, columns=columns)
        return clock() - started

    def solve(self, program: Program, limit_s: float, edit_s: float) -> Answer:
        """Solve within a time limit."""
        self.problem.parameters.timelimit.set(limit_s)
        started = clock()
        self.problem.solve()
        seconds = clock() - started
        found = self.problem.solution
        status = int(found.get_status())
        optimal = status == OPTIMAL
        x = y = None
        if optimal:
            x, y = self.in_order(program, np.array(found.get_values()), np.array(found.get_dual_values()))
        counts = found.progress
        return Answer(
            way=self.way,
            optimal=optimal,
            status=str(status),
            objective=float(found.get_objective_value()) + program.offset if optimal else np.nan,
            edit_s=edit_s,
            solve_s=seconds,
            iterations=int(counts.get_num_iterations()) + int(counts.get_num_barrier_iterations()),
            x=x,
            y=y,
        )


def sides_of(lower: Floats, upper: Floats) -> tuple[list[str], Floats, Floats]:
    """Return rows' senses, sides and ranges: a row of sense R is between its side and that plus its range."""
    two = np.isfinite(lower) & np.isfinite(upper) & (lower != upper)
    senses = np.where(lower == upper, "E", np.where(two, "R", np.where(np.isfinite(lower), "G", "L")))
    right = np.where(np.isfinite(lower), lower, finite(upper))
    return senses.tolist(), right, np.where(two, upper - np.where(two, lower, 0.0), 0.0)


def pairs_of(places: Ints, values: Floats) -> list[tuple[int, float]]:
    """Return (position, value) of each."""
    return list(zip(places.tolist(), values.tolist(), strict=True))


def sparse_pairs(lines: sp.csr_array | sp.csc_array) -> list[object]:
    """Return CPLEX's own pairs of positions and values, for each line of a matrix."""
    starts, index, value = lines.indptr.tolist(), lines.indices.tolist(), lines.data.tolist()
    return [cplex.SparsePair(ind=index[begin:end], val=value[begin:end]) for begin, end in pairwise(starts)]


def finite(values: Floats) -> Floats:
    """Return bounds in CPLEX's convention, in which infinity is a large number."""
    return np.asarray(np.clip(values, -cplex.infinity, cplex.infinity))
