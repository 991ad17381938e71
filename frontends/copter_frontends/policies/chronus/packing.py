"""Assignment of nodes to guaranteed jobs: consolidated, and their previous nodes if possible (Proposition 1;
chronus.md, C17).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from copter_frontends.policy_kit import NodeInventory
from copter_frontends.policy_kit.free_gpus import Shares
from copter_frontends.vocabulary import Allocation


class Parcel(NamedTuple):
    """A job to be packed: id, GPU type, GPUs used, GPUs taken, previous allocation, and whether it must not move."""

    job_id: str
    gpu_type: str
    gpus: int
    taken: int
    before: Allocation | None = None
    stays: bool = False


def pack(nodes: NodeInventory, parcels: Sequence[Parcel]) -> dict[str, Allocation]:
    """Assign nodes to all parcels; GPUs taken only for rounding are freed at the end."""
    return without_rounding(nodes, parcels, pack_rounded(nodes, parcels))


def pack_rounded(nodes: NodeInventory, parcels: Sequence[Parcel]) -> dict[str, Allocation]:
    """Assign nodes with all GPUs taken to all parcels: those that stay where they are, then the largest first.

    If no parcel stays, all sizes are friendly (:func:`.rounding.friendly_sizes`), the nodes are free and the GPUs
    suffice in number, then all parcels are consolidated: every parcel placed before has a multiple of the current size,
    so that each node's free GPUs are a multiple of it too. Otherwise a parcel may be spread over nodes, or left out if
    its GPUs are not free.

    Parameters
    ----------
    nodes : NodeInventory
        The assigned GPUs are taken from it.
    parcels : sequence of Parcel
    """
    result: dict[str, Allocation] = {}
    size_of = {kind: nodes.node_gpus(kind) for kind in nodes.types}
    for *_, parcel in sorted([(not p.stays, -p.taken, p.before is None, p.job_id, p) for p in parcels]):
        shares = _as_before(nodes, parcel, size_of[parcel.gpu_type])
        if shares is None:
            shares = nodes.find(parcel.gpu_type, parcel.taken)
        if shares is None:
            shares = nodes.find(parcel.gpu_type, parcel.gpus, split=True)
        if shares is None:
            continue
        before = parcel.before
        if before is not None and shares is before.nodes:
            whole = before
        else:
            whole = Allocation(parcel.gpu_type, sum([gpus for _, gpus in shares]), shares)
        nodes.take(whole)
        result[parcel.job_id] = whole
    return result


def without_rounding(
    nodes: NodeInventory, parcels: Sequence[Parcel], packed: dict[str, Allocation]
) -> dict[str, Allocation]:
    """Free the GPUs that packed parcels take only for rounding, and return what they use."""
    for parcel in parcels:
        whole = packed.get(parcel.job_id)
        if whole is not None and whole.gpus > parcel.gpus:
            nodes.give(whole)
            used = packed[parcel.job_id] = _used(parcel, whole)
            nodes.take(used)
    return packed


def _as_before(nodes: NodeInventory, parcel: Parcel, size: int) -> Shares | None:
    """Return the job's previous nodes with the GPUs to take; None if they are not free, or if the job may move and was
    not consolidated.
    """
    held, taken = parcel.before, parcel.taken
    if held is None or held.gpu_type != parcel.gpu_type or held.gpus != parcel.gpus:
        return None
    shares = held.nodes
    spread = len(shares) > -(-taken // size)
    if spread and not parcel.stays:
        return None
    if not spread and taken > held.gpus:
        shares = tuple([(node, min(taken, size)) for node, _ in shares])
        if sum([gpus for _, gpus in shares]) != taken:
            return None
    return shares if nodes.has_room(parcel.gpu_type, shares) else None


def _used(parcel: Parcel, whole: Allocation) -> Allocation:
    """Return the GPUs that the job uses, out of those that it takes."""
    room, before = dict(whole.nodes), parcel.before
    if before is not None and before.gpus == parcel.gpus and all(room.get(n, 0) >= gpus for n, gpus in before.nodes):
        return before
    left, shares = parcel.gpus, []
    for node, gpus in whole.nodes:
        if left > 0:
            shares.append((node, min(gpus, left)))
            left -= shares[-1][1]
    return Allocation(parcel.gpu_type, parcel.gpus, tuple(shares))
