"""Nodes for rigid jobs: where they were if they can be, else on as few nodes as can be."""

from __future__ import annotations

from collections.abc import Mapping

from copter_frontends.baselines.free_gpus import FreeGpus
from copter_frontends.vocabulary import Allocation, Cluster


def place_gangs(
    cluster: Cluster,
    wanted: Mapping[str, tuple[str, int]],
    previous: Mapping[str, Allocation],
    pinned: Mapping[str, Allocation],
) -> dict[str, Allocation]:
    """Give jobs nodes, pinned ones first, then those that can stay, then the others as they fit.

    A job for which free GPUs are on too many nodes is left out of the round.
    """
    free = {name: FreeGpus(kind.gpus_per_node) for name, kind in cluster.types.items()}
    for node in cluster.nodes.values():
        free[node.gpu_type].add(node.id)
    found = dict(pinned)
    for allocation in pinned.values():
        free[allocation.gpu_type].take(allocation.nodes)
    pending = []
    for job_id, (kind, gpus) in wanted.items():
        old = previous.get(job_id)
        same = old is not None and (old.gpu_type, old.gpus) == (kind, gpus)
        if same and old is not None and _fits(free[kind], old):
            free[kind].take(old.nodes)
            found[job_id] = old
        else:
            pending.append(job_id)
    for job_id in sorted(pending, key=lambda j: -wanted[j][1]):
        kind, gpus = wanted[job_id]
        shares = free[kind].find(gpus)
        if shares is not None:
            free[kind].take(shares)
            found[job_id] = Allocation(kind, gpus, shares)
    return found


def _fits(free: FreeGpus, old: Allocation) -> bool:
    known = set(free.nodes)
    return all(node in known and free.free_on(node) >= gpus for node, gpus in old.nodes)
