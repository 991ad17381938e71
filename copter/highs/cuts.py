"""Cuts from the root of HiGHS's branch and bound: they make the LP of a task, and of the next ones, stronger (M20).

The search asks for those of requests' private rows, which no edit of anything else makes wrong.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from copter.highs.lp import highs_lp, require_highspy, run_highs, silent_highs
from copter.problem.linear_program import LinearProgram

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Cuts:
    """Rows ``lower <= matrix @ x <= upper`` that no integer point breaks.

    Attributes
    ----------
    matrix : csr_array (k, n)
    lower, upper : ndarray (k,)
    """

    matrix: sp.csr_array
    lower: Floats
    upper: Floats

    def moved(self, came_from: NDArray[np.int32], same: NDArray[np.bool_], n: int) -> Cuts:
        """Return the cuts of which all columns are the same in another program.

        Parameters
        ----------
        came_from : ndarray (n,)
            Number here of each column of the other program, or -1.
        same : ndarray of bool (n,)
            Its columns that have not changed.
        n : int
            Number of its columns.
        """
        place = np.full(self.matrix.shape[1], -1, dtype=np.int64)
        place[came_from[same]] = np.flatnonzero(same)
        rows = sp.coo_array(self.matrix)
        kept = np.bincount(rows.row[place[rows.col] < 0], minlength=rows.shape[0]) == 0
        at = kept[rows.row]
        number = np.cumsum(kept) - 1
        matrix = sp.csr_array((rows.data[at], (number[rows.row[at]], place[rows.col[at]])), shape=(int(kept.sum()), n))
        return Cuts(matrix, self.lower[kept], self.upper[kept])

    def inside(self, chosen: NDArray[np.bool_]) -> Cuts:
        """Return the cuts of which all columns are chosen."""
        rows = sp.coo_array(self.matrix)
        at = np.flatnonzero(np.bincount(rows.row[~chosen[rows.col]], minlength=rows.shape[0]) == 0)
        return Cuts(self.matrix[at], self.lower[at], self.upper[at])

    def joined(self, other: Cuts) -> Cuts:
        """Return the cuts of both."""
        return Cuts(
            sp.csr_array(sp.vstack([self.matrix, other.matrix])),
            np.concatenate((self.lower, other.lower)),
            np.concatenate((self.upper, other.upper)),
        )


def root_cuts(lp: LinearProgram, until: float, over: Callable[[], bool]) -> Cuts | None:
    """Return the cuts at the root of a minimisation; None if they are not found in time.

    Parameters
    ----------
    lp : LinearProgram
    until : float
        Time of ``time.perf_counter()``.
    over : callable
        Whether to stop at once.
    """
    solver, kind = silent_highs(), require_highspy("cuts").cb.HighsCallbackType
    # without presolve the cuts are in the program's own columns
    options: dict[str, Any] = {"threads": 1, "presolve": "off", "mip_heuristic_effort": 0.0, "mip_max_nodes": 1}
    for name, choice in options.items():
        solver.setOptionValue(name, choice)
    solver.setOptionValue("time_limit", max(until - time.perf_counter(), 1e-3))
    solver.passModel(highs_lp(lp, integer=True))
    found: list[Cuts] = []

    def heard(event: Any, message: str, out: Any, answer: Any, data: Any) -> None:
        if event == kind.kCallbackMipGetCutPool:
            start = np.array(out.cutpool_start)
            if not found and int(out.cutpool_num_col) == lp.shape[1] and len(start) > 1:
                arrays = np.array(out.cutpool_value), np.array(out.cutpool_index), start
                matrix = sp.csr_array(arrays, shape=(len(start) - 1, lp.shape[1]))
                found.append(Cuts(matrix, np.array(out.cutpool_lower), np.array(out.cutpool_upper)))
        answer.user_interrupt = bool(found) or over()

    solver.setCallback(heard, None)
    solver.startCallback(kind.kCallbackMipGetCutPool)
    solver.startCallback(kind.kCallbackMipInterrupt)
    run_highs(solver)
    return found[0] if found else None
