"""A baseline without a program: shortest paths first."""

from __future__ import annotations

import numpy as np

from copter_frontends.traffic.flow_kernels import fill
from copter_frontends.traffic.network import Floats
from copter_frontends.traffic.scheme import RoundScheme


class Greedy(RoundScheme):
    """Shortest path first: the largest demands first, each on its shortest paths with capacity (CSPF)."""

    def solve(self, deadline_s: float | None) -> tuple[Floats, float, Floats, float | None]:
        """Return the greedy flows; no program is solved."""
        flows = np.zeros(self.paths.n_paths)
        order = np.argsort(-self.demands, kind="stable")
        order = order[(self.demands > 0.0)[order]]
        paths = self.paths
        fill(order, paths.first, paths.start, paths.arc, flows, self.demands.copy(), self.capacity.copy(), 0.0)
        return flows, np.nan, np.zeros(0), None
