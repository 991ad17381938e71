"""From a point on the optimal face to a vertex of it, so that at most as many blocks are fractional as rows are tight.

Carathéodory's walk: while more columns are strictly between bounds than there are tight constraints on them, some
direction leaves every tight constraint tight; follow it downhill until a column reaches a bound or a row becomes
tight. (A proof that a vertex has at most as many fractional blocks as coupling rows is in method/formulation.md, F12.)
"""

from __future__ import annotations

from collections.abc import Callable

from copter.methods.proximal.newton import Rows
from copter.methods.proximal.purify import Walk
from copter.methods.proximal.working_set import WorkingSet

WALK_ROWS = 64  # tight rows above which there is no walk
MAX_STEPS = 20_000  # most steps of one walk to a vertex


def purify(ws: WorkingSet, rows: Rows, must_stop: Callable[[], bool] = lambda: False) -> int:
    """Move ws.x to a vertex of its face, in place; returns the number of steps.

    The walk never worsens the objective. If more than :data:`WALK_ROWS` rows are tight, columns are only put on bounds:
    the walk's linear algebra is dense in these rows. `must_stop` is called before every step; an interrupted walk
    leaves an optimal point that is not a vertex.
    """
    if ws.size == 0:
        return 0
    walk = Walk(ws.groups(), ws.x, rows.lower, rows.upper, rows.scale)
    steps = walk.run(MAX_STEPS, must_stop) if walk.n_tight <= WALK_ROWS else 0
    walk.settle()
    return steps
