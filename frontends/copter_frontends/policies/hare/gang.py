"""List scheduling of rigid jobs: all of a job's GPUs at once, of one type."""

from __future__ import annotations

import heapq
from collections.abc import Mapping, Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Gang:
    """A rigid job: the GPUs that it needs at once, its weight w_n, and its seconds on each type that can run it."""

    gpus: int
    weight: float
    seconds: Mapping[str, float]


@dataclass(frozen=True, slots=True)
class GangSchedule:
    """Result of :func:`gang_schedule`.

    Attributes
    ----------
    now : dict of job id to (GPU type, GPUs)
        Jobs that run from now on, in list order.
    order : tuple of job ids
    cost : float
        Sum of w_n C_n of the list schedule, in seconds from now.
    """

    now: dict[str, tuple[str, int]]
    order: tuple[str, ...]
    cost: float


def gang_schedule(gangs: Mapping[str, Gang], order: Sequence[str], free: Mapping[str, int]) -> GangSchedule:
    """Give each job in turn the type with the earliest finish, then let waiting jobs backfill idle GPUs.

    Parameters
    ----------
    gangs : mapping of job id to Gang
    order : sequence of job ids
    free : mapping of GPU type to int
        GPUs that are free now.
    """
    # By type, a heap of (time, GPUs that become free at this time); jobs start only at these times.
    heaps = {kind: [(0.0, count)] for kind, count in free.items() if count > 0}
    now: dict[str, tuple[str, int]] = {}
    cost, waiting = 0.0, []
    for job_id in order:
        gang = gangs[job_id]
        best, finish, start = None, float("inf"), 0.0
        for kind, seconds in gang.seconds.items():
            if kind in heaps and free[kind] >= gang.gpus:
                at = _start(heaps[kind], gang.gpus)
                if at + seconds < finish:
                    best, finish, start = kind, at + seconds, at
        if best is None:
            continue
        _take(heaps[best], gang.gpus, finish)
        cost += gang.weight * finish
        if start == 0.0:
            now[job_id] = (best, gang.gpus)
        else:
            waiting.append(job_id)
    left = {kind: count - sum(g for k, g in now.values() if k == kind) for kind, count in free.items()}
    for job_id in waiting:
        gang = gangs[job_id]
        for kind in sorted(gang.seconds, key=lambda k: gangs[job_id].seconds[k]):
            if left.get(kind, 0) >= gang.gpus:
                now[job_id] = (kind, gang.gpus)
                left[kind] -= gang.gpus
                break
    return GangSchedule(now, tuple(order), cost)


def _start(heap: list[tuple[float, int]], gpus: int) -> float:
    """Return the time from which this many GPUs are free at once."""
    short, at = gpus, 0.0
    for when, count in sorted(heap) if heap[0][1] < gpus else heap[:1]:
        at, short = when, short - count
        if short <= 0:
            break
    return at


def _take(heap: list[tuple[float, int]], gpus: int, until: float) -> None:
    """Occupy this many GPUs, those that are free first, until a time."""
    short = gpus
    while short > 0:
        when, count = heapq.heappop(heap)
        if count > short:
            heapq.heappush(heap, (when, count - short))
        short -= count
    heapq.heappush(heap, (until, gpus))
