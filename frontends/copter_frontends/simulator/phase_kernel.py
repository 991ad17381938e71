"""A compiled pass that trains running jobs, phase after phase, through one round."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from copter_frontends.vocabulary.compilation import compiled

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

STAYED, MOVED_ON, COMPLETED = 0, 1, 2
"""What a round did to a job: it is in the same phase, in a later one, or has completed."""


@compiled
def train(
    first: int,
    rows: Ints,
    clock: Floats,
    end_s: float,
    allowance_s: float,
    curve: Ints,
    application: Ints,
    work: Floats,
    rates: Floats,
    phase_ends: Floats,
    phases: Ints,
    phase: Ints,
    progress: Floats,
    completion_s: Floats,
    outcome: Ints,
) -> int:
    """Train the jobs of `rows` from place `first` on; returns the place of a job whose rate is not known yet.

    That job has come to `clock`, from which another call goes on; without such a job the result is the number of jobs.
    `phase`, `progress`, `completion_s` and `outcome` are updated.
    """
    for at in range(first, len(rows)):
        row = rows[at]
        while True:  # ends: each pass ends a phase
            rate = rates[curve[row], phase[row]]
            if np.isnan(rate):
                return at
            rate /= work[row]
            boundary = phase_ends[application[row], phase[row]]
            reach_s = clock[at] + (boundary - progress[row]) / rate
            crosses = reach_s <= end_s + allowance_s
            reach_s = min(reach_s, end_s)
            if not crosses:
                progress[row] = min(progress[row] + rate * (end_s - clock[at]), boundary)
                break
            progress[row] = boundary
            if phase[row] + 1 >= phases[application[row]]:
                completion_s[row], outcome[at] = reach_s, COMPLETED
                break
            phase[row] += 1
            clock[at], outcome[at] = reach_s, MOVED_ON
    return len(rows)
