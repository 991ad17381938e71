"""Keeping as many promises as possible when not all can be kept, after lost GPUs or slow jobs (C16)."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from copter import Status, solve, solve_integer
from copter_frontends.policies.chronus.compact import compact_form, lease_blocks
from copter_frontends.policies.chronus.draft import Draft
from copter_frontends.policies.chronus.options import Floats, Ints, Options

EXACT = 20_000  # the integer program of the promised jobs is solved if it has at most this many lease variables
EXACT_S = 5.0  # time limit of that integer program in seconds
ROUNDING = 1e-4  # added to a bound on a number of jobs before it is rounded down


def salvaged(options: Options, capacity: Ints, time_limit_s: float = EXACT_S) -> Draft:
    """Return a draft with as many promised jobs as several orders and the integer program can place, and no others.

    Parameters
    ----------
    options : Options
    capacity : int64 array (types, leases)
    time_limit_s : float
        Time limit of the integer program. It is solved if it is small and the orders leave promised jobs without
        leases.
    """
    demand = (options.gpus * options.need).astype(np.float64)
    keys = (
        demand,
        options.gpus + 1e-6 * demand,
        options.last + 1e-6 * demand,
        options.last - options.need + 1e-6 * demand,
    )
    draft = min((_in_order(options, capacity, key) for key in keys), key=lambda each: each.broken)
    rows = np.flatnonzero(options.must[options.job])
    if draft.broken and len(rows) * capacity.shape[1] <= EXACT and time_limit_s > 0:
        draft = _exact(options, capacity, rows, draft, min(time_limit_s, EXACT_S))
    return draft


def most_kept(options: Options, capacity: Ints, known: int, time_limit_s: float) -> int:
    """Return an upper bound on how many of these jobs can get an option, given that `known` jobs can."""
    if not len(options.job):
        return 0
    program = compact_form(_equal(options), capacity)
    linear = solve(program)
    bound = int(np.floor(linear.bound + ROUNDING)) if linear.status is Status.OPTIMAL else options.jobs
    if bound > known:
        bound = min(bound, int(np.floor(solve_integer(program, deadline_s=time_limit_s).bound + ROUNDING)))
    return bound


def _equal(options: Options) -> Options:
    """Return the same options with value one and without promises."""
    return replace(options, value=np.ones(len(options.job)), must=np.zeros_like(options.must))


def _in_order(options: Options, capacity: Ints, key: Floats) -> Draft:
    """Return a draft with promised jobs placed one by one, in the order of the least key of their options."""
    draft, least = Draft(options, capacity), np.full(options.jobs, np.inf)
    np.minimum.at(least, options.job, key)
    must = np.flatnonzero(options.must & np.isfinite(least))
    for job in must[np.argsort(least[must], kind="stable")].tolist():
        rows = draft.ranked(job)
        if not any(draft.place(row) for row in rows):
            any(draft.squeeze(row) for row in rows)
    return draft


def _exact(options: Options, capacity: Ints, rows: Ints, known: Draft, time_limit_s: float) -> Draft:
    """Return the integer program's plan of the promised jobs, if it keeps more promises than the known plan."""
    names = ("job", "mode", "kind", "gpus", "need", "last", "step", "value")
    promised = replace(options, **{name: getattr(options, name)[rows] for name in names})
    found = solve_integer(compact_form(_equal(promised), capacity), deadline_s=time_limit_s)
    if found.x is None:
        return known
    horizon, draft = capacity.shape[1], Draft(options, capacity)
    block = lease_blocks(promised)
    for at in np.flatnonzero(found.x[: len(rows)] > 0.5).tolist():
        begin = len(rows) + block[at] * horizon
        draft.put(int(rows[at]), np.flatnonzero(found.x[begin : begin + horizon] > 0.5))
    return draft if draft.broken < known.broken else known
