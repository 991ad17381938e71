"""Crossover from a point on the optimal face to a vertex, by pivots on working columns (algorithm.md, Purification).

A walk (proximal/purification.py) takes one step and one elimination for every fractional column, which suits a handful
of them. Pivots start from the prices instead: every request starts at its best column, and only the requests that must
change for the rows to hold take a pivot.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from copter.methods.blocks.basis import WarmBasis
from copter.methods.blocks.program import BlockProgram, sums_before
from copter.methods.proximal.newton import Rows
from copter.methods.proximal.working_set import WorkingSet
from copter.runtime.watch import Watch

Floats = NDArray[np.float64]


def vertex_of(ws: WorkingSet, rows: Rows, y: Floats, watch: Watch) -> Floats | None:
    """Return the working columns' values at an optimal vertex of their own program; None if pivots take too long.

    Parameters
    ----------
    ws : WorkingSet
    rows : Rows
    y : ndarray (rows,)
        Prices, as minimised; with nearly optimal ones few pivots are needed.
    watch : Watch
    """
    answer = WarmBasis().solve(program_of(ws, rows), ws.slots, ws.generation[ws.start[:-1]], y, watch)
    return None if answer is None else np.clip(answer.x, ws.lower, ws.upper)


def program_of(ws: WorkingSet, rows: Rows) -> BlockProgram:
    """Return the program of the working columns; all other columns are at their lower bounds, which are zero."""
    counts = np.diff(ws.start)
    limited = np.isfinite(ws.limit)
    own = np.repeat(limited, counts)
    return BlockProgram(
        n_rows=len(rows.lower),
        column_start=ws.start,
        private_start=sums_before(limited),
        start=ws.entry_start,
        row=ws.row,
        value=ws.coefficient,
        own_start=sums_before(own),
        own_row=np.zeros(int(own.sum()), dtype=np.int32),
        own_value=np.ones(int(own.sum())),
        cost=ws.cost,
        lower=np.concatenate((ws.lower, rows.lower, np.full(int(limited.sum()), -np.inf))),
        upper=np.concatenate((ws.upper, rows.upper, ws.limit[limited])),
    )
