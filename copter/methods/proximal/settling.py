"""Settled groups: groups whose best column stays the same under small price changes (equation A8).

Between two pricing passes prices move by a few per cent, and nine of ten groups keep their column. The usage of these
settled groups is constant, so the proximal steps need only the other groups, as long as the prices stay within the
radius for which this is proven.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from copter.methods.proximal.accumulate import open_columns
from copter.methods.proximal.newton import Region, Rows
from copter.methods.proximal.row_sums import farthest
from copter.methods.proximal.settle import settled_radius
from copter.methods.proximal.working_set import WorkingSet

Floats = NDArray[np.float64]

SHARE = 0.1  # share of the groups that the first radius leaves open
WORTH = 0.5  # if more than this share of the groups would be open, no group is settled
WIDER = 3.0  # new radius over the larger of the old radius and the distance that prices have moved
IDLE_PRICE = 0.01  # size of a zero price, in units of the largest cost over the row's scale


@dataclass(slots=True)
class Part:
    """The open groups as a working set, with the settled groups' contribution to rows and objective.

    Attributes
    ----------
    ws : WorkingSet
        Open groups only; its x is a copy.
    rows : Rows
        The rows' bounds less what the settled groups use.
    columns : ndarray or None
        Positions of its columns in the whole working set; None for all.
    cost : float
        Objective of the settled groups.
    """

    ws: WorkingSet
    rows: Rows
    columns: NDArray[np.int32] | None
    cost: float

    def spread(self, values: Floats, size: int) -> Floats:
        """Return the open columns' values in an array of all columns, zero for settled ones, (size,)."""
        if self.columns is None:
            return values
        spread = np.zeros(size)
        spread[self.columns] = values
        return spread


class Settling:
    """Radii of all groups of a working set at given x and prices, and the radius in use.

    Parameters
    ----------
    ws, rows : the whole program; settled groups stay at ws.x.
    y : ndarray (m,)
        Base prices, from which moves are measured.
    """

    def __init__(self, ws: WorkingSet, rows: Rows, y: Floats) -> None:
        self.ws, self.rows, self.base = ws, rows, y.copy()
        idle = IDLE_PRICE * float(np.abs(ws.cost).max(initial=0.0)) / np.maximum(rows.scale, 1e-300)
        self.weight = np.abs(y) + np.where(rows.scale > 0.0, idle, 1.0)
        self.radii = np.empty(len(ws.slots))
        settled_radius(ws.groups(), ws.x, ws.reduced_costs(y), self.weight, self.radii)
        place = int(SHARE * len(self.radii))
        self.radius = float(np.partition(self.radii, place)[place]) if len(self.radii) else np.inf

    def distance(self, y: Floats) -> float:
        """Return the distance of prices from the base prices, in units of their size."""
        return farthest(y, self.base, self.weight)

    @property
    def region(self) -> Region:
        """Prices at which settled groups are known to stay settled."""
        return Region(self.base, self.weight, self.radius)

    def brought_back(self, y: Floats, trust_radius: float) -> Floats:
        """Return prices projected to the edge of the trust region, along the line from the base (equation A9)."""
        return np.asarray(self.base + (y - self.base) * min(1.0, trust_radius / self.distance(y)))

    def widen(self, y: Floats) -> None:
        """Enlarge the radius to cover these prices, with some extra."""
        self.radius = WIDER * max(self.radius, self.distance(y))

    def part(self) -> Part:
        """Return the open groups; everything, without a radius, if too few groups are settled."""
        ws = self.ws
        used = np.empty(len(self.base))
        columns, cost = open_columns(ws.groups(), self.radii, self.radius, WORTH, ws.x, used)
        if columns is None:
            self.radius = np.inf
            return Part(ws, self.rows, None, 0.0)
        rows = Rows(self.rows.lower - used, self.rows.upper - used, self.rows.scale)
        return Part(ws.take(columns), rows, columns, cost)
