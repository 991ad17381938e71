"""Choice of the jobs to evict when fragmentation leaves another job without room (thesis 3.3.4).

Why it suffices to evict smaller jobs: a node with c free GPUs has floor(c / s) slots of size s. If every size divides
the next larger one, a job of size s takes exactly one slot of size s, and s / s' slots of each smaller size s', on any
node. So the number of slots of size s that jobs of size s or more leave free does not depend on their nodes. If the
jobs can be placed at all, there is a node on which evicting *smaller* jobs makes room, wherever the larger jobs are.
The same then holds for the evicted jobs and their sizes.
"""

from __future__ import annotations

from heapq import nsmallest

from copter_frontends.placement.node_pool import NodePool


def nodes_to_clear(pool: NodePool, count: int) -> list[int]:
    """Return up to `count` nodes whose movable small jobs hold the fewest GPUs; ties by the fewest jobs.

    Nodes with a pinned job or a job of whole nodes are excluded.
    """
    size, free = pool.table.gpus_per_node, pool.free
    candidates = []
    for node, jobs in pool.residents.items():
        held = sum(jobs.values())
        if held + free[node] == size:
            candidates.append((held, len(jobs), node))
    return [node for _, _, node in nsmallest(count, candidates)]


def room_for(pool: NodePool, gpus: int) -> tuple[int, list[str]] | None:
    """Return the node on which a job of `gpus` needs the fewest evicted GPUs (then the fewest jobs), and the evicted
    jobs.

    Only jobs smaller than `gpus` are evicted. Call it when no node has `gpus` free GPUs.

    Returns
    -------
    (node number, job ids) or None
        None if no node can make room in this way.
    """
    best: tuple[int, int, int] | None = None
    evicted: list[str] = []
    residents = pool.residents
    for free in range(gpus - 1, -1, -1):
        lacking = gpus - free
        if best is not None and best[0] < lacking:
            break
        fewest = 2 if free == 0 else lacking.bit_count()
        for node in pool.buckets[free]:
            jobs = residents.get(node)
            if jobs is None or (result := _cheapest(jobs, gpus, lacking)) is None:
                continue
            cost, losers = result
            if best is None or (cost, len(losers), node) < best:
                best, evicted = (cost, len(losers), node), losers
                if cost == lacking and len(losers) <= fewest:
                    return node, losers
    return None if best is None else (best[2], evicted)


def _cheapest(jobs: dict[str, int], below: int, lacking: int) -> tuple[int, list[str]] | None:
    """Return a small set of jobs, each below `below` GPUs, that hold at least `lacking` GPUs: (GPUs, job ids).

    The set is optimal if sizes divide each other and some set holds exactly `lacking` GPUs, otherwise nearly so. None
    if all jobs together hold too few.
    """
    smaller = sorted((-gpus, job) for job, gpus in jobs.items() if gpus < below)
    chosen: list[tuple[int, str]] = []
    spare: tuple[int, str] | None = None
    for gpus, job in ((-gpus, job) for gpus, job in smaller):
        if gpus <= lacking:
            chosen.append((gpus, job))
            lacking -= gpus
        else:
            spare = (gpus, job)
    if lacking > 0:
        if spare is None:
            return None
        excess = spare[0] - lacking
        kept = []
        for gpus, job in chosen:
            if gpus <= excess:
                excess -= gpus
            else:
                kept.append((gpus, job))
        chosen = [*kept, spare]
    return sum(gpus for gpus, _ in chosen), [job for _, job in chosen]
