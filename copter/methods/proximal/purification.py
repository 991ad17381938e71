"""From a point on the optimal face to a vertex of it, so that at most as many blocks are fractional as rows are tight.

Carathéodory's walk: while more columns are strictly between bounds than there are tight constraints on them, some
direction leaves every tight constraint tight; follow it downhill until a column reaches a bound or a row becomes
tight. (A proof that a vertex has at most as many fractional blocks as coupling rows is in method/formulation.md, F12.)
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from copter.methods.proximal.accumulate import rooms, snap
from copter.methods.proximal.newton import Rows
from copter.methods.proximal.purify import Walk, WalkRows, cut_excess
from copter.methods.proximal.row_sums import tight_rows
from copter.methods.proximal.working_set import WorkingSet

Floats = NDArray[np.float64]
Bytes = NDArray[np.uint8]

SNAP = 1e-9  # a column this close to a bound (relative to its range) is put on it
TIGHT = 1e-7  # a row this close to a bound (relative) counts as tight
WALK_ROWS = 64  # tight rows above which there is no walk
MAX_STEPS = 20_000  # most steps of one walk to a vertex


def purify(ws: WorkingSet, rows: Rows, must_stop: Callable[[], bool] = lambda: False) -> int:
    """Move ws.x to a vertex of its face, in place; returns the number of steps.

    The walk never worsens the objective. If more than :data:`WALK_ROWS` rows are tight, nothing is done: the walk's
    linear algebra is dense in these rows. `must_stop` is called before every step; an interrupted walk leaves an
    optimal point that is not a vertex.
    """
    if ws.size == 0:
        return 0
    span = np.empty(ws.size)
    snap(ws.lower, ws.upper, SNAP, ws.x, span)
    activity = ws.activity(len(rows.lower))
    tight, count = tight_rows(activity, rows.lower, rows.upper, TIGHT)
    steps = 0
    if count <= WALK_ROWS:
        steps = walk(ws, rows, activity, tight, span).run(MAX_STEPS, must_stop)
    settle(ws)
    return steps


def walk(ws: WorkingSet, rows: Rows, activity: Floats, row_tight: Bytes, span: Floats) -> Walk:
    """Prepare the walk from ws.x, which it changes in place."""
    room, limit_tight = np.empty(len(ws.slots)), np.empty(len(ws.slots), dtype=np.uint8)
    rooms(ws.groups(), ws.x, SNAP, room, limit_tight)
    along = WalkRows(activity, rows.lower, rows.upper, rows.scale, row_tight)
    return Walk(ws.groups(), ws.x, span, along, room, limit_tight)


def settle(ws: WorkingSet) -> None:
    """Subtract a group's excess over its limit, caused by snapping, from its column with the most room."""
    room = np.empty(len(ws.slots))
    if rooms(ws.groups(), ws.x, SNAP, room, np.empty(len(ws.slots), dtype=np.uint8)) < 0.0:
        cut_excess(ws.groups(), room, ws.x)
