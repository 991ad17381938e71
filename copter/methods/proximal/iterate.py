"""The primal and dual state of a solve, kept from round to round."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from copter.methods.proximal.accumulate import idle_columns
from copter.methods.proximal.newton import Rows
from copter.methods.proximal.steps import Steps
from copter.methods.proximal.working_set import WorkingSet
from copter.model.matrix import BlockMatrix
from copter.model.matrix.moves import Moves
from copter.runtime.errors import InternalError

Floats = NDArray[np.float64]

FIRST_SIGMA = 10.0  # proximal parameter of a cold solve, in units of a column's range divided by its cost
KEEP_SLACK = 0.05
"""A column at its bound leaves the working set when its reduced cost, less the least of its block, exceeds this share
of the largest absolute cost of the block's working columns.
"""
NO_DUALS: tuple[NDArray[np.int64], Floats, NDArray[np.int64]] = (
    np.zeros(0, dtype=np.int64),
    np.zeros(0),
    np.zeros(0, dtype=np.int64),
)
"""Keys, duals and generations of no rows."""


class Iterate:
    """Row prices y, the working set with its x, and the proximal parameter; follows every edit of the matrix.

    Attributes
    ----------
    own_key, own_dual, own_generation : ndarray (k,)
        Duals (as minimised) of requests' own rows, for models with private rows or least sums. Keys are slot << 32 |
        row, ascending: row 0 is the sum of the columns, row 1 + i private row i. The last array has the slots'
        generations.
    """

    def __init__(self, sigma: float = FIRST_SIGMA) -> None:
        self.ws = WorkingSet()
        self.y: Floats = np.zeros(0)
        self.row_generation: NDArray[np.int64] = np.zeros(0, dtype=np.int64)
        self.sigma = sigma
        self.cold = True
        self.own_key, self.own_dual, self.own_generation = NO_DUALS
        self.pass_s = 0.0  # seconds of the last pricing pass
        self.fresh_share = 1.0  # of the requests that the last refresh has found without a working column
        self.moves = False  # whether the last steps on the working set have moved
        self.steps = Steps()

    def refresh(self, matrix: BlockMatrix, reach: float = 0.0) -> None:
        """Follow the edits: surviving rows keep their duals, surviving columns their values.

        New columns that must be in the working set start at the bound that the sign of their reduced cost selects. In a
        warm solve with a positive `reach` requests without working columns get those that are best at the last prices
        and at prices 1 + reach times as high and as low (equation A18).
        """
        generation = matrix.row_generation[: matrix.n_rows].copy()
        if not np.array_equal(self.row_generation, generation):
            y, known = np.zeros(matrix.n_rows), len(self.y)
            same = self.row_generation == generation[:known]
            y[:known][same] = self.y[same]
            self.y, self.row_generation = y, generation
        if len(self.own_key):
            slot = self.own_key >> 32
            alive = (slot < matrix.n_slots) & (self.own_generation == matrix.generation[slot])
            self.own_key, self.own_dual = self.own_key[alive], self.own_dual[alive]
            self.own_generation = self.own_generation[alive]
        times = None
        if not self.cold and 0.0 < reach < np.inf:
            times = np.array([1.0, 1.0 / (1.0 + reach), 1.0 + reach])
        fresh = self.ws.refresh(matrix, None if self.cold else self.y, times)
        self.fresh_share = fresh / max(len(self.ws.slots), 1)

    def hold_own(self, matrix: BlockMatrix, key: NDArray[np.int64], dual: Floats) -> None:
        """Store the duals of own rows, by ascending key."""
        self.own_key, self.own_dual, self.own_generation = key, dual, matrix.generation[key >> 32]

    def follow(self, moved: NDArray[np.int64], before: NDArray[np.int64], matrix: BlockMatrix) -> None:
        """Renumber the keys of own-row duals after slabs have moved.

        `moved` is the new slot of every old one, `before` the slots' generations before the move.
        """
        slot = self.own_key >> 32
        known = slot < len(moved)
        known[known] = (before[slot[known]] == self.own_generation[known]) & (moved[slot[known]] >= 0)
        target = moved[slot[known]] << 32 | (self.own_key[known] & 0xFFFFFFFF)
        self.hold_own(matrix, target, self.own_dual[known])

    def follow_columns(self, matrix: BlockMatrix, moves: Moves) -> None:
        """Renumber columns and own rows of requests that have been given others, as far as they continue old ones."""
        ws, now = self.ws, matrix.generation
        moved = moves.followed(ws.key, ws.generation, now)
        if moved is not None:
            key, place = moved
            self.ws = WorkingSet.of(key, ws.x[place], now[key >> 32])
        moved = moves.followed(self.own_key, self.own_generation, now, own_rows=True)
        if moved is not None:
            self.hold_own(matrix, moved[0], self.own_dual[moved[1]])

    def own_at(self, key: NDArray[np.int64]) -> Floats:
        """Return the duals of own rows with these keys; zero for rows without one."""
        place = np.minimum(np.searchsorted(self.own_key, key), max(len(self.own_key) - 1, 0))
        if not len(self.own_key):
            return np.zeros(len(key))
        return np.where(self.own_key[place] == key, self.own_dual[place], 0.0)

    @staticmethod
    def rows(matrix: BlockMatrix) -> Rows:
        """Return views of the matrix's rows in the solver's form."""
        m = matrix.n_rows
        return Rows(matrix.row_lower[:m], matrix.row_upper[:m], matrix.row_scale[:m])

    def shrink(self, matrix: BlockMatrix) -> None:
        """Remove columns at rest whose reduced cost exceeds their block's least by `KEEP_SLACK` times its largest
        |cost|; data of the others are gathered again by the next :meth:`refresh`.
        """
        ws = self.ws
        if ws.size == 0 or len(ws.cost) != ws.size:  # no columns, or not gathered since the last time
            return
        idle = np.empty(ws.size, dtype=np.uint8)
        if not idle_columns(ws.groups(), self.y, ws.x, KEEP_SLACK, idle):
            return
        if ws.any_required:
            idle[np.repeat(matrix.resident_of(ws.slots), np.diff(ws.start))] = 0
        self.ws = ws.without(idle)

    def check_consistent(self, matrix: BlockMatrix) -> None:
        """Raise InternalError unless x is within bounds and limits, keys ascend and every column is alive."""
        ws = WorkingSet.of(self.ws.key, self.ws.x.copy(), self.ws.generation)
        ws.gather(matrix)
        ws.x = self.ws.x  # the present values, which gathering would project
        inside = bool(np.all((ws.x >= ws.lower) & (ws.x <= ws.upper)))
        ascending = bool(np.all(np.diff(ws.key) > 0))
        alive = bool(np.all(self.ws.generation == ws.generation))
        total = np.add.reduceat(ws.x, ws.start[:-1]) if ws.size else ws.limit
        limited = bool(np.all(total <= ws.limit * (1 + 1e-9) + 1e-12))
        if not (inside and ascending and alive and limited and len(self.y) == matrix.n_rows):
            raise InternalError(
                f"inconsistent iterate: in bounds {inside}, ascending {ascending}, alive {alive}, limits {limited}"
            )
