"""One pass over the options of jobs: those that meet a deadline (docs/papers/chronus.md, C2 and C3).

Compiled, because each round goes over the options of all jobs with a promise.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from copter_frontends.policies.chronus.lease_grid import SAME_S
from copter_frontends.policies.chronus.options import Bools, Floats, Ints
from copter_frontends.vocabulary.compilation import compiled


class PlanTime(NamedTuple):
    """The time from which jobs are planned.

    Attributes
    ----------
    first, horizon : int
        Absolute number of the first lease, and how many leases are looked at.
    lease_s, restart_s : float
        Seconds of a lease, and those of it that any job may lose to a restart.
    joins : bool
        Whether jobs also use the rest of the current lease.
    begins_s, seconds : float
        When that rest begins, and how long it is.
    """

    first: int
    horizon: int
    lease_s: float
    restart_s: float
    joins: bool
    begins_s: float
    seconds: float


@compiled
def options_in_time(
    when: PlanTime,
    free: Ints,
    begin: Ints,
    count: Ints,
    table: Floats,
    shares_at: Ints,
    shares: Floats,
    promised: Ints,
    mode: Ints,
    step: Ints,
    reach: Ints,
    holds: Bools,
    ahead: Ints,
) -> tuple[Ints, Floats]:
    """Return the options of jobs that meet their deadlines, in order, as columns (7, options), and their rewards.

    Parameters
    ----------
    when : PlanTime
    free : int64 array (types,)
        GPUs that are free in the rest of the current lease.
    begin, count : int64 arrays (jobs,)
        First row of each job in `table`, and how many rows it has.
    table : float64 array (rows, 8)
        See :class:`.SloRecord`.
    shares_at : int64 array (jobs,)
        First entry of each job in `shares`.
    shares : float64 array
        Share of a job's time that has passed, mode by mode.
    promised, mode, step, reach : int64 arrays (jobs,)
        See :class:`.SloRecord`.
    holds : bool array (jobs,)
        Jobs that have the current lease: they need `ahead` leases more.
    ahead : int64 array (jobs,)
    """
    most = count.sum()
    columns, value, size = np.empty((7, most), dtype=np.int64), np.empty(most), 0
    least = 0 if when.joins else 1
    ends_s = when.begins_s + when.seconds
    for job in range(len(begin)):
        for row in range(begin[job], begin[job] + count[job]):
            number, kind, deadline = int(table[row, 0]), int(table[row, 1]), int(table[row, 4])
            if promised[job] >= 0 and deadline > promised[job]:
                continue
            if holds[job] and number != mode[job]:
                continue
            restart_s, due_s = max(table[row, 7], when.restart_s), table[row, 5]
            left_s = table[row, 3] * (1.0 - shares[shares_at[job] + number])
            if when.joins:
                if free[kind] < table[row, 2] or restart_s >= when.seconds:
                    continue
                if due_s < min(when.begins_s + restart_s + left_s, ends_s):
                    continue
                left_s = max(left_s - (when.seconds - restart_s), 0.0)
            train_s = when.lease_s - restart_s
            need = int(max(np.ceil((left_s - SAME_S) / train_s), float(least)))
            over = int(np.floor((due_s + SAME_S) / when.lease_s))
            last = over + int(left_s - (need - 1) * train_s + restart_s <= due_s - over * when.lease_s)
            if holds[job]:  # the progress that the current lease gives a job is not known yet
                need, last = ahead[job], (reach[job] if deadline == step[job] else over)
            last = min(max(last - when.first, -least), when.horizon)
            if need < least or need > last:
                continue
            columns[0, size], columns[1, size], columns[2, size] = job, number, kind
            columns[3, size], columns[4, size], columns[5, size] = int(table[row, 2]), need, last
            columns[6, size], value[size] = deadline, table[row, 6]
            size += 1
    return columns[:, :size].copy(), value[:size].copy()
