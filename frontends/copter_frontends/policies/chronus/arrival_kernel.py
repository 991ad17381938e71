"""One pass over jobs that arrive together: each gets free leases, in turn (docs/papers/chronus.md, C4 and C6).

Compiled, because a burst of ten thousand arrivals is answered within a round.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from copter_frontends.policies.chronus.expected_demand import note_demand, reward_lost
from copter_frontends.policies.chronus.lease_room import largest_in, take_in
from copter_frontends.policies.chronus.options import Bools, Floats, Ints
from copter_frontends.vocabulary.compilation import compiled

CAUTION = 0.4  # a promise may cost future jobs at most this share of the job's reward (C6)
SCARCE = 3.0  # logarithm of the price factor of a type whose GPUs are all promised (C6: e^(3u))
WAITS, PLACED, AT_ONCE, TOO_DEAR, SQUEEZE = 0, 1, 2, 3, 4
"""Answers of the pass: no room; leases; the rest of the current lease and leases; a price above the reward's share; and
a job for which moves of other jobs' leases may make room, at which the pass stops.
"""
SLOTS = 16  # sizes of options of which the room is known lease by lease
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


class Known(NamedTuple):
    """What a pass knows of the leases, so that a job reads only those that have changed.

    Attributes
    ----------
    slot : int64 array (GPUs of the largest option + 1,)
        Number of a size in `room`; -1 for a size that no option has, or that is beyond the first :data:`SLOTS`.
    room : int64 array (types, SLOTS, leases + 1)
        How many leases before one have as many free GPUs.
    roomy : int64 array (types, SLOTS)
        Leases up to which `room` holds.
    sums : int64 array (2, types, leases + 1)
        GPUs promised, and all GPUs, in the leases before one.
    summed : int64 array (types,)
        Leases up to which `sums` holds.
    zeros : int64 array (GPUs + 1,)
    """

    slot: Ints
    room: Ints
    roomy: Ints
    sums: Ints
    summed: Ints
    zeros: Ints

    @classmethod
    def nothing(cls, sizes: Ints, kinds: int, leases: int, most: int) -> Known:
        """Know nothing of these types and leases, for options of these sizes, where `most` GPUs are of one type."""
        some = np.unique(sizes)
        slot = np.full(int(some.max(initial=0)) + 1, -1, dtype=np.int64)
        slot[some[:SLOTS]] = np.arange(len(some[:SLOTS]))
        return cls(
            slot,
            np.zeros((kinds, SLOTS, leases + 1), dtype=np.int64),
            np.zeros((kinds, SLOTS), dtype=np.int64),
            np.zeros((2, kinds, leases + 1), dtype=np.int64),
            np.zeros(kinds, dtype=np.int64),
            np.zeros(most + 1, dtype=np.int64),
        )


@compiled
def _forget(known: Known, kind: int, lease: int) -> None:
    """Note that a type's leases from this one on have changed."""
    known.summed[kind] = min(known.summed[kind], lease)
    for slot in range(SLOTS):
        known.roomy[kind, slot] = min(known.roomy[kind, slot], lease)


@compiled
def _scarcity(known: Known, kind: int, reach: int, use: Ints, free: Ints) -> float:
    """Return the scarcity of a type: the price factor from the promised share of its GPUs up to `reach`."""
    mine, every = known.sums[0, kind], known.sums[1, kind]
    for lease in range(known.summed[kind], reach):
        mine[lease + 1] = mine[lease] + use[kind, lease]
        every[lease + 1] = every[lease] + use[kind, lease] + free[kind, lease]
    known.summed[kind] = max(known.summed[kind], reach)
    dear: float = np.exp(SCARCE * mine[reach] / max(every[reach], 1))
    return dear


@compiled
def _room(known: Known, table: Ints, row: int, free: Ints) -> int:
    """Return how many leases before the option's deadline have its GPUs free."""
    kind, gpus, last = table[row, KIND], table[row, GPUS], table[row, LAST]
    slot = known.slot[gpus]
    if slot < 0:
        found = 0
        for lease in range(last):
            found += free[kind, lease] >= gpus
        return found
    room = known.room[kind, slot]
    for lease in range(known.roomy[kind, slot], last):
        room[lease + 1] = room[lease] + (free[kind, lease] >= gpus)
    known.roomy[kind, slot] = max(known.roomy[kind, slot], last)
    return int(room[last])


@compiled
def _least_of_most(known: Known, free: Ints, least: int, need: int) -> tuple[int, int]:
    """Return the least of the `need` largest numbers of free GPUs, and how many of these are as few.

    Numbers below `least` do not count; there are `need` others.
    """
    count, most = known.zeros, least
    for lease in range(len(free)):
        if free[lease] >= least:
            count[free[lease]] += 1
            most = max(most, free[lease])
    at, above = most, 0
    while above + count[at] < need:
        above += count[at]
        at -= 1
    count[least : most + 1] = 0  # as it was
    return at, need - above


@compiled
def _choose(known: Known, table: Ints, row: int, free: Ints, taken: Bools) -> bool:
    """Choose the leases with most free GPUs, late ones first; return whether the option fits. `free` is not changed."""
    kind, need, last = table[row, KIND], table[row, NEED], table[row, LAST]
    if need > _room(known, table, row, free):
        return False
    taken[:] = False
    if need == 0:
        return True
    least, some = _least_of_most(known, free[kind, :last], table[row, GPUS], need)
    for lease in range(last - 1, -1, -1):
        if free[kind, lease] > least:
            taken[lease] = True
        elif free[kind, lease] == least and some > 0:
            taken[lease] = True
            some -= 1
    return True


@compiled
def _most(known: Known, free: Ints, need: int) -> Ints:
    """Return the `need` largest numbers of free GPUs, or all if there are fewer, ascending."""
    if need >= len(free):
        return np.sort(free)
    least, some = _least_of_most(known, free, 0, need)
    result, at = np.empty(need, dtype=np.int64), some
    result[:some] = least
    for lease in range(len(free)):
        if free[lease] > least:
            result[at] = free[lease]
            at += 1
    result[some:].sort()
    return result


@compiled
def _may_squeeze(known: Known, table: Ints, first: int, end: int, free: Ints, most_moved: int) -> bool:
    """Whether moves could make room for one of the options (:meth:`.Draft.may_squeeze`)."""
    for row in range(first, end):
        roomy = _room(known, table, row, free)
        if table[row, NEED] - roomy <= min(most_moved, table[row, LAST] - roomy):
            return True
    return False


class Offers(NamedTuple):
    """Options of the arrived jobs.

    Attributes
    ----------
    first : int64 array (jobs + 1,)
        First option of each job.
    table : int64 array (options, 4)
        GPU type, GPUs, leases needed, leases until the deadline.
    value : float64 array (options,)
        Reward above the floor.
    """

    first: Ints
    table: Ints
    value: Floats


class Arrived(NamedTuple):
    """What the arrived jobs ask for.

    Attributes
    ----------
    later, at_once : Offers
        In leases to come, and with the rest of the current lease.
    reach : int64 array (jobs,)
        Leases to the last deadline of each job: scarcity is that of these.
    best : float64 array (jobs,)
        Reward of each job's first deadline.
    """

    later: Offers
    at_once: Offers
    reach: Ints
    best: Floats


class Leases(NamedTuple):
    """The GPUs there are.

    Attributes
    ----------
    left : int64 array (types,)
        GPUs that are not promised in the rest of the current lease; changed.
    counts : int64 array (types, GPUs of the largest node + 1)
        Nodes by their free GPUs in it (:class:`.LeaseRoom`); changed.
    sizes : int64 array (types,)
        GPUs of a node.
    use, free : int64 arrays (types, leases)
        GPUs promised and free; changed with each promise.
    gpus : int64 array (types,)
    """

    left: Ints
    counts: Ints
    sizes: Ints
    use: Ints
    free: Ints
    gpus: Ints


class Demand(NamedTuple):
    """The jobs of the last hours (:class:`.ExpectedDemand`), with which promises are compared if `selective`.

    Attributes
    ----------
    seen : float64 array (3, types, bins)
        GPUs, squared GPUs and rewards; changed.
    fade : float64 array (2,)
        By what the demand fades before the next job is recorded, and whether one was; changed.
    age_s, lease_s : float
        Seconds since the first of these jobs, and of a lease.
    selective : bool
    """

    seen: Floats
    fade: Floats
    age_s: float
    lease_s: float
    selective: bool


class Answers(NamedTuple):
    """The answer to each job, the row of its option, and its leases: int64, int64 (jobs,) and bool (jobs, leases)."""

    answer: Ints
    row: Ints
    taken: Bools


@compiled
def answer_in_turn(
    begin: int, jobs: Arrived, leases: Leases, demand: Demand, may_move: int, known: Known, answers: Answers
) -> int:
    """Answer jobs from `begin` on, in `answers`; return the number of the first job not answered.

    The pass stops after a job for which other jobs' leases would have to be moved, which the caller does. It moves at
    most `may_move` leases for one job (0: none). `known` is used only within the pass.
    """
    table, value, now_table, now_value = jobs.later.table, jobs.later.value, jobs.at_once.table, jobs.at_once.value
    job_first, now_first, use, free = jobs.later.first, jobs.at_once.first, leases.use, leases.free
    answer, n_jobs = answers.answer, len(job_first) - 1
    kinds = free.shape[0]
    dear, flat = np.ones(kinds), np.ones(kinds)
    now_free = leases.left.copy()
    for kind in range(kinds):
        now_free[kind] = min(leases.left[kind], largest_in(leases.counts[kind], leases.sizes[kind]))
    order = np.empty(max(table.shape[0], now_table.shape[0]) + 1, dtype=np.int64)
    known.roomy[:], known.summed[:] = 0, 0
    for job in range(begin, n_jobs):
        first, end = job_first[job], job_first[job + 1]
        for kind in range(kinds):
            dear[kind] = _scarcity(known, kind, jobs.reach[job], use, free)
        count = _rank(table, value, first, end, dear, order)
        row, own = -1, answers.taken[job]
        for at in range(count):
            if _choose(known, table, order[at], free, own):
                row = order[at]
                break
        if demand.selective and count:
            meant = row if row >= 0 else order[0]
            kind, need, size = table[meant, KIND], table[meant, NEED], table[meant, GPUS]
            most = np.sort(free[kind][own]) if row >= 0 else _most(known, free[kind, : table[meant, LAST]], need)
            there = np.maximum(most[-need:], size)
            lost = reward_lost(
                demand.seen, demand.age_s, demand.lease_s, leases.gpus[kind], kind, size, value[meant], there
            )
            if lost > CAUTION * value[meant]:
                if row >= 0:
                    own[:] = False
                answer[job] = TOO_DEAR
                continue
            _rank(table, value, first, end, flat, order)
            each = order[0]
            note_demand(demand.seen, demand.fade, table[each, KIND], table[each, GPUS], table[each, NEED], value[each])
        joins = -1
        if not (row >= 0 and value[row] >= jobs.best[job]) and now_first[job + 1] > now_first[job]:
            had = value[row] if row >= 0 else 0.0
            some = _rank(now_table, now_value, now_first[job], now_first[job + 1], dear, order)
            for at in range(some):
                each = order[at]
                if now_value[each] <= had or now_free[now_table[each, KIND]] < now_table[each, GPUS]:
                    continue
                if _choose(known, now_table, each, free, own):
                    joins = each
                    break
        if joins < 0 and row < 0:
            if may_move > 0 and _may_squeeze(known, table, first, end, free, may_move):
                answer[job] = SQUEEZE
                return job + 1
            answer[job] = WAITS
            continue
        option = now_table[joins] if joins >= 0 else table[row]
        earliest = option[LAST]
        for lease in range(option[LAST] - 1, -1, -1):
            if own[lease]:
                free[option[KIND], lease] -= option[GPUS]
                use[option[KIND], lease] += option[GPUS]
                earliest = lease
        _forget(known, option[KIND], earliest)
        answer[job], answers.row[job] = (AT_ONCE, joins) if joins >= 0 else (PLACED, row)
        if joins >= 0:
            kind, size = option[KIND], option[GPUS]
            leases.left[kind] -= size
            take_in(leases.counts[kind], leases.sizes[kind], size)
            now_free[kind] = min(leases.left[kind], largest_in(leases.counts[kind], leases.sizes[kind]))
    return n_jobs
