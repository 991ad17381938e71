"""The relaxation's time intervals, and how they move with time."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from copter_frontends.vocabulary import InvalidClusterError

Floats = NDArray[np.float64]

RATIO = 7500.0  # horizon divided by the first interval's length: 23 intervals at growth 1.5, 40 at 1.25


@dataclass(frozen=True, slots=True, eq=False)
class TimeGrid:
    """Edges tau_0 < tau_1 < ... < tau_L in absolute seconds.

    Attributes
    ----------
    edges : ndarray (L + 1,)
    growth : float
        Ratio of the distances of successive edges from the start, 1 + epsilon.
    """

    edges: Floats
    growth: float

    @classmethod
    def geometric(cls, start_s: float, horizon_s: float, growth: float = 1.5, ratio: float = RATIO) -> TimeGrid:
        """Return a grid with edges at start + unit growth^l up to the horizon; unit is (horizon - start) / `ratio`."""
        if not (growth > 1 and ratio > 1):
            raise InvalidClusterError(f"a grid's growth is {growth} and its ratio {ratio}; both must be above 1")
        if not horizon_s > start_s:
            raise InvalidClusterError(f"the horizon {horizon_s:g} s is not after the start {start_s:g} s")
        count = intervals_of(growth, ratio)
        distance = (horizon_s - start_s) * growth ** np.arange(1.0 - count, 1.0)
        return cls(np.concatenate(([start_s], start_s + distance)), growth)

    @property
    def intervals(self) -> int:
        """Number of intervals, L."""
        return len(self.edges) - 1

    @property
    def left(self) -> Floats:
        """Left ends tau_{l-1}, (L,)."""
        return self.edges[:-1]

    @property
    def right(self) -> Floats:
        """Right ends tau_l, (L,)."""
        return self.edges[1:]

    @property
    def length(self) -> Floats:
        """Lengths tau_l - tau_{l-1}, (L,)."""
        return np.diff(self.edges)

    def until(self, horizon_s: float) -> TimeGrid:
        """Return the grid extended by intervals of the same growth to cover `horizon_s`."""
        edges = self.edges.tolist()
        while edges[-1] < horizon_s:
            edges.append(edges[-1] + (edges[-1] - edges[-2]) * self.growth)
        return TimeGrid(np.array(edges), self.growth)

    def rolled(self, now_s: float, resplit: bool = True) -> TimeGrid:
        """Return the grid from `now_s` on: past intervals are dropped and the current one is cut.

        Later edges stay, so that only the columns of the first interval change. With `resplit`, an interval is halved
        if its right end is more than growth^2 times as far from now as its left end, and its left half again, down to
        the unit of the first grid.
        """
        later = self.edges[self.edges > now_s * (1 + 1e-12) + 1e-12]
        if not len(later):
            raise InvalidClusterError(f"the grid ended at {self.edges[-1]:g} s, before {now_s:g} s: make a new one")
        edges = np.concatenate(([now_s], later))
        if resplit and len(edges) > 2:
            unit, result = (edges[-1] - now_s) / RATIO, [now_s]
            for right in edges[1:].tolist():
                result += [*_halvings(result[-1], right, now_s, self.growth, unit), right]
            edges = np.array(result)
        return TimeGrid(edges, self.growth)

    def overlap(self, other: TimeGrid) -> Floats:
        """Return the share of each interval in each interval of another grid, (L, L')."""
        low = np.maximum(self.left[:, None], other.left[None, :])
        high = np.minimum(self.right[:, None], other.right[None, :])
        return np.asarray(np.maximum(high - low, 0.0) / self.length[:, None])


def intervals_of(growth: float, ratio: float = RATIO) -> int:
    """Return the number of intervals of a new grid."""
    return int(np.ceil(np.log(ratio) / np.log(growth) - 1e-9))


def _halvings(left: float, right: float, now_s: float, growth: float, unit: float) -> list[float]:
    """Return edges inside a coarse interval, whose left part is halved until it is fine enough at the current time."""
    inside: list[float] = []
    while right - left > 2 * unit and right - now_s > growth**2 * max(left - now_s, unit) * (1 + 1e-9):
        right = 0.5 * (left + right)
        inside.append(right)
    return inside[::-1]
