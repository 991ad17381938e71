"""SoPlex through PySCIPOpt's interface to SCIP's LP solver: the dual simplex method from its own last basis."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import scipy.sparse as sp
from pyscipopt import LP, SCIP_LPPARAM

from copter_frontends.replay.peers.answer import Answer
from copter_frontends.replay.peers.clock import clock
from copter_frontends.replay.peers.ordered import OrderedPeer
from copter_frontends.replay.program import Floats, Ints, Program


class SoplexPeer(OrderedPeer):
    """An LP that SoPlex's own calls modify in place, one per changed number."""

    way = "soplex_warm"
    lp: LP

    def begin(self, program: Program) -> float:
        """Make an empty LP."""
        self.lp = LP("tape", "maximize" if program.sense == "max" else "minimize")
        return 0.0

    def solve(self, program: Program, limit_s: float, edit_s: float) -> Answer:
        """Solve by the dual simplex method, from the last basis."""
        lp = self.lp
        lp.setRealParam(SCIP_LPPARAM.LPTILIM, limit_s)
        started = clock()
        objective = lp.solve(dual=True)
        seconds = clock() - started
        optimal = lp.isOptimal()
        x, y = self.in_order(program, lp.getPrimal(), lp.getDual()) if optimal else (None, None)
        return Answer(
            way=self.way,
            optimal=optimal,
            status="optimal" if optimal else "no optimum within the limits",
            objective=float(objective) + program.offset if optimal else np.nan,
            edit_s=edit_s,
            solve_s=seconds,
            iterations=int(lp.getNIterations()),
            x=x,
            y=y,
        )

    def delete(self, rows: Ints, columns: Ints) -> float:
        """Delete the removed rows and columns, last first, with neighbours in one call."""
        lp = self.lp
        started = clock()
        for first, last in reversed(runs_of(columns)):
            lp.delCols(first, last)
        for first, last in reversed(runs_of(rows)):
            lp.delRows(first, last)
        return clock() - started

    def costs(self, places: Ints, costs: Floats) -> float:
        """Change costs one by one."""
        started = clock()
        for at, cost in zip(places.tolist(), costs.tolist(), strict=True):
            self.lp.chgObj(at, cost)
        return clock() - started

    def bounds(self, places: Ints, lower: Floats, upper: Floats) -> float:
        """Change columns' bounds one by one."""
        started = clock()
        for at, low, high in zip(places.tolist(), lower.tolist(), upper.tolist(), strict=True):
            self.lp.chgBound(at, low, high)
        return clock() - started

    def sides(self, places: Ints, lower: Floats, upper: Floats) -> float:
        """Change rows' sides one by one."""
        started = clock()
        for at, low, high in zip(places.tolist(), lower.tolist(), upper.tolist(), strict=True):
            self.lp.chgSide(at, low, high)
        return clock() - started

    def coefficients(self, changed: list[tuple[int, int, float]]) -> float:
        """Change coefficients one by one."""
        started = clock()
        for row, column, value in changed:
            self.lp.chgCoef(row, column, value)
        return clock() - started

    def add(self, now: Program, m: int, n: int) -> float:
        """Add new rows with their entries in older columns, then new columns."""
        lp = self.lp
        head = entries_of(now.A[:, :n].tocsr()[m:])
        tail = entries_of(now.A[:, n:].T.tocsr())
        started = clock()
        if head:
            lp.addRows(head, lhss=now.row_lower[m:].tolist(), rhss=now.row_upper[m:].tolist())
        if tail:
            lp.addCols(
                tail, objs=now.c[n:].tolist(), lbs=now.col_lower[n:].tolist(), ubs=now.col_upper[n:].tolist()
            )  # fmt: skip
        return clock() - started


def entries_of(rows: sp.csr_array) -> list[list[tuple[int, float]]]:
    """Yield (positions, values) of the entries of each row of a CSR matrix."""
    index, value = rows.indices.tolist(), rows.data.tolist()
    return [list(zip(index[begin:end], value[begin:end], strict=True)) for begin, end in pairwise(rows.indptr.tolist())]


def runs_of(places: Ints) -> list[tuple[int, int]]:
    """Return (first, last) of runs of consecutive numbers among ascending positions."""
    if not len(places):
        return []
    breaks = np.flatnonzero(np.diff(places) != 1)
    firsts = places[np.concatenate(([0], breaks + 1))]
    lasts = places[np.concatenate((breaks, [len(places) - 1]))]
    return list(zip(firsts.tolist(), lasts.tolist(), strict=True))
