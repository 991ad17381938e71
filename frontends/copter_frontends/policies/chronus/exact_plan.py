"""The exact integer program of all leases, where it is small and the plan may be far from the best (C16)."""

from __future__ import annotations

import numpy as np

from copter import solve_integer
from copter_frontends.policies.chronus.compact import compact_form, lease_blocks
from copter_frontends.policies.chronus.draft import Draft
from copter_frontends.policies.chronus.free_tail import FreeTail
from copter_frontends.policies.chronus.options import Ints, Options

FAR = 0.01  # relative gap above which the exact program is solved
MOST = 12_000  # lease variables up to which it is solved; a second or two
MOST_S = 5.0  # time limit of the program in seconds


def exact_plan(
    options: Options, capacity: Ints, known: Draft, bound: float, time_limit_s: float
) -> tuple[Draft, float]:
    """Return the better of a known plan and the exact program's, and the smaller of a known bound and the program's.

    The LP's bound can be far from every whole plan of few jobs; the program then proves how good the plan is. Nothing
    is solved if the gap is small, the program is large, or the known plan breaks promises.

    Parameters
    ----------
    options : Options
    capacity : int64 array (types, leases)
    known : Draft
    bound : float
        Upper bound on the reward of every plan.
    time_limit_s : float
    """
    tail = FreeTail.of(options, capacity)
    block = lease_blocks(options)
    variables = (int(block.max(initial=-1)) + 1) * tail.scarce
    if time_limit_s <= 0 or known.broken or bound - known.reward <= FAR * bound or variables > MOST:
        return known, bound
    found = solve_integer(compact_form(tail.reduced, tail.early(capacity)), deadline_s=min(time_limit_s, MOST_S))
    bound = min(bound, found.bound) if np.isfinite(found.bound) else bound
    if found.x is None or found.objective <= known.reward:
        return known, max(bound, known.reward)
    row, early = np.full(options.jobs, -1, dtype=np.int64), np.zeros((options.jobs, tail.scarce), dtype=bool)
    x = found.x[len(options.job) :].reshape(-1, tail.scarce) > 0.5
    for at in np.flatnonzero(found.x[: len(options.job)] > 0.5).tolist():
        row[options.job[at]], early[options.job[at]] = at, x[block[at]]
    draft, jobs = Draft(options, capacity), np.flatnonzero(row >= 0)
    draft.put_all(row[jobs], tail.leases(row, early)[jobs])
    better = draft.broken == 0 and draft.reward > known.reward
    return (draft if better else known), max(bound, known.reward)
