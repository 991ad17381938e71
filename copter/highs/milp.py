"""SciPy's branch and bound, in its own process with limits (M11)."""

from __future__ import annotations

import queue
import sys
import time
from contextlib import suppress

import numpy as np

from copter.highs.branch_and_bound import RELATIVE_GAP, Report, Task
from copter.highs.process import given_back, taken
from copter.problem.linear_program import LinearProgram

ENDING_S = 2.0  # a process that exceeds its time limit by this many seconds is ended
SLICE_S = 0.5  # seconds between two looks for Ctrl-C while waiting


def branch_and_bound(
    lp: LinearProgram, time_limit_s: float = float("inf"), gap: float = RELATIVE_GAP, max_nodes: int | None = None
) -> Report:
    """Solve a mixed-integer program by SciPy's HiGHS in another process, which may crash or hang without harm.

    Parameters
    ----------
    lp : LinearProgram
        The program, with the columns' integrality.
    time_limit_s : float
        Wall-clock seconds; a process that runs much longer is ended.
    gap : float
        Relative gap at which the search ends.
    max_nodes : int, optional
        Nodes after which it ends.

    Returns
    -------
    Report
        `x` is the best point, if any; `bound` is that of the minimisation; `solved` says whether the search was
        completed. The report is empty if the process crashed, was ended, or could not be started.
    """
    sign = 1.0 if lp.sense == "min" else -1.0
    if not lp.shape[1]:
        empty = bool((lp.row_lower <= 0.0).all() and (lp.row_upper >= 0.0).all())
        return Report(np.zeros(0) if empty else None, 0.0, not empty, finished=True, solved=True)
    task = Task(
        sign * lp.c, lp.A, lp.row_lower, lp.row_upper, lp.col_lower, lp.col_upper, lp.integrality,
        None, np.inf, time_limit_s, gap, max_nodes, by_scipy=True,
    )  # fmt: skip
    try:
        worker = taken() if sys.executable else None
    except OSError:
        worker = None
    if worker is None:
        return Report(finished=True)
    reports: queue.SimpleQueue[Report] = queue.SimpleQueue()
    until = time.perf_counter() + time_limit_s + ENDING_S
    try:
        worker.start(task, reports)
        while time.perf_counter() < until:
            with suppress(queue.Empty):
                return reports.get(timeout=SLICE_S)
        return Report(finished=True)
    finally:
        given_back(worker)
