"""One pass over jobs that arrive together: each gets free leases, in turn (docs/papers/chronus.md, C4 and C6).

Compiled, because a burst of ten thousand arrivals is answered within a round.
"""

from __future__ import annotations

import numpy as np

from copter_frontends.policies.chronus.expected_demand import compiled, note_demand, reward_lost
from copter_frontends.policies.chronus.options import Bools, Floats, Ints

CAUTION = 0.4  # a promise may cost future jobs at most this share of the job's reward (C6)
SCARCE = 3.0  # logarithm of the price factor of a type whose GPUs are all promised (C6: e^(3u))
WAITS, PLACED, AT_ONCE, TOO_DEAR, SQUEEZE = 0, 1, 2, 3, 4
"""Answers of the pass: no room; leases; the rest of the current lease and leases; a price above the reward's share; and
a job for which moves of other jobs' leases may make room, at which the pass stops.
"""
# columns of a table of options
KIND, GPUS, NEED, LAST = 0, 1, 2, 3


@compiled
def _rank(table: Ints, value: Floats, first: int, end: int, dear: Floats, order: Ints) -> int:
    """Order the options by reward, then by GPU-leases times their type's scarcity; return how many."""
    count = 0
    for row in range(first, end):
        cost = table[row, GPUS] * table[row, NEED] * dear[table[row, KIND]]
        at = count
        while at > 0:
            other = order[at - 1]
            theirs = table[other, GPUS] * table[other, NEED] * dear[table[other, KIND]]
            if value[other] > value[row] or (value[other] == value[row] and theirs <= cost):
                break
            order[at] = other
            at -= 1
        order[at] = row
        count += 1
    return count


@compiled
def _room(table: Ints, row: int, free: Ints) -> int:
    """Return how many leases before the option's deadline have its GPUs free."""
    kind, found = table[row, KIND], 0
    for lease in range(table[row, LAST]):
        found += free[kind, lease] >= table[row, GPUS]
    return found


@compiled
def _choose(table: Ints, row: int, free: Ints, taken: Bools) -> bool:
    """Choose the leases with most free GPUs, late ones first; return whether the option fits. `free` is not changed."""
    kind, need, last = table[row, KIND], table[row, NEED], table[row, LAST]
    if need > _room(table, row, free):
        return False
    taken[:] = False
    for _ in range(need):
        best = -1
        for lease in range(last - 1, -1, -1):
            if not taken[lease] and (best < 0 or free[kind, lease] > free[kind, best]):
                best = lease
        taken[best] = True
    return True


@compiled
def _may_squeeze(table: Ints, first: int, end: int, free: Ints, most_moved: int) -> bool:
    """Whether moves could make room for one of the options (:meth:`.Draft.may_squeeze`)."""
    for row in range(first, end):
        roomy = _room(table, row, free)
        if table[row, NEED] - roomy <= min(most_moved, table[row, LAST] - roomy):
            return True
    return False


@compiled
def answer_in_turn(
    begin: int,
    job_first: Ints,
    table: Ints,
    value: Floats,
    reach: Ints,
    best: Floats,
    now_first: Ints,
    now_table: Ints,
    now_value: Floats,
    now_free: Ints,
    use: Ints,
    free: Ints,
    gpus: Ints,
    demand: Floats,
    fade: Floats,
    age_s: float,
    lease_s: float,
    selective: bool,
    may_move: int,
    answer: Ints,
    given: Ints,
    taken: Bools,
) -> int:
    """Answer jobs from `begin` on; return the number of the first job not answered.

    The pass stops after a job that joins the current lease, because the caller then finds out what is left of it, and
    after a job for which other jobs' leases would have to be moved, which the caller does.

    Parameters
    ----------
    begin : int
    job_first, now_first : int64 arrays (jobs + 1,)
        First option of each job, in leases to come, and with the rest of the current lease.
    table, now_table : int64 arrays (options, 4)
        GPU type, GPUs, leases needed, leases until the deadline.
    value, now_value : float64 arrays (options,)
        Reward above the floor.
    reach : int64 array (jobs,)
        Leases to the last deadline of each job: scarcity is that of these.
    best : float64 array (jobs,)
        Reward of each job's first deadline.
    now_free : int64 array (types,)
        GPUs that are free in the rest of the current lease.
    use, free : int64 arrays (types, leases)
        GPUs promised and free; changed with each promise.
    gpus : int64 array (types,)
    demand : float64 array (3, types, bins)
        GPUs, squared GPUs and rewards of the jobs of the last hours (:class:`.ExpectedDemand`); changed.
    fade : float64 array (2,)
        By what the demand fades before the next job is recorded, and whether one was; changed.
    age_s, lease_s : float
        Seconds since the first of these jobs, and of a lease.
    selective : bool
        Whether promises are compared with the demand.
    may_move : int
        Most moved leases for one job (0: none are moved).
    answer, given : int64 arrays (jobs,)
        Result: the answer, and the option's row.
    taken : bool array (jobs, leases)
        Result: the leases.
    """
    kinds, jobs = free.shape[0], len(job_first) - 1
    dear, flat = np.ones(kinds), np.ones(kinds)
    order = np.empty(max(table.shape[0], now_table.shape[0]) + 1, dtype=np.int64)
    for job in range(begin, jobs):
        first, end = job_first[job], job_first[job + 1]
        for kind in range(kinds):
            mine, all_of = 0, 0
            for lease in range(reach[job]):
                mine += use[kind, lease]
                all_of += use[kind, lease] + free[kind, lease]
            dear[kind] = np.exp(SCARCE * mine / max(all_of, 1))
        count = _rank(table, value, first, end, dear, order)
        row, own = -1, taken[job]
        for at in range(count):
            if _choose(table, order[at], free, own):
                row = order[at]
                break
        if selective and count:
            meant = row if row >= 0 else order[0]
            kind, need, size = table[meant, KIND], table[meant, NEED], table[meant, GPUS]
            most = np.sort(free[kind][own] if row >= 0 else free[kind, : table[meant, LAST]])
            there = np.maximum(most[-need:], size)
            if (
                reward_lost(demand, age_s, lease_s, gpus[kind], kind, size, value[meant], there)
                > CAUTION * value[meant]
            ):
                own[:] = False
                answer[job] = TOO_DEAR
                continue
            _rank(table, value, first, end, flat, order)
            each = order[0]
            note_demand(demand, fade, table[each, KIND], table[each, GPUS], table[each, NEED], value[each])
        joins = -1
        if not (row >= 0 and value[row] >= best[job]) and now_first[job + 1] > now_first[job]:
            before = np.zeros(free.shape[1], dtype=np.bool_)
            before[:] = own
            had = value[row] if row >= 0 else 0.0
            some = _rank(now_table, now_value, now_first[job], now_first[job + 1], dear, order)
            for at in range(some):
                each = order[at]
                if now_value[each] <= had or now_free[now_table[each, KIND]] < now_table[each, GPUS]:
                    continue
                if _choose(now_table, each, free, own):
                    joins = each
                    break
            if joins < 0:
                own[:] = before
        if joins < 0 and row < 0:
            own[:] = False
            if may_move > 0 and _may_squeeze(table, first, end, free, may_move):
                answer[job] = SQUEEZE
                return job + 1
            answer[job] = WAITS
            continue
        option = now_table[joins] if joins >= 0 else table[row]
        for lease in range(option[LAST]):
            if own[lease]:
                free[option[KIND], lease] -= option[GPUS]
                use[option[KIND], lease] += option[GPUS]
        answer[job], given[job] = (AT_ONCE, joins) if joins >= 0 else (PLACED, row)
        if joins >= 0:
            return job + 1
    return jobs
