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
    """Shares of the demands that no pair can raise without one of a smaller share losing; each round by itself.

    Parameters
    ----------
    paths, demands
    settings : Settings, optional
        Of the programs of the sequence.
    """

    def __init__(self, paths: Paths, demands: ArrayLike, settings: Settings | None = None) -> None:
        super().__init__(paths, demands)
        self.settings = settings

    def solve(self, deadline_s: float | None) -> tuple[Floats, float, Floats, float | None]:
        """The fair flows; a deadline is not kept, as a sequence that is cut off is not fair."""
        found = max_min_fair(self.paths, self.demands, self.capacity, settings=self.settings)
        return found.flows, np.nan, np.zeros(0), None
