"""Assignment of nodes to the jobs of a plan; pinned jobs may have any shape."""

from __future__ import annotations

from collections.abc import Mapping

from copter_frontends.placement import PlacementError, Placer
from copter_frontends.policy_kit import NodeInventory
from copter_frontends.vocabulary import Allocation, Cluster

Wanted = Mapping[str, tuple[str, int]]


def that_stay(
    cluster: Cluster, pins: Mapping[str, Allocation], kept: Mapping[str, Allocation]
) -> dict[str, Allocation]:
    """Return the allocations of pinned jobs, and of those `kept` jobs whose GPUs are not pinned by others."""
    nodes, found = NodeInventory(cluster), dict(pins)
    for pin in pins.values():
        nodes.take(pin)
    for job_id, held in kept.items():
        if job_id not in pins and not nodes.short_of(held):
            nodes.take(held)
            found[job_id] = held
    return found


def placed(
    placer: Placer, wanted: Wanted, previous: Mapping[str, Allocation], fixed: Mapping[str, Allocation]
) -> dict[str, Allocation]:
    """Choose nodes for the wanted jobs (job id -> GPU type and GPUs); jobs without room are left out.

    The placer assigns them, and moves jobs if whole nodes must be freed. It cannot handle pins on parts of several
    nodes. With such pins, jobs keep their nodes if these are free, and the others, largest first, take free GPUs on as
    few nodes as possible.
    """
    try:
        return placer.place_what_fits(wanted, previous, fixed.keys() & wanted.keys())[0]
    except PlacementError:
        pass
    nodes, found = NodeInventory(placer.cluster), {job_id: fixed[job_id] for job_id in wanted if job_id in fixed}
    for held in found.values():
        nodes.take(held)
    for job_id, (kind, gpus) in wanted.items():
        held_before = previous.get(job_id)
        if job_id in found or held_before is None or (held_before.gpu_type, held_before.gpus) != (kind, gpus):
            continue
        if all(nodes.has(kind, node) for node, _ in held_before.nodes) and not nodes.short_of(held_before):
            nodes.take(held_before)
            found[job_id] = held_before
    for job_id in sorted(wanted.keys() - found.keys(), key=lambda job_id: (-wanted[job_id][1], job_id)):
        kind, gpus = wanted[job_id]
        shares = nodes.find(kind, gpus, split=True)
        if shares is not None:
            found[job_id] = Allocation(kind, gpus, tuple(sorted(shares)))
            nodes.take(found[job_id])
    return {job_id: found[job_id] for job_id in wanted if job_id in found}
