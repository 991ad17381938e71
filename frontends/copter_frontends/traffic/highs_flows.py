"""The path program in HiGHS; demands and capacities change in place, and the basis is kept."""

from __future__ import annotations

import highspy
import numpy as np
import scipy.sparse as sp

from copter.highs.lp import filled_lp, run_highs, silent_highs
from copter_frontends.traffic.network import Floats
from copter_frontends.traffic.paths import Paths


class HighsFlows:
    """The largest total flow by HiGHS: the interior-point method in the first round, then dual simplex from the last
    basis.

    Parameters
    ----------
    paths : Paths
    warm : bool
        Whether to keep the basis; without it every solve uses interior points from scratch.
    """

    def __init__(self, paths: Paths, warm: bool = True) -> None:
        self.paths, self.warm = paths, warm
        self.highs = silent_highs()
        self.highs.setOptionValue("threads", 1)
        self.solved = False
        n, m = paths.n_paths, paths.network.n_arcs
        start = np.concatenate(([0], np.cumsum(paths.hops + 1)))
        last = np.zeros(int(start[-1]), dtype=np.bool_)
        last[start[1:] - 1] = True
        row = np.empty(int(start[-1]), dtype=np.int64)
        row[last], row[~last] = m + paths.pair_of, paths.arc
        matrix = sp.csc_array((np.ones(len(row)), row, start), shape=(m + paths.n_pairs, n))
        matrix.sort_indices()
        rows = (np.full(m + paths.n_pairs, -np.inf), np.zeros(m + paths.n_pairs))
        self.highs.passModel(filled_lp(-np.ones(n), matrix, rows, (np.zeros(n), np.full(n, np.inf))))

    def solve(self, demands: Floats, capacity: Floats, time_limit_s: float = np.inf) -> tuple[Floats, Floats, bool]:
        """Return (flows, prices of arcs, whether the flows are optimal)."""
        upper = np.concatenate((capacity, demands))
        rows = np.arange(len(upper), dtype=np.int32)
        self.highs.changeRowsBounds(len(upper), rows, np.full(len(upper), -np.inf), upper)
        if not self.warm:
            self.highs.clearSolver()
        self.highs.setOptionValue("solver", "simplex" if self.solved and self.warm else "ipm")
        self.highs.setOptionValue("run_crossover", "on" if self.warm else "off")
        limit = min(time_limit_s, 1e10)
        self.highs.setOptionValue("time_limit", self.highs.getRunTime() + limit)
        run_highs(self.highs)
        status = self.highs.getModelStatus()
        optimal = status in (highspy.HighsModelStatus.kOptimal, highspy.HighsModelStatus.kUnknown)
        self.solved = self.solved or optimal
        found = self.highs.getSolution()
        flows = np.array(found.col_value) if len(found.col_value) else np.zeros(self.paths.n_paths)
        duals = np.array(found.row_dual) if len(found.row_dual) else np.zeros(len(upper))
        return flows, np.maximum(-duals[: len(capacity)], 0.0), optimal
