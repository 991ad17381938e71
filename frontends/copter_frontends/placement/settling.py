"""Placing the new and changed jobs of one GPU type around those that kept their nodes (thesis 3.3.3-3.3.4)."""

from __future__ import annotations

from collections.abc import Mapping
from heapq import heappop, heappush
from typing import NoReturn

from copter_frontends.placement.errors import PlacementError
from copter_frontends.placement.eviction import nodes_to_clear, room_for
from copter_frontends.placement.node_pool import NodePool
from copter_frontends.vocabulary import Allocation


def settle(
    pool: NodePool, pending: Mapping[str, int], previous: Mapping[str, Allocation]
) -> tuple[dict[str, Allocation], set[str]]:
    """Place the pending jobs of a type: whole nodes first, then parts of nodes in descending size.

    Jobs of whole nodes never need to move: nodes without a pinned job are all alike, so it does not matter which of
    them such a job has.

    Parameters
    ----------
    pool : NodePool
        Nodes of the type, with the kept and pinned jobs on them; changed in place.
    pending : mapping of job id to GPUs
    previous : mapping of job id to Allocation
        Previous allocations; a pending job of whole nodes gets as many of its previous nodes as possible.

    Returns
    -------
    (allocations, displaced)
        Allocations of the pending and the displaced jobs, and the ids of the displaced jobs, which had kept their nodes
        but were moved.

    Raises
    ------
    PlacementError
        If pinned jobs, or sizes that do not divide each other, leave a job without room.
    """
    pool.sort_nodes()
    size = pool.table.gpus_per_node
    order = sorted((-gpus, job) for job, gpus in pending.items())
    whole = [(job, -minus) for minus, job in order if -minus >= size]
    small = [(minus, job) for minus, job in order if -minus < size]
    evicted = _clear_nodes(pool, whole)
    placed = _place_whole(pool, whole, previous)
    for job, gpus in evicted.items():
        heappush(small, (-gpus, job))
    displaced = set(evicted) | _place_small(pool, small)
    displaced.difference_update(pending)
    for job in (*(job for _, job in order if job not in placed), *displaced):
        node, gpus = pool.homes[job]
        placed[job] = Allocation(pool.table.gpu_type, gpus, ((pool.table.ids[node], gpus),))
    return placed, displaced


def _clear_nodes(pool: NodePool, whole: list[tuple[str, int]]) -> dict[str, int]:
    """Evict small jobs until there are enough free nodes for all jobs of whole nodes; returns the evicted jobs'
    GPUs.
    """
    available, needed = len(pool.buckets[-1]), sum(gpus for _, gpus in whole) // pool.table.gpus_per_node
    if available >= needed:
        return {}
    cleared = nodes_to_clear(pool, needed - available)
    if len(cleared) < needed - available:
        _refuse_whole(pool, whole, available + len(cleared))
    losers = [job for node in cleared for job in pool.residents[node]]
    return {job: pool.evict(job) for job in losers}


def _place_whole(
    pool: NodePool, whole: list[tuple[str, int]], previous: Mapping[str, Allocation]
) -> dict[str, Allocation]:
    """Give each job its own old nodes first, then any free nodes."""
    table, size = pool.table, pool.table.gpus_per_node
    spots: dict[str, list[int]] = {}
    for job, gpus in whole:
        mine = spots[job] = []
        old = previous.get(job)
        if old is None or old.gpu_type != table.gpu_type:
            continue
        for name, _ in old.nodes:
            node = table.index.get(name)
            if node is not None and pool.free[node] == size and len(mine) * size < gpus:
                pool.fill(node)
                mine.append(node)
    placed = {}
    for job, gpus in whole:
        mine = spots[job]
        mine += [pool.fill_last() for _ in range(gpus // size - len(mine))]
        names = sorted(table.ids[node] for node in mine)
        placed[job] = Allocation(table.gpu_type, gpus, tuple((name, size) for name in names))
    return placed


def _place_small(pool: NodePool, queue: list[tuple[int, str]]) -> set[str]:
    """Place jobs by best fit in descending size, evicting smaller jobs if needed; returns the evicted ids.

    `queue` is a heap of (minus GPUs, job id), which is emptied. Evicted jobs are smaller, so they are placed later.
    """
    evicted: set[str] = set()
    while queue:
        minus, job = heappop(queue)
        node = pool.best_fit(-minus)
        if node is None:
            room = room_for(pool, -minus)
            if room is None:
                return evicted | _repack(pool, [(minus, job), *queue])
            node, losers = room
            for loser in losers:
                heappush(queue, (-pool.evict(loser), loser))
            evicted.update(losers)
        pool.put(job, -minus, node)
    return evicted


def _repack(pool: NodePool, waiting: list[tuple[int, str]]) -> set[str]:
    """Remove all movable small jobs and place them again with the waiting ones, in descending size; returns the removed
    ids.

    With sizes that divide each other this never helps; with others (3 beside 2) it may make room.
    """
    taken_off = list(pool.homes)
    everyone = sorted([*waiting, *((-pool.evict(job), job) for job in taken_off)])
    for minus, job in everyone:
        node = pool.best_fit(-minus)
        if node is None:
            _refuse_small(pool, job, -minus)
        pool.put(job, -minus, node)
    return set(taken_off)


def _refuse_whole(pool: NodePool, whole: list[tuple[str, int]], available: int) -> None:
    size, name = pool.table.gpus_per_node, pool.table.gpu_type
    left = available
    for job, gpus in whole:
        left -= gpus // size
        if left < 0:
            raise PlacementError(
                f"job {job!r}: wants {gpus} GPUs of {name!r} as {gpus // size} whole nodes, but only "
                f"{left + gpus // size} are left without {_pins(pool)}; unpin some of them or want fewer GPUs",
                job_id=job,
            )


def _refuse_small(pool: NodePool, job: str, gpus: int) -> NoReturn:
    raise PlacementError(
        f"job {job!r}: no node of type {pool.table.gpu_type!r} has {gpus} GPUs free together, even with all jobs that "
        f"may move packed again around {_pins(pool)}; want sizes that are powers of two, fewer GPUs or fewer pins",
        job_id=job,
    )


def _pins(pool: NodePool) -> str:
    """Describe the pinned jobs, naming a few."""
    if not pool.pinned:
        return "pinned jobs (there are none)"
    names = ", ".join(repr(job) for job in pool.pinned[:5])
    more = len(pool.pinned) - 5
    return f"pinned jobs ({names}{f' and {more} more' if more > 0 else ''})"
