"""Making room for a pin: the jobs on its nodes, and those of them that must stop."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence

from copter_frontends.policy_kit.node_inventory import NodeInventory
from copter_frontends.vocabulary import Allocation


def jobs_on(nodes: Collection[str], held: Mapping[str, Allocation]) -> list[str]:
    """Return the ids of the jobs with a GPU on any of these nodes."""
    return [job_id for job_id, allocation in held.items() if any(node in nodes for node, _ in allocation.nodes)]


def _whole(allocation: Allocation) -> Sequence[Allocation]:
    return (allocation,)


def jobs_to_stop(
    nodes: NodeInventory,
    job_id: str,
    parts: Sequence[Allocation],
    held: Mapping[str, Allocation],
    pins: Mapping[str, Allocation],
    parts_of: Callable[[Allocation], Sequence[Allocation]] = _whole,
) -> list[str]:
    """Return the jobs to stop so that a job can be pinned; raises CapacityInUseError if other pins are in the way.

    Parameters
    ----------
    nodes : NodeInventory
    job_id : str
        The job to be pinned.
    parts : sequence of Allocation
        Parts of the pin, with one GPU type each.
    held, pins : mapping of job id to Allocation
        Current allocations, and allocations of pinned jobs.
    parts_of : callable (Allocation) -> sequence of Allocation
        Splits an allocation into parts of one GPU type each; by default allocations have one type.
    """
    pinned = [part for other, pin in pins.items() if other != job_id for part in parts_of(pin)]
    for part in parts:
        nodes.require_free(job_id, part, pinned)
    wanted = {node for part in parts for node, _ in part.nodes}
    return [other for other in jobs_on(wanted, held) if other not in pins and other != job_id]
