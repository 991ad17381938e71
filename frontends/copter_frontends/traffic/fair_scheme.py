"""Max-min fair flows as a scheme, for the command line and comparisons (TE14)."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from copter import Settings
from copter_frontends.traffic.fairness import max_min_fair
from copter_frontends.traffic.network import Floats
from copter_frontends.traffic.paths import Paths
from copter_frontends.traffic.scheme import RoundScheme


class MaxMin(RoundScheme):
    """Max-min fair shares of the demands; each round is solved from scratch.

    Parameters
    ----------
    paths, demands
    settings : Settings, optional
        Settings of the sequence's programs.
    """

    def __init__(self, paths: Paths, demands: ArrayLike, settings: Settings | None = None) -> None:
        super().__init__(paths, demands)
        self.settings = settings

    def solve(self, deadline_s: float | None) -> tuple[Floats, float, Floats, float | None]:
        """Return the fair flows; the deadline is ignored, because a partial sequence is not fair."""
        found = max_min_fair(self.paths, self.demands, self.capacity, settings=self.settings)
        return found.flows, np.nan, np.zeros(0), None
