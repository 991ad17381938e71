"""Training of jobs through one round, exact at phase boundaries and at completion."""

from __future__ import annotations

import numpy as np

from copter_frontends.simulator.job_table import Floats, Ints, JobTable
from copter_frontends.simulator.phase_kernel import COMPLETED, MOVED_ON, STAYED, train
from copter_frontends.simulator.rates import RateTable

ROUNDING_S = 1e-6  # seconds of allowance for rounding in sums of a job's progress


def advance(table: JobTable, rates: RateTable, running: Ints, begin_s: float, end_s: float) -> tuple[Ints, Ints]:
    """Train the running jobs from `begin_s` to `end_s`; `table` is updated in place.

    Within a phase a job's rate is constant, so each phase's end is computed by a division, without time steps. A job
    whose restart ends at r trains from max(begin_s, r) on, phase after phase, and completes when its progress is 1. A
    phase that would end with the round, up to rounding, ends in it, so that a job with exactly the time it needs
    completes.

    Parameters
    ----------
    table : JobTable
    rates : RateTable
    running : int64 array
        Rows of the jobs that hold GPUs.
    begin_s, end_s : float
        Seconds of simulated time.

    Returns
    -------
    changed : int64 array
        Rows of the jobs that entered another phase and have not completed.
    completed : int64 array
        Rows of the jobs that completed; `table.completion_s` says when.
    """
    clock: Floats = np.maximum(begin_s, table.resume_s[running])
    late = clock < end_s
    todo, clock = running[late], clock[late]
    outcome = np.full(len(todo), STAYED, dtype=np.int64)
    at = 0
    while True:  # ends: each pass makes one more rate known, or that raises
        at = train(
            at, todo, clock, end_s, ROUNDING_S, table.curve, table.application, table.work_samples, rates.known,
            rates.phase_ends, rates.phases, table.phase, table.progress, table.completion_s, outcome,
        )  # fmt: skip
        if at == len(todo):
            return np.sort(todo[outcome == MOVED_ON]), np.sort(todo[outcome == COMPLETED])
        row = todo[at : at + 1]
        rates.rates(table.curve[row], table.phase[row])  # it is known from now on
