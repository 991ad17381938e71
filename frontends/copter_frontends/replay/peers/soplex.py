"""SoPlex through PySCIPOpt's interface to SCIP's LP solver: the dual simplex method from its own last basis."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import scipy.sparse as sp
from pyscipopt import LP, SCIP_LPPARAM

from copter_frontends.replay.peers.answer import Answer, Limits
from copter_frontends.replay.peers.clock import clock
from copter_frontends.replay.peers.glop import changed_coefficients
from copter_frontends.replay.program import Floats, Ints, Kept, Program

WAY = "soplex_warm"


class SoplexPeer:
    """An LP that SoPlex's own calls modify in place.

    Remaining rows and columns keep their order; new ones come last. The time of an update is that of the interface's
    calls, one per changed number.
    """

    ways = (WAY,)
    needs_start = False

    def __init__(self) -> None:
        self.lp: LP | None = None
        self.known: Program | None = None  # in SoPlex's order
        self.columns: Ints = np.zeros(0, dtype=np.int64)  # positions of SoPlex's columns in the round's program
        self.rows: Ints = self.columns

    def keep(self, ways: tuple[str, ...]) -> None:
        """Do nothing: there is one way."""

    def start_from(self, x: Floats, y: Floats) -> None:
        """Do nothing: SoPlex starts from its own last basis."""

    def round(self, program: Program, limits: Limits) -> list[Answer]:
        """Apply the round's edits and solve from the last basis."""
        edit_s = self.update(program)
        lp = self.lp
        assert lp is not None
        lp.setRealParam(SCIP_LPPARAM.LPTILIM, limits.solve_s)
        started = clock()
        objective = lp.solve(dual=True)
        seconds = clock() - started
        optimal = lp.isOptimal()
        x, y = np.zeros(program.shape[1]), np.zeros(program.shape[0])
        if optimal:
            x[self.columns], y[self.rows] = lp.getPrimal(), lp.getDual()
        return [
            Answer(
                way=WAY,
                optimal=optimal,
                status="optimal" if optimal else "no optimum within the limits",
                objective=float(objective) + program.offset if optimal else np.nan,
                edit_s=edit_s,
                solve_s=seconds,
                iterations=int(lp.getNIterations()),
                x=x if optimal else None,
                y=y if optimal else None,
            )
        ]

    def update(self, program: Program) -> float:
        """Load a round's program; returns the seconds of SoPlex's calls."""
        if self.known is None:
            self.lp = LP("tape", "maximize" if program.sense == "max" else "minimize")
            self.known = program
            self.columns, self.rows = np.arange(program.shape[1]), np.arange(program.shape[0])
            return self.add(program, 0, 0)
        columns = Kept.of(self.known.column_key, program.column_key)
        rows = Kept.of(self.known.row_key, program.row_key)
        now = program.taken(rows.order, columns.order)
        before, self.known = self.known, now
        self.columns, self.rows = columns.order, rows.order
        m, n = len(rows.before), len(columns.before)
        stay = Kept(columns.before, np.arange(n), columns.gone, np.arange(n, now.shape[1]))
        held = Kept(rows.before, np.arange(m), rows.gone, np.arange(m, now.shape[0]))
        old = [each for each in changed_coefficients(before, now, held, stay) if each[0] < m]
        seconds = self.delete(rows.gone, columns.gone) + self.change(before, now, held, stay)
        started = clock()
        for row, column, value in old:
            self.lp.chgCoef(row, column, value)  # type: ignore[union-attr]
        return seconds + clock() - started + self.add(now, m, n)

    def delete(self, rows: Ints, columns: Ints) -> float:
        """Delete the removed rows and columns, last first, with neighbours in one call."""
        lp = self.lp
        assert lp is not None
        started = clock()
        for first, last in reversed(runs_of(columns)):
            lp.delCols(first, last)
        for first, last in reversed(runs_of(rows)):
            lp.delRows(first, last)
        return clock() - started

    def change(self, before: Program, now: Program, rows: Kept, columns: Kept) -> float:
        """Update changed costs, bounds and sides of surviving rows and columns."""
        lp = self.lp
        assert lp is not None
        costs = np.flatnonzero(before.c[columns.before] != now.c[columns.after])
        boxes = np.flatnonzero(
            (before.col_lower[columns.before] != now.col_lower[columns.after])
            | (before.col_upper[columns.before] != now.col_upper[columns.after])
        )
        sides = np.flatnonzero(
            (before.row_lower[rows.before] != now.row_lower[rows.after])
            | (before.row_upper[rows.before] != now.row_upper[rows.after])
        )
        started = clock()
        for at in costs.tolist():
            lp.chgObj(at, float(now.c[at]))
        for at in boxes.tolist():
            lp.chgBound(at, float(now.col_lower[at]), float(now.col_upper[at]))
        for at in sides.tolist():
            lp.chgSide(at, float(now.row_lower[at]), float(now.row_upper[at]))
        return clock() - started

    def add(self, now: Program, m: int, n: int) -> float:
        """Add new rows with their entries in older columns, then new columns."""
        lp = self.lp
        assert lp is not None
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
