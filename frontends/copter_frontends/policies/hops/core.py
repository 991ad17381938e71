"""Joint decision, by a small MILP, on the jobs whose options are close at the LP's prices (HP25)."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp

from copter import LinearProgram
from copter.highs.milp import branch_and_bound
from copter_frontends.policies.hops.formulation import NONE, GroupFormulation, Wish
from copter_frontends.policies.hops.offers import Floats, Ints

MOST_COLUMNS = 8  # most columns of a job in the small program (HP25)


def values_of(formulation: GroupFormulation, wish: Wish) -> Floats:
    """Return the objective coefficients of a job's columns, (n,)."""
    value = wish.weight * wish.offers.gain
    if wish.stays != NONE:
        value[wish.stays] += wish.weight * formulation.stay_bonus
    return value


def choose_columns(
    formulation: GroupFormulation,
    prices: Floats,
    capacity: Floats,
    core_jobs: int,
    nodes: int,
    gap_goal: float,
    time_limit_s: float,
) -> dict[str, int]:
    """Return a column per served job: the best at the LP's prices, or a MILP's choice for close jobs.

    Parameters
    ----------
    formulation : GroupFormulation
        Formulation whose wishes are decided.
    prices, capacity : float64 arrays (rows,)
    core_jobs : int
        Number of jobs in the MILP: those whose best option is the closest to the next.
    nodes : int
        Node limit of branch and bound; unlike seconds, it gives the same plan every time.
    gap_goal, time_limit_s : float
        Gap and time at which the search ends earlier.
    """
    jobs = list(formulation.wishes)
    usage = {wish.offers.key: formulation.usage_of(wish.offers) for wish in formulation.wishes.values()}
    cost = {key: each.T @ np.maximum(prices, 0.0) for key, each in usage.items()}
    value = [values_of(formulation, formulation.wishes[job]) for job in jobs]
    profit = [v - cost[formulation.wishes[job].offers.key] for v, job in zip(value, jobs, strict=True)]
    lead, best = np.zeros(len(jobs)), np.zeros(len(jobs), dtype=np.int64)
    for i, each in enumerate(profit):
        top = int(each.argmax())
        others = np.delete(each, top)
        best[i] = top if each[top] > 0 else NONE
        second = max(0.0, float(others.max(initial=0.0)))
        lead[i] = each[top] - second if each[top] > 0 else -each[top]
    doubtful = np.sort(np.argsort(lead, kind="stable")[:core_jobs])
    sure = np.setdiff1d(np.arange(len(jobs)), doubtful)
    chosen = {jobs[i]: int(best[i]) for i in sure.tolist() if best[i] != NONE}
    left = capacity.astype(np.float64).copy()
    for job, column in chosen.items():
        block = usage[formulation.wishes[job].offers.key]
        first, last = block.indptr[column], block.indptr[column + 1]
        left[block.indices[first:last]] -= block.data[first:last]
    blocks = [usage[formulation.wishes[jobs[i]].offers.key] for i in doubtful.tolist()]
    limits = (max(time_limit_s, 1e-3), gap_goal, nodes)
    among = doubtful.tolist()
    picked = _program([value[i] for i in among], [profit[i] for i in among], blocks, left, limits)
    chosen.update({jobs[i]: c for i, c in zip(doubtful.tolist(), picked, strict=True) if c != NONE})
    return chosen


def _program(
    value: list[Floats],
    profit: list[Floats],
    blocks: list[sp.csc_array],
    left: Floats,
    limits: tuple[float, float, int],
) -> list[int]:
    """Solve the MILP over each job's most profitable columns; returns each job's column, or -1.

    limits: seconds, relative gap, nodes.
    """
    columns: list[Ints] = [np.sort(np.argsort(-each, kind="stable")[:MOST_COLUMNS]) for each in profit]
    if not columns:
        return []
    worth = np.concatenate([v[c] for v, c in zip(value, columns, strict=True)])
    rows = sp.hstack([block[:, c] for block, c in zip(blocks, columns, strict=True)], format="csr")
    owner = np.repeat(np.arange(len(columns)), [len(c) for c in columns])
    one_each = sp.csr_array((np.ones(len(owner)), (owner, np.arange(len(owner)))), shape=(len(columns), len(owner)))
    program = LinearProgram(
        -worth,
        sp.vstack([rows, one_each]),
        row_upper=np.concatenate([np.maximum(left, 0.0), np.ones(len(columns))]),
        col_upper=1.0,
        integrality=1,
    )
    result = branch_and_bound(program, *limits)
    picked = [NONE] * len(columns)
    if result.x is not None:
        every = np.concatenate(columns)
        for at in np.flatnonzero(result.x > 0.5).tolist():
            picked[int(owner[at])] = int(every[at])
    return picked
