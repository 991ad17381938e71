"""Training of jobs through one round, exact at phase boundaries and at completion."""

from __future__ import annotations

import numpy as np

from copter_frontends.simulator.job_table import Floats, Ints, JobTable
from copter_frontends.simulator.rates import RateTable

ROUNDING_S = 1e-6  # seconds of allowance for rounding in sums of a job's progress


def advance(table: JobTable, rates: RateTable, running: Ints, begin_s: float, end_s: float) -> tuple[Ints, Ints]:
    """Train the running jobs from `begin_s` to `end_s`; `table` is updated in place.

    Within a phase a job's rate is constant, so each phase's end is computed by a division, without time steps. A job
    whose restart ends at r trains from max(begin_s, r) on, phase after phase, and completes when its progress is 1.
    Each pass advances all jobs by one phase. A phase that would end with the round, up to rounding, ends in it, so that
    a job with exactly the time it needs completes.

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
    changed: list[Ints] = []
    completed: list[Ints] = []
    while todo.size:
        rate = rates.rates(table.curve[todo], table.phase[todo]) / table.work_samples[todo]
        boundary = rates.phase_ends[table.application[todo], table.phase[todo]]
        reach_s = clock + (boundary - table.progress[todo]) / rate
        crosses = reach_s <= end_s + ROUNDING_S
        reach_s = np.minimum(reach_s, end_s)
        stays = ~crosses
        inside = table.progress[todo[stays]] + rate[stays] * (end_s - clock[stays])
        table.progress[todo[stays]] = np.minimum(inside, boundary[stays])
        over = todo[crosses]
        table.progress[over] = boundary[crosses]
        done = table.phase[over] + 1 >= rates.phases[table.application[over]]
        table.completion_s[over[done]] = reach_s[crosses][done]
        completed.append(over[done])
        todo, clock = over[~done], reach_s[crosses][~done]
        table.phase[todo] += 1
        changed.append(todo)
    moved_on, finished = np.zeros(len(table), dtype=bool), np.zeros(len(table), dtype=bool)
    for rows in changed:
        moved_on[rows] = True
    for rows in completed:
        finished[rows] = True
    return np.flatnonzero(moved_on & ~finished), np.flatnonzero(finished)
